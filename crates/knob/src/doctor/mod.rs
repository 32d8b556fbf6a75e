//! Rules that find settings of a host which do not suit its link.
//!
//! A finding names the setting, why it matters, the source of the rule, and the remedy. Its severity ranges from hint
//! to fault. A finding is not measured: `landspeed tune` measures whether a change helps on a given path.
//!
//! There is one table of rules for each family of settings; [`doctor()`] joins them.

mod finding;
mod host;
mod link;
mod offloads;
mod path;
mod queues;
mod rule;
mod tcp;
mod windows;

use landspeed_record::{HostFacts, KnobState, LinkFacts};

pub use finding::{SettingFinding, Severity};
pub use path::DoctorPath;
use rule::{DoctorInput, DoctorRule};

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
