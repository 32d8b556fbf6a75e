//! Rules that find settings of a host which do not suit its link.
//!
//! A finding is not a verdict. It names the setting, why it matters, the source of the rule, and the remedy;
//! `landspeed tune` measures whether a change helps on a given path. The severity separates mere hints from faults.
//!
//! There is one table of rules for each family of settings; [`doctor()`] joins them.

mod host;
mod link;
mod offloads;
mod queues;
mod rule;
mod tcp;
mod windows;

use landspeed_record::{HostFacts, KnobState, LinkFacts};
use serde::Serialize;

use rule::{DoctorInput, DoctorRule};

/// How serious a finding is. The worst is the greatest in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a try on some paths.
    Hint,
    /// Costs a considerable part of the rate or of the processor on the paths that the link is for.
    Warning,
    /// Prevents the link from carrying what it should.
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
    /// The name of the knob that would change it; empty if there is none.
    pub knob: &'static str,
    /// The current setting.
    pub now: String,
    /// What the setting means for this link, in one sentence.
    pub what: String,
    /// The source of the rule: kernel documentation, RFC, paper section.
    pub source: &'static str,
    /// The remedy.
    pub remedy: String,
}

const TABLES: [&[DoctorRule]; 6] =
    [link::RULES, windows::RULES, offloads::RULES, tcp::RULES, queues::RULES, host::RULES];

/// Returns the findings for a host, the worst first, otherwise in the order of the tables. Without a `link`, only the
/// rules that hold for every link apply. Rules for knobs that are missing in `states` are skipped.
pub fn doctor(facts: &HostFacts, link: Option<&LinkFacts>, states: &[KnobState]) -> Vec<SettingFinding> {
    let input = DoctorInput::new(facts, link, states);
    let mut findings: Vec<SettingFinding> =
        TABLES.iter().flat_map(|rules| rules.iter()).flat_map(|rule| rule.findings(&input)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
mod tests;
