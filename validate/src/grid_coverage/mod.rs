//! `make grid-coverage`: simulates how often the intervals of a grid contain the truth, and how wide they are. It
//! prints the table of docs/results/grid-coverage.md, and fails if a promise is broken.
//!
//! The real [`FittedGrid`] is fitted; only the measurements are simulated.

mod best;
mod scene;

use std::ops::RangeInclusive;

use anyhow::Result;
use clap::Args;
use landspeed_stats::grid::{FittedGrid, VarianceMethod};

use crate::simulate::each_seed;
use crate::table::{self, BrokenPromises, interval, percent, share};
use best::best_widths;
use scene::{GridScenario, SCENES};

const CONFIDENCE: f64 = 0.95;
/// The least share of grids in which all intervals of the family contain their true values.
const TOGETHER: f64 = 0.94;
/// The range for the share of grids in which the interval of a single contrast contains its true value.
const ALONE: RangeInclusive<f64> = 0.94..=0.96;
/// The largest ratio of the mean width of intervals to that of the best possible ones, where contrasts have the model's
/// error.
const WIDTH: f64 = 1.3;
/// Number of grids for which the best possible widths are computed.
const BEST: u32 = 20;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Grids of each row
    #[arg(long, default_value_t = 4000)]
    grids: u32,
    /// Only rows with this in their name
    #[arg(long, default_value = "")]
    only: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    table::head(
        "row | all together | 95 % interval | between plots | within plots | width, mean | widest | own variances | promise",
    );
    let mut broken = BrokenPromises::default();
    for scene in SCENES.iter().filter(|scene| scene.name.contains(&options.only)) {
        CoverageTally(each_seed(options.grids, |seed| GridCoverage::of(scene, seed)))
            .print(scene, &mut broken);
    }
    broken.sum_up()
}

/// The results of one simulated grid.
#[derive(Debug)]
struct GridCoverage {
    /// True if all simultaneous intervals of the family contain their true values.
    together: bool,
    /// For one contrast between plots and one within plots: true if its interval alone contains its true value.
    alone: [bool; 2],
    /// True if the fitted grid uses separate variances, of cells or of each contrast, instead of a common one.
    own: bool,
    /// The width of each contrast's simultaneous interval, as a log ratio.
    widths: Vec<f64>,
    /// The width of each contrast's best possible interval; empty for all but the first grids.
    best: Vec<f64>,
}

impl GridCoverage {
    /// Simulates and fits the grid of `scene` with the seed `seed`.
    fn of(scene: &GridScenario, seed: u32) -> GridCoverage {
        let trials = scene.trials(seed.into());
        let family = scene.contrasts();
        let grid = FittedGrid::of(&trials, 0).expect("a scene has enough trials");
        let compare = |contrasts: &[_]| grid.compare(contrasts, CONFIDENCE).expect("a scene has all cells");
        let compared = compare(&family);
        let truths: Vec<f64> = family.iter().map(|contrast| scene.truth(contrast)).collect();
        let alone = scene.strata().map(|contrast| {
            let one = compare(std::slice::from_ref(&contrast))[0];
            holds(one.alone, scene.truth(&contrast))
        });
        GridCoverage {
            together: compared.iter().zip(&truths).all(|(one, truth)| holds(one.together, *truth)),
            alone,
            own: compared[0].method != VarianceMethod::Common,
            widths: compared.iter().map(|one| one.together.1 - one.together.0).collect(),
            best: if seed < BEST { best_widths(scene, &trials, CONFIDENCE) } else { Vec::new() },
        }
    }
}

/// The results of the grids of a scene.
struct CoverageTally(Vec<GridCoverage>);

impl CoverageTally {
    fn count(&self, which: impl Fn(&GridCoverage) -> bool) -> u32 {
        self.0.iter().filter(|grid| which(grid)).count() as u32
    }

    fn share(&self, which: impl Fn(&GridCoverage) -> bool) -> f64 {
        share(self.count(which), self.0.len() as u32)
    }

    /// Returns for each contrast the ratio of two mean widths: that of its interval, divided by that of the best
    /// possible interval.
    fn widths(&self) -> Vec<f64> {
        let contrasts = self.0.first().map_or(0, |grid| grid.widths.len());
        let mean = |at: usize, of: fn(&GridCoverage) -> &Vec<f64>| {
            let widths: Vec<f64> = self.0.iter().filter_map(|grid| of(grid).get(at).copied()).collect();
            widths.iter().sum::<f64>() / widths.len() as f64
        };
        (0..contrasts).map(|at| mean(at, |grid| &grid.widths) / mean(at, |grid| &grid.best)).collect()
    }

    fn print(&self, scene: &GridScenario, broken: &mut BrokenPromises) {
        let (widths, grids) = (self.widths(), self.0.len() as u32);
        let mean = widths.iter().sum::<f64>() / widths.len() as f64;
        let together = self.count(|grid| grid.together);
        let alone = [0, 1].map(|i| self.share(|grid| grid.alone[i]));
        let promise = broken.check(
            share(together, grids) >= TOGETHER
                && (mean <= WIDTH || scene.has_own_errors())
                && alone.iter().all(|share| ALONE.contains(share)),
        );
        table::row(&[
            &scene.name,
            &percent(share(together, grids)),
            &interval(together, grids),
            &percent(alone[0]),
            &percent(alone[1]),
            &format!("{mean:.2}"),
            &format!("{:.2}", widths.into_iter().fold(0.0, f64::max)),
            &percent(self.share(|grid| grid.own)),
            &promise,
        ]);
    }
}

fn holds((low, high): (f64, f64), truth: f64) -> bool {
    (low..=high).contains(&truth)
}
