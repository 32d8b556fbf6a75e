//! Forecasts how long an occasion of the experiments takes, by the records of earlier ones.

use std::path::PathBuf;

use anyhow::{Context, Result};
use landspeed_analysis::grid::asks;
use landspeed_record::units::Nanos;
use landspeed_record::{Line, Record};

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

/// Returns the time of a run from its record of an earlier occasion, which may have had another number of passes.
fn time_of(record: &Record, run: &PlannedRun) -> Option<Nanos> {
    let grid = record.lines.iter().find_map(|line| match line {
        Line::Grid(grid) => Some(grid),
        _ => None,
    })?;
    let ends = record.lines.iter().filter_map(|line| match line {
        Line::GridTrial(trial) | Line::GridPlacebo(trial) => Some(trial.at_ns + trial.took_ns),
        _ => None,
    });
    let passes = grid.blocks.filter(|passes| *passes > 0)?;
    let measured = Nanos(ends.max()?.times(run.passes.into()).0 / u64::from(passes));
    let first = if grid.program.is_some() { grid.trial_ns } else { Nanos(0) };
    let look = if run.looks && asks(grid) { grid.trial_ns.times(LOOK.0).min(LOOK.1) } else { Nanos(0) };
    Some(BESIDE + first + look + measured)
}

#[cfg(test)]
mod tests {
    use landspeed_record::{Grid, GridTrial, RecordKind, RecordWriter};

    use super::*;

    /// Writes the record of a run of two passes, which took 10 s, as that of an occasion.
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
        assert_eq!(found, OccasionForecast { time: Nanos::secs(2 + 15), unknown: 1 });
    }
}
