//! Tests of `landspeed tune --record-run`: both runs, and one loss on purpose, over a small path.

mod support;

use std::process::Command;

use serde_json::Value;
use support::schema::checked;
use support::{LANDSPEED, needs_root, text};

#[test]
fn a_capped_stream_loses_nothing_and_one_loss_takes_as_long_as_the_formula_says() {
    needs_root!();
    let args = ["tune", "--record-run", "--recovery", "--time", "2s", "--distance", "1000", "--json"];
    let path = "lab:wan:rate=200M,rtt=40ms,queue=1bdp";
    let (out, err) = text(&Command::new(LANDSPEED).args(args).arg(path).output().expect("landspeed runs"));
    let run = checked("tune-record-run", &out);
    assert_eq!(run["restored"], true, "{err}");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{run:#}"));
    assert!(number(&run["capped"]["bit_metres_per_s"]) > 0.0 && number(&run["uncapped"]["rate_bps"]) > 0.0);
    let (recovery, lab) = (&run["recovery"], &run["recovery"]["lab"]);
    assert!(
        (number(&recovery["simulated_s"]) / number(&recovery["formula_s"]) - 1.0).abs() < 0.1,
        "{recovery}"
    );
    let counts = |run: &Value| run["unfit"].as_array().is_some_and(Vec::is_empty);
    if counts(&run["capped"]) {
        assert_eq!(run["capped"]["retransmits_in_all"], 0, "the window overran the queue: {run:#}");
    }
    // A machine too busy to emulate the path reports it.
    if counts(lab) {
        assert_eq!(lab["retransmits"], 2, "{lab}");
        let share = number(&lab["least_segments"]) / number(&lab["window_segments"]);
        let time = lab["back_s"].as_f64().map(|seconds| seconds / number(&lab["expected_s"]));
        // Reno halves its window, and then adds at most a segment a round trip. Programs that run beside make it slower, and
        // the looks at its window later: by how much is judged on a machine left alone (`make budgets`).
        assert!(share > 0.45 && share < 1.0 && time.is_none_or(|time| time > 0.8), "{lab}");
        if std::env::var_os("LANDSPEED_SLOW").is_some() {
            assert!(share < 0.55 && time.is_some_and(|time| time < 1.2), "{lab}");
        }
    }
}
