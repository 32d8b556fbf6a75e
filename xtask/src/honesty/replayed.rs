//! Runs on the noise that was recorded.

use landspeed_analysis::Rules;
use landspeed_analysis::honesty::{
    FalseKeepStudy, FalseKeeps, Noise, NoiseBlock, Power, PowerStudy, TooLittleNoise, false_keep_study,
    power_study,
};
use landspeed_record::Figures;
use landspeed_units::Nanos;

use super::decide::PLANNED;
use super::record::{Recorded, Setting};

/// Whole runs of each kind.
const RUNS: u32 = 1_000;
/// Useless candidates in each: more than five minutes have room for.
const USELESS: u32 = 30;
/// Effects like the lab's own, mixed in: what is kept gives its share of the error back to the rest.
const USEFUL: [f64; 4] = [2.0, 1.5, 1.3, 1.3];
/// Steps of each power study; the long ones are fewer, for they take hundreds of blocks each.
const STEPS: u32 = 2_000;
const LONG_STEPS: u32 = 500;
/// Blocks of a step, and of each of the two placebos that a run with one knob tries as well.
const BLOCKS: u32 = 11;

/// One setting's recorded blocks.
pub(super) struct Recording {
    /// The setting.
    pub(super) setting: Setting,
    /// Its noise.
    pub(super) noise: Noise,
    /// Mean time of a block.
    pub(super) block_time: Nanos,
    rate_alone: Noise,
}

impl Recording {
    /// The blocks of `setting`.
    pub(super) fn of(recorded: &Recorded, setting: Setting) -> Result<Recording, TooLittleNoise> {
        let blocks: Vec<NoiseBlock> =
            recorded.blocks_of(setting).map(|block| block.figures.clone()).collect();
        let rate_alone = Noise::new(blocks.iter().map(hold_still).collect())?;
        let noise = Noise::new(blocks)?;
        let took: Nanos = recorded.blocks_of(setting).map(|block| block.took_ns).sum();
        Ok(Recording { setting, block_time: Nanos(took.0 / noise.len() as u64), noise, rate_alone })
    }

    fn rules(&self) -> Rules {
        Rules { block_time: self.block_time, ..Rules::default() }
    }
}

/// The block with the rates as they were, and every other figure as in its first trial.
fn hold_still(block: &NoiseBlock) -> NoiseBlock {
    block.iter().map(|figures| Figures { rate_bps: figures.rate_bps, steal: 0.0, ..block[0] }).collect()
}

/// One study of false keeps.
pub(super) struct KeepRow {
    /// Whose noise.
    pub(super) setting: Setting,
    /// Useful candidates among the useless.
    pub(super) useful: usize,
    /// What was found.
    pub(super) found: FalseKeeps,
}

/// Whole runs, without and with anything useful to find.
pub(super) fn false_keeps(recording: &Recording) -> Vec<KeepRow> {
    [Vec::new(), USEFUL.to_vec()]
        .into_iter()
        .map(|useful| {
            let rules = recording.rules();
            let count = useful.len();
            let study = FalseKeepStudy { runs: RUNS, useless: USELESS, useful, rules, seed: 1 };
            let found = false_keep_study(&recording.noise, &study);
            KeepRow { setting: recording.setting, useful: count, found }
        })
        .collect()
}

/// One study of power.
pub(super) struct PowerRow {
    /// Whose noise.
    pub(super) setting: Setting,
    /// The effect as a ratio.
    pub(super) effect: f64,
    /// The block deviation that the noise was scaled to.
    pub(super) deviation: f64,
    /// What the step may use, in words.
    pub(super) within: &'static str,
    /// What was found.
    pub(super) found: Power,
    /// What is found where nothing but the rate varies and no block is discarded: the difference is
    /// what the guards and the hypervisor cost.
    pub(super) by_rate_alone: Power,
}

/// The three effects of the promise.
pub(super) fn powers(recording: &Recording) -> Vec<PowerRow> {
    let usual = Rules { planned: PLANNED, max_blocks: BLOCKS, ..recording.rules() };
    let studies = [
        (1.30, 0.15, STEPS, usual.clone(), "11 blocks"),
        (1.10, 0.05, STEPS, usual, "11 blocks"),
        (1.05, 0.15, LONG_STEPS, one_knob(recording), "--only KNOB --budget 20m"),
    ];
    studies
        .into_iter()
        .map(|(effect, deviation, runs, rules, within)| {
            let study = PowerStudy { runs, effect, deviation, rules, seed: 2 };
            let found = power_study(&recording.noise, &study);
            let by_rate_alone = power_study(&recording.rate_alone, &study);
            PowerRow { setting: recording.setting, effect, deviation, within, found, by_rate_alone }
        })
        .collect()
}

/// `--only KNOB --budget 20m`: two placebos take their share of the error, and their blocks first.
fn one_knob(recording: &Recording) -> Rules {
    let placebos = Nanos(2 * u64::from(BLOCKS) * recording.block_time.0);
    Rules { planned: 3, budget: Nanos::secs(1_200).saturating_sub(placebos), ..recording.rules() }
}
