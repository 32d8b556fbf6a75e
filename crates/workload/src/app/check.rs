//! Turns the TOML into an application. Every mistake is reported with its line and the remedy.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use landspeed_record::factor::{Domain, Factor};
use landspeed_record::strict::{self, FileError, FileMistake, here};
use landspeed_record::units::{Bytes, Nanos, did_you_mean, parse_duration};
use regex_lite::Regex;
use toml::Spanned;

use crate::app::file::{
    ApplicationFile, EndFile, FigureDirection, FigureFile, FixtureFile, HostSelectorFile, ParameterFile,
    ParameterKind, PictureFile, ReadyFile, RoleFile,
};
use crate::app::fill::unknown;
use crate::app::model::{
    Application, ApplicationFigure, ApplicationRole, FigureSource, Fixture, FixtureContent, HostSelector,
    PictureSource, ReadyCondition, ServiceEnd, ServiceLifetime,
};
use crate::app::number::NumberSpelling;

/// The default user of a role.
const USER: &str = "nobody";
/// The default time limit of a role.
const WITHIN: Nanos = Nanos::secs(60);
/// The longest time that a file may give.
const LONGEST: Nanos = Nanos::secs(3600);
/// The default time for a service to end after its signal.
const ENDS_WITHIN: Nanos = Nanos::secs(2);
/// The default size of a role's directory.
const DISK: Bytes = Bytes::mib(256);
/// The largest size of a role's directory.
const MOST_DISK: Bytes = Bytes::mib(16 * 1024);
/// The most hosts that an application may take.
const MOST_HOSTS: usize = 64;

/// Name of the parameter that chooses the figure that decides.
pub const METRIC: &str = "metric";
/// Name of the parameter that chooses the path of the programs' connections.
pub(crate) const PATH: &str = "path";
/// A parameter that every application has.
const PORT: Factor = Factor {
    name: "port",
    about: "TCP port of the application's server",
    domain: Domain::Int(1, 65_535),
    default: "17000",
    ..Factor::FLOW
};

/// Returns the parameter that chooses the path of the programs' connections.
fn path() -> Factor {
    let names: Vec<&'static str> = landspeed_path::PATHS.iter().map(|path| path.name()).collect();
    let default = names[0];
    let about = "what carries its connections below the sockets; a trial fails where one stayed on TCP";
    Factor { name: PATH, about, domain: Domain::OneOf(Vec::leak(names)), default, ..Factor::FLOW }
}

/// Reads the application of the file `path` from its text. Its name is that of the file.
///
/// Its parameters are never freed, so read a text only once.
///
/// # Errors
/// Returns the first mistake, with its line.
pub fn read(path: &Path, text: &str) -> Result<Application, FileError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    strict::read(path, text, |file| application(name, file))
}

fn application(name: String, file: ApplicationFile) -> Result<Application, FileMistake> {
    if file.title.get_ref().trim().is_empty() {
        return Err(here(&file.title)("title: say what it does and which figure comes out".to_owned()));
    }
    let hosts = hosts(&file)?;
    let mut parameters = Vec::new();
    for (name, parameter) in &file.parameter {
        parameters.push(factor(name, parameter)?);
    }
    parameters.push(PORT);
    parameters.push(path());
    parameters.push(chosen(&file.figure)?);
    let names = PlaceholderNames { parameters: &parameters, hosts: hosts[1] };
    let roles = file.role.iter().map(|role| names.role(role)).collect::<Result<Vec<_>, _>>()?;
    once(file.role.iter().map(|role| &role.name))?;
    let Some(client) = file.role.iter().zip(&roles).find(|(_, role)| !role.is_service()) else {
        let why = "no role runs to its end: add a [[role]] without `ready`, such as the client that measures";
        let at = file.role.last().map(|role| role.name.span());
        return Err(FileMistake { at, why: why.to_owned() });
    };
    let outputs = OutputRoles { roles: &roles, usual: client.0.name.get_ref() };
    let figures = figures(&file.figure, &outputs)?;
    let picture = file.picture.as_ref().map(|picture| outputs.picture(picture)).transpose()?;
    let title = file.title.into_inner();
    let (source, needs) = (file.source, file.needs);
    Ok(Application { name, title, source, hosts, needs, parameters, roles, figures, picture })
}

fn hosts(file: &ApplicationFile) -> Result<[usize; 2], FileMistake> {
    let Some(hosts) = &file.hosts else { return Ok([2, 2]) };
    match *hosts.get_ref() {
        [least, most] if 2 <= least && least <= most && most <= MOST_HOSTS => Ok([least, most]),
        _ => Err(here(hosts)(format!(
            "hosts: give the fewest and the most, such as [2, 4]; {MOST_HOSTS} at most"
        ))),
    }
}

/// Refuses a name that occurs twice.
fn once<'a>(names: impl Iterator<Item = &'a Spanned<String>>) -> Result<(), FileMistake> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.get_ref()) {
            return Err(here(name)(format!("two are called '{}': rename one", name.get_ref())));
        }
    }
    Ok(())
}

/// Returns the parameter that chooses the figure that decides.
fn chosen(figures: &[FigureFile]) -> Result<Factor, FileMistake> {
    let names: Vec<&'static str> = figures.iter().map(|figure| leak(figure.name.get_ref())).collect();
    let Some(first) = names.first().copied() else {
        let why =
            "there is no figure: add [[figure]] with a name, a unit, the role that prints it and where it is";
        return Err(FileMistake { at: None, why: why.to_owned() });
    };
    Ok(Factor {
        name: METRIC,
        about: "the figure that decides, and that grids compare",
        domain: Domain::OneOf(Vec::leak(names)),
        default: first,
        ..Factor::FLOW
    })
}

fn leak(text: &str) -> &'static str {
    String::leak(text.to_owned())
}

fn factor(name: &Spanned<String>, file: &ParameterFile) -> Result<Factor, FileMistake> {
    const TAKEN: &[&str] = &[
        "port",
        "path",
        METRIC,
        "dir",
        "address",
        "server",
        "n",
        "hosts",
        "addresses",
        "token",
        "landspeed",
    ];
    let word = name.get_ref();
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if !is_word || TAKEN.contains(&word.as_str()) || word.starts_with("host") {
        let why =
            format!("parameter.{word}: choose another name, of a-z and '-', none of {}", TAKEN.join(", "));
        return Err(here(name)(why));
    }
    let wrong = here(&file.is);
    let domain = match (file.is.get_ref(), &file.between, file.of.as_slice()) {
        (ParameterKind::Choice, None, of @ [_, ..]) => {
            Domain::OneOf(Vec::leak(of.iter().map(|one| leak(one)).collect()))
        }
        (ParameterKind::Choice, ..) => {
            return Err(wrong(format!("parameter.{word}: a choice has of = [\"...\", ...]")));
        }
        (ParameterKind::Text, None, []) => Domain::Text(200),
        (is, Some(between), []) => {
            let [least, most] = between.get_ref();
            range(*is, least, most).ok_or_else(|| {
                here(between)(format!(
                    "parameter.{word}: between takes two values of its kind, the least first"
                ))
            })?
        }
        _ => {
            return Err(wrong(format!(
                "parameter.{word}: number, bytes and time take between = [\"least\", \"most\"], a choice takes of = [...]"
            )));
        }
    };
    let factor = Factor { name: leak(word), about: leak(&file.about), domain, ..Factor::FLOW };
    let default =
        factor.parse(file.default.get_ref()).map_err(|error| here(&file.default)(error.to_string()))?;
    Ok(Factor { default: leak(&default), ..factor })
}

/// Returns the domain of a parameter with bounds.
fn range(is: ParameterKind, least: &str, most: &str) -> Option<Domain> {
    let bytes = |text: &str| {
        Factor { name: "bytes", domain: Domain::Bytes(0, u64::MAX), ..Factor::FLOW }
            .parse(text)
            .ok()?
            .parse()
            .ok()
    };
    match is {
        ParameterKind::Number => {
            let (least, most): (u64, u64) = (least.parse().ok()?, most.parse().ok()?);
            (least <= most).then_some(Domain::Int(least, most))
        }
        ParameterKind::Bytes => {
            let (least, most): (u64, u64) = (bytes(least)?, bytes(most)?);
            (least <= most).then_some(Domain::Bytes(least, most))
        }
        ParameterKind::Time => {
            let (least, most) = (parse_duration(least).ok()?, parse_duration(most).ok()?);
            (least <= most).then_some(Domain::Time(least, most))
        }
        ParameterKind::Choice | ParameterKind::Text => None,
    }
}

/// The names that placeholders may have.
struct PlaceholderNames<'a> {
    parameters: &'a [Factor],
    hosts: usize,
}

impl PlaceholderNames<'_> {
    fn text(&self, text: &Spanned<String>) -> Result<String, FileMistake> {
        match unknown(text.get_ref(), self.parameters, self.hosts) {
            Some(why) => Err(here(text)(why)),
            None if text.get_ref().contains('\0') => Err(here(text)("a text has no zero byte".to_owned())),
            None => Ok(text.get_ref().clone()),
        }
    }

    fn command(&self, command: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<String>, FileMistake> {
        if command.get_ref().first().is_none_or(|program| program.get_ref().trim().is_empty()) {
            return Err(here(command)(
                "a command names its program first: [\"redis-server\", \"--port\", \"{port}\"]".to_owned(),
            ));
        }
        if command.get_ref().len() == 1 && command.get_ref()[0].get_ref().contains(' ') {
            let why = "a command is a list of arguments, not a line for a shell: [\"sleep\", \"1\"]";
            return Err(here(command)(why.to_owned()));
        }
        command.get_ref().iter().map(|word| self.text(word)).collect()
    }

    fn role(&self, role: &RoleFile) -> Result<ApplicationRole, FileMistake> {
        let ready = role.ready.as_ref().map(|ready| self.ready(ready)).transpose()?;
        let within = role.within.as_ref().map(time).transpose()?.unwrap_or(WITHIN);
        let lives = self.lives(role)?;
        let env = role.env.iter().map(|(name, value)| Ok((name.clone(), self.text(value)?)));
        Ok(ApplicationRole {
            name: role.name.get_ref().clone(),
            on: self.on(&role.on)?,
            ready,
            lives,
            carries: role.carries.as_ref().map(|text| text.get_ref().clone()).unwrap_or_default(),
            within,
            command: self.command(&role.command)?,
            before: role.before.iter().map(|command| self.command(command)).collect::<Result<_, _>>()?,
            files: role.file.iter().map(|file| self.fixture(file)).collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, FileMistake>>()?,
            user: role.user.as_ref().map(user).transpose()?.unwrap_or_else(|| USER.to_owned()),
            disk: role.disk.as_ref().map(disk).transpose()?.unwrap_or(DISK),
            hides: role.hides.iter().map(hidden).collect::<Result<_, _>>()?,
            end: role
                .end
                .as_ref()
                .map(end)
                .transpose()?
                .unwrap_or(ServiceEnd { signal: libc::SIGTERM, within_ns: ENDS_WITHIN }),
        })
    }

    fn on(&self, on: &Spanned<HostSelectorFile>) -> Result<HostSelector, FileMistake> {
        const WORDS: [&str; 4] = ["client", "server", "servers", "hosts"];
        let hosts = self.hosts;
        match on.get_ref() {
            HostSelectorFile::Word(word) => match word.as_str() {
                "client" => Ok(HostSelector::Client),
                "server" => Ok(HostSelector::Server),
                "servers" => Ok(HostSelector::Servers),
                "hosts" => Ok(HostSelector::Hosts),
                _ => Err(here(on)(format!(
                    "on: '{word}' is none of {}{}; it may also be a list of hosts' numbers",
                    WORDS.join(", "),
                    did_you_mean(word, WORDS)
                ))),
            },
            HostSelectorFile::Numbers(numbers)
                if numbers.iter().all(|number| (1..=hosts).contains(number)) =>
            {
                Ok(HostSelector::Numbers(numbers.clone()))
            }
            HostSelectorFile::Numbers(_) => Err(here(on)(format!("on: hosts have the numbers 1 to {hosts}"))),
        }
    }

    /// Returns how long a service lives. One that lives on keeps some state, which the file must name; otherwise it
    /// starts cold.
    fn lives(&self, role: &RoleFile) -> Result<ServiceLifetime, FileMistake> {
        let lives = role.lives.as_ref().map_or(ServiceLifetime::Trial, |lives| *lives.get_ref());
        match (&role.lives, lives, &role.ready, &role.carries) {
            (Some(at), ServiceLifetime::Block, None, _) => Err(here(at)(
                "only a service lives through a block: say when it is ready, or leave lives out".to_owned(),
            )),
            (Some(at), ServiceLifetime::Block, _, None) => Err(here(at)(
                "lives = \"block\" needs carries: say what is carried from one trial to the next".to_owned(),
            )),
            _ => Ok(lives),
        }
    }

    fn ready(&self, ready: &Spanned<ReadyFile>) -> Result<ReadyCondition, FileMistake> {
        let file = ready.get_ref();
        match (&file.port, &file.line, &file.command) {
            (Some(port), None, None) => Ok(ReadyCondition::Port(self.address(port)?)),
            (None, Some(line), None) => {
                expression(line)?;
                Ok(ReadyCondition::Line(line.get_ref().clone()))
            }
            (None, None, Some(command)) => Ok(ReadyCondition::Command(self.command(command)?)),
            _ => Err(here(ready)(
                "ready is one of: { port = \"{address}:{port}\" }, { line = \"REGEX\" }, { command = [...] }"
                    .to_owned(),
            )),
        }
    }

    /// Returns an address and port; "{port}" alone is a port of the host's own address.
    fn address(&self, port: &Spanned<String>) -> Result<String, FileMistake> {
        let text = self.text(port)?;
        Ok(if text.contains(':') { text } else { format!("{{address}}:{text}") })
    }

    fn fixture(&self, file: &FixtureFile) -> Result<Fixture, FileMistake> {
        let path = file.path.get_ref();
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !plain {
            return Err(here(&file.path)(format!(
                "'{path}' must lie below {{dir}}: give a path without '/' at its start and without '..'"
            )));
        }
        let content = match (&file.text, &file.bytes) {
            (Some(text), None) => FixtureContent::Text(self.text(text)?),
            (None, Some(bytes)) => FixtureContent::Seeded { bytes: disk(bytes)?, seed: file.seed },
            _ => {
                return Err(here(&file.path)(format!(
                    "{path}: give text = \"...\", or bytes = \"1M\" and a seed"
                )));
            }
        };
        Ok(Fixture { path: path.clone(), content })
    }
}

fn time(text: &Spanned<String>) -> Result<Nanos, FileMistake> {
    let time = parse_duration(text.get_ref()).map_err(|error| here(text)(error.to_string()))?;
    if time == Nanos(0) || time > LONGEST {
        return Err(here(text)(format!("a time of 1ms to {LONGEST}, not {time}")));
    }
    Ok(time)
}

fn disk(text: &Spanned<String>) -> Result<Bytes, FileMistake> {
    let size = Factor { name: "size", domain: Domain::Bytes(0, MOST_DISK.0), ..Factor::FLOW };
    let bytes = size.parse(text.get_ref()).map_err(|error| here(text)(error.to_string()))?;
    Ok(Bytes(bytes.parse().unwrap_or_default()))
}

fn user(name: &Spanned<String>) -> Result<String, FileMistake> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let text = name.get_ref();
    if text.is_empty() || text.len() > 32 || !text.bytes().all(fine) {
        return Err(here(name)(format!("'{text}' is no name of a user; leave it out for {USER}")));
    }
    Ok(text.clone())
}

fn hidden(path: &Spanned<String>) -> Result<String, FileMistake> {
    let text = path.get_ref();
    let plain =
        Path::new(text).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !text.starts_with('/') || text.len() == 1 || !plain {
        return Err(here(path)(format!(
            "hides takes whole paths of directories and files, such as \"/etc/resolv.conf\", not '{text}'"
        )));
    }
    Ok(text.clone())
}

fn end(file: &EndFile) -> Result<ServiceEnd, FileMistake> {
    const KNOWN: &[(&str, i32)] = &[
        ("SIGTERM", libc::SIGTERM),
        ("SIGINT", libc::SIGINT),
        ("SIGQUIT", libc::SIGQUIT),
        ("SIGHUP", libc::SIGHUP),
        ("SIGKILL", libc::SIGKILL),
    ];
    let name = file.signal.get_ref();
    let found = KNOWN.iter().find(|(known, _)| known == name);
    let (_, signal) = found.ok_or_else(|| {
        let known = KNOWN.iter().map(|(name, _)| *name);
        here(&file.signal)(format!(
            "'{name}' is no signal that ends a role{}; there are {}",
            did_you_mean(name, known.clone()),
            known.collect::<Vec<_>>().join(", ")
        ))
    })?;
    let within_ns = file.within.as_ref().map(time).transpose()?.unwrap_or(ENDS_WITHIN);
    Ok(ServiceEnd { signal: *signal, within_ns })
}

fn expression(text: &Spanned<String>) -> Result<Regex, FileMistake> {
    Regex::new(text.get_ref())
        .map_err(|error| here(text)(format!("'{}' is no regular expression: {error}", text.get_ref())))
}

fn figures(files: &[FigureFile], outputs: &OutputRoles<'_>) -> Result<Vec<ApplicationFigure>, FileMistake> {
    once(files.iter().map(|figure| &figure.name))?;
    files.iter().map(|file| outputs.figure(file)).collect()
}

/// Checks the roles whose output is read.
struct OutputRoles<'a> {
    roles: &'a [ApplicationRole],
    /// The first role that runs to its end.
    usual: &'a str,
}

impl OutputRoles<'_> {
    /// Returns the name of a role whose output is read.
    fn role(&self, role: &Spanned<String>) -> Result<String, FileMistake> {
        let name = role.get_ref();
        let names = || self.roles.iter().map(|role| role.name.as_str());
        match self.roles.iter().find(|one| one.name == *name) {
            None => Err(here(role)(format!(
                "no role is called '{name}'{}; there are {}",
                did_you_mean(name, names()),
                names().collect::<Vec<_>>().join(", ")
            ))),
            Some(service) if service.is_service() => Err(here(role)(format!(
                "{name} is a service, whose output is not read: take a role that ends, such as {}",
                self.usual
            ))),
            Some(_) => Ok(name.clone()),
        }
    }

    fn figure(&self, file: &FigureFile) -> Result<ApplicationFigure, FileMistake> {
        let role = self.role(&file.role)?;
        let source = match (&file.line, &file.json, file.wall_time) {
            (Some(line), None, false) => FigureSource::Line(one_group(line)?),
            (None, Some(json), false) => FigureSource::Json(pointer(json)?),
            (None, None, true) => FigureSource::WallTime,
            _ => {
                return Err(here(&file.name)(
                    "a figure is one of: line = \"REGEX\", json = \"/POINTER\", wall-time = true".to_owned(),
                ));
            }
        };
        let scale = file.scale.unwrap_or(1.0);
        if !(scale.is_finite() && scale > 0.0) {
            return Err(here(&file.name)("scale is a number above 0".to_owned()));
        }
        let (name, unit) = (file.name.get_ref().clone(), file.unit.clone());
        let spelling = spelling(file)?;
        Ok(ApplicationFigure {
            name,
            unit,
            more_is_better: file.more == FigureDirection::Better,
            role,
            source,
            spelling,
            scale,
        })
    }

    fn picture(&self, file: &PictureFile) -> Result<PictureSource, FileMistake> {
        Ok(PictureSource { role: self.role(&file.role)?, json: pointer(&file.json)? })
    }
}

/// Returns how the program spells the figure's number.
fn spelling(file: &FigureFile) -> Result<NumberSpelling, FileMistake> {
    let thousands =
        file.thousands.as_ref().map(|one| separator(one, &[',', '.', '\'', '_', ' '])).transpose()?;
    let decimal = file.decimal.as_ref().map(|one| separator(one, &[',', '.'])).transpose()?.unwrap_or('.');
    let Some(stated) = file.thousands.as_ref().or(file.decimal.as_ref()) else {
        return Ok(NumberSpelling::PLAIN);
    };
    if file.line.is_none() {
        return Err(here(stated)("thousands and decimal are of a figure that a line holds".to_owned()));
    }
    if thousands == Some(decimal) {
        let why = format!("thousands and decimal are both '{decimal}': state the other one too");
        return Err(here(stated)(why));
    }
    Ok(NumberSpelling { thousands, decimal })
}

fn separator(stated: &Spanned<char>, known: &[char]) -> Result<char, FileMistake> {
    let known_one = known.contains(stated.get_ref()).then_some(*stated.get_ref());
    let all = || known.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", ");
    known_one.ok_or_else(|| {
        here(stated)(format!("'{}' separates no digits: take one of {}", stated.get_ref(), all()))
    })
}

fn one_group(line: &Spanned<String>) -> Result<Regex, FileMistake> {
    let found = expression(line)?;
    if found.captures_len() == 2 {
        return Ok(found);
    }
    let why = "the expression needs one group around the number: \"([0-9.]+) requests\"";
    Err(here(line)(why.to_owned()))
}

fn pointer(json: &Spanned<String>) -> Result<String, FileMistake> {
    if json.get_ref().starts_with('/') {
        return Ok(json.get_ref().clone());
    }
    let why = "a JSON pointer begins with '/': \"/end/sum_received/bits_per_second\"";
    Err(here(json)(why.to_owned()))
}
