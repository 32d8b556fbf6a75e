//! The designer of a grid. It makes block after block until the grid's number of blocks, its precision or its budget is
//! reached.

use std::collections::VecDeque;

use landspeed_record::units::Nanos;
use landspeed_record::{Grid, GridEndReason, GridTrial, Line};
use landspeed_stats::grid::CellTrial;

use super::fitted::points;
use super::order::block;
use super::placebo;
use super::precision::Precision;
use super::size::{block_time, planned_blocks};
use super::visit::GridVisit;
use crate::Designer;

/// Decides the trials of a grid, one after the other, and when the grid ends.
#[derive(Debug)]
pub struct GridDesigner<'g> {
    grid: &'g Grid,
    /// Number of the next block.
    block: u32,
    /// The remaining trials of the current block.
    ahead: VecDeque<GridVisit>,
    precision: Precision,
    /// The trials of the first passes, from which the loudest cell is chosen.
    early: Vec<CellTrial>,
    /// The time at which the current block began.
    began: Option<Nanos>,
    /// The longest time that a block has taken, or is expected to take.
    longest: Nanos,
}

impl<'g> GridDesigner<'g> {
    /// Returns a designer for a grid of which the trials `done` were made. It continues with the block after the last
    /// block of `done`, and does not complete a block that was cut short.
    pub fn new(grid: &'g Grid, done: &[GridTrial]) -> Self {
        let mut designer = GridDesigner {
            grid,
            block: done.iter().map(|trial| trial.block + 1).max().unwrap_or(0),
            ahead: VecDeque::new(),
            precision: Precision::of(grid, done),
            early: Vec::new(),
            began: None,
            longest: block_time(grid),
        };
        done.iter().for_each(|trial| designer.look_at(trial));
        designer
    }

    fn look_at(&mut self, trial: &GridTrial) {
        if placebo::is_early(self.grid, trial.block) {
            self.early.extend(points(self.grid, [trial], |trial| trial.figure(self.grid.figure)));
        }
    }

    fn begin_block(&mut self, used: Nanos) -> Result<(), GridEndReason> {
        if let Some(began) = self.began.replace(used) {
            self.longest = self.longest.max(used.saturating_sub(began));
            self.precision.end_block();
        }
        let (budget, number) = (self.grid.budget_ns, self.block);
        if number >= planned_blocks(self.grid) {
            return Err(GridEndReason::Blocks);
        }
        if self.precision.is_reached() {
            return Err(GridEndReason::Precision);
        }
        if budget > Nanos(0) && used + self.longest > budget {
            return Err(GridEndReason::Budget);
        }
        self.block += 1;
        let mut visits = Vec::new();
        for plot in block(self.grid, number) {
            let visit = |cell| GridVisit { block: number, plot: plot.number, cell, is_placebo: false };
            visits.extend(plot.cells.into_iter().map(visit));
        }
        placebo::add(self.grid, number, &placebo::doubled(self.grid, &self.early), &mut visits);
        self.ahead.extend(visits);
        Ok(())
    }
}

impl Designer for GridDesigner<'_> {
    type Trial = GridVisit;

    fn next(&mut self, used: Nanos) -> Result<GridVisit, GridEndReason> {
        if self.ahead.is_empty() {
            self.begin_block(used)?;
        }
        self.ahead.pop_front().ok_or(GridEndReason::Blocks)
    }

    fn take(&mut self, line: &Line) {
        if let Line::GridTrial(trial) = line {
            self.precision.take(trial);
            self.look_at(trial);
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::GridFactor;

    use super::*;

    fn grid() -> Grid {
        let levels: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let sets = vec![Vec::new(); levels.len()];
        let factor = GridFactor { name: "x".into(), levels, sets, ..GridFactor::default() };
        Grid {
            factors: vec![factor],
            blocks: Some(3),
            seed: 1,
            trial_ns: Nanos::millis(10),
            ..Grid::default()
        }
    }

    fn visits(grid: &Grid, done: &[GridTrial], trial: Nanos) -> (Vec<GridVisit>, GridEndReason) {
        let (mut designer, mut used, mut visits) = (GridDesigner::new(grid, done), Nanos(0), Vec::new());
        loop {
            match designer.next(used) {
                Ok(visit) => visits.push(visit),
                Err(why) => return (visits, why),
            }
            used += trial;
        }
    }

    #[test]
    fn each_block_visits_every_cell_and_a_grid_that_goes_on_begins_with_a_new_block() {
        let (all, why) = visits(&grid(), &[], Nanos::millis(10));
        assert_eq!((all.len(), why), (9, GridEndReason::Blocks));
        for number in 0..3 {
            let mut cells: Vec<_> = all.iter().filter(|v| v.block == number).map(|v| v.cell).collect();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2]);
        }
        let done = [GridTrial { block: 1, ..GridTrial::default() }];
        assert_eq!(visits(&grid(), &done, Nanos::millis(10)).0, all[6..]);
    }

    #[test]
    fn no_block_begins_that_would_not_end_within_the_budget() {
        let grid = Grid { budget_ns: Nanos::millis(200), blocks: None, ..grid() };
        // A block turns out to take 60 ms, so that three fit.
        let (visited, why) = visits(&grid, &[], Nanos::millis(20));
        assert_eq!((visited.len(), why), (9, GridEndReason::Budget));
    }
}
