//! Checks the parameters of an application, and adds those that every application has.

use landspeed_record::factor::{Domain, Factor};
use landspeed_record::units::{Bytes, Nanos, parse_duration};
use toml::Spanned;

use super::{FileMistake, here};
use crate::app::file::{ApplicationFile, FigureFile, ParameterFile, ParameterKind};
use crate::app::fill::PLACEHOLDERS;
use crate::app::model::ApplicationParameter;

/// Name of the parameter that chooses the deciding figure.
pub const METRIC: &str = "metric";
/// Name of the parameter that chooses the path of the programs' connections.
pub const PATH: &str = "path";
/// The parameter `port`, which every application has.
const PORT: Factor = Factor {
    name: "port",
    about: "TCP port of the application's server",
    domain: Domain::Int(1, 65_535),
    default: "17000",
    ..Factor::FLOW
};

/// Returns the parameter that chooses the path of the programs' connections.
fn path() -> Factor {
    let about = "what carries its connections below the sockets; a trial fails where one stayed on TCP";
    Factor { name: PATH, about, domain: Domain::Names(paths), default: paths()[0], ..Factor::FLOW }
}

/// Returns true if RDMA devices carry the connections of programs over the path with this name.
pub fn is_over_rdma(path: &str) -> bool {
    landspeed_path::find(path).is_some_and(|path| path.is_rdma())
}

fn paths() -> Vec<&'static str> {
    landspeed_path::PATHS.iter().map(|path| path.name()).collect()
}

/// Returns the parameters of the file, followed by those that every application has.
pub(super) fn parameters(file: &ApplicationFile) -> Result<Vec<ApplicationParameter>, FileMistake> {
    let listed = file.parameter.iter().map(|(name, parameter)| own(name, parameter));
    listed.chain([Ok(PORT.into()), Ok(path().into()), chosen(&file.figure)]).collect()
}

/// Returns the parameter that chooses the deciding figure.
fn chosen(figures: &[FigureFile]) -> Result<ApplicationParameter, FileMistake> {
    let names: Vec<String> = figures.iter().map(|figure| figure.name.get_ref().clone()).collect();
    let Some(first) = names.first().cloned() else {
        let why =
            "there is no figure: add [[figure]] with a name, a unit, the role that prints it and where it is";
        return Err(FileMistake { at: None, why: why.to_owned() });
    };
    let about = "the figure that decides, and that grids compare";
    let metric = Factor { name: METRIC, about, ..Factor::FLOW };
    Ok(ApplicationParameter { default: first, words: names, ..metric.into() })
}

fn own(name: &Spanned<String>, file: &ParameterFile) -> Result<ApplicationParameter, FileMistake> {
    let word = name.get_ref();
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let taken = || PLACEHOLDERS.iter().map(|one| one.name).chain([PORT.name, PATH, METRIC]);
    if !is_word || taken().any(|taken| taken == word) || word.starts_with("host") {
        let taken = taken().collect::<Vec<_>>().join(", ");
        let why = format!("parameter.{word}: choose another name, of a-z and '-', none of {taken}");
        return Err(here(name)(why));
    }
    let (name, about, default) = (word.clone(), file.about.clone(), String::new());
    let domain = domain(word, file)?;
    let fills = file.fills.as_ref().map(|time| fills(word, file, time)).transpose()?;
    let mut parameter = ApplicationParameter { name, about, default, words: file.of.clone(), domain, fills };
    let default = parameter.declaration().parse(file.default.get_ref());
    parameter.default = default.map_err(|error| here(&file.default)(error.to_string()))?;
    Ok(parameter)
}

/// Returns the longest time that a trial of a tuning run should take. Only a quantity can be lowered to reach it.
fn fills(word: &str, file: &ParameterFile, time: &Spanned<String>) -> Result<Nanos, FileMistake> {
    let wrong = |why: &str| here(time)(format!("parameter.{word}: {why}"));
    match file.is.get_ref() {
        ParameterKind::Number | ParameterKind::Bytes => {
            parse_duration(time.get_ref()).map_err(|error| wrong(&error.to_string()))
        }
        _ => Err(wrong("fills belongs to a number or bytes, which decide how long a trial takes")),
    }
}

/// Returns the domain of a parameter. That of a choice is not used, because a choice has a list of words.
fn domain(word: &str, file: &ParameterFile) -> Result<Domain<'static>, FileMistake> {
    let wrong = |why: &str| Err(here(&file.is)(format!("parameter.{word}: {why}")));
    match (file.is.get_ref(), &file.between, file.of.as_slice()) {
        (ParameterKind::Choice, None, [_, ..]) | (ParameterKind::Text, None, []) => Ok(Domain::Text(200)),
        (ParameterKind::Choice, ..) => wrong("a choice has of = [\"...\", ...]"),
        (is, Some(between), []) => {
            let [least, most] = between.get_ref();
            let why = format!("parameter.{word}: between takes two values of its kind, the least first");
            range(*is, least, most).ok_or_else(|| here(between)(why))
        }
        _ => wrong("number, bytes and time take between = [\"least\", \"most\"], a choice takes of = [...]"),
    }
}

/// Returns the domain from `least` to `most` of a number, bytes or a time; `None` if the bounds cannot be parsed or
/// are not in order.
fn range(is: ParameterKind, least: &str, most: &str) -> Option<Domain<'static>> {
    let bytes = |text: &str| text.parse().ok().map(|Bytes(bytes)| bytes);
    let time = |text: &str| parse_duration(text).ok();
    match is {
        ParameterKind::Number => {
            ascending(least.parse().ok()?, most.parse().ok()?).map(|[least, most]| Domain::Int(least, most))
        }
        ParameterKind::Bytes => {
            ascending(bytes(least)?, bytes(most)?).map(|[least, most]| Domain::Bytes(least, most))
        }
        ParameterKind::Time => {
            ascending(time(least)?, time(most)?).map(|[least, most]| Domain::Time(least, most))
        }
        ParameterKind::Choice | ParameterKind::Text => None,
    }
}

fn ascending<T: PartialOrd>(least: T, most: T) -> Option<[T; 2]> {
    (least <= most).then_some([least, most])
}
