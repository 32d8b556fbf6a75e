//! Checks the figures of an application, and the roles whose output is read.

use landspeed_record::units::did_you_mean;
use regex_lite::Regex;
use toml::Spanned;

use super::{FileMistake, expression, here, once};
use crate::app::file::{FigureDirection, FigureFile, PictureFile};
use crate::app::model::{ApplicationFigure, ApplicationRole, FigureSource, PictureSource};
use crate::app::number::NumberSpelling;

pub(super) fn figures(
    files: &[FigureFile],
    outputs: &OutputRoles<'_>,
) -> Result<Vec<ApplicationFigure>, FileMistake> {
    once(files.iter().map(|figure| &figure.name))?;
    files.iter().map(|file| outputs.figure(file)).collect()
}

/// The roles of an application. Used to check that each figure names a role whose output is read.
pub(super) struct OutputRoles<'a> {
    pub(super) roles: &'a [ApplicationRole],
    /// The name of the first role that runs to its end.
    pub(super) usual: &'a str,
}

impl OutputRoles<'_> {
    /// Returns the name `role` if a role of this name exists and runs to its end. Returns an error for a service,
    /// because its output is not read.
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

    pub(super) fn picture(&self, file: &PictureFile) -> Result<PictureSource, FileMistake> {
        Ok(PictureSource { role: self.role(&file.role)?, json: pointer(&file.json)? })
    }
}

/// Returns the spelling of the figure's number, from `thousands` and `decimal` of the file.
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
