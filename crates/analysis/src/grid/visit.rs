//! The visit of a cell: one trial of a grid, as it is planned.

use landspeed_record::{GridTrial, Line};

/// The next trial of a grid: its block, its plot and its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridVisit {
    pub block: u32,
    /// The number of the plot. A plot is a group of cells that are measured together, so that a factor that is slow to
    /// change (`GridFactor::is_slow`) keeps its value within the group.
    pub plot: u32,
    pub cell: u32,
    /// True for the extra visit by which a block measures a cell twice, as a placebo.
    pub is_placebo: bool,
}

impl GridVisit {
    /// Returns the record's line for this visit's trial.
    pub fn line(&self, trial: GridTrial) -> Line {
        let trial = Box::new(trial);
        if self.is_placebo { Line::GridPlacebo(trial) } else { Line::GridTrial(trial) }
    }
}
