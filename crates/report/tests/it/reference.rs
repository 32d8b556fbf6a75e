//! Tests that the reference page lists all fields of documents.

use std::collections::BTreeSet;

use landspeed_record::{CompareReport, ExplainReport, TuneSummary};
use landspeed_report::json;
use serde_json::Value;

use crate::recorded;

/// Fields that are maps whose keys come from hosts.
const MAPS: [&str; 11] =
    ["cost", "counts", "features", "waiting_in", "layers", "snmp", "softnet", "figures", "a", "b", "flow"];

/// Collects the names of all fields of `value`, except for the keys of maps, which are data.
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

/// Panics if a field of `document` is not on the page that is generated from the types.
fn check(document: &str, least: usize) {
    let page = include_str!("../../../../docs/reference/json.md");
    let mut names = BTreeSet::new();
    fields(&serde_json::from_str(document).expect("JSON"), "", &mut names);
    assert!(names.len() > least, "{names:?}");
    let missing: Vec<&String> = names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in json.md: {missing:?}");
}

#[test]
fn every_field_of_a_document_is_in_its_reference() {
    let explained: ExplainReport = recorded::explained();
    check(&json(&explained), 100);
    let (mut studied, _): (CompareReport, _) = recorded::studied();
    studied.streams.push(Default::default());
    studied.paper.push(Default::default());
    check(&json(&studied), 80);
    let (mut tuned, _): (TuneSummary, _) = recorded::tuned();
    tuned.against = Some(tuned.gain);
    tuned.host_a.conflicts = vec![Default::default()];
    check(&json(&tuned), 50);
}
