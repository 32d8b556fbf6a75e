//! Tests of the first lines of a run's result, and of its length.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{ConfirmationReport, Estimate, Record, StepSummary, TuneSummary};
use landspeed_report::{DetailLevel, OutputCapabilities, tune};

use crate::recorded;

fn shown(summary: &TuneSummary, record: &Record) -> String {
    let output = OutputCapabilities::plain(80);
    tune(summary, record, "last").text(output, DetailLevel::Brief)
}

/// Returns the first line and all lines of the result, after `changed` has altered the recorded run.
fn answer(changed: impl FnOnce(&mut TuneSummary)) -> (String, String) {
    let (mut summary, record) = recorded::tuned();
    changed(&mut summary);
    let page = tune(&summary, &record, "last").page();
    let all = shown(&summary, &record);
    // A command is one line, however long, so that it can be pasted.
    let words = |line: &&str| !line.contains("  landspeed ");
    assert!(all.lines().filter(words).all(|line| line.chars().count() <= 80), "{all}");
    let first = all.lines().next().unwrap_or_default().to_owned();
    let said = first.strip_prefix("RESULT   ").expect("the answer first");
    // A line too long for the terminal continues below.
    assert!(
        page.contains(&format!("<title>{}", said.replace('x', "×").replace('>', "&gt;"))) || said.len() > 60,
        "{said}"
    );
    (first, all)
}

/// Panics unless `words` occur, however they are broken into lines.
fn says(all: &str, words: &str) {
    let line = all.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.contains(words), "{words} is missing:\n{all}");
}

fn kept(summary: &mut TuneSummary) -> &mut StepSummary {
    summary.steps.iter_mut().find(|step| step.kept).expect("a step that was kept")
}

fn gain(summary: &mut TuneSummary, ratio: f64, low: f64, high: f64) {
    summary.gain.rate = Some(Estimate { ratio, low, high });
    summary.final_.rate_bps = BitRate(summary.start.rate_bps.0 * ratio);
}

#[test]
fn a_result_fits_a_screen_and_begins_with_the_answer() {
    let (first, all) = answer(|_| {});
    assert_eq!(first, "RESULT   1 setting proven to help; total gain 1.91x [1.82, 2.00]");
    assert!(all.lines().count() <= 45, "{all}");
    for said in [
        "KEPT     tso off -> on (host A) with 2 more  1.92x",
        "final without it: 0.53x",
        "TRIED    0 no effect",
        "no time (--budget 5m)",
    ] {
        assert!(all.contains(said), "{said} is missing:\n{all}");
    }
    let (_, all) = answer(|summary| {
        summary.doubts = (0..9).map(|n| format!("{n} {}", "in many words ".repeat(9))).collect();
        summary.against = Some(summary.gain);
        let (over_ns, gain) = (Nanos::secs(1_800), summary.gain);
        summary.confirmation =
            Some(ConfirmationReport { over_ns, blocks: 21, discarded: 1, gain, holds: true });
        let one = kept(summary).clone();
        summary.steps.extend(vec![one; 8]);
        summary.topology = "dtn1 dtn2".into();
    });
    assert!(all.lines().count() <= 45, "{all}");
    for said in [
        "  - beware: 0 in many words",
        "7 more (--full)",
        "--against",
        "✓ Confirmed over 30 min",
        "landspeed persist last",
    ] {
        assert!(all.contains(said), "{said} is missing:\n{all}");
    }
}

#[test]
fn an_interval_that_includes_1_proves_nothing() {
    let (first, all) = answer(|summary| gain(summary, 4.67, 0.40, 54.2));
    assert_eq!(first, "RESULT   no gain proven (2.65 -> 12.4 Gb/s; noise up to 11.6x)");
    says(&all, "Try --budget 5m, for about 3 times the trials");
    says(&all, "4.67x [0.40, 54.2] not clear");
    let (_, all) = answer(|summary| gain(summary, 1.01, 0.7, 1.4));
    says(&all, "Try a quieter machine: no longer --budget tells a difference");
    let (first, all) = answer(|summary| {
        summary.steps.retain(|step| !step.placebo);
        gain(summary, 0.97, 0.693, 1.358);
        summary.start.steal = 0.12;
    });
    assert_eq!(first, "RESULT   no gain proven (2.65 -> 2.57 Gb/s; noise ±40 %)");
    says(&all, "a host of its own: the hypervisor took 12 % of the processor time.");
    let (first, _) = answer(|summary| gain(summary, 1.5, 1e-9, 1e9));
    assert_eq!(first, "RESULT   no gain proven (2.65 -> 3.97 Gb/s; too few trials)");
}

#[test]
fn a_pace_that_saves_what_was_lost_is_an_answer() {
    let paced = |lost: [f64; 2], confirmed: bool| {
        answer(|summary| {
            gain(summary, 1.003, 0.998, 1.01);
            let step = kept(summary);
            (step.knob, step.value, step.blocks) = ("pacing-rate".into(), "980000000".into(), 0);
            (step.rate, step.left_out, step.confirmed) = (None, None, Some(confirmed));
            (summary.start.lost, summary.final_.lost) = (Some(lost[0]), Some(lost[1]));
        })
    };
    let (first, all) = paced([0.8136, 0.0], true);
    assert!(
        first.starts_with("RESULT   paced to the path: 81.36 % -> 0.00 % of the datagrams lost"),
        "{first}"
    );
    says(&all, "datagrams lost 81.36 % 0.00 % – better");
    assert!(!all.contains("Try "), "{all}");
    for (lost, confirmed) in [([0.8136, 0.02], false), ([0.0, 0.0], true)] {
        let (first, _) = paced(lost, confirmed);
        assert!(first.starts_with("RESULT   no gain proven"), "{first}");
    }
}

#[test]
fn what_a_large_gain_may_cost_is_allowed() {
    let idle = |rate: f64, (ratio, low, high): (f64, f64, f64)| {
        let changed = |summary: &mut TuneSummary| {
            gain(summary, rate, 0.95 * rate, 1.05 * rate);
            summary.gain.latency = Some(Estimate { ratio, low, high });
        };
        answer(changed).1
    };
    // 39.9 to the power of a tenth is 1.446.
    says(&idle(42.0, (1.33, 1.12, 1.59)), "1.33x [1.12, 1.59] allowed: up to 1.45x");
    says(&idle(42.0, (1.6, 1.4, 1.8)), "1.60x [1.40, 1.80] worse");
    says(&idle(42.0, (1.05, 1.03, 1.07)), "1.05x [1.03, 1.07] within its limit");
    says(&idle(1.9, (1.33, 1.12, 1.59)), "1.33x [1.12, 1.59] worse");
    says(&idle(1.9, (1.08, 1.02, 1.2)), "1.08x [1.02, 1.20] worse");
}

#[test]
fn a_void_run_and_one_that_kept_nothing_prove_nothing() {
    let (first, all) = answer(|summary| summary.void = Some("stopped before the end".into()));
    assert!(
        first.starts_with("RESULT   no gain proven, the run does not count (2.65 -> 5.06 Gb/s;"),
        "{first}"
    );
    assert!(
        all.contains("✗ Does not count: stopped before the end") && !all.contains("landspeed persist"),
        "{all}"
    );
    let (first, all) = answer(|summary| kept(summary).kept = false);
    assert!(first.starts_with("RESULT   no gain proven, nothing kept (2.65 -> "), "{first}");
    assert!(all.contains("1 helped, then dropped") && all.contains("no time for 6 settings"), "{all}");
    let (first, _) = answer(|summary| (summary.gain, summary.final_) = Default::default());
    assert_eq!(first, "RESULT   no gain proven (no final figures)");
}

#[test]
fn only_what_was_confirmed_is_proven() {
    let (first, _) = answer(|summary| kept(summary).confirmed = Some(false));
    assert!(first.starts_with("RESULT   1 setting kept, not confirmed; total gain 1.91x"), "{first}");
    let (first, all) = answer(|summary| {
        let open = StepSummary { confirmed: Some(false), ..kept(summary).clone() };
        summary.steps.push(open);
    });
    assert!(first.starts_with("RESULT   1 setting proven, 1 not confirmed; total gain 1.91x"), "{first}");
    assert_eq!(all.matches("  not confirmed\n").count(), 1, "{all}");
}

#[test]
fn a_placebo_that_is_far_off_speaks_against_the_gain() {
    let placebo = |low, high| {
        move |summary: &mut TuneSummary| {
            let found = summary.steps.iter_mut().find(|step| step.placebo).expect("a placebo");
            found.rate = Some(Estimate { ratio: 8.4, low, high });
        }
    };
    // A placebo with an interval this wide has no proven effect, so the gain counts. The placebo's ratio is still
    // reported.
    let (first, all) = answer(placebo(0.1, 700.0));
    assert!(first.starts_with("RESULT   1 setting proven to help"), "{first}");
    says(&all, "changing nothing measured 0.95x to 8.40x (placebos), more than the gain");
    let (first, all) = answer(placebo(4.0, 17.0));
    assert_eq!(first, "RESULT   no gain proven (2.65 -> 5.06 Gb/s; noise up to 8.40x)");
    says(&all, "Try a quieter machine: on this one, changing nothing does as much");
}

#[test]
fn the_place_of_a_steps_change_is_named() {
    let place = |a: &str, b: &str| {
        let known = |from: &str| Some(from.to_owned()).filter(|from| !from.is_empty());
        let (a, b) = (known(a), known(b));
        answer(|summary| {
            (summary.host_a.hostname, summary.host_b.hostname) = ("dtn1".into(), "dtn2".into());
            (kept(summary).from_a, kept(summary).from_b) = (a, b);
        })
        .1
    };
    for (a, b, said) in [
        ("off", "off", "tso off -> on (both)"),
        ("on", "off", "tso off -> on (dtn2)"),
        ("off", "", "tso off -> on (dtn1)"),
        ("mixed", "off", "tso mixed/off -> on (both)"),
        ("", "", "tso off -> on (flow)"),
    ] {
        let all = place(a, b);
        assert!(all.contains(&format!("KEPT     {said}")), "{said} is missing:\n{all}");
    }
}
