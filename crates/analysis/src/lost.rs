//! The processor time that trials lost to others, and its effect on their figures.
//!
//! A difference in lost time between the arms explains an effect only up to that difference times the figure's
//! sensitivity to lost time. The sensitivity is estimated from trials of one arm in one block, which differ only by
//! chance and by the time that each of them lost; all blocks of a run contribute. Its likeliest value is used to remove
//! the effect of lost time from a block. Its upper bound limits how much of an effect lost time may explain.

use landspeed_record::TrialFigures;
use landspeed_stats::Slope;

use crate::Metric;
use crate::block_figures::BlockFigures;

/// A way to lose processor time.
#[derive(Debug)]
pub(crate) struct LostTimeKind {
    /// The words that follow "of the processor time" in a sentence.
    pub(crate) whom: &'static str,
    pub(crate) share: fn(&TrialFigures) -> f64,
}

pub(crate) const LOST_TIME_KINDS: [LostTimeKind; 2] = [
    LostTimeKind { whom: "to the hypervisor", share: |trial| trial.steal },
    LostTimeKind { whom: "to a quota or to heat", share: |trial| trial.throttled },
];

/// The probability that the true sensitivity lies above its upper bound.
const ERROR: f64 = 0.025;
/// The lowest value of a sensitivity's upper bound: losing a processor for a part of the time costs at least that part
/// of the work.
const LEAST: f64 = 1.0;
/// The highest value of a sensitivity's upper bound, which it also has while a run has too few data.
const MOST: f64 = 10.0;
/// The largest share of lost time that is used. Larger shares count as this one, because the logarithm of a full loss
/// is infinite.
const FULL: f64 = 0.95;

impl LostTimeKind {
    /// Returns ln of a ratio: the work that the trial would have done without the loss, divided by the work that it
    /// did. Work is taken to be proportional to processor time.
    pub(crate) fn loss(&self, trial: &TrialFigures) -> f64 {
        -(-(self.share)(trial).min(FULL)).ln_1p()
    }
}

/// The effect of lost time on each figure, as far as a run's trials show it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LostTimeEffects([[LostTimeEffect; LOST_TIME_KINDS.len()]; Metric::ALL.len()]);

/// The effect of time lost in one way on one figure.
#[derive(Debug, Clone)]
struct LostTimeEffect {
    slope: Slope,
    /// The likeliest sensitivity: ln of the figure per ln of the time.
    likely: f64,
    most: f64,
    /// The sum over the blocks of the squared difference in lost time between their arms.
    squares: f64,
    blocks: f64,
}

impl Default for LostTimeEffect {
    fn default() -> Self {
        LostTimeEffect { slope: Slope::default(), likely: 0.0, most: MOST, squares: 0.0, blocks: 0.0 }
    }
}

impl LostTimeEffect {
    /// Adds one block: its trials' losses and figures as deviations from their arm's mean, and the difference in lost
    /// time between its arms. In `figures` above zero is better, so lost time has a slope below zero.
    fn learn(&mut self, losses: &[f64], figures: &[f64], difference: f64) {
        self.slope.add(losses, figures);
        self.squares += difference * difference;
        self.blocks += 1.0;
        self.likely = self.slope.value().map_or(0.0, |value| (-value).clamp(0.0, MOST));
        let most = self.slope.low(ERROR).map_or(MOST, |low| (-low).min(MOST));
        self.most = self.likely.max(most).max(LEAST);
    }

    /// Returns the variance that the lost time adds to a block's log ratio.
    fn sway(&self) -> f64 {
        self.likely.powi(2) * self.squares / self.blocks.max(1.0)
    }
}

impl LostTimeEffects {
    /// Adds a block of any comparison.
    pub(crate) fn learn(&mut self, block: &BlockFigures) {
        for metric in Metric::ALL {
            let Some(figures) = block.within(|trial| metric.better_ln(trial)) else { continue };
            for (effect, kind) in self.0[metric as usize].iter_mut().zip(&LOST_TIME_KINDS) {
                let losses = block.within(|trial| Some(kind.loss(trial))).unwrap_or_default();
                effect.learn(&losses, &figures, block.difference(|trial| kind.loss(trial)));
            }
        }
    }

    /// Returns ln of the factor by which lost time likely worsened a trial's figure, zero or above.
    pub(crate) fn likely(&self, metric: Metric, trial: &TrialFigures) -> f64 {
        self.effects(metric).map(|(effect, kind)| effect.likely * kind.loss(trial)).sum()
    }

    /// Returns ln of the largest plausible factor by which lost time worsened a trial's figure, zero or above.
    pub(crate) fn most(&self, metric: Metric, trial: &TrialFigures) -> f64 {
        self.effects(metric).map(|(effect, kind)| effect.most * kind.loss(trial)).sum()
    }

    /// Returns the variance that lost time adds to a block's log ratio.
    pub(crate) fn sway(&self, metric: Metric) -> f64 {
        self.effects(metric).map(|(effect, _)| effect.sway()).sum()
    }

    /// Returns the factor by which the time lost to the hypervisor raises the number of blocks that a comparison
    /// needs.
    pub(crate) fn times(&self, metric: Metric) -> f64 {
        /// The difference in lost time that chance leaves between the arms, relative to the spread of lost time over
        /// trials.
        const PART: f64 = 0.25;
        let [effect, _] = &self.0[metric as usize];
        (1.0 + PART * effect.most * effect.slope.sway().unwrap_or_default()).powi(2)
    }

    fn effects(&self, metric: Metric) -> impl Iterator<Item = (&LostTimeEffect, &LostTimeKind)> {
        self.0[metric as usize].iter().zip(&LOST_TIME_KINDS)
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;

    use super::*;

    /// Learns from blocks whose trials lose up to three tenths of their time, and `times` as much of their rate.
    fn toll(times: f64, share: impl Fn(u32) -> f64) -> LostTimeEffects {
        let mut toll = LostTimeEffects::default();
        for block in 0..6 {
            let trial = |place: u32| {
                let steal = share(block * 8 + place);
                let noise = 1.0 + 0.02 * f64::from((block * 5 + place * 3) % 7);
                TrialFigures {
                    rate_bps: BitRate(1e9 * noise * (1.0 - steal).powf(times)),
                    steal,
                    ..TrialFigures::default()
                }
            };
            let trials: Vec<TrialFigures> = (0..8).map(trial).collect();
            toll.learn(&BlockFigures::new(&trials, block % 2 == 0));
        }
        toll
    }

    fn of(toll: &LostTimeEffects, steal: f64) -> [f64; 2] {
        let trial = TrialFigures { steal, ..TrialFigures::default() };
        [toll.likely(Metric::Rate, &trial), toll.most(Metric::Rate, &trial)]
    }

    #[test]
    fn a_toll_is_estimated_from_trials_of_one_arm_and_is_never_below_the_time_itself() {
        let bursts = |trial: u32| if trial % 5 < 2 { 0.3 } else { 0.0 };
        let tenth = -(0.9_f64.ln());
        let [likely, most] = of(&toll(2.0, bursts), 0.1);
        assert!(
            (likely - 2.0 * tenth).abs() < 0.3 * tenth && (likely..3.0 * tenth).contains(&most),
            "{likely} {most}"
        );
        let [likely, most] = of(&toll(0.0, bursts), 0.1);
        assert!(likely < 0.2 * tenth && most >= tenth, "{likely} {most}");
    }

    #[test]
    fn without_data_the_toll_may_be_ten_times_the_time() {
        for steady in [toll(1.0, |_| 0.0), toll(1.0, |_| 0.2), LostTimeEffects::default()] {
            let [likely, most] = of(&steady, 0.1);
            assert_eq!(likely, 0.0);
            assert!((most + 10.0 * 0.9_f64.ln()).abs() < 1e-12, "{most}");
        }
        assert_eq!(of(&LostTimeEffects::default(), 0.0), [0.0, 0.0]);
    }
}
