//! Tests of whether some cells are noisier than others, and estimates of each cell's variance.
//!
//! A noisy ("loud") cell is one whose trials have a larger variance. Residuals within plots (with the plots' effects
//! removed) give each cell's own variance. An F test identifies a cell that is noisier than the others. A chi-squared
//! test of the logs of the variances shows whether all cells differ.

use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor};
use statrs::function::gamma::digamma;

use super::GridError;
use super::design::GridDesign;
use super::model::positive;

/// The significance level of the chi-squared test: the probability that the test takes cells of equal variance for
/// cells that all differ.
const DIFFER: f64 = 0.05;
/// The largest probability that the F tests take a cell for noisier than the others although all variances are equal.
/// It is high, because a separate variance costs little, while a missed noisy cell makes intervals too narrow.
const LOUD: f64 = 0.2;
/// If more than one in this many cells is noisier than the others, all cells are assumed to differ.
const FEW: usize = 4;

/// A variance with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Variance {
    pub(super) value: f64,
    pub(super) freedom: f64,
}

/// The residuals of a cell's trials within plots.
#[derive(Debug, Clone, Copy)]
struct CellResiduals {
    cell: usize,
    squares: f64,
    /// The expected value of `squares` if the trials of all cells have variance 1.
    expected: f64,
    /// The part of `expected` that comes from the errors of the cell's own trials.
    from_own: f64,
}

impl CellResiduals {
    fn freedom(&self) -> f64 {
        self.expected * self.expected / self.from_own
    }

    /// Returns the cell's variance, assuming that all cells have the same variance.
    fn equal(&self) -> Variance {
        Variance { value: (self.squares / self.expected).max(1e-30), freedom: self.freedom() }
    }

    /// Returns the cell's own variance, assuming that the other cells have the variance `rest`. The result is at least
    /// `rest`.
    fn beside(&self, rest: f64) -> Variance {
        let value = (self.squares - (self.expected - self.from_own) * rest) / self.from_own;
        Variance { value: value.max(rest), freedom: self.freedom() }
    }
}

/// The way in which the cells differ in noise.
pub(super) enum CellNoise {
    /// No cell differs from the others by more than chance.
    Alike,
    /// A few cells are noisier than the others, which share one variance. Holds the variance of each cell.
    Loud(Vec<Variance>),
    /// All cells differ. Holds the variance of each cell, which is imprecise because it comes from few trials.
    Differs(Vec<Variance>),
}

impl CellNoise {
    pub(super) fn of(design: &GridDesign) -> Result<CellNoise, GridError> {
        let cells = design.cells.len();
        let all = residuals(design, &vec![true; cells])?;
        let tests = all.len() as f64;
        if !spreads(&all) && loudest(&all, LOUD / tests).is_none() {
            return Ok(CellNoise::Alike);
        }
        let (mut loud, mut quiet) = (Vec::new(), all.clone());
        while let Some(loudest) = loudest(&quiet, LOUD / tests) {
            loud.push(loudest);
            let is_quiet: Vec<bool> =
                (0..cells).map(|cell| loud.iter().all(|one| one.cell != cell)).collect();
            quiet = residuals(design, &is_quiet)?;
        }
        let common = pooled(&quiet.iter().map(CellResiduals::equal).collect::<Vec<_>>());
        let mut own = vec![Variance { value: common.value, freedom: f64::INFINITY }; cells];
        if loud.len() * FEW <= cells && !spreads(&quiet) {
            loud.iter().for_each(|one| own[one.cell] = one.beside(common.value));
            return Ok(CellNoise::Loud(own));
        }
        all.iter().for_each(|one| own[one.cell] = one.equal());
        Ok(CellNoise::Differs(own))
    }

    /// Returns each cell's own variance; `None` if all cells share one variance.
    pub(super) fn own(&self) -> Option<&[Variance]> {
        match self {
            CellNoise::Alike => None,
            CellNoise::Loud(own) | CellNoise::Differs(own) => Some(own),
        }
    }
}

/// Returns true if the logs of the variances differ by more than chance.
fn spreads(all: &[CellResiduals]) -> bool {
    let own: Vec<Variance> = all.iter().map(CellResiduals::equal).collect();
    if own.len() < 2 {
        return false;
    }
    let ln = |one: &Variance| one.value.ln() - digamma(one.freedom / 2.0) + (one.freedom / 2.0).ln();
    let mean = own.iter().map(ln).sum::<f64>() / own.len() as f64;
    let spread: f64 = own.iter().map(|one| (ln(one) - mean).powi(2) / trigamma(one.freedom / 2.0)).sum();
    ChiSquared::new(own.len() as f64 - 1.0).expect("there is freedom").sf(spread) < DIFFER
}

/// Returns the residuals of each cell that `which` marks and whose trials are informative. The model has only the
/// marked cells and their plots.
fn residuals(design: &GridDesign, which: &[bool]) -> Result<Vec<CellResiduals>, GridError> {
    let used: Vec<usize> = (0..design.cell.len()).filter(|trial| which[design.cell[*trial]]).collect();
    let cells = which.len();
    let mut x = DMatrix::zeros(used.len(), cells + 1);
    let mut sums = DMatrix::zeros(design.sizes.len(), cells + 1);
    let mut sizes = vec![0.0; design.sizes.len()];
    for (row, trial) in used.iter().enumerate() {
        let plot = design.plot[*trial];
        x[(row, design.cell[*trial])] = 1.0;
        x[(row, cells)] = design.y[*trial];
        sums[(plot, design.cell[*trial])] += 1.0;
        sums[(plot, cells)] += design.y[*trial];
        sizes[plot] += 1.0;
    }
    for (row, trial) in used.iter().enumerate() {
        let plot = design.plot[*trial];
        x.row_mut(row).zip_apply(&sums.row(plot), |value, sum| *value -= sum / sizes[plot]);
    }
    let (x, y) = (x.columns(0, cells).into_owned(), x.column(cells).into_owned());
    let inverse = positive(x.transpose() * &x + joined(&sums.columns(0, cells).into_owned()))?.inverse();
    let left = &y - &x * (&inverse * (x.transpose() * &y));
    let near = &x * inverse;
    let kept = |a: usize, b: usize| {
        let (plot, other) = (design.plot[used[a]], design.plot[used[b]]);
        let mean = if plot == other { 1.0 / sizes[plot] } else { 0.0 };
        f64::from(u8::from(a == b)) - mean - near.row(a).dot(&x.row(b))
    };
    let of = |cell: usize| {
        let own: Vec<usize> = (0..used.len()).filter(|row| design.cell[used[*row]] == cell).collect();
        let pairs = own.iter().flat_map(|a| own.iter().map(move |b| (*a, *b)));
        CellResiduals {
            cell,
            squares: own.iter().map(|a| left[*a].powi(2)).sum(),
            expected: own.iter().map(|a| kept(*a, *a)).sum(),
            from_own: pairs.map(|(a, b)| kept(a, b).powi(2)).sum(),
        }
    };
    Ok((0..cells).map(of).filter(|one| one.expected > 1e-6).collect())
}

/// Returns the projection onto the directions that differences within plots cannot estimate: the mean of each set of
/// cells that common plots join.
fn joined(counts: &DMatrix<f64>) -> DMatrix<f64> {
    let cells = counts.ncols();
    let mut set: Vec<usize> = (0..cells).collect();
    for plot in counts.row_iter() {
        let sets: Vec<usize> = (0..cells).filter(|cell| plot[*cell] > 0.0).map(|cell| set[cell]).collect();
        set.iter_mut().filter(|set| sets.contains(set)).for_each(|set| *set = sets[0]);
    }
    let sizes = DVector::from_fn(cells, |i, _| set.iter().filter(|other| **other == set[i]).count() as f64);
    DMatrix::from_fn(cells, cells, |i, j| if set[i] == set[j] { 1.0 / sizes[i] } else { 0.0 })
}

fn pooled(variances: &[Variance]) -> Variance {
    let freedom: f64 = variances.iter().map(|one| one.freedom).sum();
    let value = variances.iter().map(|one| one.value * one.freedom).sum::<f64>() / freedom;
    Variance { value, freedom }
}

/// Returns the cell with the largest variance, if its variance is larger than that of the other cells by more than
/// chance, at the error `error`.
fn loudest(quiet: &[CellResiduals], error: f64) -> Option<CellResiduals> {
    let value = |one: &CellResiduals| one.equal().value;
    let loudest = *quiet.iter().max_by(|a, b| value(a).total_cmp(&value(b)))?;
    let others = quiet.iter().filter(|one| one.cell != loudest.cell);
    let rest: Vec<Variance> = others.map(CellResiduals::equal).collect();
    if rest.len() < 2 {
        return None;
    }
    let rest = pooled(&rest);
    let law = FisherSnedecor::new(loudest.freedom(), rest.freedom).expect("both have freedom");
    (law.sf(value(&loudest) / rest.value) < error).then_some(loudest)
}

/// Returns the derivative of [`digamma`], by a central difference.
fn trigamma(x: f64) -> f64 {
    let step = 1e-4 * x;
    (digamma(x + step) - digamma(x - step)) / (2.0 * step)
}
