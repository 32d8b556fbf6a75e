//! The conditions of a copy: the settings of both ends that decide its figures.

use landspeed_record::CopyConditions;

use crate::block::{ReportSection, StyledText};
use crate::conditions::{self, NamedHost};

/// Returns the lines of conditions of a copy, as those of other commands. None for a record that has none.
pub fn condition_lines(of: &CopyConditions) -> Vec<String> {
    lines(of).iter().map(StyledText::words).collect()
}

pub(super) fn lines(of: &CopyConditions) -> Vec<StyledText> {
    let hosts = hosts(of);
    let mut lines = conditions::lines(&hosts, &of.controls);
    // The hosts of a relayed copy are not asked, and those of an older record were not.
    let is_known = hosts.iter().any(|(_, facts)| !facts.conditions.is_empty());
    let is_recorded = !hosts.is_empty() || !of.controls.is_empty();
    if is_recorded && !is_known {
        lines.push(format!("conditions found: not reported{}", conditions::used_words(&of.controls)).into());
    }
    lines
}

/// Returns the section with every setting of every condition.
pub(super) fn section(of: &CopyConditions) -> ReportSection {
    conditions::section(&hosts(of))
}

fn hosts(of: &CopyConditions) -> Vec<NamedHost<'_>> {
    let both = [("source", &of.source_facts), ("target", &of.target_facts)];
    both.into_iter().filter_map(|(name, facts)| Some((name, facts.as_ref()?))).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::{HostFacts, Settings};

    use super::*;

    fn host(mtu: Option<&str>) -> Option<HostFacts> {
        let set = mtu.map(|mtu| Settings::from([("mtu".to_owned(), mtu.to_owned())]));
        let conditions = set.into_iter().map(|set| ("mtu".to_owned(), set)).collect();
        Some(HostFacts { conditions, ..HostFacts::default() })
    }

    fn told(source: Option<HostFacts>, target: Option<HostFacts>, used: &[&str]) -> Vec<String> {
        let controls = used.iter().map(|name| (*name).to_owned()).collect();
        condition_lines(&CopyConditions { source_facts: source, target_facts: target, controls })
    }

    #[test]
    fn both_ends_tell_their_settings_and_the_sockets_their_control() {
        let lines = told(host(Some("9000")), host(Some("1500\u{1b}")), &["bbr", "cubic"]);
        assert!(lines[0].starts_with("conditions found on source: MTU 9000; not reported: "), "{lines:?}");
        assert!(lines[0].ends_with("; the flows used bbr, cubic"), "{lines:?}");
        assert!(
            lines[1].starts_with("conditions found on target: MTU 1500\\u{1b}; not reported: "),
            "{lines:?}"
        );
        let alike = told(host(Some("1500")), host(Some("1500")), &["bbr"]);
        assert!(alike.len() == 1 && alike[0].starts_with("conditions found on both hosts: "), "{alike:?}");
    }

    #[test]
    fn what_no_host_told_is_said_and_an_older_record_has_what_its_sockets_told() {
        assert_eq!(told(host(None), host(None), &[]), ["conditions found: not reported"]);
        assert_eq!(told(None, None, &["bbr"]), ["conditions found: not reported; the flows used bbr"]);
        assert!(told(None, None, &[]).is_empty());
    }
}
