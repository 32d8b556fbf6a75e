//! The size of a grid before it is measured: its passes, blocks and trials, and their time.

use landspeed_record::Grid;
use landspeed_record::units::Nanos;
use landspeed_stats::grid::least_blocks;

use super::order::{blocks_a_pass, plots};
use super::placebo;

/// The number of passes over all cells if neither blocks, nor precision, nor a budget ends the grid.
const PASSES: u32 = 8;
/// The largest number of passes if a precision or a budget ends the grid.
const MOST_PASSES: u32 = 100;

/// Returns the largest number of passes over all cells of the grid.
pub(super) fn planned_passes(grid: &Grid) -> u32 {
    let ends_itself = grid.precision.is_some() || grid.budget_ns > Nanos(0);
    grid.blocks.unwrap_or(if ends_itself { MOST_PASSES } else { PASSES })
}

/// Returns the largest number of blocks of the grid.
pub fn planned_blocks(grid: &Grid) -> u32 {
    planned_passes(grid).saturating_mul(blocks_a_pass(grid))
}

/// Returns the largest number of trials of the grid, placebos included. If a pass over all cells takes several blocks,
/// each of them also measures the reference, which this leaves out.
pub fn planned_trials(grid: &Grid) -> usize {
    let placebos = placebo::planned(grid).saturating_mul(blocks_a_pass(grid));
    grid.cells().saturating_add(placebos).saturating_mul(planned_passes(grid)) as usize
}

/// Returns the approximate time of a block.
pub(super) fn block_time(grid: &Grid) -> Nanos {
    let parts = u64::from(blocks_a_pass(grid));
    let trials = u64::from(grid.cells()).div_ceil(parts) + u64::from(placebo::planned(grid));
    let plots = plots(grid).len() as u64;
    let toggles = |slow: bool, times: u64| {
        let factors = grid.factors.iter().filter(move |factor| factor.is_slow == slow);
        factors.map(|factor| factor.toggle_ns).sum::<Nanos>().times(times)
    };
    grid.trial_ns.times(trials) + toggles(true, plots) + toggles(false, trials)
}

/// Returns the least time in which a grid has intervals: three blocks, or more where factors are varied over whole plots.
pub fn least_time(grid: &Grid) -> Nanos {
    let blocks = if grid.has_plots() { least_blocks(plots(grid).len()) as u64 } else { 3 };
    block_time(grid).times(blocks * u64::from(blocks_a_pass(grid)))
}

#[cfg(test)]
mod tests {
    use landspeed_record::GridFactor;

    use super::*;

    #[test]
    fn a_block_of_a_long_grid_takes_the_time_of_its_part_of_the_cells() {
        let levels: Vec<String> = (0..200).map(|level| level.to_string()).collect();
        let factors = vec![GridFactor { levels, ..GridFactor::default() }];
        let grid = Grid { factors, trial_ns: Nanos::secs(1), ..Grid::default() };
        assert_eq!(blocks_a_pass(&grid), 4);
        assert!(block_time(&grid) >= Nanos::secs(50));
    }
}
