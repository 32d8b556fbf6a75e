//! The report: Markdown tables, as `docs/honesty.md` has them.

use landspeed_analysis::{Metric, Rules, Steals, steal};
use landspeed_record::Answer;

use super::DECISIONS;
use super::proportion::interval;
use super::record::{Decision, Recorded, Setting};
use super::replayed::{KeepRow, PowerRow, Recording, false_keeps, powers};

/// Kept of [`DECISIONS`] at most.
const MOST_KEPT: u64 = 2;
/// Runs with a false keep at most, as a share.
const MOST_FALSE: f64 = 0.05;
/// Effects found at least, as a share.
const LEAST_FOUND: f64 = 0.9;

/// Prints all tables; gives back how many promises are broken.
pub(super) fn report(recorded: &Recorded) -> usize {
    let mut broken = decisions(recorded);
    let mut recordings = Vec::new();
    for setting in Setting::BOTH {
        match Recording::of(recorded, setting) {
            Ok(recording) => recordings.push(recording),
            Err(why) => println!("\n{}: {why}", setting.name()),
        }
    }
    noise(recorded, &recordings);
    broken += keeps(&recordings.iter().flat_map(false_keeps).collect::<Vec<_>>());
    broken += power(&recordings.iter().flat_map(powers).collect::<Vec<_>>());
    broken
}

/// Prints (a).
fn decisions(recorded: &Recorded) -> usize {
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
    usize::from(kept > MOST_KEPT)
}

/// Prints one row of decisions; gives back how many were kept.
fn decision_row(name: &str, of: &[&Decision]) -> u64 {
    let count = |answer| of.iter().filter(|d| d.summary.answer == answer).count();
    let kept = of.iter().filter(|d| d.summary.kept).count() as u64;
    let blocks: u32 = of.iter().map(|d| d.summary.blocks).sum();
    println!(
        "| {name} | {} | {kept} | {} | {} | {} | {} | {} | {:.1} |",
        of.len(),
        percent(interval(kept, of.len() as u64)),
        count(Answer::Helps),
        count(Answer::Harms),
        count(Answer::NoEffect),
        count(Answer::Undecided),
        f64::from(blocks) / of.len().max(1) as f64,
    );
    kept
}

/// Prints what (b) and (c) replay.
fn noise(recorded: &Recorded, recordings: &[Recording]) {
    println!("\n### The noise that the rest replays\n");
    println!(
        "| setting | blocks | time each | rate | bytes per CPU-second | idle round trip | stolen blocks |"
    );
    println!("|---|---|---|---|---|---|---|");
    for recording in recordings {
        let deviation = |metric| 100.0 * recording.noise.deviation(metric);
        let mut steals = Steals::default();
        let mut stolen = |figures: &[_]| steals.stands_out(steal(figures), Rules::default().steal_limit);
        let stolen = recorded.blocks_of(recording.setting).filter(|block| stolen(&block.figures)).count();
        println!(
            "| {} | {} | {} | {:.1} % | {:.1} % | {:.1} % | {:.1} % |",
            recording.setting.name(),
            recording.noise.len(),
            recording.block_time,
            deviation(Metric::Rate),
            deviation(Metric::Cost),
            deviation(Metric::Latency),
            100.0 * stolen as f64 / recording.noise.len() as f64
        );
    }
    println!("\nFigures are standard deviations of a block's log ratio, two equal settings.");
}

/// Prints (b).
fn keeps(rows: &[KeepRow]) -> usize {
    println!("\n### Whole runs\n");
    println!(
        "| noise | useful among 30 useless | runs | with a false keep | share | 95 % interval | useful kept | promise |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut broken = 0;
    for KeepRow { setting, useful, found } in rows {
        let fine = found.share() <= MOST_FALSE;
        broken += usize::from(!fine);
        println!(
            "| {} | {useful} | {} | {} | {:.1} % | {} | {} | {} |",
            setting.name(),
            found.runs,
            found.runs_with_false_keep,
            100.0 * found.share(),
            percent(interval(found.runs_with_false_keep.into(), found.runs.into())),
            if found.useful == 0 { "-".into() } else { format!("{} of {}", found.useful_kept, found.useful) },
            word(fine),
        );
    }
    println!("\nPromised: at most {:.0} % of runs keep anything useless.", 100.0 * MOST_FALSE);
    broken
}

/// Prints (c).
fn power(rows: &[PowerRow]) -> usize {
    println!("\n### Power\n");
    println!(
        "| noise | effect | block deviation | within | found | share | 95 % interval | later | by rate alone | promise |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let percent_of = |part: u32, runs: u32| 100.0 * f64::from(part) / f64::from(runs.max(1));
    let mut broken = 0;
    for PowerRow { setting, effect, deviation, within, found, by_rate_alone } in rows {
        let fine = found.share() >= LEAST_FOUND;
        broken += usize::from(!fine);
        println!(
            "| {} | {:.0} % | {:.0} % | {within} | {} of {} | {:.1} % | {} | {:.1} % | {:.1} % | {} |",
            setting.name(),
            100.0 * (effect - 1.0),
            100.0 * deviation,
            found.found_in_time,
            found.runs,
            100.0 * found.share(),
            percent(interval(found.found_in_time.into(), found.runs.into())),
            percent_of(found.found - found.found_in_time, found.runs),
            100.0 * by_rate_alone.share(),
            word(fine),
        );
    }
    println!("\nPromised: at least {:.0} % found within the blocks named.", 100.0 * LEAST_FOUND);
    println!("Later: a guard asked for more blocks, up to twice as many, before the change was kept.");
    println!("By rate alone: nothing but the rate varies and no block is discarded.");
    broken
}

fn word(fine: bool) -> &'static str {
    if fine { "kept" } else { "NOT KEPT" }
}

fn percent((low, high): (f64, f64)) -> String {
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}
