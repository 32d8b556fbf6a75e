//! The conditions of a run: the settings that decide its figures, as they were at the start.

use std::collections::BTreeSet;

use landspeed_record::units::Bytes;
use landspeed_record::{HostFacts, PathFacts};

use crate::block::{ReportSection, ReportTable, StyledText, TableColumn};
use crate::safe;

/// A host's name in a report, and its facts.
pub(crate) type NamedHost<'a> = (&'a str, &'a HostFacts);

/// The offloads that the line of conditions names. The full table has all of them.
const OFFLOADS: [&str; 6] = ["tso", "gso", "gro", "lro", "tx-checksum", "rx-checksum"];

/// Returns remarks on a path: facts that a reader should know and that its routes and addresses do not show.
pub(crate) fn remarks(path: &PathFacts) -> Vec<StyledText> {
    landspeed_analysis::remarks(path).iter().map(|remark| safe(remark).into()).collect()
}

/// Returns the caveats on all figures, then the line of conditions of each host, or one line if both hosts had the same
/// conditions. Returns nothing if the record has none. `used` holds the congestion controls that the flows' sockets
/// reported. A line names the settings that the host does not report.
pub(crate) fn lines(hosts: &[NamedHost<'_>], used: &BTreeSet<String>) -> Vec<StyledText> {
    [caveats(hosts), of_hosts(hosts, used)].concat()
}

/// Returns the caveats on all figures of the hosts, one line each.
fn caveats(hosts: &[NamedHost<'_>]) -> Vec<StyledText> {
    let all: BTreeSet<&str> = hosts.iter().map(|(_, facts)| facts.caveat.as_str()).collect();
    all.into_iter().filter(|caveat| !caveat.is_empty()).map(|caveat| safe(caveat).into()).collect()
}

fn of_hosts(hosts: &[NamedHost<'_>], used: &BTreeSet<String>) -> Vec<StyledText> {
    if hosts.iter().all(|(_, facts)| facts.conditions.is_empty()) {
        return Vec::new();
    }
    // A record of one host has no facts about the other one.
    let known = hosts.iter().filter(|(_, facts)| **facts != HostFacts::default());
    let texts: Vec<(&str, String)> = known.map(|(name, facts)| (*name, of_host(facts))).collect();
    let used = used_words(used);
    match texts.as_slice() {
        [(_, first), (_, second)] if first == second => {
            vec![format!("conditions found on both hosts: {first}{used}").into()]
        }
        several => {
            let line = |(nth, (name, text)): (usize, &(&str, String))| {
                let used = if nth == 0 { used.as_str() } else { "" };
                format!("conditions found on {}: {text}{used}", safe(name)).into()
            };
            several.iter().enumerate().map(line).collect()
        }
    }
}

/// Returns "; the flows used bbr"; an empty string if no socket reported a congestion control.
pub(crate) fn used_words(used: &BTreeSet<String>) -> String {
    let names: Vec<String> = used.iter().map(|name| safe(name)).collect();
    if names.is_empty() { String::new() } else { format!("; the flows used {}", names.join(", ")) }
}

/// Returns the section with every setting of every condition, for full detail. CSV has its table.
pub(crate) fn section(hosts: &[NamedHost<'_>]) -> ReportSection {
    let named = hosts.iter().flat_map(|(_, facts)| &facts.conditions);
    let settings: BTreeSet<(&String, &String)> = named
        .flat_map(|(condition, values)| values.keys().map(move |setting| (condition, setting)))
        .collect();
    let value = |facts: &HostFacts, (condition, setting): (&String, &String)| {
        facts
            .conditions
            .get(condition)
            .and_then(|values| values.get(setting))
            .map_or_else(String::new, |value| safe(value))
    };
    let row = |at: (&String, &String)| {
        let values = hosts.iter().map(|(_, facts)| value(facts, at));
        [safe(at.0), safe(at.1)].into_iter().chain(values).collect::<Vec<String>>()
    };
    let columns = ["condition", "setting"].into_iter().chain(hosts.iter().map(|(name, _)| *name));
    let table = ReportTable::new("Conditions", "", columns.map(TableColumn::words).collect());
    ReportSection::new("conditions", "Conditions")
        .all(table.rows(settings.into_iter().map(row)).non_empty())
        .in_full()
}

/// Formats a host's conditions.
fn of_host(facts: &HostFacts) -> String {
    if facts.conditions.is_empty() {
        return "not reported".to_owned();
    }
    let value = |condition: &str, setting: &str| {
        facts.conditions.get(condition).and_then(|values| values.get(setting)).map(|value| safe(value))
    };
    // "least initial greatest"
    let greatest = |setting: &str| {
        let bytes = value("windows", setting)?.rsplit(' ').next()?.parse().ok();
        bytes.map(Bytes)
    };
    let windows = greatest("tcp-rmem").zip(greatest("tcp-wmem"));
    let timestamps = |on: String| if on == "0" { "no timestamps" } else { "timestamps" }.to_owned();
    let parts = [
        ("congestion control", value("congestion-control", "congestion-control")),
        ("MTU", value("mtu", "mtu").map(|mtu| format!("MTU {mtu}"))),
        ("offloads", offloads(facts)),
        ("qdisc", value("qdisc", "qdisc").map(|qdisc| format!("qdisc {qdisc}"))),
        ("windows", windows.map(|(receive, send)| format!("windows to {receive} received and {send} sent"))),
        ("timestamps", value("timestamps", "timestamps").map(timestamps)),
    ];
    let missing: Vec<&str> = parts.iter().filter(|(_, text)| text.is_none()).map(|(name, _)| *name).collect();
    let missing = (!missing.is_empty()).then(|| format!("not reported: {}", missing.join(", ")));
    let texts: Vec<String> = parts.into_iter().filter_map(|(_, text)| text).collect();
    let texts = (!texts.is_empty()).then(|| texts.join(", "));
    texts.into_iter().chain(missing).collect::<Vec<_>>().join("; ")
}

fn offloads(facts: &HostFacts) -> Option<String> {
    let values = facts.conditions.get("offloads")?;
    let is_on = |name: &&str| values.get(*name).is_some_and(|value| value.starts_with("on"));
    let on: Vec<&str> = OFFLOADS.into_iter().filter(is_on).collect();
    Some(if on.is_empty() { "no offloads".to_owned() } else { format!("offloads {}", on.join(" ")) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landspeed_record::Settings;

    use super::*;

    fn host(conditions: &[(&str, &[(&str, &str)])]) -> HostFacts {
        let settings = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Settings>()
        };
        let conditions: BTreeMap<String, Settings> =
            conditions.iter().map(|(name, all)| ((*name).to_owned(), settings(all))).collect();
        HostFacts { conditions, ..HostFacts::default() }
    }

    fn texts(a: &HostFacts, b: &HostFacts, used: &[&str]) -> Vec<String> {
        let used = used.iter().map(|name| (*name).to_owned()).collect();
        lines(&[("A", a), ("B", b)], &used).iter().map(|line| line.words()).collect()
    }

    #[test]
    fn equal_hosts_have_one_line() {
        let one = host(&[
            ("congestion-control", &[("congestion-control", "bbr")]),
            ("mtu", &[("mtu", "9000")]),
            ("offloads", &[("tso", "on"), ("gro", "on;on"), ("gso", "off")]),
            ("windows", &[("tcp-rmem", "4096 131072 33554432"), ("tcp-wmem", "4096 16384 4194304")]),
        ]);
        let line = "conditions found on both hosts: bbr, MTU 9000, offloads tso gro, windows to 32 MiB received and 4 MiB sent; not \
                    reported: qdisc, timestamps; the flows used cubic";
        assert_eq!(texts(&one, &one, &["cubic"]), [line]);
        let other = host(&[("mtu", &[("mtu", "1500")])]);
        let missing = "not reported: congestion control, offloads, qdisc, windows, timestamps";
        assert_eq!(texts(&other, &one, &[])[0], format!("conditions found on A: MTU 1500; {missing}"));
        assert_eq!(texts(&other, &one, &[]).len(), 2);
    }

    #[test]
    fn a_host_that_reports_nothing_beside_one_that_does_is_named() {
        let one = host(&[("mtu", &[("mtu", "1500")])]);
        assert_eq!(texts(&one, &host(&[]), &[]).len(), 1, "of the other one nothing is known");
        let silent = HostFacts { hostname: "a".into(), ..HostFacts::default() };
        let lines = texts(&silent, &one, &["bbr"]);
        assert_eq!(lines[0], "conditions found on A: not reported; the flows used bbr");
        assert!(lines[1].starts_with("conditions found on B: MTU 1500"), "{lines:?}");
    }

    #[test]
    fn caveats_on_all_figures_come_first_and_once() {
        let facts = host(&[("mtu", &[("mtu", "1500")])]);
        let facts = HostFacts { caveat: "speeds do not hold\u{1b}".into(), ..facts };
        let lines = texts(&facts, &facts, &[]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("speeds do not hold") && !lines[0].contains('\u{1b}'), "{lines:?}");
        assert!(lines[1].starts_with("conditions found on both hosts"), "{lines:?}");
    }

    #[test]
    fn a_record_without_conditions_has_no_line() {
        assert!(texts(&host(&[]), &host(&[]), &["bbr"]).is_empty());
    }
}
