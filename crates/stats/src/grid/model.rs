//! The mixed model: blocks and cells are fixed effects, plots are random. Variances come from restricted maximum
//! likelihood, errors and degrees of freedom from Kenward and Roger.
//!
//! The covariance of the trials is `variance * H`, `H = I + ratio * Z Z'`, where `Z` assigns trials to plots. With `M`
//! the projection onto the residuals of least squares, the restricted likelihood depends on `ratio` only through the
//! eigenvalues of `Z' M Z` (Kang et al., "Efficient control of population structure in model organism association
//! mapping", Genetics 178, 2008). Once the eigenvalues are known, computing the likelihood for another ratio costs
//! almost nothing.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn, Matrix2, SymmetricEigen, Vector2};

use super::GridError;
use super::design::GridDesign;

/// Lower bound of `1 + ratio * n`, with `ratio` the variance of plots over that of trials, and `n` the number of trials
/// in the largest plot. The expression is the variance of that plot's mean, in units of the variance that trials alone
/// would give it. A bound below 1 allows estimates of `ratio` below 0, as in the classical analysis of variance. If
/// estimates could not fall below 0, intervals between plots would be too wide where plots do not differ.
const LEAST: f64 = 0.05;
/// Upper bound of the same expression.
const MOST: f64 = 1e8;
/// The degrees of freedom that are needed to estimate the variance of plots.
const PLOT_FREEDOM: usize = 5;

pub(super) struct MixedModel {
    /// The variance of the trials.
    pub(super) variance: f64,
    pub(super) effects: DVector<f64>,
    /// The covariance of the effects per unit of the trials' variance.
    inverse: DMatrix<f64>,
    /// The term that Kenward and Roger add to the covariance of the effects.
    excess: DMatrix<f64>,
    /// The derivative of the effects' covariance with respect to the plots' variance.
    by_plots: DMatrix<f64>,
    pub(super) ratio: f64,
    /// The covariance of the estimated variances, in the order plots, trials.
    spread: Matrix2<f64>,
    /// The weight of each trial in the estimate of each effect: trials by effects.
    pub(super) weights: DMatrix<f64>,
}

impl MixedModel {
    pub(super) fn of(design: &GridDesign) -> Result<MixedModel, GridError> {
        let plots = design.by_plot(&design.x);
        let strata = PlotStrata::of(design, &plots)?;
        let ratio = strata.ratio;
        let shrunk = design.sizes.map(|size| 1.0 / (1.0 + ratio * size));
        let part = |by: DVector<f64>| plots.transpose() * DMatrix::from_diagonal(&by) * &plots;
        let information = design.x.transpose() * &design.x - part(&shrunk * ratio);
        let inverse = positive(information)?.inverse();
        // H^-1 X = X - Z diag(ratio * shrunk) Z' X.
        let mut weights = design.x.clone();
        for (trial, plot) in design.plot.iter().enumerate() {
            let less = plots.row(*plot) * (ratio * shrunk[*plot]);
            weights.row_mut(trial).zip_apply(&less, |weight, less| *weight -= less);
        }
        let weights = weights * &inverse;
        let once = &inverse * part(shrunk.map(|h| h * h));
        let twice = &inverse * part(shrunk.map(|h| h * h * h).component_mul(&design.sizes));
        let by_plots = &once * &inverse;
        let spread = strata.spread();
        let of_ratio = spread[(0, 0)] - 2.0 * ratio * spread[(0, 1)] + ratio * ratio * spread[(1, 1)];
        let excess = (twice * &inverse - &once * &by_plots) * (2.0 * of_ratio / strata.variance);
        let effects = weights.transpose() * &design.y;
        Ok(MixedModel {
            variance: strata.variance,
            effects,
            inverse,
            excess,
            by_plots,
            ratio,
            spread,
            weights,
        })
    }

    /// Returns the covariance of the effects, with the estimated variances taken as the true ones.
    pub(super) fn covariance(&self) -> DMatrix<f64> {
        &self.inverse * self.variance
    }

    /// Returns the variances of an estimate. `of` holds the weight of each effect in the estimate.
    pub(super) fn error_of(&self, of: &DVector<f64>) -> EstimateVariance {
        let form = |matrix: &DMatrix<f64>| of.dot(&(matrix * of));
        let (unit, by_plots) = (form(&self.inverse), form(&self.by_plots));
        let slopes = Vector2::new(by_plots, unit - self.ratio * by_plots);
        EstimateVariance {
            variance: unit * self.variance,
            excess: form(&self.excess),
            spread: slopes.dot(&(self.spread * slopes)),
        }
    }
}

pub(super) struct EstimateVariance {
    /// The variance of the estimate, with the estimated variances of plots and trials taken as the true ones.
    pub(super) variance: f64,
    /// The variance added because the variances of plots and trials are estimates.
    pub(super) excess: f64,
    /// The variance of the field `variance`.
    pub(super) spread: f64,
}

pub(super) fn positive(matrix: DMatrix<f64>) -> Result<Cholesky<f64, Dyn>, GridError> {
    Cholesky::new(matrix).ok_or(GridError::Freedom)
}

/// The residuals of least squares, decomposed by plots.
struct PlotStrata {
    /// The eigenvalues of `Z' M Z` above 0, with the squared residuals along each eigenvector.
    plots: Vec<(f64, f64)>,
    /// The sum of the squared residuals.
    squares: f64,
    freedom: f64,
    ratio: f64,
    variance: f64,
}

impl PlotStrata {
    fn of(design: &GridDesign, plots: &DMatrix<f64>) -> Result<PlotStrata, GridError> {
        let fit = positive(design.x.transpose() * &design.x)?;
        let residuals = &design.y - &design.x * fit.solve(&(design.x.transpose() * &design.y));
        let freedom = design.x.nrows().saturating_sub(design.x.ncols());
        let largest = design.sizes.max();
        let plots: Vec<(f64, f64)> = if design.has_plots {
            let seen = DMatrix::from_diagonal(&design.sizes) - plots * fit.solve(&plots.transpose());
            let eigen = SymmetricEigen::new(seen);
            let along = eigen.eigenvectors.transpose()
                * design.by_plot(&DMatrix::from_column_slice(residuals.len(), 1, residuals.as_slice()));
            let pairs = eigen.eigenvalues.iter().zip(along.iter()).map(|(value, u)| (*value, u * u));
            pairs.filter(|(value, _)| *value > 1e-9 * largest).collect()
        } else {
            Vec::new()
        };
        if design.has_plots && plots.len() < PLOT_FREEDOM || freedom <= plots.len() {
            return Err(GridError::Freedom);
        }
        // If trials agree to the last digit, this floor keeps the quotients that follow finite.
        let squares = residuals.norm_squared().max(1e-24);
        let mut strata = PlotStrata { plots, squares, freedom: freedom as f64, ratio: 0.0, variance: 0.0 };
        if design.has_plots {
            strata.ratio = strata.most_likely(largest);
        }
        strata.variance = strata.variance_at(strata.ratio);
        Ok(strata)
    }

    fn variance_at(&self, ratio: f64) -> f64 {
        let taken: f64 = self.plots.iter().map(|(value, u)| ratio * u / (1.0 + ratio * value)).sum();
        ((self.squares - taken) / self.freedom).max(1e-30)
    }

    /// Returns twice the negative logarithm of the restricted likelihood, without the terms that do not depend on the
    /// ratio.
    fn unlikely(&self, ratio: f64) -> f64 {
        let scale: f64 = self.plots.iter().map(|(value, _)| (1.0 + ratio * value).ln()).sum();
        self.freedom * self.variance_at(ratio).ln() + scale
    }

    /// Returns the most likely ratio of the variances of plots and trials. The likelihood may have several peaks, so
    /// the search begins with a grid.
    fn most_likely(&self, largest: f64) -> f64 {
        const STEPS: usize = 80;
        let ratio = |ln: f64| (ln.exp() - 1.0) / largest;
        let (low, high) = (LEAST.ln(), MOST.ln());
        let step = (high - low) / STEPS as f64;
        let worth = |ln: f64| self.unlikely(ratio(ln));
        let steps = (0..=STEPS).map(|i| low + i as f64 * step);
        let best = steps.min_by(|a, b| worth(*a).total_cmp(&worth(*b))).expect("there are steps");
        let (mut low, mut high) = ((best - step).max(low), (best + step).min(high));
        for _ in 0..60 {
            let third = (high - low) / 3.0;
            if worth(low + third) < worth(high - third) {
                high -= third;
            } else {
                low += third;
            }
        }
        ratio((low + high) / 2.0)
    }

    /// Returns the covariance of the estimated variances of plots and trials: the inverse of their expected
    /// information.
    fn spread(&self) -> Matrix2<f64> {
        let square = self.variance * self.variance;
        let trials = self.freedom - self.plots.len() as f64;
        if self.plots.is_empty() {
            return Matrix2::new(0.0, 0.0, 0.0, 2.0 * square / trials);
        }
        let of = |value: f64| {
            let by = 1.0 / (1.0 + self.ratio * value).powi(2);
            Matrix2::new(value * value, value, value, 1.0) * by
        };
        let sum = self.plots.iter().map(|(value, _)| of(*value)).sum::<Matrix2<f64>>() + of(0.0) * trials;
        sum.try_inverse().expect("plots and trials have freedom") * (2.0 * square)
    }
}
