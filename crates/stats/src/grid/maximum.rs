//! A bound for the largest magnitude of several correlated Student variables (Hothorn, Bretz, Westfall, "Simultaneous
//! inference in general parametric models", Biometrical Journal 50, 2008).
//!
//! The vector of the variables is the product of a direction and a length, which are independent of each other.
//! Directions are drawn at random. The length has a known distribution (Fisher's), so that a few thousand directions
//! give the bound to three digits. The seed is fixed, so that each call gives the same bound.

use std::cmp::Ordering;

use nalgebra::DMatrix;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::Random;
use crate::estimate::student_quantile;

const DIRECTIONS: usize = 8192;
/// The number of directions that are averaged together after sorting them by reach (see [`reaches`]). The reach of this
/// many neighbours is almost the same.
const ALIKE: usize = 64;
/// Degrees of freedom beyond which Student's distribution equals the normal one to all digits that matter.
pub(super) const NORMAL: f64 = 1e6;

/// Returns the bound below which the magnitudes of all variables are together with probability `confidence`. Row i of
/// `factor`, times a vector of independent Gaussian variables, is the i-th variable before it is divided by the common
/// deviation, which has `freedom` degrees of freedom. Each row has length 1.
pub(super) fn bound(factor: &DMatrix<f64>, freedom: f64, confidence: f64) -> f64 {
    let freedom = freedom.min(NORMAL);
    let reaches = reaches(factor);
    let dimension = factor.ncols() as f64;
    let length = FisherSnedecor::new(dimension, freedom).expect("both degrees of freedom are positive");
    let kept = |bound: f64| {
        let each = |reach: &f64| length.cdf((bound / reach).powi(2) / dimension);
        reaches.iter().map(each).sum::<f64>() / reaches.len() as f64
    };
    let error = (1.0 - confidence) / 2.0;
    let mut low = student_quantile(freedom, 1.0 - error);
    let mut high = student_quantile(freedom, 1.0 - error / factor.nrows() as f64);
    while high - low > 1e-4 {
        let middle = (low + high) / 2.0;
        match kept(middle).partial_cmp(&confidence) {
            Some(Ordering::Less) => low = middle,
            _ => high = middle,
        }
    }
    high
}

/// Returns the reaches of random directions, averaged over groups of [`ALIKE`] directions, in ascending order. The
/// reach of a direction is the largest magnitude among the variables for a vector of length 1.
fn reaches(factor: &DMatrix<f64>) -> Vec<f64> {
    let mut random = Random::new(20_080_346);
    let directions = DMatrix::from_fn(factor.ncols(), DIRECTIONS, |_, _| random.normal());
    let values = factor * &directions;
    let reach = |i: usize| values.column(i).amax() / directions.column(i).norm();
    let mut reaches: Vec<f64> = (0..DIRECTIONS).map(reach).collect();
    reaches.sort_by(f64::total_cmp);
    reaches.chunks(ALIKE).map(|alike| alike.iter().sum::<f64>() / alike.len() as f64).collect()
}
