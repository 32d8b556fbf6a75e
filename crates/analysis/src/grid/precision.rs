//! Decides when a grid is precise enough.

use landspeed_record::{Grid, GridTrial};
use landspeed_stats::grid::CellTrial;

use super::fitted::{FigureModel, points};

/// The check of the intervals after each block, if the user requested a precision. The width of an interval does not
/// depend on where it lies, so that repeated checks cost no confidence (Chow and Robbins, Ann. Math. Stat. 36, 1965).
#[derive(Debug)]
pub struct Precision {
    grid: Grid,
    trials: Vec<CellTrial>,
    is_reached: bool,
}

impl Precision {
    /// Returns the check for a grid with the trials that it already has.
    pub fn of(grid: &Grid, done: &[GridTrial]) -> Precision {
        let trials = points(grid, done, |trial| trial.figure(grid.figure));
        let mut precision = Precision { grid: grid.clone(), trials, is_reached: false };
        precision.end_block();
        precision
    }

    /// Adds a trial of the current block.
    pub fn take(&mut self, trial: &GridTrial) {
        self.trials.extend(points(&self.grid, [trial], |trial| trial.figure(self.grid.figure)));
    }

    /// Checks whether every ratio to the reference has the requested precision.
    pub fn end_block(&mut self) {
        let Some(wanted) = self.grid.precision else { return };
        self.is_reached = self.widest().is_some_and(|half| half <= wanted.ln_1p());
    }

    /// Returns true if the last check found the requested precision.
    pub fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// Returns half the width of the widest interval of a ratio to the reference, as a log; `None` where there is
    /// none yet.
    fn widest(&self) -> Option<f64> {
        let fitted = FigureModel::of(&self.grid, &self.trials).ok()?;
        let found = fitted.compare(&fitted.to_reference());
        let halves = found.iter().map(|one| one.as_ref().map(|one| (one.together.1 - one.together.0) / 2.0));
        halves.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }
}
