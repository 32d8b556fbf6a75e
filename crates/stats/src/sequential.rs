//! Group-sequential decisions: fixed looks, spent alpha, an interval that is valid at every look.
//!
//! Error is spent over the looks by a function fixed beforehand (Lan & DeMets 1983, "Discrete
//! sequential boundaries for clinical trials"), here of the power family of Kim & DeMets (1987),
//! alpha (n / N)^rho: nearly all of it late, which costs almost no power at the end, and a twentieth
//! evenly, so that an effect of a factor of two ends in four to six blocks. The boundaries follow from
//! the joint distribution of the t statistics at the looks, exactly and for unknown variance (see
//! `walk`), not from a Bonferroni split. The interval at a look is Jennison & Turnbull's repeated
//! confidence interval (1989): all effects whose own boundary was not crossed; so peeking, stopping
//! early and going on after a stop are all paid for.
//!
//! At the last look there is a second opinion, the mean that listens to calm blocks (see `calm`), for noise in which
//! some blocks are far off, as on machines shared with others. The low end is the higher of the two, and the
//! error is shared: see [`T_PART`].
//!
//! The two ends carry different errors. The low end decides what is kept: it errs with the step's
//! share of the whole run's 5 %. The high end only decides what is given up, which keeps nothing
//! useless: it errs with 5 % per step, spent evenly, so that useless steps end early. Giving up for
//! want of prospects is not binding: it can only lower the chance of a false keep.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use landspeed_record::Estimate;
use statrs::distribution::ContinuousCDF;

use crate::calm::{Calm, Contrast};
use crate::estimate::student;
use crate::walk::Walk;
use crate::{mean_and_deviation, ratio_of};

/// First look: below four blocks no boundary at a step's alpha is within reach.
const FIRST_LOOK: u32 = 4;
/// Up to here every block is a look; beyond, looks grow by a tenth.
const EVERY_BLOCK_TO: u32 = 16;
/// Exponent of the late part of the low end's spending. Tuned by simulation (tests/power.rs): in 11
/// blocks at a twelfth of 5 %, an effect of 10 % at a deviation of 5 % is found in 91.8 % of steps; a
/// single look would reach 92 %.
const RHO: f64 = 10.0;
/// The part of the low end's error that is spent evenly.
const EVEN_PART: f64 = 0.05;
/// The parts of the low end's error that the t boundaries and the calm mean at the last look may
/// spend. They sum to more than one because both mostly err on the same samples: on normal values
/// together 0.91 to 0.96 of the error asked for, at 8, 11, 16, 22 and 40 blocks and errors of 0.4 % and
/// 5 % (500,000 simulated samples each); tests/power.rs holds them to it.
const T_PART: f64 = 0.9;
const CALM_PART: f64 = 0.5;
/// Fewest blocks of a step whose last look has that second opinion.
const CALM_FROM: u32 = 8;
/// Error of the high end over all looks of a step.
const HIGH_ERROR: f64 = 0.05;
/// A step whose chance to be shown to help within its blocks is below this is given up ...
const PROSPECT: f64 = 0.02;
/// ... from this block on: before, its deviation is hardly known.
const GIVE_UP_FROM: u32 = 6;

/// How one step is decided; fixed before its first block.
#[derive(Debug, Clone)]
pub struct Design {
    alpha: f64,
    least_effect_ln: f64,
    thorough: bool,
    looks: Arc<Vec<Look>>,
}

/// The boundaries at one look, in units of the t statistic.
#[derive(Debug, Clone, Copy)]
struct Look {
    blocks: u32,
    low: f64,
    high: f64,
    /// The error that the calm mean's low end may spend: none before the last look.
    calm_error: f64,
}

/// What is known of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// More blocks are needed.
    Continue,
    /// The interval lies above the least effect.
    Helps,
    /// The interval lies below minus the least effect.
    Harms,
    /// The interval lies below the least effect.
    NoEffect,
    /// The blocks have ended, or what is left of them could not show that it helps.
    Undecided,
}

/// The judgement after some blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// What is known.
    pub state: State,
    /// Ratio and an interval that holds at all looks at once.
    pub estimate: Estimate,
    /// Whether an undecided step was given up early, for want of prospects.
    pub given_up: bool,
}

impl Design {
    /// A step that is wrongly said to help with probability `alpha` at most, where "helps" is a mean
    /// log ratio above `least_effect_ln`, within `max_blocks` blocks (raised to the first look, 4).
    ///
    /// The boundaries of an (alpha, blocks) pair are computed once per process: milliseconds for tens
    /// of blocks, about half a second for a thousand.
    pub fn new(alpha: f64, least_effect_ln: f64, max_blocks: u32) -> Self {
        let looks = boundaries(alpha, max_blocks.max(FIRST_LOOK));
        Design { alpha, least_effect_ln, thorough: false, looks }
    }

    /// The same, but never given up for want of prospects: goes on until it helps, harms or has no
    /// useful effect, or until its blocks end. For runs whose budget has nothing better to do.
    #[must_use]
    pub fn thorough(self) -> Self {
        Design { thorough: true, ..self }
    }

    /// The probability of a false "helps".
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The block count at which the step ends at the latest.
    pub fn max_blocks(&self) -> u32 {
        self.looks.last().map_or(FIRST_LOOK, |look| look.blocks)
    }

    /// The smallest block count that can be judged.
    pub fn first_look(&self) -> u32 {
        FIRST_LOOK
    }
}

/// Judges a step after the blocks seen so far. To be asked after every block, or after as many as one
/// likes: only the looks of the design decide. Between looks the interval is that of the last look.
pub fn judge(design: &Design, blocks: &[Contrast]) -> Verdict {
    let look = design.looks.iter().rev().find(|look| look.blocks as usize <= blocks.len());
    let Some(look) = look else {
        let mean = Seen::new(blocks).mean.value;
        let estimate = ratio_of(mean, f64::NEG_INFINITY, f64::INFINITY);
        return Verdict { state: State::Continue, estimate, given_up: false };
    };
    let seen = Seen::new(&blocks[..look.blocks as usize]);
    let least = design.least_effect_ln;
    let last = design.looks[design.looks.len() - 1];
    let Ends { center, low, high } = seen.ends(look);
    let may_give_up = !design.thorough && look.blocks >= GIVE_UP_FROM && look.blocks < last.blocks;
    let hopeless = may_give_up && seen.prospect(&last, least) < PROSPECT;
    let state = match () {
        () if low > least => State::Helps,
        () if high < -least => State::Harms,
        () if high < least => State::NoEffect,
        () if hopeless || look.blocks == last.blocks => State::Undecided,
        () => State::Continue,
    };
    let given_up = state == State::Undecided && hopeless;
    Verdict { state, estimate: ratio_of(center, low, high), given_up }
}

/// A centre of values.
struct Center {
    value: f64,
    /// Its standard error.
    error: f64,
}

/// Blocks so far.
struct Seen {
    n: f64,
    mean: Center,
    calm: Option<Calm>,
}

/// A repeated confidence interval and what it is about.
struct Ends {
    center: f64,
    low: f64,
    high: f64,
}

impl Seen {
    fn new(blocks: &[Contrast]) -> Self {
        let ln_ratios: Vec<f64> = blocks.iter().map(|block| block.ln_ratio).collect();
        let n = ln_ratios.len() as f64;
        let (mean, deviation) = mean_and_deviation(&ln_ratios);
        Seen { n, mean: Center { value: mean, error: deviation / n.sqrt() }, calm: Calm::of(blocks) }
    }

    /// The interval at `look`.
    fn ends(&self, look: &Look) -> Ends {
        let Center { value, error } = self.mean;
        let (low, high) = (value - look.low * error, value + look.high * error);
        match self.calm.map(|calm| (calm.value, calm.value - look.calm_bound(&calm, 1.0) * calm.error)) {
            Some((center, second)) if second > low => Ends { center, low: second, high: high.max(center) },
            _ => Ends { center: value, low, high },
        }
    }

    /// The probability that the last look's low end will lie above `least`, by the better of the two
    /// opinions.
    fn prospect(&self, last: &Look, least: f64) -> f64 {
        let by_mean = self.predict(&self.mean, last.low, (last, least));
        self.calm.map_or(by_mean, |calm| {
            let bound = last.calm_bound(&calm, f64::from(last.blocks) / self.n);
            let center = Center { value: calm.value, error: calm.error };
            by_mean.max(self.predict(&center, bound, (last, least)))
        })
    }

    /// The predictive probability (Jennison & Turnbull 2000, section 10.3) that `center` will be over
    /// `least` by `bound` standard errors at the last look: the mean of the blocks to come is taken from
    /// what the blocks so far say of it, their deviation as it stands.
    fn predict(&self, center: &Center, bound: f64, (last, least): (&Look, f64)) -> f64 {
        let all = f64::from(last.blocks);
        let deviation = center.error * self.n.sqrt();
        let needed = least + bound * deviation / all.sqrt();
        let spread = deviation * ((all - self.n) / (self.n * all)).sqrt();
        if spread == 0.0 {
            return if center.value > needed { 1.0 } else { 0.0 };
        }
        1.0 - student(self.n - 1.0).cdf((needed - center.value) / spread)
    }
}

impl Look {
    /// How many of its errors the calm mean must lie above the least effect, were there `times` as many blocks.
    fn calm_bound(&self, calm: &Calm, times: f64) -> f64 {
        if self.calm_error > 0.0 { calm.bound(self.calm_error, times) } else { f64::INFINITY }
    }
}

/// The looks of a step of `max_blocks` blocks with their boundaries.
fn boundaries(alpha: f64, max_blocks: u32) -> Arc<Vec<Look>> {
    type Known = Mutex<HashMap<(u64, u32), Arc<Vec<Look>>>>;
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let known = KNOWN.get_or_init(Known::default);
    let key = (alpha.to_bits(), max_blocks);
    if let Some(looks) = known.lock().unwrap_or_else(|e| e.into_inner()).get(&key) {
        return Arc::clone(looks);
    }
    let at = look_blocks(max_blocks);
    let t_alpha = alpha * T_PART;
    let low = one_side(&at, |part| t_alpha * (EVEN_PART * part + (1.0 - EVEN_PART) * part.powf(RHO)));
    let high = one_side(&at, |part| HIGH_ERROR * part);
    let looks = at.iter().zip(low.into_iter().zip(high));
    let look = |(&blocks, (low, high))| {
        let is_last = blocks == max_blocks;
        let calm_error = if is_last && blocks >= CALM_FROM { alpha * CALM_PART } else { 0.0 };
        Look { blocks, low, high, calm_error }
    };
    let looks = Arc::new(looks.map(look).collect());
    known.lock().unwrap_or_else(|e| e.into_inner()).insert(key, Arc::clone(&looks));
    looks
}

/// The block counts at which a step is judged.
fn look_blocks(max_blocks: u32) -> Vec<u32> {
    let next = |&n: &u32| Some(if n < EVERY_BLOCK_TO { n + 1 } else { n + n.div_ceil(10) });
    let mut at: Vec<u32> =
        std::iter::successors(Some(FIRST_LOOK), next).take_while(|&n| n < max_blocks).collect();
    at.push(max_blocks);
    at
}

/// The t boundaries of one end; `spend` says how much error is spent once a part (0 to 1) of the blocks
/// has been seen.
fn one_side(at: &[u32], spend: impl Fn(f64) -> f64) -> Vec<f64> {
    let last = f64::from(at[at.len() - 1]);
    let mut walk = Walk::start(FIRST_LOOK);
    let mut spent = 0.0;
    let mut bounds = Vec::with_capacity(at.len());
    for &blocks in at {
        while walk.n() < blocks {
            walk.advance();
        }
        let due = spend(f64::from(blocks) / last);
        bounds.push(walk.take_out(due - spent));
        spent = due;
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_end_at_the_last_block() {
        assert_eq!(look_blocks(4), [4]);
        assert_eq!(look_blocks(11), [4, 5, 6, 7, 8, 9, 10, 11]);
        let many = look_blocks(500);
        assert_eq!(many[many.len() - 1], 500);
        assert!(many.len() < 60);
    }

    #[test]
    fn equal_blocks_are_decided_at_the_first_look() {
        let design = Design::new(0.004, 0.02, 11);
        let judged =
            |ln_ratio, blocks: usize| judge(&design, &vec![Contrast { ln_ratio, unrest: 0.0 }; blocks]).state;
        assert_eq!(judged(0.1, 3), State::Continue);
        assert_eq!(judged(0.1, 4), State::Helps);
        assert_eq!(judged(-0.1, 4), State::Harms);
        assert_eq!(judged(0.0, 4), State::NoEffect);
    }
}
