//! The linear model of a grid's trials: the block, cell and plot of each trial.

use std::collections::{BTreeMap, BTreeSet};

use nalgebra::{DMatrix, DVector};

use super::{CellTrial, GridError};

/// Returns the least number of blocks of `plots` plots each, of several trials, from which the plots' variance is
/// estimated. After the first block, a block of two plots gives one degree of freedom, and one of three gives two: there
/// are five at least. Of more than two plots, a contrast has the variance of its own differences, from four blocks on.
pub fn least_blocks(plots: usize) -> usize {
    if plots > 2 { 4 } else { 6 }
}

/// The linear model of a grid's trials. Its effects are the effects of the blocks, followed by the effects of all cells
/// except the reference. The effect of the reference is 0.
pub(super) struct GridDesign {
    /// The cells, in ascending order.
    pub(super) cells: Vec<u32>,
    pub(super) blocks: usize,
    /// Each trial's cell, as an index into `cells`.
    pub(super) cell: Vec<usize>,
    /// Each trial's plot; the trial's block instead if each block is one plot, or if each trial is its own plot.
    pub(super) plot: Vec<usize>,
    /// The number of trials in each plot.
    pub(super) sizes: DVector<f64>,
    /// True if plots have a random effect in the model.
    pub(super) has_plots: bool,
    /// The design matrix: trials by effects.
    pub(super) x: DMatrix<f64>,
    pub(super) y: DVector<f64>,
    reference: usize,
}

impl GridDesign {
    pub(super) fn of(trials: &[CellTrial], reference: u32) -> Result<GridDesign, GridError> {
        let cells: Vec<u32> = trials.iter().map(|t| t.cell).collect::<BTreeSet<_>>().into_iter().collect();
        let place = cells.binary_search(&reference).map_err(|_| GridError::Reference(reference))?;
        let apart = apart(trials, reference);
        if !apart.is_empty() {
            return Err(GridError::Apart(apart));
        }
        let (block, blocks) = numbered(trials.iter().map(|t| t.block));
        let (plots, count) = numbered(trials.iter().map(|t| (t.block, t.plot)));
        let split = split_blocks(&block, &plots, blocks);
        let has_plots = !split.is_empty() && count < trials.len();
        let wide = split.iter().filter(|plots| **plots > 2).count();
        // A block whose third plot failed, or was not reached, counts only where two plots a block are enough.
        let is_wide = wide > 0 && split.len() < least_blocks(2) && most_have_several(&plots, count);
        let (have, need) = if is_wide { (wide, least_blocks(3)) } else { (split.len(), least_blocks(2)) };
        if has_plots && have < need {
            return Err(GridError::Blocks { have, need });
        }
        let plot = if has_plots { plots } else { block.clone() };
        let mut sizes = DVector::zeros(if has_plots { count } else { blocks });
        plot.iter().for_each(|plot| sizes[*plot] += 1.0);
        let cell: Vec<usize> =
            trials.iter().map(|t| cells.binary_search(&t.cell).expect("gathered above")).collect();
        let y = DVector::from_iterator(trials.len(), trials.iter().map(|t| t.ln));
        let mut design = GridDesign {
            x: DMatrix::zeros(trials.len(), 0),
            cells,
            blocks,
            cell,
            plot,
            sizes,
            has_plots,
            y,
            reference: place,
        };
        design.x = DMatrix::zeros(trials.len(), blocks + design.cells.len() - 1);
        for (trial, block) in block.into_iter().enumerate() {
            design.x[(trial, block)] = 1.0;
            if let Some(column) = design.column(design.cell[trial]) {
                design.x[(trial, column)] = 1.0;
            }
        }
        Ok(design)
    }

    /// Returns the column of the effect of a cell (an index into `cells`); `None` for the reference.
    pub(super) fn column(&self, place: usize) -> Option<usize> {
        let before = usize::from(place > self.reference);
        (place != self.reference).then_some(self.blocks + place - before)
    }

    /// Returns a number for each cell (an index into `cells`). Cells that share plots have the same number.
    pub(super) fn plot_sets(&self) -> Vec<usize> {
        let mut sets: Vec<usize> = (0..self.cells.len()).collect();
        let mut first: Vec<Option<usize>> = vec![None; self.sizes.len()];
        for (cell, plot) in self.cell.iter().zip(&self.plot) {
            let known = *first[*plot].get_or_insert(*cell);
            let (set, other) = (sets[known], sets[*cell]);
            sets.iter_mut().filter(|one| **one == other).for_each(|one| *one = set);
        }
        sets
    }

    /// Returns, for each plot, the sum of the rows of `of` (one per trial): a matrix of plots by columns of `of`.
    pub(super) fn by_plot(&self, of: &DMatrix<f64>) -> DMatrix<f64> {
        let mut sums = DMatrix::zeros(self.sizes.len(), of.ncols());
        for (trial, plot) in self.plot.iter().enumerate() {
            for column in 0..of.ncols() {
                sums[(*plot, column)] += of[(trial, column)];
            }
        }
        sums
    }
}

/// Returns the cells that no chain of blocks with common cells joins to the cell `reference`.
fn apart(trials: &[CellTrial], reference: u32) -> Vec<u32> {
    let mut blocks: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    trials.iter().for_each(|t| _ = blocks.entry(t.block).or_default().insert(t.cell));
    let mut joined = BTreeSet::from([reference]);
    loop {
        let before = joined.len();
        for cells in blocks.values().filter(|cells| !cells.is_disjoint(&joined)).cloned().collect::<Vec<_>>()
        {
            joined.extend(cells);
        }
        if joined.len() == before {
            let all: BTreeSet<u32> = blocks.into_values().flatten().collect();
            return all.difference(&joined).copied().collect();
        }
    }
}

/// Returns each key's rank in ascending order, and the number of distinct keys.
fn numbered<K: Ord + Clone>(keys: impl Iterator<Item = K> + Clone) -> (Vec<usize>, usize) {
    let known: BTreeMap<K, usize> =
        keys.clone().collect::<BTreeSet<_>>().into_iter().enumerate().map(|(i, key)| (key, i)).collect();
    (keys.map(|key| known[&key]).collect(), known.len())
}

/// Returns true if most of the `count` plots have several trials. `plot` is each trial's plot.
fn most_have_several(plot: &[usize], count: usize) -> bool {
    let mut trials = vec![0; count];
    plot.iter().for_each(|plot| trials[*plot] += 1);
    2 * trials.iter().filter(|trials| **trials > 1).count() > count
}

/// Returns the number of plots of each block that has more than one.
fn split_blocks(block: &[usize], plot: &[usize], blocks: usize) -> Vec<usize> {
    let mut plots = vec![BTreeSet::new(); blocks];
    block.iter().zip(plot).for_each(|(block, plot)| _ = plots[*block].insert(*plot));
    plots.iter().map(BTreeSet::len).filter(|plots| *plots > 1).collect()
}
