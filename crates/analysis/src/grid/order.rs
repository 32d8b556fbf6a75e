//! The cells that a block measures, and their order. Both depend only on the grid and its seed.

use landspeed_record::Grid;
use landspeed_record::units::Nanos;
use landspeed_stats::Random;

/// The longest time of a block: drift within a minute on a shared machine affects all of its cells.
const BLOCK: Nanos = Nanos::secs(60);
/// The offset that separates the random streams of the order within blocks from those of the assignment of cells to
/// blocks.
const WITHIN: u64 = 1 << 32;

/// The cells of a block that are measured together, so that a factor that is slow to change (`GridFactor::is_slow`)
/// keeps its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GridPlot {
    pub(super) number: u32,
    pub(super) cells: Vec<u32>,
}

/// Returns the number of blocks that together measure every cell. It is one, or more if one block with all cells would
/// take too long. Each of several blocks measures a part of the cells of every plot, and the reference.
pub fn blocks_a_pass(grid: &Grid) -> u32 {
    let longest = plots(grid).iter().map(|plot| plot.cells.len()).max().unwrap_or(1);
    let wanted = grid.trial_ns.times(u64::from(grid.cells())).0.div_ceil(BLOCK.0);
    u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, longest as u32)
}

/// Returns the plots of a block in the order in which they are measured, with their cells in order.
pub(super) fn block(grid: &Grid, number: u32) -> Vec<GridPlot> {
    let parts = blocks_a_pass(grid);
    let (pass, part) = (number / parts, (number % parts) as usize);
    let mut deal = Random::stream(grid.seed, u64::from(pass));
    let mut order = Random::stream(grid.seed, WITHIN + u64::from(number));
    let mut visited: Vec<GridPlot> = Vec::new();
    for mut plot in plots(grid) {
        deal.shuffle(&mut plot.cells);
        let mut cells: Vec<u32> = plot.cells.iter().copied().skip(part).step_by(parts as usize).collect();
        // The reference, cell 0, is in every block.
        if plot.cells.contains(&0) && !cells.contains(&0) {
            cells.push(0);
        }
        order.shuffle(&mut cells);
        visited.push(GridPlot { cells, ..plot });
    }
    visited.retain(|plot| !plot.cells.is_empty());
    order.shuffle(&mut visited);
    visited
}

/// Returns all plots of the grid with their cells.
pub(super) fn plots(grid: &Grid) -> Vec<GridPlot> {
    let mut plots: Vec<GridPlot> = Vec::new();
    for cell in 0..grid.cells() {
        let number = grid.plot_of(cell);
        match plots.iter_mut().find(|plot| plot.number == number) {
            Some(plot) => plot.cells.push(cell),
            None => plots.push(GridPlot { number, cells: vec![cell] }),
        }
    }
    plots
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landspeed_record::GridFactor;

    use super::*;

    fn grid(slow: u32, fast: u32, trial: Nanos) -> Grid {
        let factor = |n: u32, is_slow| GridFactor {
            levels: (0..n).map(|level| level.to_string()).collect(),
            is_slow,
            ..GridFactor::default()
        };
        Grid {
            factors: vec![factor(slow, true), factor(fast, false)],
            trial_ns: trial,
            seed: 7,
            ..Grid::default()
        }
    }

    #[test]
    fn a_block_visits_every_cell_once_plot_by_plot_in_an_order_of_its_own() {
        let grid = grid(3, 5, Nanos::millis(400));
        for number in 0..20 {
            let plots = block(&grid, number);
            let mut cells: Vec<u32> = plots.iter().flat_map(|plot| plot.cells.clone()).collect();
            assert!(
                plots.iter().all(|plot| plot.cells.iter().all(|cell| grid.plot_of(*cell) == plot.number))
            );
            cells.sort_unstable();
            assert_eq!(cells, (0..15).collect::<Vec<_>>());
        }
        let firsts: BTreeMap<u32, usize> = (0..60).fold(BTreeMap::new(), |mut seen, number| {
            *seen.entry(block(&grid, number)[0].number).or_default() += 1;
            seen
        });
        assert!(firsts.len() == 3 && firsts.values().all(|times| *times > 8), "{firsts:?}");
    }

    #[test]
    fn a_long_grid_is_dealt_to_blocks_with_the_reference_in_each() {
        let grid = grid(2, 100, Nanos::secs(1));
        assert_eq!(blocks_a_pass(&grid), 4);
        let mut visits = [0; 200];
        for number in 0..8 {
            let plots = block(&grid, number);
            assert_eq!(plots.len(), 2, "every plot");
            plots.iter().flat_map(|plot| &plot.cells).for_each(|cell| visits[*cell as usize] += 1);
        }
        assert_eq!(visits[0], 8);
        assert!(visits[1..].iter().all(|times| *times == 2), "{visits:?}");
    }
}
