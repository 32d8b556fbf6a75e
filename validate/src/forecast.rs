//! Forecasts how long an occasion of the experiments takes, by the records of earlier ones.

use std::path::PathBuf;

use anyhow::{Context, Result};
use landspeed_analysis::grid::{asks, blocks_a_pass};
use landspeed_record::units::Nanos;
use landspeed_record::{Grid, GridTrial, Line, Record};

use crate::occasions::{folder, record};

/// The time of a run beside its trials and the look at the machine: its lab, its hosts and its page.
const BESIDE: Nanos = Nanos::secs(2);
/// The trials of a look at the machine, and the time in which it ends if these are long.
const LOOK: (u64, Nanos) = (10, Nanos::secs(10));

/// A run of an occasion.
pub(crate) struct PlannedRun {
    /// Name of the folder of its record.
    pub(crate) folder: String,
    /// The passes over all cells that its file asks for now.
    pub(crate) passes: u32,
    /// True if landspeed looks at the machine before it.
    pub(crate) looks: bool,
}

/// The forecast of an occasion.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct OccasionForecast {
    pub(crate) time: Nanos,
    /// The number of runs without an earlier record, which `time` leaves out.
    pub(crate) unknown: usize,
}

/// Forecasts the runs, each from its newest record. `occasions` are folders or archives of records, the oldest first.
pub(crate) fn forecast(occasions: &[PathBuf], runs: &[PlannedRun]) -> Result<OccasionForecast> {
    let unpacked = tempfile::tempdir().context("make a folder for the records")?;
    let folders: Vec<PathBuf> = (0..)
        .zip(occasions)
        .map(|(nth, occasion)| folder(occasion, &unpacked.path().join(format!("{nth}"))))
        .collect::<Result<_>>()?;
    let mut all = OccasionForecast::default();
    for run in runs {
        let newest = folders.iter().rev().find_map(|folder| {
            let file = record(&folder.join(&run.folder)).ok()?;
            landspeed_record::read(&file).ok()
        });
        match newest.and_then(|record| time_of(&record, run)) {
            Some(time) => all.time += time,
            None => all.unknown += 1,
        }
    }
    Ok(all)
}

/// Returns the time of a run from its record of an earlier occasion, which may have had other passes, in other parts.
fn time_of(record: &Record, run: &PlannedRun) -> Option<Nanos> {
    let grid = record.lines.iter().find_map(|line| match line {
        Line::Grid(grid) => Some(&**grid),
        _ => None,
    })?;
    let first = if grid.program.is_some() { grid.trial_ns } else { Nanos(0) };
    let look = if run.looks && asks(grid) { grid.trial_ns.times(LOOK.0).min(LOOK.1) } else { Nanos(0) };
    Some(BESIDE + first + look + measured(grid, record, run.passes.into())?)
}

/// Returns the time of the passes: the mean of each cell, the cells that are measured twice, and what is between trials,
/// which are labs made anew.
fn measured(grid: &Grid, record: &Record, passes: u64) -> Option<Nanos> {
    let trials: Vec<(&GridTrial, bool)> = record.lines.iter().filter_map(trial).collect();
    let end = trials.iter().map(|(trial, _)| trial.at_ns + trial.took_ns).max()?;
    let between = end - trials.iter().map(|(trial, _)| trial.took_ns).sum::<Nanos>();
    let before = grid.blocks.filter(|passes| *passes > 0)?;
    let of_cell =
        |cell: u32| mean(trials.iter().filter(|(one, _)| one.cell == cell).map(|(one, _)| one.took_ns));
    let cells: Nanos = (0..grid.cells()).map(of_cell).sum();
    let trial_ns = Nanos(cells.0 / u64::from(grid.cells()).max(1));
    let parts = u64::from(blocks_a_pass(&Grid { trial_ns, ..grid.clone() }));
    // Each part of a pass measures the reference twice, and from the third pass on a loud cell is measured twice too.
    let pass = cells + of_cell(0).times(2 * parts - 1);
    let twice = trials.iter().filter(|(one, is_placebo)| *is_placebo && one.cell > 0);
    let loud = mean(twice.map(|(one, _)| one.took_ns)).times(passes.saturating_sub(2));
    Some(pass.times(passes) + loud + Nanos(between.times(passes).0 / u64::from(before)))
}

/// Returns the trial of a line, and whether it is a placebo.
fn trial(line: &Line) -> Option<(&GridTrial, bool)> {
    match line {
        Line::GridTrial(trial) => Some((&**trial, false)),
        Line::GridPlacebo(trial) => Some((&**trial, true)),
        _ => None,
    }
}

/// Returns the mean of these times, which is zero if there are none.
fn mean(times: impl Iterator<Item = Nanos>) -> Nanos {
    let (sum, count) = times.fold((Nanos(0), 0_u64), |(sum, count), time| (sum + time, count + 1));
    Nanos(sum.0 / count.max(1))
}

#[cfg(test)]
mod tests {
    use landspeed_record::{RecordKind, RecordWriter};

    use super::*;

    /// Writes the record of a run of two passes as that of an occasion: two trials of a second, eight seconds apart.
    fn occasion(folder: &str) -> tempfile::TempDir {
        let occasion = tempfile::tempdir().unwrap();
        let file = occasion.path().join(folder).join("grid.jsonl");
        let mut writer = RecordWriter::create(&file).unwrap();
        let grid = Grid { blocks: Some(2), trial_ns: Nanos::secs(1), ..Grid::default() };
        let trial = |at: u64| {
            let (at_ns, took_ns) = (Nanos::secs(at), Nanos::secs(1));
            Box::new(GridTrial { at_ns, took_ns, ..GridTrial::default() })
        };
        for line in [
            Line::Header(RecordKind::GRID.header("", "")),
            Line::Grid(Box::new(grid)),
            Line::GridTrial(trial(4)),
            Line::GridPlacebo(trial(9)),
        ] {
            writer.write(&line).unwrap();
        }
        occasion
    }

    #[test]
    fn a_run_takes_as_long_as_its_passes_and_one_without_a_record_is_unknown() {
        let earlier = occasion("a-reno");
        let run = |folder: &str, passes| PlannedRun { folder: folder.to_owned(), passes, looks: true };
        let runs = [run("a-reno", 3), run("b-reno", 3)];
        let found = forecast(&[earlier.path().to_owned()], &runs).unwrap();
        // Each pass measures its only cell twice; half of the eight seconds that are no trials is that of one pass.
        let (trials, between) = (3 * 2, 3 * 8 / 2);
        assert_eq!(found, OccasionForecast { time: Nanos::secs(2 + trials + between), unknown: 1 });
    }
}
