//! Tests of `landspeed measure copy`: a copy as a workload, alone and varied, in a lab.

mod support;

use landspeed_record::{FigureValue, GridReport, MeasureReport};
use support::ours::TestHome;
use support::schema::checked;
use support::{needs_root, text};

const SMALL: [&str; 8] = ["measure", "copy", "lab", "--bytes", "4M", "--files", "40", "--json"];

/// Runs landspeed, which must succeed, and returns its document.
fn document(args: &[&str], schema: &str) -> serde_json::Value {
    let output = TestHome::new().landspeed(args).output().expect("landspeed runs");
    let (out, err) = text(&output);
    assert!(output.status.success(), "{args:?}: {err}");
    checked(schema, &out)
}

#[test]
fn a_copy_is_measured_in_bytes_files_and_processor_time() {
    needs_root!();
    let report: MeasureReport = serde_json::from_value(document(&SMALL, "measure")).expect("a report");
    assert_eq!(
        report.streams.iter().map(|stream| stream.received_bytes.0).collect::<Vec<_>>(),
        [4_u64 << 20]
    );
    assert!(report.bytes_per_cpu_s.is_some_and(|cost| cost.0 > 0.0), "{:?}", report.bytes_per_cpu_s);
    let all = report.figures.iter().filter(|part| part.part == "copy").flat_map(|part| &part.figures);
    let verified = all.filter(|figure| figure.name == "verified").map(|figure| &figure.amount);
    assert_eq!(verified.collect::<Vec<_>>(), [&FigureValue::Count(40); 2]);
}

#[test]
fn its_flows_and_its_tree_are_factors() {
    needs_root!();
    let vary = ["--vary", "flows=1,4", "--vary", "files=1,40", "--blocks", "3"];
    let report = document(&[&SMALL[..5], &vary[..], &["--json"]].concat(), "run");
    let report: GridReport = serde_json::from_value(report).expect("a grid");
    let means: Vec<Option<f64>> = report.figures[0].cells.iter().map(|cell| cell.mean).collect();
    assert!(means.len() == 4 && means.iter().all(|mean| mean.is_some_and(|rate| rate > 0.0)), "{means:?}");
}

#[test]
fn tune_and_explain_run_it_in_the_place_of_a_stream() {
    needs_root!();
    let run = |args: &[&str]| {
        let output = TestHome::new().landspeed(args).output().expect("landspeed runs");
        let (out, err) = text(&output);
        assert!(output.status.success(), "{args:?}: {err}");
        out
    };
    let null = "bytes=16M,source=null,target=null";
    // The settings of its flows are tried too, which those of a program are not.
    let plan = run(&["tune", "lab", "--app", "copy", "--with", null, "--dry-run"]);
    assert!(plan.contains("tls-cipher") && plan.contains("rcvbuf"), "{plan}");
    let out = run(&["explain", "lab", "--app", "copy", "--with", null, "--no-limits", "--json"]);
    let report = checked("explain", &out);
    assert!(report["goodput_bps"].as_f64().is_some_and(|rate| rate > 0.0), "{out}");
    assert!(report["watched"].as_str().is_some_and(|watched| watched.contains("copy")), "{out}");
}

#[test]
fn a_place_or_a_flow_that_a_copy_has_not_is_refused() {
    let refused = |args: &[&str]| {
        let args = [&["measure", "copy"], args].concat();
        let output = TestHome::new().landspeed(&args).output().expect("landspeed runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {:?}", text(&output));
        text(&output).1
    };
    assert!(refused(&["--source", "floppy"]).contains("tmpfs, disk"));
    assert!(refused(&["--files", "0"]).contains("a whole number from 1 to 1000000"));
    let help = TestHome::new().landspeed(&["measure", "copy", "-h"]).output().expect("landspeed runs");
    let (help, _) = text(&help);
    assert!(help.contains("Example: landspeed measure copy --bytes") && help.contains("--flows"), "{help}");
}
