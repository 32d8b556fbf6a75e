//! The best possible intervals: those of least squares with the true variances, with the width that the normal
//! distribution requires.

use std::collections::BTreeMap;

use landspeed_stats::Random;
use landspeed_stats::grid::CellTrial;
use nalgebra::{DMatrix, DVector};

use super::scene::GridScenario;

const DRAWS: usize = 20_000;

/// Returns the widths of the intervals of the scene's contrasts if all variances were known.
pub(super) fn best_widths(scene: &GridScenario, trials: &[CellTrial], confidence: f64) -> Vec<f64> {
    let covariance = covariance(scene, trials);
    let deviations = covariance.diagonal().map(f64::sqrt);
    let bound = bound(&covariance, &deviations, confidence);
    deviations.iter().map(|deviation| 2.0 * bound * deviation).collect()
}

/// Returns the covariance of the estimates of the scene's contrasts.
fn covariance(scene: &GridScenario, trials: &[CellTrial]) -> DMatrix<f64> {
    let shared = |a: &CellTrial, b: &CellTrial| match scene.plot_deviation(a.plot) {
        Some(deviation) if a.block == b.block && a.plot == b.plot => deviation * deviation,
        _ => 0.0,
    };
    let n = trials.len();
    let noise = DMatrix::from_fn(n, n, |i, j| {
        let own = if i == j { scene.deviation(trials[i].cell).powi(2) } else { 0.0 };
        own + shared(&trials[i], &trials[j])
    });
    let blocks: BTreeMap<u32, usize> =
        trials.iter().map(|trial| (trial.block, trial.block as usize)).collect();
    let effects = blocks.len() + scene.layout().cells() as usize - 1;
    let column = |cell: u32| (cell > 0).then(|| blocks.len() + cell as usize - 1);
    let x = DMatrix::from_fn(n, effects, |i, j| {
        let is_one = blocks[&trials[i].block] == j || column(trials[i].cell) == Some(j);
        f64::from(u8::from(is_one))
    });
    let weighted = noise.cholesky().expect("noise is positive").solve(&x);
    let inverse = (x.transpose() * weighted).cholesky().expect("a scene has all cells").inverse();
    let family = scene.contrasts();
    let mut rows = DMatrix::<f64>::zeros(family.len(), effects);
    for (i, contrast) in family.iter().enumerate() {
        for (cell, weight) in &contrast.weights {
            column(*cell).into_iter().for_each(|column| rows[(i, column)] += *weight);
        }
    }
    &rows * inverse * rows.transpose()
}

/// Returns the bound that the magnitudes of all Gaussian variables, each over its deviation, stay below with
/// probability `confidence`.
fn bound(covariance: &DMatrix<f64>, deviations: &DVector<f64>, confidence: f64) -> f64 {
    let eigen = covariance.clone().symmetric_eigen();
    let root =
        eigen.eigenvectors * DMatrix::from_diagonal(&eigen.eigenvalues.map(|value| value.max(0.0).sqrt()));
    let mut random = Random::new(1);
    let mut draw = || {
        let values = &root * DVector::from_fn(deviations.len(), |_, _| random.normal());
        values.component_div(deviations).amax()
    };
    let mut largest: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
    largest.sort_by(f64::total_cmp);
    largest[(confidence * DRAWS as f64) as usize]
}
