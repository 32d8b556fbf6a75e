//! Documents are what their reference says.

use std::collections::BTreeSet;

use landspeed_record::{
    COMPARE_FORMAT, CompareReport, EXPLAIN_FORMAT, ExplainReport, SUMMARY_FORMAT, TuneSummary,
};
use landspeed_report::json;
use serde_json::Value;

use crate::recorded;

/// Fields that are maps from names that hosts give.
const MAPS: [&str; 11] =
    ["cost", "counts", "features", "waiting_in", "layers", "snmp", "softnet", "figures", "a", "b", "flow"];

/// Names of all fields of `value`, those of maps (which are data) left out.
fn fields(value: &Value, key: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let is_data = MAPS.contains(&key) && !map.contains_key("event");
            for (key, value) in map {
                if !is_data {
                    into.insert(key.clone());
                }
                fields(value, key, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, key, into)),
        _ => {}
    }
}

/// Panics where a field of `document` is not in the first of `references`, or in those that it builds on.
fn check(document: &str, format: u32, least: usize, references: &[&str]) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");
    let read = |name: &&str| std::fs::read_to_string(format!("{folder}/{name}.md")).expect(name);
    let texts: Vec<String> = references.iter().map(read).collect();
    let mut names = BTreeSet::new();
    fields(&serde_json::from_str(document).expect("JSON"), "", &mut names);
    assert!(names.len() > least, "{names:?}");
    let missing: Vec<&String> =
        names.iter().filter(|name| !texts.iter().any(|text| text.contains(&format!("`{name}`")))).collect();
    assert!(missing.is_empty(), "not in {references:?}: {missing:?}");
    assert!(texts[0].contains(&format!("format {format}")), "{references:?} is not about format {format}");
}

#[test]
fn every_field_of_a_document_is_in_its_reference() {
    let explained: ExplainReport = recorded::explained();
    check(&json(&explained), EXPLAIN_FORMAT, 100, &["explain", "summary"]);
    let (mut studied, _): (CompareReport, _) = recorded::studied();
    studied.streams.push(Default::default());
    studied.paper.push(Default::default());
    check(&json(&studied), COMPARE_FORMAT, 80, &["compare"]);
    let (mut tuned, _): (TuneSummary, _) = recorded::tuned();
    tuned.against = Some(tuned.gain);
    tuned.host_a.conflicts = vec![Default::default()];
    check(&json(&tuned), SUMMARY_FORMAT, 50, &["summary"]);
}
