//! Whether some cells are noisier than others, and each cell's variance.
//!
//! Residuals within plots (the plots' effects taken out) give each cell's own variance. A cell that is too loud for chance
//! keeps its own. The others' are drawn towards their common variance, the further the less they differ by more than chance
//! (Smyth, "Linear models and empirical Bayes methods", Statistical Applications in Genetics and Molecular Biology 3, 2004).

use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use statrs::function::gamma::digamma;

use super::Refused;
use super::design::Design;
use super::model::positive;

/// Probability that cells of equal variance have one that is taken for loud.
const LOUD: f64 = 0.2;
/// A prior of more degrees of freedom says that variances are equal.
const EQUAL: f64 = 1e4;

/// A variance with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Variance {
    pub(super) value: f64,
    pub(super) freedom: f64,
}

/// The variance of each cell's trials; `None` where the cells' do not differ by more than chance.
pub(super) fn variances(design: &Design) -> Result<Option<Vec<Variance>>, Refused> {
    let own = own(design)?;
    let mut quiet: Vec<usize> = (0..own.len()).filter(|cell| own[*cell].freedom > 0.5).collect();
    let tests = quiet.len() as f64;
    while let Some(loud) = loudest(&own, &quiet, LOUD / tests) {
        quiet.retain(|cell| *cell != loud);
    }
    let few: Vec<Variance> = quiet.iter().map(|cell| own[*cell]).collect();
    let prior = prior(&few);
    if quiet.len() as f64 == tests && prior.is_none() {
        return Ok(None);
    }
    let common = pooled(&few);
    let drawn = |(cell, own): (usize, &Variance)| match prior {
        _ if own.freedom > 0.5 && !quiet.contains(&cell) => *own,
        None => Variance { value: common.value, freedom: f64::INFINITY },
        Some(prior) => {
            let freedom = prior + own.freedom;
            Variance { value: (prior * common.value + own.freedom * own.value) / freedom, freedom }
        }
    };
    Ok(Some(own.iter().enumerate().map(drawn).collect()))
}

/// From the squared residuals of each cell, over their expectation were all variances equal.
fn own(design: &Design) -> Result<Vec<Variance>, Refused> {
    let (trials, cells) = (design.cell.len(), design.cells.len());
    let mut x = DMatrix::zeros(trials, cells + 1);
    design.cell.iter().enumerate().for_each(|(trial, cell)| x[(trial, *cell)] = 1.0);
    x.set_column(cells, &design.y);
    let sums = design.by_plot(&x);
    for (trial, plot) in design.plot.iter().enumerate() {
        let mean = sums.row(*plot) / design.sizes[*plot];
        x.row_mut(trial).zip_apply(&mean, |value, mean| *value -= mean);
    }
    let (x, y) = (x.columns(0, cells).into_owned(), x.column(cells).into_owned());
    let inverse = positive(x.transpose() * &x + joined(&sums.columns(0, cells).into_owned()))?.inverse();
    let residuals = &y - &x * (&inverse * (x.transpose() * &y));
    let near = &x * inverse;
    let of = |cell: usize| {
        let own: Vec<usize> = (0..trials).filter(|trial| design.cell[*trial] == cell).collect();
        let kept = |a: usize, b: usize| {
            let same =
                if design.plot[a] == design.plot[b] { 1.0 / design.sizes[design.plot[a]] } else { 0.0 };
            f64::from(u8::from(a == b)) - same - near.row(a).dot(&x.row(b))
        };
        let expected: f64 = own.iter().map(|a| kept(*a, *a)).sum();
        let pairs = own.iter().flat_map(|a| own.iter().map(move |b| (*a, *b)));
        let spread: f64 = pairs.map(|(a, b)| kept(a, b).powi(2)).sum();
        let squares: f64 = own.iter().map(|a| residuals[*a].powi(2)).sum();
        if expected < 1e-9 {
            return Variance { value: 0.0, freedom: 0.0 };
        }
        Variance { value: (squares / expected).max(1e-30), freedom: expected * expected / spread }
    };
    Ok((0..cells).map(of).collect())
}

/// The projection on what differences within plots say nothing of: the mean of each set of cells that plots join.
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

/// The cell whose variance is too large for chance beside the others', if there is one.
fn loudest(own: &[Variance], quiet: &[usize], error: f64) -> Option<usize> {
    let loudest = *quiet.iter().max_by(|a, b| own[**a].value.total_cmp(&own[**b].value))?;
    let others: Vec<Variance> =
        quiet.iter().filter(|cell| **cell != loudest).map(|cell| own[*cell]).collect();
    if others.len() < 2 {
        return None;
    }
    let rest = pooled(&others);
    let law = FisherSnedecor::new(own[loudest].freedom, rest.freedom).expect("both have freedom");
    (law.sf(own[loudest].value / rest.value) < error).then_some(loudest)
}

/// The degrees of freedom of the common variance as a prior of each cell's; `None` where the variances differ no more than
/// chance makes them.
fn prior(own: &[Variance]) -> Option<f64> {
    if own.len() < 3 {
        return None;
    }
    let n = own.len() as f64;
    let ln = |one: &Variance| one.value.ln() - digamma(one.freedom / 2.0) + (one.freedom / 2.0).ln();
    let mean = own.iter().map(ln).sum::<f64>() / n;
    let seen = own.iter().map(|one| (ln(one) - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let chance = own.iter().map(|one| trigamma(one.freedom / 2.0)).sum::<f64>() / n;
    let (mut low, mut high) = (1e-3, EQUAL);
    if seen - chance <= trigamma(high / 2.0) {
        return None;
    }
    while high / low > 1.001 {
        let middle = f64::sqrt(low * high);
        if trigamma(middle / 2.0) > seen - chance {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// The derivative of [`digamma`].
fn trigamma(x: f64) -> f64 {
    let step = 1e-4 * x;
    (digamma(x + step) - digamma(x - step)) / (2.0 * step)
}
