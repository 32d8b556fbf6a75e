//! A grid of cells: which to visit next, and what its trials say together.

mod expect;
mod judge;
mod order;
mod precision;

pub use judge::{NotAGrid, report};
pub use order::{Plot, block, block_time, blocks_a_pass, least_time};
pub use precision::Precision;

use landspeed_record::{Grid, GridFigure, GridTrial};
use landspeed_stats::grid::Trial;

/// The trials that have the figure, as statistics takes them.
fn points<'a>(
    grid: &Grid,
    trials: impl IntoIterator<Item = &'a GridTrial>,
    figure: GridFigure,
) -> Vec<Trial> {
    let point = |trial: &GridTrial| {
        let ln = trial.figure(figure)?.ln();
        let known = trial.cell < grid.cells();
        known.then_some(Trial { block: trial.block, plot: trial.plot, cell: trial.cell, ln })
    };
    trials.into_iter().filter_map(point).collect()
}

/// How many values each factor has.
fn levels(grid: &Grid) -> Vec<u32> {
    grid.factors.iter().map(|factor| factor.levels.len() as u32).collect()
}
