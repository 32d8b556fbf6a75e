//! Tests of `landspeed measure --watch`: each observer runs and is printed.

mod support;

use landspeed_observer::OBSERVERS;
use landspeed_record::MeasureReport;
use support::schema::checked;
use support::{LANDSPEED, needs_root, output, sh, text};

#[test]
fn every_observer_that_can_run_here_prints_figures_of_both_hosts() {
    needs_root!();
    let names: Vec<&str> = OBSERVERS.iter().filter(|row| row.can_run().is_ok()).map(|row| row.name).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("figures.csv");
    let shown = sh(&format!(
        "{LANDSPEED} measure stream -t 500ms --watch {} --csv {}",
        names.join(","),
        csv.display()
    ));
    // There is one CSV file per table.
    let files = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let tables: Vec<String> =
        files.map(|file| std::fs::read_to_string(file.path()).expect("a file")).collect();
    let csv = tables.concat();
    assert!(tables.iter().all(|table| !table.contains("\r\n\r\n")), "{tables:?}");
    for name in &names {
        assert!(shown.lines().any(|line| line.starts_with(&format!("{name} "))), "no {name} in {shown}");
        assert!(csv.lines().any(|line| line.starts_with(&format!("{name},"))), "no {name} in {csv}");
    }
    let json = sh(&format!("{LANDSPEED} measure pingpong -t 200ms --watch snmp,qdisc --json"));
    let report: MeasureReport = serde_json::from_value(checked("measure", &json)).expect("a measurement");
    let printed: Vec<_> = report.observed.iter().map(|of| (of.host.as_str(), of.part.as_str())).collect();
    assert_eq!(printed, [("A", "snmp"), ("A", "qdisc"), ("B", "snmp"), ("B", "qdisc")]);
}

#[test]
fn an_unknown_observer_is_refused_with_the_names_of_all() {
    let refused = output(&format!("{LANDSPEED} measure stream --watch snmp,no-such"));
    let (_, err) = text(&refused);
    assert!(!refused.status.success() && err.contains("no-such") && err.contains("tcp-info"), "{err}");
}
