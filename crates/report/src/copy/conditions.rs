//! The conditions of a copy: the settings of both ends that decide its figures, and disturbances from outside.

use std::collections::BTreeMap;

use landspeed_record::{ConditionChange, CopyConditions, Side};

use crate::block::{ReportSection, StyledText};
use crate::conditions::{self, NamedHost};
use crate::{counted, safe};

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Returns the lines on the conditions of a copy, in the form that other commands use, and on changes during the copy.
/// Returns none if the record has no conditions.
pub fn condition_lines(of: &CopyConditions) -> Vec<String> {
    lines(of).iter().map(StyledText::words).collect()
}

pub(super) fn lines(of: &CopyConditions) -> Vec<StyledText> {
    let hosts = hosts(of);
    let mut lines = conditions::lines(&hosts, &of.controls);
    // The hosts of a relayed copy, and those in older records, were not asked.
    let is_known = hosts.iter().any(|(_, facts)| !facts.conditions.is_empty());
    let is_recorded = !hosts.is_empty() || !of.controls.is_empty();
    if is_recorded && !is_known {
        lines.push(format!("conditions found: not reported{}", conditions::used_words(&of.controls)).into());
    }
    lines.extend(changes(&of.condition_changes).map(StyledText::from));
    lines.extend(of.disturbed.iter().map(|line| StyledText::from(safe(line))));
    lines
}

/// Returns a line for each setting that changed during the copy.
fn changes(all: &[ConditionChange]) -> impl Iterator<Item = String> {
    let mut of_setting = BTreeMap::<(Side, &str), Vec<&ConditionChange>>::new();
    for change in all {
        of_setting.entry((change.side, change.knob.as_str())).or_default().push(change);
    }
    of_setting.into_values().filter_map(|changes| change_words(&changes))
}

/// Formats changes: "tso at the target changed from on to off between 30 s and 60 s, and 2 times more until 120 s". The
/// times are rounded outwards to whole seconds, so that they include every possible time of the change.
fn change_words(changes: &[&ConditionChange]) -> Option<String> {
    let (first, more) = changes.split_first()?;
    let end = if first.side == Side::A { "source" } else { "target" };
    let [before, after] =
        [&first.before, &first.after].map(|value| safe(value.as_deref().unwrap_or("unreadable")));
    let until = |change: &ConditionChange| change.until_ns.0.div_ceil(SECOND);
    let again =
        more.last().map(|last| format!(", and {} more until {} s", counted(more.len(), "time"), until(last)));
    Some(format!(
        "{} at the {end} changed from {before} to {after} between {} s and {} s{}",
        safe(&first.knob),
        first.since_ns.0 / SECOND,
        until(first),
        again.unwrap_or_default()
    ))
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
    use landspeed_record::units::Nanos;
    use landspeed_record::{HostFacts, Settings};

    use super::*;

    fn host(mtu: Option<&str>) -> Option<HostFacts> {
        let set = mtu.map(|mtu| Settings::from([("mtu".to_owned(), mtu.to_owned())]));
        let conditions = set.into_iter().map(|set| ("mtu".to_owned(), set)).collect();
        Some(HostFacts { conditions, ..HostFacts::default() })
    }

    fn texts(source: Option<HostFacts>, target: Option<HostFacts>, used: &[&str]) -> Vec<String> {
        let controls = used.iter().map(|name| (*name).to_owned()).collect();
        let ends = CopyConditions { source_facts: source, target_facts: target, ..CopyConditions::default() };
        condition_lines(&CopyConditions { controls, ..ends })
    }

    fn change(side: Side, knob: &str, [before, after]: [&str; 2], at: u64) -> ConditionChange {
        let value = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        ConditionChange {
            side,
            knob: knob.to_owned(),
            before: value(before),
            after: value(after),
            since_ns: Nanos::secs(at),
            until_ns: Nanos::secs(at + 30),
        }
    }

    #[test]
    fn both_ends_tell_their_settings_and_the_sockets_their_control() {
        let lines = texts(host(Some("9000")), host(Some("1500\u{1b}")), &["bbr", "cubic"]);
        assert!(lines[0].starts_with("conditions found on source: MTU 9000; not reported: "), "{lines:?}");
        assert!(lines[0].ends_with("; the flows used bbr, cubic"), "{lines:?}");
        assert!(
            lines[1].starts_with("conditions found on target: MTU 1500\\u{1b}; not reported: "),
            "{lines:?}"
        );
        let alike = texts(host(Some("1500")), host(Some("1500")), &["bbr"]);
        assert!(alike.len() == 1 && alike[0].starts_with("conditions found on both hosts: "), "{alike:?}");
    }

    #[test]
    fn each_setting_that_changed_has_a_line_with_its_end_and_the_times() {
        let mut condition_changes = vec![
            change(Side::B, "tso", ["on", "off"], 60),
            change(Side::B, "congestion-control", ["cubic", "bbr\u{1b}"], 30),
            change(Side::A, "tso", ["on", ""], 30),
            change(Side::B, "tso", ["off", "on"], 90),
            change(Side::B, "tso", ["on", "off"], 120),
        ];
        (condition_changes[2].since_ns, condition_changes[2].until_ns) =
            (Nanos(40_100), Nanos::millis(12_300));
        let disturbed = vec!["a quota throttled\u{1b} it".to_owned()];
        let lines =
            condition_lines(&CopyConditions { condition_changes, disturbed, ..CopyConditions::default() });
        assert_eq!(
            lines,
            [
                "tso at the source changed from on to unreadable between 0 s and 13 s",
                "congestion-control at the target changed from cubic to bbr\\u{1b} between 30 s and 60 s",
                "tso at the target changed from on to off between 60 s and 90 s, and 2 times more until 150 s",
                "a quota throttled\\u{1b} it",
            ]
        );
    }

    #[test]
    fn unreported_conditions_are_noted_and_an_older_record_has_its_sockets_controls() {
        assert_eq!(texts(host(None), host(None), &[]), ["conditions found: not reported"]);
        assert_eq!(texts(None, None, &["bbr"]), ["conditions found: not reported; the flows used bbr"]);
        assert!(texts(None, None, &[]).is_empty());
    }
}
