//! The report: a Markdown table, as `docs/honesty.md` has it.

use landspeed_record::Answer;
use landspeed_stats::proportion_interval;

use super::DECISIONS;
use super::record::{Decision, Recorded, Setting};

/// Kept of [`DECISIONS`] at most.
const MOST_KEPT: u64 = 2;

/// Prints the decisions; says whether the promise is kept.
pub(super) fn report(recorded: &Recorded) -> bool {
    println!("### Decisions about nothing, on real trials\n");
    println!(
        "| setting | decisions | kept | 95 % interval | helps | harms | no effect | undecided | blocks each |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for setting in Setting::BOTH {
        let of: Vec<&Decision> = recorded.decisions.iter().filter(|d| d.setting == setting).collect();
        decision_row(setting.name(), &of);
    }
    let all: Vec<&Decision> = recorded.decisions.iter().collect();
    let kept = decision_row("both", &all);
    let done = all.len() as u32;
    let promise = match (kept <= MOST_KEPT, done >= DECISIONS) {
        (false, _) => "NOT KEPT",
        (true, true) => "kept",
        (true, false) => "open until all are taken",
    };
    println!(
        "\nPromised: at most {MOST_KEPT} of {DECISIONS} kept. {done} of {DECISIONS} decisions: {promise}."
    );
    kept <= MOST_KEPT
}

/// Prints one row of decisions; gives back how many were kept.
fn decision_row(name: &str, of: &[&Decision]) -> u64 {
    let count = |answer| of.iter().filter(|d| d.summary.answer == answer).count();
    let kept = of.iter().filter(|d| d.summary.kept).count() as u64;
    let blocks: u32 = of.iter().map(|d| d.summary.blocks).sum();
    println!(
        "| {name} | {} | {kept} | {} | {} | {} | {} | {} | {:.1} |",
        of.len(),
        percent(proportion_interval(kept, of.len() as u64)),
        count(Answer::Helps),
        count(Answer::Harms),
        count(Answer::NoEffect),
        count(Answer::Undecided),
        f64::from(blocks) / of.len().max(1) as f64,
    );
    kept
}

fn percent((low, high): (f64, f64)) -> String {
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}
