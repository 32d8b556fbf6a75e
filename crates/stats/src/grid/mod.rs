//! Analysis of a grid experiment: every cell (combination of factors' values) is measured in randomised blocks, and
//! contrasts say which cells differ.
//!
//! Figures are logs. The log of a trial is the sum of its block's effect, its cell's effect, a random effect of its
//! plot, and its own error. A plot is a part of a block in which factors that are slow to change keep their values. The
//! uncertainty of the effects of slow factors therefore includes the variation between plots.
//!
//! The model is fitted by restricted maximum likelihood. Each contrast gets the error and the degrees of freedom of
//! Kenward & Roger, "Small sample inference for fixed effects from restricted maximum likelihood", Biometrics 53, 1997.
//! The simultaneous intervals of all contrasts of a family are computed from the distribution of the largest of their
//! Student statistics (Hothorn, Bretz & Westfall, Biometrical Journal 50, 2008). If all cells differ in noise, or if a
//! contrast is between plots of which a block has more than two, the error of the contrast is computed from its own
//! differences within blocks. docs/decisions/0032 and 0104 give the reasons; `make grid-coverage` shows how often the
//! intervals contain the true values.

mod block_means;
mod design;
mod layout;
mod maximum;
mod model;
mod noise;

use std::collections::BTreeMap;

use landspeed_record::Estimate;
use nalgebra::{DMatrix, DVector, SymmetricEigen};
use statrs::distribution::ContinuousCDF;

use crate::estimate::{ratio_of, student, student_quantile};
use block_means::BlockMeans;
use design::GridDesign;
use model::{EstimateVariance, MixedModel};
use noise::{CellNoise, Variance};

pub use design::least_blocks;
pub use layout::GridLayout;

/// One measurement of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellTrial {
    pub block: u32,
    /// The plot's number. Trials of one block with the same number share a plot. Plots have no effect in the model if
    /// each block is one plot, or if each trial is its own plot.
    pub plot: u32,
    /// The cell's number. [`GridLayout`] defines the numbers for a grid of factors.
    pub cell: u32,
    /// The natural log of the figure.
    pub ln: f64,
}

/// A weighted sum of the effects of cells. The weights sum to 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    /// The cells' numbers, each with its weight.
    pub weights: Vec<(u32, f64)>,
}

impl Contrast {
    /// Returns the contrast for the log ratio of cell `to` over cell `from`.
    pub fn ratio(from: u32, to: u32) -> Self {
        Contrast { weights: vec![(to, 1.0), (from, -1.0)] }
    }
}

/// The reason why a grid or a contrast has no intervals.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GridError {
    #[error("no trial of the reference, cell {0}")]
    Reference(u32),
    #[error("no trial of cell {0}")]
    Cell(u32),
    #[error("no chain of blocks with common cells joins these cells to the reference: {0:?}")]
    Apart(Vec<u32>),
    #[error("{have} blocks of several plots, where {need} are needed to know how plots vary")]
    Blocks { have: usize, need: usize },
    #[error("too few trials to know how trials vary")]
    Freedom,
    #[error("a contrast's weights do not sum to 0")]
    Weights,
}

/// The source of the variance from which a contrast's error is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarianceMethod {
    /// One variance for all cells.
    Common,
    /// One variance for most cells, and a separate variance for each noisier cell. If all cells differ in noise and too
    /// few blocks have all cells of the contrast, every cell has a separate variance.
    Own,
    /// The variance of the contrast's differences within each block. It is used if all cells of the grid differ in
    /// noise, if it is known more precisely than the variances of a few noisier cells, or between more than two plots.
    Paired,
}

impl std::fmt::Display for VarianceMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            VarianceMethod::Common => "mixed model, one variance for all cells",
            VarianceMethod::Own => "mixed model, loud cells with a variance of their own",
            VarianceMethod::Paired => "differences within blocks, Bonferroni's correction",
        })
    }
}

/// The estimate of a contrast: the log of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContrastEstimate {
    pub ln: f64,
    /// The standard error of `ln`.
    pub error: f64,
    /// The degrees of freedom of `error`.
    pub freedom: f64,
    /// The low and high end of the interval for this contrast alone.
    pub alone: (f64, f64),
    /// The low and high end of the simultaneous interval. With the requested confidence, the simultaneous intervals
    /// of all contrasts in the family contain the true values.
    pub together: (f64, f64),
    pub method: VarianceMethod,
}

impl ContrastEstimate {
    /// Returns the contrast as a ratio with its simultaneous interval.
    pub fn estimate(&self) -> Estimate {
        ratio_of(self.ln, self.together.0, self.together.1)
    }
}

/// The mean of a cell over the blocks, as a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellMean {
    pub cell: u32,
    pub ln: f64,
    /// The standard error from the variances of trials and plots, without the variance of blocks.
    pub error: f64,
    /// The low and high end of the interval for `ln` of this cell alone, not widened for the number of cells.
    pub alone: (f64, f64),
}

/// A mixed model that was fitted to the trials of a grid.
pub struct FittedGrid {
    design: GridDesign,
    model: MixedModel,
    noise: CellNoise,
    block_means: BlockMeans,
    /// A number for each cell of the design. Cells that share plots have the same number.
    plot_sets: Vec<usize>,
    /// The covariance of the effects.
    covariance: DMatrix<f64>,
}

/// An estimate without its intervals.
struct PointEstimate {
    ln: f64,
    error: f64,
    freedom: f64,
}

impl PointEstimate {
    fn within(&self, bound: f64) -> (f64, f64) {
        (self.ln - bound * self.error, self.ln + bound * self.error)
    }
}

impl FittedGrid {
    /// Fits the mixed model to `trials`. The effects of cells are relative to the cell `reference`.
    ///
    /// # Errors
    /// Returns an error if `reference` has no trial, if no chain of blocks with common cells joins a cell to it, or
    /// if there are too few blocks or trials to estimate the variances.
    pub fn of(trials: &[CellTrial], reference: u32) -> Result<FittedGrid, GridError> {
        let design = GridDesign::of(trials, reference)?;
        let model = MixedModel::of(&design)?;
        let noise = CellNoise::of(&design)?;
        let mut covariance = model.covariance();
        if let Some(own) = noise.own() {
            let mut scaled = model.weights.clone();
            for (trial, cell) in design.cell.iter().enumerate() {
                scaled.row_mut(trial).scale_mut(own[*cell].value - model.variance);
            }
            covariance += scaled.transpose() * &model.weights;
        }
        let (block_means, plot_sets) = (BlockMeans::of(trials), design.plot_sets());
        Ok(FittedGrid { design, model, noise, block_means, plot_sets, covariance })
    }

    /// Estimates a family of contrasts, with intervals at `confidence` (0.95, say).
    ///
    /// # Errors
    /// Returns an error if a contrast has a cell without a trial, or weights that do not sum to 0
    /// or are all 0.
    pub fn compare(
        &self,
        contrasts: &[Contrast],
        confidence: f64,
    ) -> Result<Vec<ContrastEstimate>, GridError> {
        let rows = contrasts.iter().map(|contrast| self.row(contrast)).collect::<Result<Vec<_>, _>>()?;
        let estimates: Vec<PointEstimate> = rows.iter().map(|row| self.estimate(row)).collect();
        let Some(freedom) = estimates.iter().map(|one| one.freedom).max_by(f64::total_cmp) else {
            return Ok(Vec::new());
        };
        // The bound assumes one common error, with the degrees of freedom of the contrast that has most. The other
        // contrasts get the bound of the same probability at their own degrees of freedom. An error with more degrees
        // of freedom varies less. Contrasts therefore depend on each other less in the bound than in truth, which makes
        // intervals wider, not narrower.
        let most = maximum::bound(&self.factor(&rows), freedom, confidence);
        let error = student(freedom).cdf(-most);
        let method = if self.noise.own().is_some() { VarianceMethod::Own } else { VarianceMethod::Common };
        let compared = |one: &PointEstimate| ContrastEstimate {
            ln: one.ln,
            error: one.error,
            freedom: one.freedom,
            alone: one.within(student_quantile(one.freedom, 0.5 + confidence / 2.0)),
            together: one.within(student_quantile(one.freedom, 1.0 - error)),
            method,
        };
        let paired = |(contrast, one): (&Contrast, &PointEstimate)| {
            let found = self.block_means.compare(contrast, contrasts.len(), confidence)?;
            let is_better = match self.noise {
                CellNoise::Alike => false,
                CellNoise::Loud(_) => found.freedom > one.freedom,
                CellNoise::Differs(_) => true,
            };
            (is_better || self.is_between_many_plots(contrast)).then_some(found)
        };
        let both = contrasts.iter().zip(&estimates);
        Ok(both.map(|(contrast, one)| paired((contrast, one)).unwrap_or_else(|| compared(one))).collect())
    }

    /// Estimates the mean of each cell over the blocks, with an interval at `confidence` (0.95, say). Cells are in
    /// ascending order.
    pub fn means(&self, confidence: f64) -> Vec<CellMean> {
        let mean = |(place, cell): (usize, &u32)| {
            let mut row = DVector::zeros(self.model.effects.len());
            row.rows_mut(0, self.design.blocks).fill(1.0 / self.design.blocks as f64);
            if let Some(column) = self.design.column(place) {
                row[column] = 1.0;
            }
            let one = self.estimate(&row);
            let alone = one.within(student_quantile(one.freedom, 0.5 + confidence / 2.0));
            CellMean { cell: *cell, ln: one.ln, error: one.error, alone }
        };
        self.design.cells.iter().enumerate().map(mean).collect()
    }

    /// Returns true if the contrast is between plots, and blocks have more than two. The model takes one variance for all
    /// plots, which is right for the mean of their differences but not for each (Boik, Psychometrika 46, 1981).
    fn is_between_many_plots(&self, contrast: &Contrast) -> bool {
        let mut weights: BTreeMap<usize, f64> = self.plot_sets.iter().map(|set| (*set, 0.0)).collect();
        for (cell, weight) in &contrast.weights {
            let set = self.design.cells.binary_search(cell).ok().map(|place| self.plot_sets[place]);
            *weights.entry(set.unwrap_or_default()).or_default() += weight;
        }
        weights.len() > 2 && weights.values().any(|sum| sum.abs() > 1e-9)
    }

    /// Returns the weight of each effect of the model in `contrast`.
    fn row(&self, contrast: &Contrast) -> Result<DVector<f64>, GridError> {
        let mut row = DVector::zeros(self.model.effects.len());
        for (cell, weight) in &contrast.weights {
            let place = self.design.cells.binary_search(cell).map_err(|_| GridError::Cell(*cell))?;
            if let Some(column) = self.design.column(place) {
                row[column] += weight;
            }
        }
        let sum: f64 = contrast.weights.iter().map(|(_, weight)| weight).sum();
        if sum.abs() < 1e-9 && row.amax() > 0.0 { Ok(row) } else { Err(GridError::Weights) }
    }

    fn estimate(&self, row: &DVector<f64>) -> PointEstimate {
        let EstimateVariance { mut variance, excess, mut spread } = self.model.error_of(row);
        if let Some(own) = self.noise.own() {
            let shares = self.shares(row);
            let total: f64 = shares.iter().map(|(square, _)| square).sum();
            let others =
                shares.iter().zip(own).map(|((square, _), own)| square * (own.value - self.model.variance));
            let before = variance;
            variance += others.sum::<f64>();
            // The relative uncertainty of the common variance stays the same, and the uncertainty of the cells' own
            // variances is added to it. The result is conservative: a contrast has at most the degrees of freedom of
            // the noisy cells in it.
            spread *= (variance / before).powi(2);
            let apart = |((square, part), own): (&(f64, f64), &Variance)| {
                2.0 * ((square - total * part) * own.value).powi(2) / own.freedom
            };
            spread += shares.iter().zip(own).map(apart).sum::<f64>();
        }
        let freedom = (2.0 * variance * variance / spread).clamp(1.0, maximum::NORMAL);
        PointEstimate { ln: self.model.effects.dot(row), error: (variance + excess).sqrt(), freedom }
    }

    /// Returns two numbers for each cell: the sum of the squared weights of its trials in an estimate, and the number
    /// of its trials as a part of all trials.
    fn shares(&self, row: &DVector<f64>) -> Vec<(f64, f64)> {
        let mut shares = vec![(0.0, 0.0); self.design.cells.len()];
        let trials = self.design.cell.len() as f64;
        for (weight, cell) in (&self.model.weights * row).iter().zip(&self.design.cell) {
            shares[*cell].0 += weight * weight;
            shares[*cell].1 += 1.0 / trials;
        }
        shares
    }

    /// Returns one row of length 1 for each estimate. The product of two rows is the correlation of their estimates.
    fn factor(&self, rows: &[DVector<f64>]) -> DMatrix<f64> {
        let cells = self.design.cells.len() - 1;
        let among = self.covariance.view((self.design.blocks, self.design.blocks), (cells, cells));
        let eigen = SymmetricEigen::new(among.into_owned());
        let root = &eigen.eigenvectors
            * DMatrix::from_diagonal(&eigen.eigenvalues.map(|value| value.max(0.0).sqrt()));
        let mut factor = DMatrix::from_fn(rows.len(), cells, |i, j| rows[i][self.design.blocks + j]) * root;
        for mut row in factor.row_iter_mut() {
            row.unscale_mut(row.norm());
        }
        // If there are fewer rows than columns, a square matrix has the same products of rows.
        if factor.nrows() < factor.ncols() { factor.transpose().qr().r().transpose() } else { factor }
    }
}

#[cfg(test)]
mod tests;
