//! The keys of an experiment's file.

use serde::Deserialize;
use toml::Spanned;

use super::control::ControlSection;
use super::expectation::ExpectSection;
use super::factors::VarySection;
use super::values::FileSettings;

/// The keys of an experiment's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ExperimentFile {
    pub(super) title: String,
    #[serde(default)]
    pub(super) source: String,
    /// The purpose of the experiment and hints for reading its results, for readers of the file.
    #[serde(default)]
    #[expect(dead_code, reason = "it is there to be read in the file")]
    about: String,
    pub(super) workload: Spanned<String>,
    #[serde(default)]
    pub(super) topology: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) baseline: Option<Spanned<String>>,
    /// Names of the conditions that decide figures and that the experiment leaves as it finds them.
    #[serde(default)]
    pub(super) as_found: Vec<Spanned<String>>,
    /// The start-up time of each trial, which is not counted. If missing, it is the workload's usual start-up time.
    #[serde(default)]
    pub(super) warm_up: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) set: FileSettings,
    #[serde(default)]
    pub(super) vary: Vec<VarySection>,
    #[serde(default)]
    pub(super) by: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) figure: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) factorial: bool,
    #[serde(default)]
    pub(super) stop: StopSection,
    #[serde(default)]
    pub(super) short: ShortSection,
    #[serde(default)]
    pub(super) expect: Vec<ExpectSection>,
    #[serde(default)]
    pub(super) control: Option<ControlSection>,
}

/// The conditions under which the experiment ends.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct StopSection {
    #[serde(default)]
    pub(super) blocks: Option<u32>,
    #[serde(default)]
    pub(super) precision: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) budget: Option<Spanned<String>>,
}

/// The changes of the short version, which takes a few minutes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ShortSection {
    #[serde(default)]
    pub(super) stop: Option<StopSection>,
    /// The values that the short version keeps, by factor.
    #[serde(default)]
    pub(super) values: FileSettings,
}
