//! Recorded trials of equal cells.

use landspeed_record::{Figures, Record};
use landspeed_units::{BitRate, BytesPerCpuSecond, Nanos};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::Metric;
use crate::series::Block;
use crate::summary::whole_blocks;

/// The trials of a block, all of one cell, in time order.
pub type NoiseBlock = Vec<Figures>;

/// Consecutive blocks that are taken together.
const STRETCH: usize = 8;

/// What recorded trials of equal cells look like.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    blocks: Vec<NoiseBlock>,
}

/// Too few blocks to replay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found} blocks of equal cells are too few to replay noise from, {} are needed: record more with \
     a longer run of equal cells",
    Noise::LEAST
)]
pub struct TooLittleNoise {
    /// Blocks given.
    pub found: usize,
}

impl Noise {
    /// Fewest blocks that noise is replayed from.
    pub const LEAST: usize = 2 * STRETCH;

    /// Noise from `blocks` in the order of their measuring.
    pub fn new(blocks: Vec<NoiseBlock>) -> Result<Self, TooLittleNoise> {
        if blocks.len() < Noise::LEAST {
            return Err(TooLittleNoise { found: blocks.len() });
        }
        Ok(Noise { blocks })
    }

    /// Noise from every complete block of `record` whose trials measured one and the same cell:
    /// placebos, and comparisons of equal cells.
    pub fn from_record(record: &Record) -> Result<Self, TooLittleNoise> {
        let blocks = whole_blocks(record).into_iter();
        let equal = blocks.filter(|block| block.iter().all(|t| t.cell == block[0].cell));
        Noise::new(equal.map(|block| block.iter().map(|t| t.figures).collect()).collect())
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Never: noise has at least [`Noise::LEAST`] blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The standard deviation of the per-block log ratio.
    pub fn deviation(&self, metric: Metric) -> f64 {
        let ratio = |b: &NoiseBlock| Block::new(b, false).ln_ratio(metric);
        let squares: Vec<f64> = self.blocks.iter().filter_map(ratio).map(|x| x * x).collect();
        (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
    }

    /// The same noise with the figure's variation within each block stretched so that the standard
    /// deviation of its per-block log ratio is `deviation`. Shape and order stay.
    #[must_use]
    pub fn scaled(&self, metric: Metric, deviation: f64) -> Noise {
        let factor = deviation / self.deviation(metric).max(f64::MIN_POSITIVE);
        Noise { blocks: self.blocks.iter().map(|block| stretch(block, metric, factor)).collect() }
    }

    /// The same noise without what the hypervisor took: for studies that are not about discards.
    #[must_use]
    pub fn without_steal(&self) -> Noise {
        let clear = |f: Figures| Figures { steal: 0.0, ..f };
        Noise { blocks: self.blocks.iter().map(|block| block.iter().copied().map(clear).collect()).collect() }
    }
}

/// Multiplies the log deviations of a block's trials from their mean.
fn stretch(block: &NoiseBlock, metric: Metric, factor: f64) -> NoiseBlock {
    let logs: Vec<f64> = block.iter().map(|f| metric.of(f).map_or(f64::NEG_INFINITY, f64::ln)).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let mut stretched = block.clone();
    if !mean.is_finite() {
        return stretched;
    }
    for (figures, ln) in stretched.iter_mut().zip(logs) {
        multiply(figures, metric, ((factor - 1.0) * (ln - mean)).exp());
    }
    stretched
}

/// Multiplies one figure.
pub(super) fn multiply(figures: &mut Figures, metric: Metric, by: f64) {
    match metric {
        Metric::Rate => figures.rate_bps = BitRate(figures.rate_bps.0 * by),
        Metric::Cost => figures.bytes_per_cpu_s = BytesPerCpuSecond(figures.bytes_per_cpu_s.0 * by),
        Metric::Latency => figures.latency_ns = Nanos((figures.latency_ns.0 as f64 * by).round() as u64),
    }
}

/// Draws blocks in stretches.
#[derive(Debug)]
pub(super) struct Draw<'a> {
    noise: &'a Noise,
    at: usize,
    left: usize,
}

impl<'a> Draw<'a> {
    pub(super) fn new(noise: &'a Noise) -> Self {
        Draw { noise, at: 0, left: 0 }
    }

    pub(super) fn block(&mut self, dice: &mut ChaCha8Rng) -> NoiseBlock {
        if self.left == 0 {
            self.at = dice.random_range(0..self.noise.blocks.len());
            self.left = STRETCH;
        }
        self.left -= 1;
        let block = self.noise.blocks[self.at % self.noise.blocks.len()].clone();
        self.at += 1;
        block
    }
}
