//! The progress of a grid.

use std::sync::Arc;
use std::time::Instant;

use landspeed_analysis::grid::planned_trials;
use landspeed_record::units::Nanos;
use landspeed_record::{Grid, GridTrial};
use parking_lot::Mutex;

use super::{ProgressLine, clock};
use crate::words::counted;
use crate::{OutputCapabilities, about, safe};

/// The progress of a grid on standard error: the time used and, if known, the time left, then the block and the cell of
/// the last trial.
pub struct GridProgress {
    now: Arc<Mutex<GridProgressState>>,
    progress_line: ProgressLine,
}

struct GridProgressState {
    grid: Grid,
    blocks: u32,
    /// Number of trials that this process made.
    made: usize,
    /// Number of trials that the record already had.
    before: usize,
    last: Option<(u32, u32)>,
    began: Instant,
}

impl GridProgress {
    /// Prints the size of the grid, of at most `blocks` blocks, and starts the progress line. `done` trials are already
    /// in the record.
    pub fn new(output: OutputCapabilities, grid: &Grid, blocks: u32, done: usize) -> GridProgress {
        let now = GridProgressState {
            grid: grid.clone(),
            blocks,
            made: 0,
            before: done,
            last: None,
            began: Instant::now(),
        };
        let total = now.total();
        let now = Arc::new(Mutex::new(now));
        let seen = Arc::clone(&now);
        let line = move |width: Option<usize>| {
            let line = seen.lock().line();
            if width.is_some() && !line.is_empty() { format!("  {line}") } else { line }
        };
        let progress_line = ProgressLine::new(output, line);
        progress_line.say(&total);
        GridProgress { now, progress_line }
    }

    /// Counts a finished trial. If it has no figures, prints the reason.
    pub fn take(&mut self, trial: &GridTrial) {
        let mut now = self.now.lock();
        now.made += 1;
        now.last = Some((trial.block, trial.cell));
        let name = now.grid.name_of(trial.cell);
        drop(now);
        if let Some(why) = &trial.failed {
            self.progress_line.say(&safe(&format!("{name}: no figure: {why}")));
        }
    }
}

impl GridProgressState {
    /// Returns the size of the grid and its estimated duration: "24 cells, 8 blocks: about 2 min".
    fn total(&self) -> String {
        let cells = counted(self.grid.cells() as usize, "cell");
        match (self.blocks_are_known(), self.grid.budget_ns) {
            (true, _) => {
                format!("{cells}, {}: {}", counted(self.blocks as usize, "block"), about(self.time()))
            }
            (false, Nanos(0)) => format!("{cells}, until they are known well enough"),
            (false, budget) => format!("{cells}, for {}", about(budget)),
        }
    }

    /// Returns true if the grid ends after a number of blocks, and not by its precision or its budget.
    fn blocks_are_known(&self) -> bool {
        self.grid.precision.is_none() && self.grid.budget_ns == Nanos(0)
    }

    fn trials(&self) -> usize {
        planned_trials(&self.grid)
    }

    /// Returns the estimated time of the remaining trials.
    fn time(&self) -> Nanos {
        let left = self.trials().saturating_sub(self.before + self.made) as u64;
        let each = match self.made {
            0 => self.grid.trial_ns,
            made => Nanos(Nanos::from(self.began.elapsed()).0 / made as u64),
        };
        each.times(left)
    }

    fn line(&self) -> String {
        let Some((block, cell)) = self.last else { return String::new() };
        let used = clock(self.began.elapsed().into());
        let left =
            if self.blocks_are_known() { format!("  {} left", about(self.time())) } else { String::new() };
        safe(&format!("{used}{left}  block {}  {}", block + 1, self.grid.name_of(cell)))
    }
}
