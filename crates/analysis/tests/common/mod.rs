//! Synthetic noise of known shapes.

use landspeed_analysis::honesty::{Noise, NoiseBlock};
use landspeed_record::Figures;
use landspeed_units::{BitRate, BytesPerCpuSecond, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How a trial's log figures vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// Independent normal.
    Gaussian,
    /// Independent Student with three degrees of freedom.
    HeavyTailed,
    /// Autoregressive, 0.8 from one trial to the next.
    Autocorrelated,
}

/// `blocks` blocks whose trials vary by `deviation` in rate and cost, a third of it in latency.
pub(crate) fn noise(shape: Shape, blocks: usize, deviation: f64) -> Noise {
    let mut dice = ChaCha8Rng::seed_from_u64(2_003);
    let mut levels = [0.0; 3];
    let mut trial = || {
        let spreads = [deviation, deviation, deviation / 3.0];
        for (level, spread) in levels.iter_mut().zip(spreads) {
            *level = match shape {
                Shape::Gaussian => spread * gaussian(&mut dice),
                Shape::HeavyTailed => spread * student3(&mut dice),
                Shape::Autocorrelated => 0.8 * *level + 0.6 * spread * gaussian(&mut dice),
            };
        }
        Figures {
            rate_bps: BitRate(4e9 * f64::exp(levels[0])),
            bytes_per_cpu_s: BytesPerCpuSecond(3e8 * f64::exp(levels[1])),
            latency_ns: Nanos((50_000.0 * f64::exp(levels[2])) as u64),
            ..Figures::default()
        }
    };
    let blocks: Vec<NoiseBlock> = (0..blocks).map(|_| (0..4).map(|_| trial()).collect()).collect();
    Noise::new(blocks).expect("enough blocks")
}

fn gaussian(dice: &mut ChaCha8Rng) -> f64 {
    let (u, v): (f64, f64) = (dice.random(), dice.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Student's with three degrees of freedom.
fn student3(dice: &mut ChaCha8Rng) -> f64 {
    let square: f64 = (0..3).map(|_| gaussian(dice).powi(2)).sum();
    gaussian(dice) / (square / 3.0).sqrt()
}
