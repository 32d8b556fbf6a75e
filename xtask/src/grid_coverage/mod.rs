//! `make grid-coverage`: simulates how often the intervals of a grid contain the truth, and how wide they are. It
//! prints the table of docs/results/grid-coverage.md, and fails if a promise is broken.
//!
//! The real [`FittedGrid`] is fitted; only the measurements are simulated.

mod best;
mod scene;

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, ensure};
use clap::Args;
use landspeed_stats::grid::{ContrastEstimate, FittedGrid, VarianceMethod};
use landspeed_stats::proportion_interval;

use best::best_widths;
use scene::{GridScenario, SCENES};

const CONFIDENCE: f64 = 0.95;
/// Least share of grids in which all intervals of the family contain the truth.
const TOGETHER: f64 = 0.94;
/// Range of the share in which the interval of one contrast contains it.
const ALONE: (f64, f64) = (0.94, 0.96);
/// Largest ratio of the mean width to that of the best possible intervals.
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
    println!(
        "| row | all together | 95 % interval | between plots | within plots | width, mean | widest | own variances | promise |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut broken = 0;
    for scene in SCENES.iter().filter(|scene| scene.name.contains(&options.only)) {
        let tally = tally(scene, options.grids);
        broken += u32::from(!tally.is_kept());
        println!("{}", tally.row(scene));
    }
    println!("\n{broken} promises broken.");
    ensure!(broken == 0, "a promise is broken");
    Ok(())
}

/// The results of some grids of a scene.
#[derive(Debug, Clone, Default)]
struct CoverageTally {
    grids: u32,
    /// Grids whose intervals all contain the truth.
    together: u32,
    /// Grids in which the interval of one contrast contains it: between plots, and within plots.
    alone: [u32; 2],
    /// Grids whose cells were taken to differ in noise.
    own: u32,
    /// Sums of each contrast's width, over the grids.
    widths: Vec<f64>,
    /// Sums of the best possible widths, over the first grids.
    best: Vec<f64>,
}

impl CoverageTally {
    /// Returns the results of the grid of `seed`.
    fn of(scene: &GridScenario, seed: u32) -> CoverageTally {
        let trials = scene.trials(seed.into());
        let family = scene.contrasts();
        let grid = FittedGrid::of(&trials, 0).expect("a scene has enough trials");
        let compare = |contrasts: &[_]| grid.compare(contrasts, CONFIDENCE).expect("a scene has all cells");
        let compared = compare(&family);
        let truths: Vec<f64> = family.iter().map(|contrast| scene.truth(contrast)).collect();
        let all = compared.iter().zip(&truths).all(|(one, truth)| holds(one.together, *truth));
        let alone = scene.strata().map(|contrast| {
            let one = compare(std::slice::from_ref(&contrast))[0];
            u32::from(holds(one.alone, scene.truth(&contrast)))
        });
        CoverageTally {
            grids: 1,
            together: u32::from(all),
            alone,
            own: u32::from(compared[0].method != VarianceMethod::Common),
            widths: compared.iter().map(width).collect(),
            best: if seed < BEST { best_widths(scene, &trials, CONFIDENCE) } else { Vec::new() },
        }
    }

    fn add(mut self, other: CoverageTally) -> CoverageTally {
        let sum = |a: Vec<f64>, b: Vec<f64>| match (a.is_empty(), b.is_empty()) {
            (true, _) => b,
            (_, true) => a,
            _ => a.iter().zip(&b).map(|(a, b)| a + b).collect(),
        };
        self.grids += other.grids;
        self.together += other.together;
        self.alone = [0, 1].map(|i| self.alone[i] + other.alone[i]);
        self.own += other.own;
        self.widths = sum(self.widths, other.widths);
        self.best = sum(self.best, other.best);
        self
    }

    fn share(&self, hits: u32) -> f64 {
        f64::from(hits) / f64::from(self.grids.max(1))
    }

    /// Returns the ratios of widths to the best possible ones: their mean over the contrasts, and the largest.
    fn width(&self) -> (f64, f64) {
        let scale = f64::from(self.grids.min(BEST)) / f64::from(self.grids);
        let ratios: Vec<f64> =
            self.widths.iter().zip(&self.best).map(|(own, best)| scale * own / best).collect();
        (ratios.iter().sum::<f64>() / ratios.len() as f64, ratios.into_iter().fold(0.0, f64::max))
    }

    fn is_kept(&self) -> bool {
        let alone = |hits: u32| (ALONE.0..=ALONE.1).contains(&self.share(hits));
        self.share(self.together) >= TOGETHER
            && self.width().0 <= WIDTH
            && self.alone.iter().all(|hits| alone(*hits))
    }

    fn row(&self, scene: &GridScenario) -> String {
        let percent = |hits: u32| format!("{:.1} %", 100.0 * self.share(hits));
        let (low, high) = proportion_interval(self.together.into(), self.grids.into());
        let (mean, widest) = self.width();
        format!(
            "| {} | {} | {:.1} to {:.1} % | {} | {} | {mean:.2} | {widest:.2} | {} | {} |",
            scene.name,
            percent(self.together),
            100.0 * low,
            100.0 * high,
            percent(self.alone[0]),
            percent(self.alone[1]),
            percent(self.own),
            if self.is_kept() { "kept" } else { "NOT KEPT" },
        )
    }
}

fn holds((low, high): (f64, f64), truth: f64) -> bool {
    (low..=high).contains(&truth)
}

fn width(one: &ContrastEstimate) -> f64 {
    one.together.1 - one.together.0
}

/// Simulates grids with seeds from 0, on all processors.
fn tally(scene: &GridScenario, grids: u32) -> CoverageTally {
    let next = AtomicU32::new(0);
    let seeds = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < grids);
    let worker = || {
        std::iter::from_fn(seeds)
            .map(|seed| CoverageTally::of(scene, seed))
            .fold(CoverageTally::default(), CoverageTally::add)
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker ends"))
            .fold(CoverageTally::default(), CoverageTally::add)
    })
}
