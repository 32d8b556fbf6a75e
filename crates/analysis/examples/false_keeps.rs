//! `make false-keeps`: how often is something useless kept, how often is something useful found, what do guards let
//! through? Prints the tables of docs/honesty.md; the exit status is 1 where a promise is broken.
//!
//! Arguments: runs of each row (2,000), and a part of the names of the kinds to run (all).

use std::process::ExitCode;

use landspeed_analysis::honesty::{Counts, KINDS, Kind, Worth, false_keeps, from_poor_start, single};
use landspeed_stats::proportion_interval;
use landspeed_units::Nanos;

/// Deviation of a block's log ratio in whole runs.
const DEVIATION: f64 = 0.05;
/// Whole runs that keep and confirm anything useless at most, and the most that the interval's end may be.
const FALSE: (f64, f64) = (0.05, 0.06);
/// Effect, deviation, and the share found at least.
const EFFECTS: [(f64, f64, f64); 2] = [(1.1, 0.05, 0.85), (1.3, 0.15, 0.80)];
/// Mishaps kept at most.
const MISHAPS: f64 = 0.10;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let runs = words.next().and_then(|word| word.parse().ok()).unwrap_or(2_000);
    let only = words.next().unwrap_or_default();
    let kinds: Vec<Kind> = KINDS.iter().copied().filter(|kind| kind.name.contains(&only)).collect();
    let broken = keeps(&kinds, runs) + power(&kinds, runs) + guards(&kinds, runs);
    starts(&kinds, runs / 10);
    println!("\n{broken} promises broken.");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whole runs of useless candidates.
fn keeps(kinds: &[Kind], runs: u32) -> u32 {
    println!("### False keeps in whole runs: 30 useless candidates, 2 placebos, {runs} runs a row\n");
    println!("| noise | worth | kept | confirmed | 95 % interval | void | says so itself | promise |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut broken = 0;
    for kind in kinds {
        for effect in [1.0, 1.0199] {
            let found = false_keeps(*kind, DEVIATION, effect, runs);
            let (_, high) = interval(found.confirmed, runs);
            let fine = share(found.confirmed, runs) <= FALSE.0 && high <= FALSE.1;
            broken += u32::from(kind.bounded && !fine);
            println!(
                "| {} | {:.2} % | {} | {} | {} | {} | {} | {} |",
                kind.name,
                100.0 * (effect - 1.0),
                percent(found.kept, runs),
                percent(found.confirmed, runs),
                ends(found.confirmed, runs),
                percent(found.void, runs),
                percent(found.warned, runs),
                word(kind.bounded, fine),
            );
        }
    }
    broken
}

/// Single steps that help.
fn power(kinds: &[Kind], runs: u32) -> u32 {
    println!(
        "\n### Power: one candidate, 11 blocks (22 where blocks have four trials), {runs} steps a row\n"
    );
    println!("| noise | effect | deviation of a block | kept | 95 % interval | confirmed too | promise |");
    println!("|---|---|---|---|---|---|---|");
    let mut broken = 0;
    for kind in kinds {
        for (effect, deviation, least) in EFFECTS {
            let found = single(*kind, deviation, Worth::of(effect), runs);
            let fine = share(found.kept, runs) >= least;
            broken += u32::from(kind.powered && !fine);
            println!(
                "| {} | {:.0} % | {:.0} % | {} | {} | {} | {} |",
                kind.name,
                100.0 * (effect - 1.0),
                100.0 * deviation,
                percent(found.kept, runs),
                ends(found.kept, runs),
                percent(found.confirmed, runs),
                word(kind.powered, fine),
            );
        }
    }
    broken
}

/// Candidates with rare mishaps, and harmless ones.
fn guards(kinds: &[Kind], runs: u32) -> u32 {
    println!("\n### Guards: a candidate that is 30 % faster, noise 5 %, {runs} steps a row\n");
    println!("| noise | candidate | kept | 95 % interval | confirmed too | promise |");
    println!("|---|---|---|---|---|---|");
    let mishap = |mishap| Worth { mishaps: 0.06, mishap, ..Worth::of(1.3) };
    let candidates = [
        ("harmless", Worth::of(1.3), true),
        ("20x the round trip in 6 % of its trials", mishap([1.0, 1.0, 20.0]), false),
        ("20x the cost in 6 % of its trials", mishap([1.0, 0.05, 1.0]), false),
    ];
    let mut broken = 0;
    for (kind, least) in kinds.iter().filter_map(|kind| Some((kind, harmless(kind)?))) {
        for (name, worth, is_harmless) in candidates {
            let Counts { kept, confirmed, .. } = single(*kind, DEVIATION, worth, runs);
            let part = share(kept, runs);
            let fine = if is_harmless { part >= least } else { part <= MISHAPS };
            broken += u32::from(!fine);
            println!(
                "| {} | {name} | {} | {} | {} | {} |",
                kind.name,
                percent(kept, runs),
                ends(kept, runs),
                percent(confirmed, runs),
                word(true, fine)
            );
        }
    }
    broken
}

/// The share of harmless candidates that are kept at least; `None` where nothing is promised.
fn harmless(kind: &Kind) -> Option<f64> {
    match kind.name {
        "normal" => Some(0.95),
        "heavy tails (Student, 3 degrees)" => Some(0.90),
        _ => None,
    }
}

/// Whole runs with six useful candidates of thirty.
fn starts(kinds: &[Kind], runs: u32) {
    println!("\n### From a poor start: six useful candidates among thirty, {runs} runs a row\n");
    println!(
        "| noise | deviation of a block | budget | kept | of them confirmed | useful in the end, of 6 | tried |"
    );
    println!("|---|---|---|---|---|---|---|");
    for kind in kinds.iter().filter(|kind| kind.powered || kind.name.starts_with("drift blind")) {
        for (deviation, minutes) in [(0.03, 5), (0.05, 5), (0.05, 7), (0.1, 5), (0.1, 7)] {
            let found = from_poor_start(*kind, deviation, Nanos::secs(60 * minutes), runs);
            let mean = |count: u32| f64::from(count) / f64::from(runs.max(1));
            println!(
                "| {} | {:.0} % | {minutes} min | {:.2} | {} | {:.2} | {:.1} |",
                kind.name,
                100.0 * deviation,
                mean(found.kept),
                percent(found.confirmed, found.kept),
                mean(found.useful),
                mean(found.tried),
            );
        }
    }
}

fn share(hits: u32, of: u32) -> f64 {
    f64::from(hits) / f64::from(of.max(1))
}

fn interval(hits: u32, of: u32) -> (f64, f64) {
    proportion_interval(hits.into(), of.into())
}

fn percent(hits: u32, of: u32) -> String {
    format!("{:.1} %", 100.0 * share(hits, of))
}

fn ends(hits: u32, of: u32) -> String {
    let (low, high) = interval(hits, of);
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}

fn word(promised: bool, fine: bool) -> &'static str {
    match (promised, fine) {
        (false, _) => "-",
        (true, true) => "kept",
        (true, false) => "NOT KEPT",
    }
}
