//! The settings of hosts that a copy changed, and their restoration.

use landspeed_record::{CopyHostSettings, CopyReport, RestoreOutcome, Settings};

use crate::safe;

/// Returns the lines about changed settings of the hosts and their restoration. Returns none if the copy had to change
/// none.
pub fn host_setting_lines(report: &CopyReport) -> Vec<String> {
    let set = report.tuned.iter().map(host_setting_words);
    set.chain(report.restored.iter().map(restored_words)).collect()
}

/// Formats the settings of both hosts for a copy: "hosts set for this copy, as tune-1 has kept it: source tso=on".
pub fn host_setting_words(tuned: &CopyHostSettings) -> String {
    let CopyHostSettings { record, source, target } = tuned;
    let record = safe(record);
    let ends = [("source", source), ("target", target)].into_iter().filter(|(_, set)| !set.is_empty());
    let ends: Vec<String> = ends.map(|(end, set)| format!("{end} {}", pairs(set))).collect();
    match ends.is_empty() {
        true => format!("{record} has kept no setting of these hosts: they stay as they are"),
        false => format!("hosts set for this copy, as {record} has kept it: {}", ends.join("; ")),
    }
}

fn pairs(settings: &Settings) -> String {
    let pair = |(name, value): (&String, &String)| format!("{}={}", safe(name), safe(value));
    settings.iter().map(pair).collect::<Vec<_>>().join(", ")
}

fn restored_words(restored: &RestoreOutcome) -> String {
    let as_before = || "all settings of both hosts read back as before".to_owned();
    safe(&restored.complaint().unwrap_or_else(as_before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_reports_the_settings_of_each_end_and_those_not_restored() {
        let one = |name: &str| Settings::from([(name.to_owned(), "on".to_owned())]);
        let tuned = CopyHostSettings {
            record: "tune-1\u{1b}".to_owned(),
            source: one("tso"),
            target: Settings::new(),
        };
        let lines = |tuned: CopyHostSettings, restored| {
            host_setting_lines(&CopyReport { tuned: Some(tuned), restored, ..CopyReport::default() })
        };
        let said = lines(tuned.clone(), Some(RestoreOutcome::untouched()));
        assert_eq!(said[0], "hosts set for this copy, as tune-1\\u{1b} has kept it: source tso=on");
        assert_eq!(said[1], "all settings of both hosts read back as before");
        let lost = lines(tuned, Some(RestoreOutcome::failed("a: tso is on".to_owned())));
        assert!(lost[1].starts_with("NOT everything was restored: a: tso is on; "), "{lost:?}");
        let nothing = lines(CopyHostSettings::default(), None);
        assert!(nothing.len() == 1 && nothing[0].contains("they stay as they are"), "{nothing:?}");
        assert!(host_setting_lines(&CopyReport::default()).is_empty());
    }
}
