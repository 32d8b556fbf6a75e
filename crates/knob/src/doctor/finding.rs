//! A finding of the doctor.

use serde::Serialize;

/// The severity of a finding. The order is from the least to the most serious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The remedy is worth a try on some paths.
    Hint,
    /// The setting costs a considerable part of the rate or of the processor time on the usual paths of such a link.
    Warning,
    /// The setting, or the state of the link, keeps the link from carrying the traffic that it is made for.
    Fault,
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Severity::Hint => "hint",
            Severity::Warning => "warning",
            Severity::Fault => "fault",
        })
    }
}

/// A finding about one setting of a host. All text is safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SettingFinding {
    /// The severity of the finding.
    pub severity: Severity,
    /// Name of the knob that changes the setting; empty if there is none.
    pub knob: &'static str,
    /// The current setting.
    pub now: String,
    /// What the setting means for this link, in one sentence.
    pub what: String,
    /// The source of the rule: kernel documentation, RFC, paper section.
    pub source: &'static str,
    /// The remedy.
    pub remedy: String,
    /// The shell command of the remedy; `None` if no single command is the remedy.
    pub command: Option<String>,
}
