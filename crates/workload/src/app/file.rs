//! The structure of an application's TOML file, before the file is checked.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::app::model::{RequiredProgram, ServiceLifetime};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ApplicationFile {
    pub(crate) title: Spanned<String>,
    #[serde(default)]
    pub(crate) source: String,
    /// The reason for the application and what to look for in it. The program ignores this text; it is for readers of
    /// the file.
    #[serde(default)]
    #[expect(dead_code, reason = "it is there to be read in the file")]
    pub(crate) about: String,
    pub(crate) hosts: Option<Spanned<[usize; 2]>>,
    #[serde(default)]
    pub(crate) needs: Vec<RequiredProgram>,
    #[serde(default)]
    pub(crate) parameter: BTreeMap<Spanned<String>, ParameterFile>,
    #[serde(default)]
    pub(crate) role: Vec<RoleFile>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureFile>,
    pub(crate) picture: Option<PictureFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ParameterFile {
    pub(crate) about: String,
    pub(crate) is: Spanned<ParameterKind>,
    pub(crate) default: Spanned<String>,
    /// The values of a choice.
    #[serde(default)]
    pub(crate) of: Vec<String>,
    /// The smallest and the largest value of a number, of bytes or of a time.
    pub(crate) between: Option<Spanned<[String; 2]>>,
    /// The time that a trial of a tuning run should take. The parameter's value is lowered until a trial takes that
    /// long.
    pub(crate) fills: Option<Spanned<String>>,
}

/// The kind of a parameter.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ParameterKind {
    Number,
    Bytes,
    Time,
    Choice,
    Text,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RoleFile {
    pub(crate) name: Spanned<String>,
    pub(crate) on: Spanned<HostSelectorFile>,
    pub(crate) command: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) before: Vec<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    pub(crate) file: Vec<FixtureFile>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, Spanned<String>>,
    pub(crate) ready: Option<Spanned<ReadyFile>>,
    pub(crate) lives: Option<Spanned<ServiceLifetime>>,
    pub(crate) carries: Option<Spanned<String>>,
    pub(crate) within: Option<Spanned<String>>,
    pub(crate) user: Option<Spanned<String>>,
    pub(crate) disk: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) hides: Vec<Spanned<String>>,
    pub(crate) end: Option<EndFile>,
}

/// The hosts of a role: a word, or a list of numbers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum HostSelectorFile {
    Word(String),
    Numbers(Vec<usize>),
}

/// The condition under which a service is ready: exactly one of the fields is set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ReadyFile {
    pub(crate) port: Option<Spanned<String>>,
    pub(crate) line: Option<Spanned<String>>,
    pub(crate) command: Option<Spanned<Vec<Spanned<String>>>>,
}

/// A file that a role needs: either a text, or `bytes` random bytes from a seed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FixtureFile {
    pub(crate) path: Spanned<String>,
    pub(crate) text: Option<Spanned<String>>,
    pub(crate) bytes: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) seed: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct EndFile {
    pub(crate) signal: Spanned<String>,
    pub(crate) within: Option<Spanned<String>>,
}

/// A picture in the JSON output of a role.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PictureFile {
    pub(crate) role: Spanned<String>,
    pub(crate) json: Spanned<String>,
}

/// A figure: exactly one of `line`, `json` and `wall-time`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FigureFile {
    pub(crate) name: Spanned<String>,
    pub(crate) unit: String,
    /// "better" if more of the figure is better, otherwise "worse".
    pub(crate) more: FigureDirection,
    pub(crate) role: Spanned<String>,
    pub(crate) line: Option<Spanned<String>>,
    pub(crate) json: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) wall_time: bool,
    /// Separator of groups of three digits.
    pub(crate) thousands: Option<Spanned<char>>,
    /// Decimal separator, if it is not a point.
    pub(crate) decimal: Option<Spanned<char>>,
    pub(crate) scale: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FigureDirection {
    Better,
    Worse,
}
