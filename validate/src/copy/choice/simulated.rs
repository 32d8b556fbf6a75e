//! The decisions of a copy on simulated turns, with twelve settings that are equal.

use anyhow::{Result, anyhow};
use landspeed_analysis::copy_choice::{
    CopyChange, CopyChooser, CopyOutlook, NextTurn, TrialSize, trial_size,
};
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{CopyArm, CopyCount};
use landspeed_stats::Random;

use crate::simulate::each_seed;
use crate::table::{self, BrokenPromises};

/// The largest share of copies that may keep a change.
const KEPT: f64 = 0.05;
/// The number of flows of the default, and the largest number: each number is a setting.
const USUAL: u32 = 4;
const SETTINGS: u32 = 12;
/// The number of candidates of a copy.
const CANDIDATES: usize = 4;
/// The time that a copy is expected to take.
const SECONDS: u32 = 300;
const PIECE: f64 = 1_048_576.0;

/// A path whose rate varies.
struct SimulatedPath {
    name: &'static str,
    rate: f64,
    rtt: Nanos,
    /// The deviation of a turn's log rate.
    noise: f64,
    /// The deviation of what the log rate drifts by from turn to turn.
    drift: f64,
    /// The share of turns with a rate that is far off, as on a machine that others share.
    disturbed: f64,
}

static PATHS: [SimulatedPath; 4] = [
    SimulatedPath {
        name: "steady",
        rate: 1e9,
        rtt: Nanos::millis(1),
        noise: 0.02,
        drift: 0.0,
        disturbed: 0.0,
    },
    SimulatedPath {
        name: "long and slow, so that a turn has few pieces",
        rate: 200e6,
        rtt: Nanos::millis(40),
        noise: 0.05,
        drift: 0.01,
        disturbed: 0.0,
    },
    SimulatedPath {
        name: "drifting",
        rate: 1e9,
        rtt: Nanos::millis(10),
        noise: 0.08,
        drift: 0.1,
        disturbed: 0.0,
    },
    SimulatedPath {
        name: "drifting, on a machine that others share",
        rate: 1e9,
        rtt: Nanos::millis(10),
        noise: 0.08,
        drift: 0.03,
        disturbed: 0.05,
    },
];

/// Prints how many simulated copies keep a change.
pub(super) fn report(copies: u32, broken: &mut BrokenPromises) -> Result<()> {
    table::head("simulated path | copies | kept a change, with the 95 % interval | promise");
    for path in &PATHS {
        let made = each_seed(copies, |seed| keeps_a_change(path, seed.into()));
        let made = made.into_iter().collect::<Result<Vec<bool>>>()?;
        let kept = made.into_iter().filter(|is_kept| *is_kept).count() as u32;
        let share = table::share(kept, copies);
        let cell = format!("{kept}: {} [{}]", table::percent(share), table::interval(kept, copies));
        let promise = format!("at most {}: {}", table::percent(KEPT), broken.check(share <= KEPT));
        table::row(&[&path.name, &copies, &cell, &promise]);
    }
    println!();
    Ok(())
}

/// Returns true if a copy keeps another setting, although all are equal.
fn keeps_a_change(path: &SimulatedPath, seed: u64) -> Result<bool> {
    let mut random = Random::stream(seed, 1);
    let (changes, size) = drawn(path, &mut random)?;
    let mut chooser = CopyChooser::new(CopyArm { flows: USUAL, ..CopyArm::default() }, changes, size, seed);
    let (mut spent, mut drift) = (Nanos(0), 0.0);
    while let Some(turn) = chooser.next_turn(spent) {
        spent += turn.settle + turn.count;
        drift += path.drift * random.normal();
        let noise = if random.happens(path.disturbed) { 0.4 } else { path.noise };
        let rate = path.rate * (drift + noise * random.normal()).exp();
        chooser.take(&counted(&turn, rate, random.uniform()));
        chooser.has_left(spent, &outlook(path, spent));
    }
    Ok(chooser.kept().is_some())
}

/// Draws the candidates among the settings, and sizes their trials.
fn drawn(path: &SimulatedPath, random: &mut Random) -> Result<(Vec<CopyChange>, TrialSize)> {
    let mut settings: Vec<u32> = (1..=SETTINGS).filter(|flows| *flows != USUAL).collect();
    random.shuffle(&mut settings);
    settings.truncate(CANDIDATES);
    let flows: Vec<u32> = settings.iter().map(|flows| USUAL.max(*flows)).collect();
    let size = trial_size(&outlook(path, Nanos(0)), path.rtt, &flows)
        .map_err(|why| anyhow!("{}: {why}", path.name))?;
    let change = |flows| CopyChange { flows: Some(flows), ..CopyChange::default() };
    Ok((settings.into_iter().map(change).collect(), size))
}

/// Returns what is known of a copy that has taken this time.
fn outlook(path: &SimulatedPath, elapsed: Nanos) -> CopyOutlook {
    let seconds = (f64::from(SECONDS) - elapsed.as_secs_f64()).max(0.0);
    let left = Bytes((path.rate / 8.0 * seconds) as u64);
    CopyOutlook { elapsed, left, rate: BitRate(path.rate) }
}

/// Returns what is counted in a turn at this rate: whole pieces, of which the first one ends at any time.
fn counted(turn: &NextTurn, rate: f64, phase: f64) -> CopyCount {
    let pieces = (rate / 8.0 * turn.count.as_secs_f64() / PIECE + phase).floor();
    CopyCount {
        taken_bytes: Bytes((pieces * PIECE) as u64),
        counted_ns: turn.count,
        is_clean: true,
        flows: turn.arm.flows,
        ..CopyCount::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_counts_whole_pieces() {
        let turn = NextTurn {
            arm: CopyArm { flows: 8, ..CopyArm::default() },
            candidate: 0,
            is_candidate: true,
            settle: Nanos(0),
            count: Nanos::secs(1),
        };
        let taken = |phase| counted(&turn, 2.5 * PIECE * 8.0, phase).taken_bytes;
        assert_eq!([taken(0.0), taken(0.6)], [Bytes(2 << 20), Bytes(3 << 20)]);
    }

    #[test]
    fn every_path_has_time_for_trials() {
        for path in &PATHS {
            let (changes, size) = drawn(path, &mut Random::new(1)).unwrap();
            assert!(changes.len() == CANDIDATES && size.candidates > 0, "{}", path.name);
        }
    }
}
