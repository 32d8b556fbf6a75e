//! Tests that every kind of report has figures for a monitoring system, in a form that its collector accepts.

use std::collections::HashSet;

use crate::recorded;

#[test]
fn every_report_has_gauges_that_a_collector_takes() {
    for kind in recorded::all() {
        let text = kind.document().open_metrics().unwrap_or_else(|| panic!("{} has none", kind.name));
        let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("{}: {text}", kind.name));
        let (mut families, mut series) = (HashSet::new(), HashSet::new());
        for line in body.lines() {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["#", "TYPE", name, "gauge"] => assert!(families.insert(*name), "{name} twice"),
                ["#", "UNIT", name, unit] => assert!(name.ends_with(unit), "{line}"),
                ["#", "HELP", name, _, ..] => assert!(name.starts_with("landspeed_"), "{line}"),
                _ => {
                    let (of, value) = line.rsplit_once(' ').expect(line);
                    assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
                    assert!(families.contains(of.split('{').next().unwrap_or_default()), "{line}");
                    assert!(series.insert(of), "{of} has two values");
                }
            }
        }
        assert!(!series.is_empty(), "{} has no values", kind.name);
    }
}
