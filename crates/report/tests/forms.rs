//! The forms of a report that need no browser: text, page source, and the document of the summary.

#[path = "support/sample.rs"]
mod sample;

use std::collections::BTreeSet;

use landspeed_record::{Estimate, TuneSummary};
use landspeed_report::{html, summary_json, text};

#[test]
fn the_headline_comes_first_and_everything_is_said() {
    let (summary, _) = sample::sample();
    let shown = text::summary(&summary, 120, false);
    let first = shown.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "12.3x the rate [11.7, 12.9], 11.9x the bytes per CPU-second [11.5, 12.3], everything put back"
    );
    for said in
        ["3.61 Gb/s", "44.5 Gb/s", "26.6 us", "noise floor", "the kernel copied", "tcp-rmem", "(again)"]
    {
        assert!(shown.contains(said), "{said} is missing:\n{shown}");
    }
    assert!(shown.contains("skipped: veth has no rings: ring-rx, ring-tx"), "{shown}");
    assert!(shown.contains("landspeed persist /root/.local/share/landspeed/"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "colour without being asked");
}

#[test]
fn what_was_not_confirmed_is_marked_in_every_form() {
    let (summary, record) = sample::sample();
    let shown = text::summary(&summary, 120, false);
    let row = shown.lines().find(|line| line.contains("write-size=65536")).expect("the step");
    assert!(row.starts_with('!') && row.contains("not confirmed"), "{row}");
    for said in ["6 steps kept, 1 of them not confirmed", "! write-size=65536: interval above"] {
        assert!(shown.contains(said), "{said} is missing:\n{shown}");
    }
    let page = html::page(&summary, &record);
    for said in [
        "6 steps kept, 1 of them not confirmed",
        "</span>not confirmed",
        "kept, not confirmed",
        "(not confirmed)",
    ] {
        assert!(page.contains(said), "{said} is missing");
    }
    let document: serde_json::Value = serde_json::from_str(&summary_json(&summary)).expect("JSON");
    let steps = document["steps"].as_array().expect("steps");
    let of = |knob: &str| {
        &steps.iter().find(|step| step["knob"] == knob && step["kept"] == true).expect("kept")["confirmed"]
    };
    assert_eq!((of("write-size"), of("tso")), (&false.into(), &true.into()));
}

#[test]
fn whether_the_gain_lasted_is_said_beside_it() {
    let (mut summary, record) = sample::sample();
    let said = "Confirmed over 30 min 0 s: 11.8x the rate [11.1, 12.5], 21 blocks, 1 discarded";
    assert!(text::summary(&summary, 120, false).contains(said));
    assert!(html::page(&summary, &record).contains(said));
    summary.confirmation.as_mut().expect("a confirmation").holds = false;
    assert!(text::summary(&summary, 120, false).contains("NOT confirmed over 30 min"));
    assert!(html::page(&summary, &record).contains("NOT confirmed over 30 min"));
    summary.confirmation = None;
    assert!(!text::summary(&summary, 120, false).contains("onfirmed over"));
}

#[test]
fn the_round_trip_under_load_is_shown_where_it_was_sampled() {
    let (mut summary, record) = sample::sample();
    let shown = text::summary(&summary, 120, false);
    let row =
        shown.lines().find(|line| line.trim_start().starts_with("round trip under load")).expect("a row");
    assert!(["392 us", "106 us", "0.27x"].iter().all(|said| row.contains(said)), "{row}");
    assert!(html::page(&summary, &record).contains("Round trip while the stream runs"));
    summary.start.loaded_latency_ns = None;
    assert!(!text::summary(&summary, 120, false).contains("under load"));
    assert!(!html::page(&summary, &record).contains("Round trip while the stream runs"));
}

#[test]
fn the_table_of_steps_keeps_to_the_width_of_the_terminal() {
    let (summary, _) = sample::sample();
    for width in [80, 120, 160] {
        let shown = text::summary(&summary, width, false);
        let table: Vec<&str> =
            shown.lines().skip_while(|l| !l.starts_with("  step")).take_while(|l| !l.is_empty()).collect();
        assert!(table.len() >= 25, "{shown}");
        let longest = table.iter().map(|line| line.chars().count()).max();
        assert!(longest <= Some(usize::from(width)), "{longest:?} columns of {width}:\n{shown}");
    }
}

#[test]
fn what_was_expected_stands_beside_what_was_measured() {
    let (mut summary, mut record) = sample::sample();
    let shown = text::summary(&summary, 160, false);
    let because = "✓ tso=on; explain: segmentation offloads that are off, 58 % of the time; expected 2.40x, measured 1.88x";
    for said in [
        because,
        "✗ rps=2; explain: a core full of softirq work, 31 % of the time; measured 0.86x",
        "0.80x on",
    ] {
        assert!(shown.contains(said), "{said} is missing:\n{shown}");
    }
    let page = html::page(&summary, &record);
    for said in
        ["id=\"verdicts\"", "after <code>tx-checksum=on</code>", "2.40×", "checksums computed in software"]
    {
        assert!(page.contains(said), "{said} is missing");
    }
    // As a run with --no-explain or an older record has it.
    summary.expectations = None;
    for step in &mut summary.steps {
        step.advised = None;
    }
    record.lines.retain(|line| !matches!(line, landspeed_record::Line::Verdict(_)));
    assert!(!text::summary(&summary, 160, false).contains("explain"));
    assert!(!html::page(&summary, &record).contains("id=\"verdicts\""));
}

#[test]
fn a_void_run_and_a_host_left_changed_are_loud() {
    let (mut summary, record) = sample::sample();
    summary.void = Some("a placebo was kept".into());
    summary.restored = false;
    let shown = text::summary(&summary, 100, false);
    assert!(shown.starts_with("VOID: a placebo was kept\n"), "{shown}");
    assert!(shown.contains("NOT everything put back"), "{shown}");
    let page = html::page(&summary, &record);
    assert!(page.contains("a placebo was kept") && page.contains("Not everything was put back"));
}

fn hostile() -> TuneSummary {
    let (mut summary, _) = sample::sample();
    let bad = "\u{1b}]0;own\u{7}<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}";
    let step = &mut summary.steps[1];
    for field in [&mut step.id, &mut step.knob, &mut step.value, &mut step.reason, &mut summary.command] {
        *field = bad.to_owned();
    }
    step.rate = Some(Estimate { ratio: f64::NAN, low: -1.0, high: f64::INFINITY });
    summary.steps[2].rate = Some(Estimate { ratio: 1e300, low: 1e-300, high: 1e301 });
    summary.host_a.hostname = bad.repeat(1000);
    summary.record = "$(reboot)'".to_owned();
    summary
}

#[test]
fn a_hostile_record_is_shown_and_not_obeyed() {
    let summary = hostile();
    let page = html::page(&summary, &sample::sample().1);
    assert!(!page.contains("<script") && !page.contains("<img"), "not escaped");
    assert!(page.contains("&lt;script&gt;"));
    for drawn in ["NaN", "inf", "\u{202e}", "\u{1b}"] {
        assert!(
            !page.contains(&format!("\"{drawn}")) && !page.contains(&format!(":{drawn}")),
            "{drawn} in the page"
        );
    }
    let shown = text::summary(&summary, 80, true);
    let escapes = shown.split('\u{1b}').skip(1).all(|rest| {
        let code = rest.strip_prefix('[').and_then(|r| r.split_once('m')).map(|(code, _)| code);
        code.is_some_and(|c| c.chars().all(|c| c.is_ascii_digit() || c == ';'))
    });
    assert!(escapes && !shown.contains('\u{7}') && !shown.contains('\u{202e}'), "{shown}");
    assert!(shown.contains(r"landspeed persist '$(reboot)'\'''"), "{shown}");
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let (summary, record) = sample::sample();
    let page = html::page(&summary, &record);
    for foreign in ["http://", "https://", "<script", "@import", "url(", " src=", "//cdn"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("landspeed tune lab --for rate") && page.contains(">7<"), "command and seed");
}

#[test]
fn a_run_without_steps_or_trials_still_makes_a_report() {
    let (mut summary, mut record) = sample::sample();
    summary.steps.clear();
    record.lines.clear();
    summary.gain = Default::default();
    assert!(html::page(&summary, &record).contains("No step was measured"));
    assert!(text::summary(&summary, 80, false).contains("No step was measured"));
}

/// Names of all fields of `value`, those of settings (which are data) left out.
fn fields(value: &serde_json::Value, into: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                let data = ["a", "b", "flow"].contains(&key.as_str());
                if !data {
                    fields(value, into);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| fields(item, into)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_document_is_in_its_reference() {
    let (mut summary, _) = sample::sample();
    summary.against = Some(summary.gain);
    summary.host_a.conflicts = vec![Default::default()];
    let document: serde_json::Value = serde_json::from_str(&summary_json(&summary)).expect("JSON");
    let reference =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/summary.md"))
            .expect("docs/reference/summary.md");
    let mut names = BTreeSet::new();
    fields(&document, &mut names);
    assert!(names.len() > 50, "{names:?}");
    let missing: Vec<&String> = names.iter().filter(|n| !reference.contains(&format!("`{n}`"))).collect();
    assert!(missing.is_empty(), "not in docs/reference/summary.md: {missing:?}");
    let version = format!("format {}", landspeed_record::SUMMARY_FORMAT);
    assert!(reference.contains(&version), "docs/reference/summary.md is not about {version}");
}
