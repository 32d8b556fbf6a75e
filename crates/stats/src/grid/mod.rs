//! Grids: trials of many cells in blocks, and the ratios between cells with intervals that hold together.
//!
//! A trial's log is its block plus its cell, and noise that may differ from cell to cell. Differences within a block are free of
//! what the block's minute was like. Each contrast has the error of its own differences, block by block, which is valid
//! whatever the cells' variances are and whichever of them are measured together in a whole plot.

mod contrasts;

use std::collections::BTreeMap;
use std::fmt;

pub use contrasts::{Effect, Step, Weights, factorial, neighbours, to_first, to_reference};

use crate::contrast::known_quantile;

/// One trial of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    pub block: u32,
    /// The whole plot within its block: trials of one block and plot were measured together.
    pub plot: u32,
    pub cell: u32,
    /// Log of the figure.
    pub ln: f64,
}

/// Why trials say nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooFew {
    #[error("{0} blocks are too few; intervals need {1}")]
    Blocks(usize, usize),
}

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Student's t of the differences block by block, with Bonferroni's correction.
    Paired,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Paired => f.write_str("differences block by block, Bonferroni's correction"),
        }
    }
}

/// A contrast as the trials have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    pub ln: f64,
    pub error: f64,
    /// The error's degrees of freedom.
    pub freedom: f64,
    /// The interval by itself.
    pub alone: (f64, f64),
    /// The interval that holds together with those of the whole family.
    pub together: (f64, f64),
    pub method: Method,
}

/// Trials, ready to be asked.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Mean log of each cell in each block that visited it.
    blocks: BTreeMap<u32, BTreeMap<u32, f64>>,
}

/// Fewer blocks have no interval worth printing: Student's quantile with one degree of freedom is 12.7.
const LEAST: usize = 3;
/// Where cells are measured in whole plots, the plots' own deviation must show.
const LEAST_OF_PLOTS: usize = 6;

impl Grid {
    /// Of trials in any order.
    ///
    /// # Errors
    /// Too few blocks for intervals.
    pub fn of(trials: &[Trial]) -> Result<Grid, TooFew> {
        let mut sums: BTreeMap<u32, BTreeMap<u32, (f64, f64)>> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| trial.ln.is_finite()) {
            let (sum, count) = sums.entry(trial.block).or_default().entry(trial.cell).or_default();
            (*sum, *count) = (*sum + trial.ln, *count + 1.0);
        }
        let has_plots =
            trials.windows(2).any(|two| two[0].block == two[1].block && two[0].plot != two[1].plot);
        let least = if has_plots { LEAST_OF_PLOTS } else { LEAST };
        if sums.len() < least {
            return Err(TooFew::Blocks(sums.len(), least));
        }
        let means = |cells: BTreeMap<u32, (f64, f64)>| {
            cells.into_iter().map(|(cell, (sum, n))| (cell, sum / n)).collect()
        };
        Ok(Grid { blocks: sums.into_iter().map(|(block, cells)| (block, means(cells))).collect() })
    }

    /// Each contrast with its intervals; `None` where too few blocks visited all of its cells.
    pub fn compare(&self, family: &[Weights], confidence: f64) -> Vec<Option<Compared>> {
        family.iter().map(|weights| self.paired(weights, confidence, family.len())).collect()
    }

    /// The mean log of a cell, with its interval over blocks; `None` where too few blocks visited it.
    pub fn mean(&self, cell: u32, confidence: f64) -> Option<Compared> {
        self.paired(&Weights(vec![(cell, 1.0)]), confidence, 1)
    }

    fn paired(&self, weights: &Weights, confidence: f64, family: usize) -> Option<Compared> {
        let used = || weights.0.iter().filter(|(_, weight)| *weight != 0.0);
        let of_block = |cells: &BTreeMap<u32, f64>| {
            used().map(|(cell, weight)| Some(weight * cells.get(cell)?)).sum::<Option<f64>>()
        };
        let seen: Vec<f64> = self.blocks.values().filter_map(of_block).collect();
        let n = seen.len() as f64;
        if seen.len() < LEAST {
            return None;
        }
        let ln = seen.iter().sum::<f64>() / n;
        let error = (seen.iter().map(|one| (one - ln).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
        let ends = |share: f64| {
            let half = known_quantile(n - 1.0, (1.0 - confidence) / 2.0 * share) * error;
            (ln - half, ln + half)
        };
        let (alone, together) = (ends(1.0), ends(1.0 / family.max(1) as f64));
        Some(Compared { ln, error, freedom: n - 1.0, alone, together, method: Method::Paired })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(noise: impl Fn(u32, u32) -> f64) -> Vec<Trial> {
        let one = |block: u32, cell: u32| Trial {
            block,
            plot: 0,
            cell,
            ln: f64::from(block) + 0.1 * f64::from(cell) + noise(block, cell),
        };
        (0..8).flat_map(|block| (0..4).map(move |cell| (block, cell))).map(|(b, c)| one(b, c)).collect()
    }

    #[test]
    fn blocks_drop_out_of_differences() {
        let grid =
            Grid::of(&trials(|block, cell| if (block + cell) % 2 == 0 { 0.01 } else { -0.01 })).unwrap();
        let found = grid.compare(&to_reference(&[4]), 0.95);
        for (cell, found) in (1..).zip(found) {
            let found = found.unwrap();
            assert!((found.ln - 0.1 * f64::from(cell)).abs() < 1e-9 && found.freedom == 7.0);
            assert!(found.together.0 <= found.alone.0 && found.alone.1 <= found.together.1);
        }
    }

    #[test]
    fn too_little_is_told() {
        let few: Vec<Trial> = trials(|_, _| 0.0).into_iter().filter(|trial| trial.block < 2).collect();
        assert_eq!(Grid::of(&few).unwrap_err(), TooFew::Blocks(2, 3));
        let plots = trials(|_, _| 0.0).into_iter().filter(|trial| trial.block < 5);
        let plots: Vec<Trial> = plots.map(|trial| Trial { plot: trial.cell / 2, ..trial }).collect();
        assert_eq!(Grid::of(&plots).unwrap_err().to_string(), "5 blocks are too few; intervals need 6");
        let gaps: Vec<Trial> =
            trials(|_, _| 0.0).into_iter().filter(|t| t.cell != 2 || t.block == 0).collect();
        assert_eq!(Grid::of(&gaps).unwrap().compare(&[Weights::from_to(0, 2)], 0.95), [None]);
    }
}
