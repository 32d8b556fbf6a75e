//! Decisions about a step: it is kept only at its last look, and may be given up at any earlier look.
//!
//! A look is a judgement after a planned number of blocks. Only the last look can decide that a step helps, by one t
//! test that uses the step's whole share of the run's error. Earlier looks can only give the step up, because it harms,
//! has no useful effect, or has no prospect of success. This cannot keep a useless step: a stop for futility that is
//! not binding lowers the error and never raises it (Jennison & Turnbull 2000, section 4.6). If an early look could
//! keep a step, its decision would rest on the deviation of four or five blocks, which is tiny if those blocks happen
//! to agree.
//!
//! The two ends of the interval have different errors. The low end has the error of the single test at the last look.
//! The high end decides whether the step is given up, with an error of 5 % per step over all looks. The first and the
//! last look get three tenths of these 5 % each, and the others share the rest by the number of blocks between them (a
//! union bound over the looks, so that their joint distribution need not be known).
//!
//! Discarded blocks are used only as a check: a decision must hold both without and with them. Only blocks that count
//! determine the time of a look.

use landspeed_record::Estimate;
use statrs::distribution::ContinuousCDF;

use crate::contrast::{BlockContrast, CountedAndAllMeans, MeanLogRatio, known_quantile};
use crate::estimate::student;
use crate::ratio_of;

/// The number of blocks at the first look. The deviation of fewer blocks is too uncertain.
const FIRST_LOOK: u32 = 4;
/// Up to this number of blocks, every block is a look. Beyond it, the distance between looks is a tenth of the number
/// of blocks.
const EVERY_BLOCK_TO: u32 = 16;
/// The error of the high end over all looks of a step.
const HIGH_ERROR: f64 = 0.05;
/// The part of `HIGH_ERROR` that the first look gets. The last look gets the same part, and the looks between them
/// share the rest.
const END_PART: f64 = 0.3;
/// A step is given up if the probability that its remaining blocks show that it helps is below this value.
const PROSPECT: f64 = 0.02;
/// The number of blocks from which a step may be given up for want of prospects. The deviation of fewer blocks is too
/// uncertain.
const GIVE_UP_FROM: u32 = 6;

/// The rules by which one step is decided. They are fixed before the step's first block.
#[derive(Debug, Clone)]
pub struct StepDesign {
    alpha: f64,
    least_effect_ln: f64,
    thorough: bool,
    looks: Vec<StepLook>,
}

#[derive(Debug, Clone, Copy)]
struct StepLook {
    blocks: u32,
    /// The probability that the high end may be too low at this look.
    high_error: f64,
    /// True if this is the last look, the only one that may keep the step.
    is_last: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// More blocks are needed.
    Continue,
    /// The interval lies above the least effect of interest, at the last look.
    Helps,
    /// The interval lies below minus the least effect.
    Harms,
    /// The interval lies below the least effect of interest.
    NoEffect,
    /// The blocks have ended without a decision, or the remaining ones could hardly show that the step helps.
    Undecided,
}

/// The judgement of a step after some of its blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepJudgement {
    pub state: StepState,
    /// The ratio and its interval. The high end holds at all looks together, the low end only at the last look.
    pub estimate: Estimate,
    /// True if the step is undecided because it was given up early, for want of prospects.
    pub given_up: bool,
}

impl StepDesign {
    /// Returns the design of a step of at most `max_blocks` blocks, but never fewer than the 4 after which it is first
    /// judged. A step helps if its
    /// mean log ratio is above `least_effect_ln`. The probability that a step without such an effect is found to help
    /// is `alpha` at most.
    pub fn new(alpha: f64, least_effect_ln: f64, max_blocks: u32) -> Self {
        StepDesign { alpha, least_effect_ln, thorough: false, looks: looks(max_blocks.max(FIRST_LOOK)) }
    }

    /// Returns the design without the rule that gives a step up for want of prospects. The step continues until it
    /// harms, has no useful effect, or its blocks end. This suits runs whose budget has no better use.
    #[must_use]
    pub fn thorough(self) -> Self {
        StepDesign { thorough: true, ..self }
    }

    /// Returns the design with at most `max_blocks` blocks, but never fewer than the 4 after which a step is first
    /// judged. The number must not depend on the step's own blocks.
    #[must_use]
    pub fn within(self, max_blocks: u32) -> Self {
        let blocks = max_blocks.clamp(FIRST_LOOK, self.max_blocks());
        StepDesign { looks: looks(blocks), ..self }
    }

    /// Returns the largest number of blocks that the step may take.
    pub fn max_blocks(&self) -> u32 {
        self.looks.last().map_or(FIRST_LOOK, |look| look.blocks)
    }

    /// Returns the smallest number of blocks that can be judged.
    pub fn first_look(&self) -> u32 {
        FIRST_LOOK
    }

    /// Returns the reason why a step is not accepted as helping although its `blocks` seem to show that it helps. They
    /// seem to show this if the mean of the blocks that count is above the least effect, at the design's error.
    /// Otherwise returns `None`.
    pub fn objection(&self, blocks: &[BlockContrast]) -> Option<Objection> {
        let shows = |fit: MeanLogRatio| fit.low_unexplained(self.alpha) > self.least_effect_ln;
        let both = CountedAndAllMeans::of(blocks).filter(|both| shows(both.counted))?;
        Some(if shows(both.all) { Objection::Lost } else { Objection::Discarded })
    }
}

/// A reason why a step is not accepted as helping although its blocks seem to show that it helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objection {
    /// The mean that includes the discarded blocks does not show the effect.
    Discarded,
    /// Processor time lost to others may explain the effect.
    Lost,
}

/// Judges a step by its blocks so far, in the order of time, including the discarded ones. This function may be called
/// after any block, because only the looks of the design decide. Between looks, it returns the result of the latest
/// look.
pub fn judge(design: &StepDesign, blocks: &[BlockContrast]) -> StepJudgement {
    let counted = counted(blocks);
    let look = design.looks.iter().rev().find(|look| look.blocks <= counted);
    at_look(design, blocks, look.copied())
}

/// Judges a step whose time is over, so that it ends now whatever its blocks show. `blocks` are in the order of time
/// and include the discarded ones. This look is the step's last look. It is as valid as a planned last look, because
/// the time does not depend on the blocks.
pub fn judge_last(design: &StepDesign, blocks: &[BlockContrast]) -> StepJudgement {
    let seen = design.max_blocks().min(counted(blocks));
    let look = StepLook { blocks: seen, high_error: END_PART * HIGH_ERROR, is_last: true };
    at_look(design, blocks, (seen >= FIRST_LOOK).then_some(look))
}

fn counted(blocks: &[BlockContrast]) -> u32 {
    blocks.iter().filter(|block| block.counts).count() as u32
}

/// Returns the leading blocks up to and including the `counted`-th one that counts.
fn until(blocks: &[BlockContrast], counted: u32) -> &[BlockContrast] {
    let mut counting = blocks.iter().enumerate().filter(|(_, block)| block.counts);
    let last = counting.nth((counted as usize).saturating_sub(1));
    &blocks[..last.map_or(0, |(at, _)| at + 1)]
}

fn at_look(design: &StepDesign, blocks: &[BlockContrast], look: Option<StepLook>) -> StepJudgement {
    let both = look.and_then(|look| Some((look, CountedAndAllMeans::of(until(blocks, look.blocks))?)));
    let Some((StepLook { blocks: seen, high_error, is_last }, both)) = both else {
        let mean = blocks.iter().map(|block| block.ln_ratio).sum::<f64>() / blocks.len().max(1) as f64;
        let estimate = ratio_of(mean, f64::NEG_INFINITY, f64::INFINITY);
        return StepJudgement { state: StepState::Continue, estimate, given_up: false };
    };
    let (low, high) = (both.low(design.alpha), both.high(high_error));
    let least = design.least_effect_ln;
    let may_give_up = !design.thorough && !is_last && seen >= GIVE_UP_FROM;
    let chance = || prospect(design, &both.counted).min(prospect(design, &both.all));
    let given_up = may_give_up && high >= least && chance() < PROSPECT;
    let value = both.counted.value;
    let state = match () {
        () if is_last && low > least => StepState::Helps,
        () if high < -least => StepState::Harms,
        // A step that seems to harm gets a few more blocks, which may prove the harm.
        () if high < least && (value > -least || seen >= GIVE_UP_FROM || is_last) => StepState::NoEffect,
        () if given_up || is_last => StepState::Undecided,
        () => StepState::Continue,
    };
    StepJudgement { state, estimate: ratio_of(value, low, high), given_up }
}

/// Returns the predictive probability (Jennison & Turnbull 2000, section 10.3) that the low end at the last look will
/// be above the least effect. The mean of the remaining blocks is distributed as the blocks so far predict it. The
/// deviation of the blocks so far is taken as the true deviation.
fn prospect(design: &StepDesign, fit: &MeanLogRatio) -> f64 {
    let all = f64::from(design.max_blocks()).max(fit.blocks);
    let deviation = fit.measured_error * fit.blocks.sqrt();
    let bound = known_quantile(all - 2.0, design.alpha);
    let needed = design.least_effect_ln + bound * deviation / all.sqrt();
    let spread = deviation * (1.0 / fit.blocks - 1.0 / all).max(0.0).sqrt();
    if spread == 0.0 {
        return if fit.value > needed { 1.0 } else { 0.0 };
    }
    1.0 - student(fit.freedom).cdf((needed - fit.value) / spread)
}

fn looks(max_blocks: u32) -> Vec<StepLook> {
    let next = |&n: &u32| Some(if n < EVERY_BLOCK_TO { n + 1 } else { n + n.div_ceil(10) });
    let early = std::iter::successors(Some(FIRST_LOOK), next).take_while(|&n| n < max_blocks);
    let between = |blocks: u32| f64::from(blocks - FIRST_LOOK) / f64::from(max_blocks - FIRST_LOOK);
    let mut seen = 0.0;
    let mut looks: Vec<StepLook> = early
        .map(|blocks| {
            let part = between(blocks) - seen;
            seen = between(blocks);
            let part = if blocks == FIRST_LOOK { END_PART } else { (1.0 - 2.0 * END_PART) * part };
            StepLook { blocks, high_error: HIGH_ERROR * part, is_last: false }
        })
        .collect();
    let spent: f64 = looks.iter().map(|look| look.high_error).sum();
    looks.push(StepLook { blocks: max_blocks, high_error: HIGH_ERROR - spent, is_last: true });
    looks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_end_at_the_last_block_and_spend_the_whole_error() {
        let blocks = |max| looks(max).iter().map(|look| look.blocks).collect::<Vec<_>>();
        assert_eq!(blocks(4), [4]);
        assert_eq!(blocks(11), [4, 5, 6, 7, 8, 9, 10, 11]);
        assert!(blocks(500).ends_with(&[500]) && blocks(500).len() < 60);
        for max in [4, 11, 500] {
            let spent: f64 = looks(max).iter().map(|look| look.high_error).sum();
            assert!(
                (spent - HIGH_ERROR).abs() < 1e-12 && looks(max).iter().all(|look| look.high_error > 0.0)
            );
        }
    }

    #[test]
    fn a_design_gets_fewer_blocks_and_never_more() {
        let of = |blocks| StepDesign::new(0.01, 0.02, 8).within(blocks).max_blocks();
        assert_eq!([0, 4, 6, 8, 20].map(of), [4, 4, 6, 8, 8]);
    }

    #[test]
    fn equal_blocks_are_given_up_at_the_first_look_and_kept_only_at_the_last() {
        let design = StepDesign::new(0.004, 0.02, 11);
        let block = |ln_ratio, i| BlockContrast::new(ln_ratio, i % 2 == 1, vec![0.0; 8]);
        let judged = |ln_ratio, blocks: usize| {
            judge(&design, &(0..blocks).map(|i| block(ln_ratio, i)).collect::<Vec<_>>()).state
        };
        assert_eq!(judged(0.1, 3), StepState::Continue);
        for early in 4..11 {
            assert_eq!(judged(0.1, early), StepState::Continue);
        }
        assert_eq!(judged(0.1, 11), StepState::Helps);
        assert_eq!(judged(-0.1, 4), StepState::Harms);
        assert_eq!(judged(0.0, 4), StepState::NoEffect);
        let early: Vec<BlockContrast> = (0..6).map(|i| block(0.1, i)).collect();
        assert_eq!(judge_last(&design, &early).state, StepState::Helps, "a clock ended it");
        assert_eq!(judge_last(&design, &early[..3]).state, StepState::Continue);
    }

    #[test]
    fn discarded_blocks_are_no_looks_and_must_agree() {
        let design = StepDesign::new(0.004, 0.02, 11);
        let judged = |discarded: f64| {
            let block = |i: usize| {
                let ln_ratio =
                    if i % 3 == 2 { discarded } else { 0.3 } + if i.is_multiple_of(2) { 0.01 } else { -0.01 };
                BlockContrast { counts: i % 3 != 2, ..BlockContrast::new(ln_ratio, i % 4 < 2, vec![0.0; 8]) }
            };
            let blocks: Vec<BlockContrast> = (0..16).map(block).collect();
            let ten = judge(&design, &blocks[..15]).state;
            assert!(matches!(ten, StepState::Continue | StepState::Undecided), "{ten:?}: ten of them count");
            assert_eq!(
                design.objection(&blocks),
                Some(if discarded > 0.0 { Objection::Lost } else { Objection::Discarded })
            );
            judge(&design, &blocks)
        };
        assert_eq!(judged(0.3).state, StepState::Helps);
        let apart = judged(-0.5);
        assert_eq!(apart.state, StepState::Undecided);
        assert!(apart.estimate.ratio > 1.3 && apart.estimate.low < 1.0 && apart.estimate.high > 1.3);
    }

    #[test]
    fn an_effect_that_lost_time_explains_neither_helps_nor_harms() {
        let design = StepDesign::new(0.004, 0.02, 11);
        let judged = |ln_ratio: f64, explained_at_most: f64| {
            let block = |i: usize| {
                let ln_ratio = ln_ratio + if i.is_multiple_of(2) { 0.01 } else { -0.01 };
                BlockContrast { explained_at_most, ..BlockContrast::new(ln_ratio, i % 4 < 2, vec![0.0; 8]) }
            };
            judge(&design, &(0..11).map(block).collect::<Vec<_>>()).state
        };
        for explained_at_most in [0.3, -0.3] {
            assert_eq!(
                [0.5, 0.2, -0.2, -0.5].map(|effect| judged(effect, explained_at_most)),
                [StepState::Helps, StepState::Undecided, StepState::Undecided, StepState::Harms]
            );
        }
    }
}
