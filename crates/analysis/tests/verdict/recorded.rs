//! Verdicts on real paths that `make unseen` watched and an earlier release judged wrongly. `recorded/` has its reports, without
//! stacks and tables. The right cause of each is the one whose removal gained most.

use std::io::Read;

use flate2::read::GzDecoder;
use landspeed_analysis::verdict::{is_limit, judge_again};
use landspeed_record::{Cause, ExplainReport, Verdict};

/// The reports by name, with the first causes that are right. No other fault may be named.
const REPORTS: &[(&str, &[Cause])] = &[
    // Shapers behind full cores: only a clock holds such a rate.
    ("shaper-1", &[Cause::LinkLimit]),
    ("class-1", &[Cause::LinkLimit]),
    // Offloads off and nothing else: the processor is the limit.
    ("clean-1", &[Cause::OffloadsOff]),
    // nginx by sendfile, behind a small buffer.
    ("sender-cap-1", &[Cause::SendBuffer, Cause::WindowBelowBdp]),
    ("sndbuf-1", &[Cause::SendBuffer, Cause::WindowBelowBdp]),
    ("unscaled-1", &[Cause::WindowBelowBdp]),
    // curl with a limit of its own: it reads late, with the window closed or open.
    ("slow-client-1", &[Cause::SlowReader]),
    ("slow-client-2", &[Cause::SlowReader]),
    // nginx with a limit of its own, whose window grows slowly for that reason.
    ("slow-server-1", &[Cause::SlowWriter]),
    ("slow-server-2", &[Cause::SlowWriter]),
    // A quota of a few milliseconds a second.
    ("quota-1", &[Cause::CpuQuota]),
    ("quota-2", &[Cause::CpuQuota]),
    // Acknowledgements through 1 Mbit/s, of which none is lost.
    ("starved-1", &[Cause::ReturnPath]),
];

fn document(name: &str) -> serde_json::Value {
    let path = format!("{}/tests/verdict/recorded/{name}.json.gz", env!("CARGO_MANIFEST_DIR"));
    let packed = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("a packed report");
    serde_json::from_str(&text).expect("a document")
}

fn judged(document: serde_json::Value) -> Verdict {
    let report: ExplainReport = serde_json::from_value(document).expect("a report");
    judge_again(&report).expect("hosts")
}

#[test]
fn recorded_paths_are_judged_right() {
    for (name, right) in REPORTS {
        let verdict = judged(document(name));
        let first = verdict.findings.first().unwrap_or_else(|| panic!("{name}: no finding"));
        assert!(right.contains(&first.cause), "{name}: {verdict:#?}");
        let is_other = |cause: Cause| !right.contains(&cause) && !is_limit(cause);
        let other = verdict.findings.iter().find(|finding| is_other(finding.cause));
        assert!(other.is_none(), "{name}: {other:#?}");
    }
}

/// With the window closed or open, a reader that was mostly found in an uninterruptible sleep waits for its disk.
#[test]
fn a_late_reader_that_sleeps_uninterruptibly_waits_for_its_disk() {
    for name in ["slow-client-1", "slow-client-2"] {
        let mut document = document(name);
        let reader = &mut document["hosts"][0]["observed"]["processes"][0];
        assert_eq!(reader["name"], "curl", "{name}");
        reader["waiting_in"] = serde_json::json!({ "folio_wait_bit_common": 75, "running": 5 });
        reader["uninterruptible_samples"] = 75.into();
        let first = judged(document).findings.into_iter().next().expect("a finding");
        let remedy = format!("{:?}", first.remedies);
        assert_eq!(first.cause, Cause::SlowDisk, "{name}: {first:#?}");
        assert!(remedy.contains("syncs less often"), "{name}: {remedy}");
    }
}
