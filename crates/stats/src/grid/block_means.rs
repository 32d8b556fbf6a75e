//! Contrasts from the differences within each block, for grids whose cells or plots differ in noise.
//!
//! A difference within a block is free of the conditions that the block's trials share. Its variance over the blocks
//! depends only on the cells in the contrast, whatever the noise and the drift of the other cells. The test is
//! Student's for one sample, with Bonferroni's correction for the family.

use std::collections::BTreeMap;

use super::{CellTrial, Contrast, ContrastEstimate, VarianceMethod};
use crate::contrast::known_quantile;

/// A contrast's variance is estimated only if at least this many blocks have all cells of the contrast.
const LEAST: usize = 4;

/// The mean log of each cell in each block.
pub(super) struct BlockMeans(Vec<BTreeMap<u32, f64>>);

impl BlockMeans {
    pub(super) fn of(trials: &[CellTrial]) -> BlockMeans {
        let mut blocks: BTreeMap<u32, BTreeMap<u32, (f64, f64)>> = BTreeMap::new();
        for trial in trials {
            let (sum, count) = blocks.entry(trial.block).or_default().entry(trial.cell).or_default();
            (*sum, *count) = (*sum + trial.ln, *count + 1.0);
        }
        let means = |cells: BTreeMap<u32, (f64, f64)>| {
            cells.into_iter().map(|(cell, (sum, count))| (cell, sum / count)).collect()
        };
        BlockMeans(blocks.into_values().map(means).collect())
    }

    /// Estimates a contrast that belongs to a family of `family` contrasts, with intervals at `confidence`. `None` if
    /// too few blocks have all cells of the contrast.
    pub(super) fn compare(
        &self,
        contrast: &Contrast,
        family: usize,
        confidence: f64,
    ) -> Option<ContrastEstimate> {
        let of_block = |cells: &BTreeMap<u32, f64>| {
            let parts = contrast.weights.iter().map(|(cell, weight)| Some(weight * cells.get(cell)?));
            parts.sum::<Option<f64>>()
        };
        let seen: Vec<f64> = self.0.iter().filter_map(of_block).collect();
        if seen.len() < LEAST {
            return None;
        }
        let n = seen.len() as f64;
        let ln = seen.iter().sum::<f64>() / n;
        let error = (seen.iter().map(|one| (one - ln).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
        let ends = |part: f64| {
            let half = known_quantile(n - 1.0, (1.0 - confidence) / 2.0 * part) * error;
            (ln - half, ln + half)
        };
        let (alone, together) = (ends(1.0), ends(1.0 / family.max(1) as f64));
        Some(ContrastEstimate {
            ln,
            error,
            freedom: n - 1.0,
            alone,
            together,
            method: VarianceMethod::Paired,
        })
    }
}
