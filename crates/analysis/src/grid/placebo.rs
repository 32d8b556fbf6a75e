//! Cells that a block measures a second time under another name, and what their ratios show.
//!
//! Both names of a cell have the same settings, so their ratio is 1 in truth. If its interval excludes 1, the intervals
//! of the grid do not cover what disturbed it. Placebos belong to no family of contrasts: they change no other interval.

use landspeed_record::{Grid, GridPlacebo, GridTrial};
use landspeed_stats::grid::{CellTrial, Contrast, FittedGrid};
use landspeed_stats::{Random, median, ratio_of};

use super::fitted::points;
use super::order::blocks_a_pass;
use super::visit::GridVisit;

/// The confidence of a placebo's interval. Of a thousand quiet grids with two placebos each, two are called disturbed.
const CONFIDENCE: f64 = 0.999;
/// The passes over all cells after which the loudest cell is known.
const LOOKED_AT: u32 = 2;
/// The offset that separates the random streams of placebos from those of the order.
const STREAM: u64 = 1 << 33;

/// Returns the number of trials that placebos add to a block.
pub(super) fn planned(grid: &Grid) -> u32 {
    if grid.has_placebos { grid.cells().saturating_sub(1).min(2) } else { 0 }
}

/// Returns the cells that the next block measures twice: the reference, and the loudest other cell once it is known.
/// With two cells, only the reference is measured twice.
pub(super) fn doubled(grid: &Grid, early: &[CellTrial]) -> Vec<u32> {
    match planned(grid) {
        0 => Vec::new(),
        1 => vec![0],
        _ => std::iter::once(0).chain(loudest(grid, early)).collect(),
    }
}

/// Returns true if a trial of this block counts in the choice of the loudest cell.
pub(super) fn is_early(grid: &Grid, block: u32) -> bool {
    block < LOOKED_AT * blocks_a_pass(grid)
}

/// Returns the cell, other than the reference, whose figure changed most between the first two passes, beside the
/// change of the middle cell; `None` before the second pass ends.
fn loudest(grid: &Grid, early: &[CellTrial]) -> Option<u32> {
    let parts = blocks_a_pass(grid);
    let in_pass = |pass: u32, cell: u32| {
        early.iter().find(|trial| trial.cell == cell && trial.block / parts == pass).map(|trial| trial.ln)
    };
    let change = |cell: u32| Some((cell, in_pass(1, cell)? - in_pass(0, cell)?));
    let changes: Vec<(u32, f64)> = (0..grid.cells()).filter_map(change).collect();
    let middle = median(changes.iter().map(|(_, change)| *change))?;
    let others = changes.into_iter().filter(|(cell, _)| *cell != 0);
    others.max_by(|(_, a), (_, b)| (a - middle).abs().total_cmp(&(b - middle).abs())).map(|(cell, _)| cell)
}

/// Adds a second visit for each of these cells that the block visits, at a random place among the visits of its plot.
pub(super) fn add(grid: &Grid, number: u32, cells: &[u32], visits: &mut Vec<GridVisit>) {
    let mut random = Random::stream(grid.seed, STREAM + u64::from(number));
    for cell in cells {
        let Some(one) = visits.iter().find(|visit| visit.cell == *cell).copied() else { continue };
        let plot = || visits.iter().enumerate().filter(|(_, visit)| visit.plot == one.plot);
        let (first, length) = (plot().next().map_or(0, |(at, _)| at), plot().count());
        let place = first + (random.draw() % (length as u64 + 1)) as usize;
        visits.insert(place, GridVisit { is_placebo: true, ..one });
    }
}

/// Compares each cell that has a second name with itself, in the figure of the grid.
pub(super) fn compared(grid: &Grid, trials: &[&GridTrial], doubles: &[&GridTrial]) -> Vec<GridPlacebo> {
    let of = |trials: &[&GridTrial]| points(grid, trials.iter().copied(), |trial| trial.figure(grid.figure));
    let renamed = |trial: CellTrial| CellTrial { cell: grid.cells() + trial.cell, ..trial };
    let second = of(doubles);
    let all: Vec<CellTrial> = of(trials).into_iter().chain(second.iter().copied().map(renamed)).collect();
    let Ok(fitted) = FittedGrid::of(&all, 0) else { return Vec::new() };
    let mut cells: Vec<u32> = second.iter().map(|trial| trial.cell).collect();
    cells.sort_unstable();
    cells.dedup();
    let compared = |cell: u32| {
        let contrast = Contrast::ratio(cell, grid.cells() + cell);
        let found = *fitted.compare(&[contrast], CONFIDENCE).ok()?.first()?;
        Some(GridPlacebo {
            cell: grid.name_of(cell),
            blocks: second.iter().filter(|trial| trial.cell == cell).count() as u32,
            ratio: ratio_of(found.ln, found.alone.0, found.alone.1),
            statistic: found.ln / found.error.max(f64::MIN_POSITIVE),
            freedom: found.freedom,
        })
    };
    cells.into_iter().filter_map(compared).collect()
}

/// Returns what is wrong with the grid's intervals, a line for each placebo whose interval excludes 1.
pub(super) fn doubts(placebos: &[GridPlacebo]) -> impl Iterator<Item = String> {
    placebos.iter().filter(|placebo| !placebo.holds()).map(|GridPlacebo { cell, ratio, .. }| {
        format!(
            "{cell} was measured twice under two names, and the second gave {:.2}x [{:.2}, {:.2}] of the first: this run's ranges \
             are too narrow for any answer",
            ratio.ratio, ratio.low, ratio.high
        )
    })
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;
    use landspeed_record::{GridFactor, TrialFigures};

    use super::*;

    fn grid(levels: usize) -> Grid {
        let levels: Vec<String> = (0..levels).map(|level| level.to_string()).collect();
        let factors = vec![GridFactor { name: "x".into(), levels, ..GridFactor::default() }];
        Grid { factors, has_placebos: true, seed: 3, ..Grid::default() }
    }

    fn trial(block: u32, cell: u32, rate: f64) -> GridTrial {
        let figures = TrialFigures { rate_bps: BitRate(rate), ..TrialFigures::default() };
        GridTrial { block, cell, figures, ..GridTrial::default() }
    }

    /// Ten blocks of three cells, each with noise of 2 %. The second names have `shift` as a factor.
    fn measured(grid: &Grid, shift: f64) -> Vec<GridPlacebo> {
        let mut random = Random::new(11);
        let mut noisy = |rate: f64| rate * (0.02 * random.normal()).exp();
        let mut trials = Vec::new();
        let mut doubles = Vec::new();
        for block in 0..10 {
            trials.extend((0..3).map(|cell| trial(block, cell, noisy(1e9 * f64::from(cell + 1)))));
            doubles.extend([0, 2].map(|cell| trial(block, cell, noisy(1e9 * f64::from(cell + 1)) * shift)));
        }
        compared(grid, &trials.iter().collect::<Vec<_>>(), &doubles.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_same_cell_under_two_names_is_the_same_and_a_shift_of_one_name_is_found() {
        let grid = grid(3);
        let same = measured(&grid, 1.0);
        assert_eq!(same.iter().map(|one| one.cell.as_str()).collect::<Vec<_>>(), ["x=0", "x=2"]);
        assert!(same.iter().all(GridPlacebo::holds), "{same:?}");
        assert_eq!(doubts(&same).count(), 0);
        let shifted = measured(&grid, 1.1);
        assert!(shifted.iter().all(|one| !one.holds() && one.blocks == 10), "{shifted:?}");
        assert!(doubts(&shifted).next().unwrap().starts_with("x=0 was measured twice under two names"));
    }

    #[test]
    fn the_cell_that_changed_most_between_two_passes_is_doubled() {
        let grid = grid(4);
        // All cells gain a tenth, cell 2 besides it a fifth.
        let ln =
            |block: u32, cell: u32| 0.1 * f64::from(block) + if (block, cell) == (1, 2) { 0.2 } else { 0.0 };
        let trial = |block, cell| CellTrial { block, plot: 0, cell, ln: ln(block, cell) };
        let first: Vec<CellTrial> = (0..4).map(|cell| trial(0, cell)).collect();
        assert_eq!(doubled(&grid, &first), [0], "one pass shows no change");
        let both: Vec<CellTrial> = first.into_iter().chain((0..4).map(|cell| trial(1, cell))).collect();
        assert_eq!(doubled(&grid, &both), [0, 2]);
    }

    /// Quiet grids of six blocks, whose loudest cell is chosen by what the first two passes showed.
    #[test]
    fn quiet_grids_are_seldom_called_disturbed() {
        let (grid, mut random) = (grid(4), Random::new(23));
        let mut left = 0;
        for _ in 0..400 {
            let mut noisy = |cell: u32| 1e9 * (0.05 * f64::from(cell + 1) * random.normal()).exp();
            let (mut trials, mut doubles) = (Vec::new(), Vec::new());
            for block in 0..6 {
                let early = points(&grid, &trials, |trial: &GridTrial| trial.figure(grid.figure));
                let early: Vec<CellTrial> =
                    early.into_iter().filter(|one| is_early(&grid, one.block)).collect();
                doubles
                    .extend(doubled(&grid, &early).into_iter().map(|cell| trial(block, cell, noisy(cell))));
                trials.extend((0..4).map(|cell| trial(block, cell, noisy(cell))));
            }
            let found =
                compared(&grid, &trials.iter().collect::<Vec<_>>(), &doubles.iter().collect::<Vec<_>>());
            assert_eq!(found.len(), 2);
            left += found.iter().filter(|one| !one.holds()).count();
        }
        // 0.1 % of 800, with the 99.9 % bound of the binomial distribution.
        assert!(left <= 4, "{left}");
    }

    #[test]
    fn a_second_name_is_visited_within_its_plot_at_any_place() {
        let grid = grid(3);
        let visit = |cell: u32| GridVisit { block: 0, plot: cell / 2, cell, is_placebo: false };
        let mut places = std::collections::BTreeSet::new();
        for number in 0..60 {
            let mut visits: Vec<GridVisit> = [2, 0, 1].map(visit).to_vec();
            add(&grid, number, &[0], &mut visits);
            let at = visits.iter().position(|visit| visit.is_placebo).unwrap();
            assert_eq!((visits.len(), visits[at].cell, visits[at].plot), (4, 0, 0));
            places.insert(at);
        }
        assert_eq!(places.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn few_cells_have_few_placebos() {
        assert_eq!([1, 2, 3, 9].map(|levels| planned(&grid(levels))), [0, 1, 2, 2]);
        assert_eq!(planned(&Grid { has_placebos: false, ..grid(9) }), 0);
    }
}
