use nalgebra::Matrix2;
use statrs::distribution::{Continuous, Normal};

use super::*;
use crate::Random;

/// Returns the trials of a split plot. The first factor has two levels and changes by plots of `sub` cells. Trials have
/// the deviation 1, and plots have the deviation `deviation`. All cells are equal.
fn split_plot(blocks: u32, sub: u32, deviation: f64, random: &mut Random) -> Vec<CellTrial> {
    whole_plots(blocks, 2, sub, deviation, random)
}

/// Returns the trials of a split plot whose first factor has `plots` levels.
fn whole_plots(blocks: u32, plots: u32, sub: u32, deviation: f64, random: &mut Random) -> Vec<CellTrial> {
    let mut trials = Vec::new();
    for (block, plot) in (0..blocks).flat_map(|block| (0..plots).map(move |plot| (block, plot))) {
        let of_plot = f64::from(block) + deviation * random.normal();
        trials.extend((0..sub).map(|cell| CellTrial {
            block,
            plot,
            cell: plot * sub + cell,
            ln: of_plot + random.normal(),
        }));
    }
    trials
}

fn assert_close(a: f64, b: f64, relative: f64) {
    assert!((a / b - 1.0).abs() < relative, "{a} {b}");
}

/// Fits the grid with one variance for all cells, as in the textbooks.
fn common(trials: &[CellTrial]) -> FittedGrid {
    let mut grid = FittedGrid::of(trials, 0).unwrap();
    grid.noise = CellNoise::Alike;
    grid
}

fn alone(grid: &FittedGrid, contrast: Contrast) -> ContrastEstimate {
    grid.compare(&[contrast], 0.95).unwrap()[0]
}

/// Compares with the analysis of variance of a split plot: Kutner et al., Applied Linear Statistical Models, section
/// 27.6.
#[test]
fn a_balanced_split_plot_has_the_classical_errors_and_freedom() {
    let (blocks, sub) = (7, 3);
    let (b, s) = (f64::from(blocks), f64::from(sub));
    for deviation in [0.0, 2.0] {
        let trials = split_plot(blocks, sub, deviation, &mut Random::new(3));
        let (between, within) = mean_squares(&trials, blocks, sub);
        let grid = common(&trials);
        let layout = GridLayout { levels: vec![2, sub] };
        let slow = alone(&grid, layout.main(0));
        assert_close(slow.error, (2.0 * between / (b * s)).sqrt(), 1e-6);
        assert_close(slow.freedom, b - 1.0, 1e-6);
        let fast = alone(&grid, layout.neighbours(1)[0].clone());
        assert_close(fast.error, (2.0 * within / b).sqrt(), 1e-6);
        assert_close(fast.freedom, 2.0 * (b - 1.0) * (s - 1.0), 1e-6);
        // The variance of a difference between cells of two plots is a sum of both mean squares, whose degrees of
        // freedom are Satterthwaite's.
        let (of_plots, of_trials) = (between, (s - 1.0) * within);
        let across = alone(&grid, layout.neighbours(0)[0].clone());
        assert_close(across.error, (2.0 * (of_plots + of_trials) / (b * s)).sqrt(), 1e-6);
        let by = of_plots.powi(2) / (b - 1.0) + of_trials.powi(2) / fast.freedom;
        assert_close(across.freedom, (of_plots + of_trials).powi(2) / by, 1e-6);
    }
}

/// Returns the mean squares of plots within blocks and of trials within plots.
fn mean_squares(trials: &[CellTrial], blocks: u32, sub: u32) -> (f64, f64) {
    let mean = |which: &dyn Fn(&CellTrial) -> bool| {
        let of: Vec<f64> = trials.iter().filter(|t| which(t)).map(|t| t.ln).collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    let all = mean(&|_| true);
    let (mut between, mut within) = (0.0, 0.0);
    for t in trials {
        let block = mean(&|o| o.block == t.block);
        let slow = mean(&|o| o.plot == t.plot);
        let plot = mean(&|o| o.block == t.block && o.plot == t.plot);
        let cell = mean(&|o| o.cell == t.cell);
        between += (plot - block - slow + all).powi(2);
        within += (t.ln - plot - cell + slow).powi(2);
    }
    (between / f64::from(blocks - 1), within / f64::from(2 * (blocks - 1) * (sub - 1)))
}

/// The formulas of Kenward and Roger's paper as printed, with the covariance matrix of all trials, for one contrast.
struct PublishedFormulas {
    x: DMatrix<f64>,
    y: DVector<f64>,
    /// The derivatives of the trials' covariance with respect to the variances of plots and trials.
    parts: [DMatrix<f64>; 2],
}

impl PublishedFormulas {
    fn of(trials: &[CellTrial], cells: u32) -> PublishedFormulas {
        let n = trials.len();
        let blocks = trials.iter().map(|t| t.block).max().unwrap() + 1;
        let one = |is: bool| f64::from(u8::from(is));
        let column = |t: &CellTrial, j: u32| t.block == j || (t.cell > 0 && blocks + t.cell - 1 == j);
        PublishedFormulas {
            x: DMatrix::from_fn(n, (blocks + cells - 1) as usize, |i, j| one(column(&trials[i], j as u32))),
            y: DVector::from_fn(n, |i, _| trials[i].ln),
            parts: [
                DMatrix::from_fn(n, n, |i, j| {
                    one((trials[i].block, trials[i].plot) == (trials[j].block, trials[j].plot))
                }),
                DMatrix::identity(n, n),
            ],
        }
    }

    fn weight(&self, variances: [f64; 2]) -> DMatrix<f64> {
        (&self.parts[0] * variances[0] + &self.parts[1] * variances[1]).cholesky().unwrap().inverse()
    }

    /// Returns twice the negative logarithm of Patterson & Thompson's restricted likelihood.
    fn unlikely(&self, variances: [f64; 2]) -> f64 {
        let weight = self.weight(variances);
        let information = self.x.transpose() * &weight * &self.x;
        let effects =
            information.clone().cholesky().unwrap().solve(&(self.x.transpose() * &weight * &self.y));
        let left = &self.y - &self.x * effects;
        information.determinant().ln() - weight.determinant().ln() + left.dot(&(&weight * &left))
    }

    /// Returns the standard error and the degrees of freedom of the contrast `row`.
    fn kenward_roger(&self, variances: [f64; 2], row: &DVector<f64>) -> (f64, f64) {
        let (x, v) = (&self.x, self.weight(variances));
        let phi = (x.transpose() * &v * x).cholesky().unwrap().inverse();
        let p = |i: usize| -(x.transpose() * &v * &self.parts[i] * &v * x);
        let q = |i: usize, j: usize| x.transpose() * &v * &self.parts[i] * &v * &self.parts[j] * &v * x;
        let residual = &v - &v * x * &phi * x.transpose() * &v;
        let information =
            Matrix2::from_fn(|i, j| 0.5 * (&residual * &self.parts[i] * &residual * &self.parts[j]).trace());
        let w = information.try_inverse().unwrap();
        let mut inner = DMatrix::zeros(x.ncols(), x.ncols());
        let mut of_variance = 0.0;
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            inner += (q(i, j) - p(i) * &phi * p(j)) * w[(i, j)];
            let slope = |k: usize| row.dot(&(&phi * p(k) * &phi * row));
            of_variance += slope(i) * slope(j) * w[(i, j)];
        }
        let adjusted = &phi + &phi * inner * &phi * 2.0;
        // For one contrast, the F statistic of the paper has one degree of freedom in the numerator, its scale is 1 and
        // its m is 2 / A1.
        (row.dot(&(adjusted * row)).sqrt(), 2.0 * row.dot(&(&phi * row)).powi(2) / of_variance)
    }
}

#[test]
fn unbalanced_grids_have_the_errors_and_freedom_that_the_paper_prints() {
    let mut random = Random::new(5);
    let mut trials = split_plot(7, 3, 1.5, &mut random);
    trials.retain(|_| !random.happens(0.2));
    let grid = common(&trials);
    let printed = PublishedFormulas::of(&trials, 6);
    let found = [grid.model.variance * grid.model.ratio, grid.model.variance];
    for step in [[1e-3, 0.0], [-1e-3, 0.0], [0.0, 1e-3], [0.0, -1e-3]] {
        let beside = [0, 1].map(|i| found[i] + step[i]);
        assert!(printed.unlikely(found) < printed.unlikely(beside), "{found:?} {beside:?}");
    }
    for contrast in (GridLayout { levels: vec![2, 3] }).to_reference(0) {
        let (error, freedom) = printed.kenward_roger(found, &grid.row(&contrast).unwrap());
        let compared = alone(&grid, contrast);
        assert_close(compared.error, error, 1e-6);
        assert_close(compared.freedom, freedom, 1e-6);
    }
}

/// Compares with Dunnett, "A multiple comparison procedure for comparing several treatments with a control", Journal of
/// the American Statistical Association 50, 1955, for two sides and equal numbers, so that correlations are 1/2. The
/// expected bound comes from sums over the control's error and the deviation. If both are given, the comparisons are
/// independent.
#[test]
fn many_comparisons_with_one_have_dunnetts_bound() {
    let normal = Normal::standard();
    let kept = |bound: f64, count: i32, freedom: f64| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for deviation in (1..300).map(|i| f64::from(i) * 0.01) {
            let square: f64 = deviation * deviation;
            let weight = ((freedom - 1.0) * deviation.ln() - freedom * square / 2.0 + freedom / 2.0).exp();
            for control in (-60..=60).map(|i| f64::from(i) * 0.1) {
                let reach = 2.0_f64.sqrt() * bound * deviation;
                let one = normal.cdf(control + reach) - normal.cdf(control - reach);
                sum += weight * normal.pdf(control) * one.powi(count);
                weights += weight * normal.pdf(control);
            }
        }
        sum / weights
    };
    for (count, freedom) in [(2, 10.0), (5, 20.0), (9, 60.0)] {
        let root = DMatrix::from_fn(count, count + 1, |i, j| match j {
            0 => 0.5_f64.sqrt(),
            _ if j == i + 1 => 0.5_f64.sqrt(),
            _ => 0.0,
        });
        let bound = maximum::bound(&root, freedom, 0.95);
        let kept = kept(bound, count as i32, freedom);
        assert!((kept - 0.95).abs() < 0.001, "{count} comparisons: {bound} keeps {kept}");
    }
}

#[test]
fn one_contrast_has_students_bound_and_independent_ones_have_sidaks() {
    let bound = maximum::bound(&DMatrix::identity(1, 1), 9.0, 0.95);
    assert_close(bound, student_quantile(9.0, 0.975), 1e-3);
    let bound = maximum::bound(&DMatrix::identity(8, 8), f64::INFINITY, 0.95);
    assert_close(bound, student_quantile(1e6, 0.5 + 0.95_f64.powf(0.125) / 2.0), 3e-3);
}

/// Returns three counts over `grids` grids with trials from `split_plot`: the grids in which all intervals together
/// contain the truth, those in which one interval between plots contains it, and those in which one interval within
/// plots contains it.
fn coverage(grids: u64, deviation: f64, change: impl Fn(&mut CellTrial, &mut Random)) -> [u32; 3] {
    let layout = GridLayout { levels: vec![2, 4] };
    let mut held = [0; 3];
    for seed in 0..grids {
        let mut random = Random::stream(seed, 2);
        let mut trials = split_plot(8, 4, deviation, &mut random);
        trials.iter_mut().for_each(|trial| change(trial, &mut random));
        let grid = FittedGrid::of(&trials, 0).unwrap();
        let holds = |(low, high): (f64, f64)| low < 0.0 && 0.0 < high;
        let family = grid.compare(&layout.to_reference(0), 0.95).unwrap();
        held[0] += u32::from(family.iter().all(|one| holds(one.together)));
        held[1] += u32::from(holds(alone(&grid, layout.main(0)).alone));
        held[2] += u32::from(holds(family[0].alone));
    }
    held
}

/// Checks the coverage of 400 grids. 380 are expected to contain the truth; 362 is four deviations fewer, and 393
/// three more.
#[test]
fn intervals_contain_the_truth_as_often_as_they_promise() {
    let loud = |trial: &mut CellTrial, random: &mut Random| {
        trial.ln += if trial.cell == 5 { 8.0_f64.sqrt() * random.normal() } else { 0.0 };
    };
    let held = [coverage(400, 0.0, |_, _| ()), coverage(400, 3.0, |_, _| ()), coverage(400, 1.0, loud)];
    assert!(held.iter().all(|[together, ..]| *together >= 362), "{held:?}");
    assert!(held.iter().flat_map(|held| &held[1..]).all(|held| (362..=393).contains(held)), "{held:?}");
    // If plots are ignored, intervals between plots contain the truth much less often, and this test shows it.
    let unaware = coverage(400, 3.0, |trial, _| trial.plot = 0);
    assert!(unaware[0] < 362 && unaware[1] < 362, "{unaware:?}");
}

/// Of 400 intervals between plots 380 are expected to contain the truth; 358 is five deviations fewer.
#[test]
fn four_blocks_of_three_plots_hold_the_truth_as_often() {
    for deviation in [0.0, 1.0, 3.0] {
        let holds = |seed: &u64| {
            let trials = whole_plots(4, 3, 2, deviation, &mut Random::stream(*seed, 3));
            let (low, high) = alone(&FittedGrid::of(&trials, 0).unwrap(), Contrast::ratio(0, 2)).alone;
            low < 0.0 && 0.0 < high
        };
        let held = (0..400).filter(holds).count();
        assert!(held >= 358, "{deviation}: {held}");
    }
}

/// Of three plots one varies 30 times as much as another. Of 1,600 intervals between these two, 1,520 are expected to
/// contain the truth; 1,476 is five deviations fewer. With one variance for all plots it is some 1,430.
#[test]
fn plots_that_vary_unlike_each_other_hold_the_truth_as_often() {
    let holds = |seed: &u64| {
        let mut random = Random::stream(*seed, 4);
        let mut trials = whole_plots(4, 3, 2, 0.0, &mut random);
        let of_plots: Vec<f64> = (0..12).map(|nth| [1.0, 10.0, 30.0][nth % 3] * random.normal()).collect();
        trials.iter_mut().for_each(|trial| trial.ln += of_plots[(3 * trial.block + trial.plot) as usize]);
        let (low, high) = alone(&FittedGrid::of(&trials, 0).unwrap(), Contrast::ratio(0, 4)).alone;
        low < 0.0 && 0.0 < high
    };
    let held = (0..1600).filter(holds).count();
    assert!((1476..=1564).contains(&held), "{held}");
}

/// A contrast within plots keeps the model's error, which many trials determine.
#[test]
fn only_contrasts_between_more_than_two_plots_have_their_own_error() {
    let method = |plots, contrast| {
        let trials = whole_plots(6, plots, 2, 1.0, &mut Random::new(5));
        alone(&common(&trials), contrast).method
    };
    assert_eq!(method(3, Contrast::ratio(0, 2)), VarianceMethod::Paired);
    assert_eq!(method(3, Contrast::ratio(2, 3)), VarianceMethod::Common);
    assert_eq!(method(3, GridLayout { levels: vec![3, 2] }.interaction(0, 1)), VarianceMethod::Common);
    assert_eq!(method(2, Contrast::ratio(0, 2)), VarianceMethod::Common);
}

#[test]
fn a_loud_cell_has_its_own_error_and_leaves_the_others_theirs() {
    let layout = GridLayout { levels: vec![8] };
    let mut random = Random::new(11);
    let mut trials: Vec<CellTrial> =
        (0..96).map(|i| CellTrial { block: i / 8, plot: 0, cell: i % 8, ln: random.normal() }).collect();
    trials.iter_mut().filter(|trial| trial.cell == 3).for_each(|trial| trial.ln *= 6.0);
    let compared = FittedGrid::of(&trials, 0).unwrap().compare(&layout.to_reference(0), 0.95).unwrap();
    assert!(compared.iter().all(|one| one.method != VarianceMethod::Common));
    let loud: Vec<f64> = trials.iter().filter(|trial| trial.cell == 3).map(|trial| trial.ln).collect();
    let mean = loud.iter().sum::<f64>() / 12.0;
    let variance = loud.iter().map(|ln| (ln - mean).powi(2)).sum::<f64>() / 11.0;
    let errors: Vec<f64> = compared.iter().map(|one| one.error).collect();
    assert_close(errors[2], ((variance + 1.0) / 12.0).sqrt(), 0.2);
    // sqrt(2 / 12) = 0.41, with at least eleven degrees of freedom; a common variance would make all errors 0.95.
    let others = [0, 1, 3, 4, 5, 6].map(|i| errors[i]);
    assert!(others.iter().all(|error| (0.2..0.7).contains(error)), "{errors:?}");
}

#[test]
fn cells_that_differ_one_and_all_are_compared_within_blocks() {
    let layout = GridLayout { levels: vec![10] };
    let mut random = Random::new(11);
    let mut cell = |i: u32| (0.01 * 10_f64.powf(f64::from(i % 10) / 3.0), random.normal());
    let trials: Vec<CellTrial> = (0..120)
        .map(|i| CellTrial {
            block: i / 10,
            plot: 0,
            cell: i % 10,
            ln: {
                let (deviation, z) = cell(i);
                deviation * z
            },
        })
        .collect();
    let compared = FittedGrid::of(&trials, 0).unwrap().compare(&layout.to_reference(0), 0.95).unwrap();
    assert!(compared.iter().all(|one| one.method == VarianceMethod::Paired && one.freedom == 11.0));
    // Student's test of one sample, by hand.
    let differences = trials.chunks(10).map(|block| block[1].ln - block[0].ln).collect::<Vec<_>>();
    let mean = differences.iter().sum::<f64>() / 12.0;
    let error = (differences.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 11.0 / 12.0).sqrt();
    assert_close(compared[0].ln, mean, 1e-9);
    assert_close(compared[0].error, error, 1e-9);
    assert_close(compared[0].alone.1 - mean, 2.200985 * error, 1e-5);
    // Each cell has its own error: the noisiest does not widen the quietest.
    assert!(compared[8].error > 50.0 * compared[0].error, "{compared:?}");
}

#[test]
fn means_of_complete_blocks_are_the_cells_means_and_blocks_are_no_noise() {
    let trials: Vec<CellTrial> = (0..24_u32)
        .map(|i| CellTrial {
            block: i / 4,
            plot: 0,
            cell: i % 4,
            ln: f64::from(10 * (i / 4) + i % 4 + i * i % 5),
        })
        .collect();
    let means = common(&trials).means(0.95);
    for mean in &means {
        let own: f64 = trials.iter().filter(|t| t.cell == mean.cell).map(|t| t.ln).sum();
        assert_close(mean.ln, own / 6.0, 1e-9);
        assert!(mean.alone.0 < mean.ln && mean.ln < mean.alone.1 && mean.error < 1.0, "{mean:?}");
    }
    assert_eq!(means.iter().map(|mean| mean.cell).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn trials_that_agree_leave_no_doubt() {
    let trials: Vec<CellTrial> = (0..24_u32)
        .map(|i| CellTrial { block: i / 4, plot: 0, cell: i % 4, ln: f64::from(i / 4 + i % 4) })
        .collect();
    let compared = FittedGrid::of(&trials, 0)
        .unwrap()
        .compare(&GridLayout { levels: vec![4] }.to_reference(0), 0.95)
        .unwrap();
    for (cell, one) in (1..).zip(compared) {
        assert!((one.ln - f64::from(cell)).abs() < 1e-9 && one.error < 1e-9, "{one:?}");
    }
}

#[test]
fn a_contrast_without_enough_data_is_refused() {
    let refused = |trials: &[CellTrial], reference: u32| FittedGrid::of(trials, reference).err();
    let trials = split_plot(6, 3, 1.0, &mut Random::new(1));
    assert_eq!(refused(&trials, 0), None);
    assert_eq!(refused(&trials, 6), Some(GridError::Reference(6)));
    assert_eq!(refused(&[], 0), Some(GridError::Reference(0)));
    let fewer = split_plot(5, 3, 1.0, &mut Random::new(1));
    assert_eq!(refused(&fewer, 0), Some(GridError::Blocks { have: 5, need: 6 }));
    let mut three = whole_plots(4, 3, 2, 1.0, &mut Random::new(1));
    assert_eq!(refused(&three, 0), None);
    three.retain(|trial| trial.block < 3);
    assert_eq!(refused(&three, 0), Some(GridError::Blocks { have: 3, need: 4 }));
    // Of the last block one plot is missing: its two plots leave fewer degrees of freedom.
    let mut three = whole_plots(4, 3, 2, 1.0, &mut Random::new(1));
    three.retain(|trial| trial.block < 3 || trial.plot < 2);
    assert_eq!(refused(&three, 0), Some(GridError::Blocks { have: 3, need: 4 }));
    // Of the twelve plots six have one trial: too little is known of trials beside plots.
    let mut three = whole_plots(4, 3, 2, 1.0, &mut Random::new(1));
    three.retain(|trial| trial.block < 2 || trial.cell % 2 == 0);
    assert_eq!(refused(&three, 0), Some(GridError::Blocks { have: 4, need: 6 }));
    let one = &split_plot(1, 1, 1.0, &mut Random::new(1));
    assert_eq!(refused(one, 0), Some(GridError::Freedom));
    let far = |t: &CellTrial| CellTrial { block: t.block + 6, cell: t.cell + 6, ..*t };
    let both: Vec<CellTrial> = trials.iter().copied().chain(trials.iter().map(far)).collect();
    assert_eq!(refused(&both, 0), Some(GridError::Apart((6..12).collect())));
    let grid = FittedGrid::of(&trials, 0).unwrap();
    let weights = |weights: &[(u32, f64)]| grid.compare(&[Contrast { weights: weights.to_vec() }], 0.95);
    assert_eq!(weights(&[(6, 1.0), (0, -1.0)]), Err(GridError::Cell(6)));
    assert_eq!(weights(&[(1, 1.0), (0, -0.5)]), Err(GridError::Weights));
    assert_eq!(weights(&[(1, 0.0)]), Err(GridError::Weights));
    assert_eq!(grid.compare(&[], 0.95), Ok(Vec::new()));
}

#[test]
fn contrasts_name_the_cells_that_differ() {
    let layout = GridLayout { levels: vec![2, 3, 2] };
    assert_eq!(layout.cells(), 12);
    assert_eq!(layout.levels_of(9), [1, 1, 1]);
    assert_eq!((layout.with(9, 1, 2), layout.with(9, 0, 0), layout.with(9, 2, 1)), (11, 3, 9));
    assert_eq!(layout.to_reference(4).len(), 11);
    let neighbours = layout.neighbours(1);
    assert_eq!(neighbours.len(), 8);
    assert_eq!(neighbours[0].weights, [(2, 1.0), (0, -1.0)]);
    assert_eq!(layout.simple(0, 2).weights, [(8, 1.0), (2, -1.0)]);
}

/// Compares the effects with those computed by hand, for a grid in which each cell's figure is known.
#[test]
fn effects_of_two_valued_factors_are_those_of_their_definitions() {
    let layout = GridLayout { levels: vec![2, 2, 2] };
    let of = |cell: u32| {
        let on: Vec<f64> = layout.levels_of(cell).into_iter().map(f64::from).collect();
        3.0 * on[0] + 5.0 * on[1] + 7.0 * on[2] + 2.0 * on[0] * on[1]
    };
    let value =
        |contrast: Contrast| contrast.weights.iter().map(|(cell, weight)| weight * of(*cell)).sum::<f64>();
    assert_eq!(value(layout.main(0)), 4.0);
    assert_eq!(value(layout.main(2)), 7.0);
    assert_eq!(value(layout.interaction(0, 1)), 2.0);
    assert_eq!(value(layout.interaction(0, 2)), 0.0);
    assert_eq!(value(layout.simple(0, 0)), 3.0);
    assert_eq!(value(layout.simple(0, layout.with(0, 1, 1))), 5.0);
}
