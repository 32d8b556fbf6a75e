//! Single values of a file.

use std::collections::BTreeMap;

use landspeed_record::GridFigure;
use landspeed_record::strict::{FileMistake, here};
use landspeed_record::units::{Nanos, parse_duration};
use serde::Deserialize;
use toml::Spanned;

/// A value in a file: text, a number or a switch.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum FileValue {
    Text(String),
    Number(i64),
    Switch(bool),
}

impl FileValue {
    pub(super) fn text(&self) -> String {
        match self {
            FileValue::Text(text) => text.clone(),
            FileValue::Number(number) => number.to_string(),
            FileValue::Switch(on) => if *on { "on" } else { "off" }.to_owned(),
        }
    }
}

/// Settings by their names.
pub(super) type FileSettings = BTreeMap<String, Spanned<FileValue>>;

/// Returns the figure of this name.
pub(super) fn figure(name: &Spanned<String>) -> Result<GridFigure, FileMistake> {
    GridFigure::named(name.get_ref()).ok_or_else(|| {
        let known: Vec<&str> = GridFigure::all().map(|figure| figure.name).collect();
        let (asked, known) = (name.get_ref(), known.join(", "));
        here(name)(format!("no figure is called '{asked}'; there are {known}"))
    })
}

/// Parses a percentage as a share: "3%" is 0.03.
pub(super) fn share(text: &Spanned<String>) -> Result<f64, FileMistake> {
    let percent = text.get_ref().strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    let share = percent.map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share <= 10.0);
    share.ok_or_else(|| here(text)(format!("'{}': expected a percentage such as \"3%\"", text.get_ref())))
}

/// Parses a duration.
pub(super) fn time(text: &Spanned<String>) -> Result<Nanos, FileMistake> {
    parse_duration(text.get_ref()).map_err(|error| here(text)(error.to_string()))
}
