//! What stands out in a host's settings against its link.
//!
//! Folklore is kept apart from faults: a finding says what is set, why it matters, on whose word, and how
//! to change it. It is no verdict: `landspeed tune` measures whether a change helps on a given path.
//!
//! One table for each family of settings, joined in [`doctor()`].

mod case;
mod host;
mod link;
mod offloads;
mod queues;
mod tcp;
mod windows;

use landspeed_record::{HostFacts, KnobState, LinkFacts};
use serde::Serialize;

use case::{Case, Rule};

/// How much is at stake. Ordered: the worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a try on some paths.
    Hint,
    /// Costs a good part of the rate or of the processor on the paths that the link is for.
    Warning,
    /// The link cannot carry what it should.
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

/// One thing that stands out. All text is safe to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much is at stake.
    pub severity: Severity,
    /// The knob that would change it, by the name in the knob table; empty where none would.
    pub knob: &'static str,
    /// What is set now.
    pub now: String,
    /// What that means for this link, one sentence.
    pub what: String,
    /// On whose word: kernel documentation, RFC, paper section.
    pub source: &'static str,
    /// What to do.
    pub remedy: String,
}

const TABLES: [&[Rule]; 6] =
    [link::RULES, windows::RULES, offloads::RULES, tcp::RULES, queues::RULES, host::RULES];

/// What stands out on the host of `facts`, worst first, else in the order of the tables. Without a `link`
/// only what holds for every link is looked at. A knob that `states` does not tell is passed over.
pub fn doctor(facts: &HostFacts, link: Option<&LinkFacts>, states: &[KnobState]) -> Vec<Finding> {
    let case = Case::new(facts, link, states);
    let mut findings: Vec<Finding> =
        TABLES.iter().flat_map(|rules| rules.iter()).flat_map(|rule| rule.findings(&case)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
mod tests;
