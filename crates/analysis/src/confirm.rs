//! Confirmation of the whole gain after a run: blocks that compare the final setting with the start, over a long time
//! and at growing distances in time.
//!
//! The distances grow so that variation over seconds, over minutes and over a good part of the whole time shows as
//! variation between blocks. A disturbance that lasts longer than the confirmation does not show. Each block is
//! weighted by the time around it. The number of blocks is fixed before the first block, and only the user can stop
//! early, so the interval is an ordinary Student's t interval.

use std::collections::VecDeque;

use landspeed_record::units::Nanos;
use landspeed_record::{Cell, ConfirmationReport, Estimate, Gain};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::block_figures::BlockFigures;
use crate::series::CONFIDENCE;
use crate::steal::StealHistory;
use crate::{BlockResult, LadderBlock, LadderRules, Metric};

/// The step name of the blocks in a record.
pub(crate) const STEP: &str = "confirm";
/// The factor by which each distance exceeds the one before it.
const GROWTH: f64 = 1.25;

/// The plan of a confirmation, and the blocks that the driver has measured so far.
#[derive(Debug)]
pub struct GainConfirmation {
    pair: LadderBlock,
    /// The times at which the remaining blocks are due, counted from the first block.
    due: VecDeque<Nanos>,
    goal: Metric,
    judged: ConfirmationBlocks,
    orders: Vec<bool>,
}

impl GainConfirmation {
    /// Returns a plan for blocks of `last` against `start` over `time`, where a change between the two settings takes
    /// `toggle`.
    pub fn new(start: &Cell, last: &Cell, time: Nanos, toggle: Nanos, rules: &LadderRules) -> Self {
        let due = moments(time, rules.block_time + rules.toggles(toggle));
        // Each order comes once in every two blocks, so that an effect of the order cancels.
        let mut dice = ChaCha8Rng::seed_from_u64(rules.seed);
        let orders = (0..due.len().div_ceil(2)).flat_map(|_| {
            let first = dice.random::<bool>();
            [!first, first]
        });
        let pair = LadderBlock {
            step: STEP.to_owned(),
            what: "confirming the gain: final setting over the start, at growing distances".to_owned(),
            incumbent: start.clone(),
            candidate: last.clone(),
            toggle,
            fine: rules.is_fine(toggle),
            candidate_first: false,
            most: 0,
            block: 0,
        };
        GainConfirmation {
            orders: orders.collect(),
            pair,
            due: due.into(),
            goal: rules.goal,
            judged: ConfirmationBlocks::default(),
        }
    }

    /// Returns the number of blocks that are still to be measured.
    pub fn left(&self) -> usize {
        self.due.len()
    }

    /// Returns the time at which the next block is due, counted from the first block; `None` after the last block.
    pub fn due(&self) -> Option<Nanos> {
        self.due.front().copied()
    }

    /// Returns the next block.
    pub fn pair(&self) -> LadderBlock {
        let block = self.judged.blocks.len() as u32;
        let candidate_first = self.orders.get(block as usize).copied().unwrap_or_default();
        LadderBlock { candidate_first, block, ..self.pair.clone() }
    }

    /// Adds the result of the block that was due. The block began at `at` on the run's clock.
    pub fn observe(&mut self, result: &BlockResult, at: Nanos) {
        self.due.pop_front();
        self.judged.add(BlockFigures::new(&result.figures, result.candidate_first), at, self.goal);
    }

    /// Returns the result of the blocks so far; `None` if no block was measured yet.
    pub fn found(&self) -> Option<ConfirmationReport> {
        self.judged.found(self.goal)
    }
}

/// The measured blocks of a confirmation, and which of them count.
#[derive(Debug, Default)]
pub(crate) struct ConfirmationBlocks {
    /// For each block: the time at which it began, counted from the first block; its figures; and true if it counts.
    blocks: Vec<(Nanos, BlockFigures, bool)>,
    steals: StealHistory,
    began: Option<Nanos>,
    last: Nanos,
}

impl ConfirmationBlocks {
    pub(crate) fn add(&mut self, block: BlockFigures, at: Nanos, goal: Metric) {
        let stolen = self.steals.stands_out(block.steal, LadderRules::default().steal_limit);
        self.last = at.saturating_sub(*self.began.get_or_insert(at));
        let counts = !stolen && block.ln_ratio(goal).is_some();
        self.blocks.push((self.last, block, counts));
    }

    /// Returns the result of the blocks so far; `None` if no block was measured yet.
    pub(crate) fn found(&self, goal: Metric) -> Option<ConfirmationReport> {
        self.began?;
        let counted = self.blocks.iter().filter(|(.., counts)| *counts).count() as u32;
        Some(ConfirmationReport {
            over_ns: self.last,
            blocks: counted,
            discarded: self.blocks.len() as u32 - counted,
            gain: Gain {
                rate: self.estimate(Metric::Rate, 1.0),
                cost: self.estimate(Metric::Cost, 1.0),
                latency: self.estimate(Metric::Latency, 1.0),
                loaded_latency: None,
            },
            holds: self
                .estimate(goal, goal.sign())
                .is_some_and(|found| found.low > 1.0 + LadderRules::default().least_effect),
        })
    }

    /// Returns the mean ratio candidate over incumbent, inverted if `sign` is -1. Blocks are weighted by the time
    /// around them, because most blocks lie in the first minutes. The interval is widened to cover the interval that
    /// includes the discarded blocks.
    fn estimate(&self, metric: Metric, sign: f64) -> Option<Estimate> {
        let of = |discarded: bool| {
            let blocks = self.blocks.iter().filter(|(.., counts)| *counts || discarded);
            let measured = blocks.filter_map(|(at, block, _)| Some((*at, block.ln_ratio(metric)? * sign)));
            let (times, lns): (Vec<Nanos>, Vec<f64>) = measured.unzip();
            let parts: Vec<(f64, f64)> = spans(&times).into_iter().zip(lns).collect();
            (!parts.is_empty()).then(|| landspeed_stats::weighted_estimate(&parts, CONFIDENCE))
        };
        let (counted, all) = (of(false)?, of(true)?);
        Some(Estimate { low: counted.low.min(all.low), high: counted.high.max(all.high), ..counted })
    }
}

/// Returns the time that each block represents, in nanoseconds: half of the distances to its neighbours. `moments` are
/// the times at which the blocks begin.
fn spans(moments: &[Nanos]) -> Vec<f64> {
    let half = |one: Nanos, other: Nanos| other.saturating_sub(one).0 as f64 / 2.0;
    let before = |n: usize| n.checked_sub(1).map_or(0.0, |last| half(moments[last], moments[n]));
    let after = |n: usize| moments.get(n + 1).map_or(0.0, |next| half(moments[n], *next));
    (0..moments.len()).map(|n| before(n) + after(n)).collect()
}

/// Returns the times at which blocks begin, from zero to `time`. The first distance is at least twice `block`, the time
/// of one block, and each later one is [`GROWTH`] times the one before it.
fn moments(time: Nanos, block: Nanos) -> Vec<Nanos> {
    let (time, first) = (time.0 as f64, 2.0 * block.0.max(1) as f64);
    let gaps = ((time * (GROWTH - 1.0) / first).ln_1p() / GROWTH.ln()) as i32;
    let whole = (GROWTH.powi(gaps) - 1.0).max(f64::MIN_POSITIVE);
    (0..=gaps).map(|n| Nanos((time * (GROWTH.powi(n) - 1.0) / whole) as u64)).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::TrialFigures;
    use landspeed_record::units::BitRate;

    use super::*;

    #[test]
    fn distances_grow_from_two_blocks_to_a_good_part_of_the_time() {
        let block = Nanos::millis(1_800);
        let moments = moments(Nanos::secs(1_800), block);
        assert_eq!((moments.len(), moments[0], *moments.last().unwrap()), (22, Nanos(0), Nanos::secs(1_800)));
        let gaps: Vec<u64> = moments.windows(2).map(|two| two[1].0 - two[0].0).collect();
        assert!(gaps[0] >= 2 * block.0 && gaps.windows(2).all(|two| two[1] > two[0]), "{gaps:?}");
        assert!(gaps.last().unwrap() > &Nanos::secs(300).0, "{gaps:?}");
    }

    #[test]
    fn a_time_shorter_than_a_block_is_one_block() {
        assert_eq!(moments(Nanos::secs(1), Nanos::secs(2)), [Nanos(0)]);
        assert_eq!(moments(Nanos(0), Nanos(0)), [Nanos(0)]);
    }

    /// Runs a confirmation in which the final setting's rate is `worth` times the start's, at the time of each block.
    fn confirm(blocks: usize, worth: impl Fn(Nanos) -> f64) -> Option<ConfirmationReport> {
        let mut confirm = GainConfirmation::new(
            &Cell::default(),
            &Cell::default(),
            Nanos::secs(1_800),
            Nanos(0),
            &LadderRules::default(),
        );
        let (mut orders, mut blocks) = (0, 0..blocks);
        while let (Some(at), Some(_)) = (confirm.due(), blocks.next()) {
            let pair = confirm.pair();
            orders += i32::from(pair.candidate_first);
            let trial = |arm| match arm {
                landspeed_record::Arm::Incumbent => 1e9,
                landspeed_record::Arm::Candidate => 1e9 * worth(at),
            };
            let figures = |rate| TrialFigures { rate_bps: BitRate(rate), ..TrialFigures::default() };
            let figures = pair.arms().into_iter().map(|arm| figures(trial(arm))).collect();
            confirm.observe(&pair.result(figures, Nanos::secs(2)), Nanos::secs(300) + at);
        }
        if confirm.due().is_none() {
            assert_eq!(orders, 11, "each order half of the time");
        }
        confirm.found()
    }

    #[test]
    fn a_gain_that_lasts_is_confirmed_and_one_that_passes_is_not() {
        let lasting = confirm(99, |_| 1.3).unwrap();
        assert!(lasting.holds && (lasting.gain.rate.unwrap().ratio - 1.3).abs() < 1e-9);
        assert_eq!((lasting.blocks, lasting.over_ns), (22, Nanos::secs(1_800)));
        // 30 % better for the first five minutes, which is all that the run itself covered.
        let passing = confirm(99, |at| if at < Nanos::secs(300) { 1.3 } else { 0.95 }).unwrap();
        assert!(!passing.holds, "{passing:?}");
    }

    #[test]
    fn a_confirmation_that_is_stopped_reports_its_blocks() {
        assert_eq!(confirm(0, |_| 1.3), None);
        let one = confirm(1, |_| 1.3).unwrap();
        assert!(!one.holds && one.blocks == 1, "one block has no interval: {one:?}");
        assert!(confirm(5, |_| 1.3).unwrap().holds);
    }
}
