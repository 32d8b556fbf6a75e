//! Rules that find settings of a host which do not suit its link.
//!
//! A finding names the setting, why it matters, the source of the rule, and the remedy. Its severity ranges from hint
//! to fault. A finding is not measured: `landspeed tune` measures whether a change helps on a given path.
//!
//! There is one table of rules for each family of settings; [`doctor()`] joins them.

mod host;
mod link;
mod offloads;
mod queues;
mod rule;
mod tcp;
mod windows;

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{HostFacts, KnobState, LinkFacts};
use serde::Serialize;

use rule::{DoctorInput, DoctorRule};

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
    /// How serious the finding is.
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

/// The known properties of the path that a host is used for. They take precedence over the speed that the link reports
/// and over assumed values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DoctorPath {
    /// Rate that the path carries; `None` if it is unknown.
    pub rate: Option<BitRate>,
    /// RTT without load; `None` if it is unknown.
    pub rtt: Option<Nanos>,
}

impl DoctorPath {
    /// Returns true if anything is known of the path.
    pub fn is_known(&self) -> bool {
        self.rate.is_some() || self.rtt.is_some()
    }
}

const TABLES: [&[DoctorRule]; 6] =
    [link::RULES, windows::RULES, offloads::RULES, tcp::RULES, queues::RULES, host::RULES];

/// Returns the findings for a host, sorted by severity with the worst first, and then in the order of the tables.
/// Without a `link`, only the rules that hold for every link apply. Rules for knobs that are missing in `states` are
/// skipped. If the rate or the RTT of the `path` is known, hints on settings are left out, because they help only on some
/// paths. Hints on the host itself, such as its kernel, name no knob and hold for every path.
pub fn doctor(
    facts: &HostFacts,
    link: Option<&LinkFacts>,
    states: &[KnobState],
    path: DoctorPath,
) -> Vec<SettingFinding> {
    let input = DoctorInput::new(facts, link, states, path);
    let mut findings: Vec<SettingFinding> =
        TABLES.iter().flat_map(|rules| rules.iter()).flat_map(|rule| rule.findings(&input)).collect();
    let of_some_paths = |one: &SettingFinding| one.severity == Severity::Hint && !one.knob.is_empty();
    findings.retain(|finding| !(path.is_known() && of_some_paths(finding)));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
mod tests;
