//! The rules of a run, and the size of the run that follows from them.

use landspeed_record::units::Nanos;
use landspeed_record::{Candidate, Cell};

use crate::Metric;

/// The largest number of blocks of a step in a run that has many candidates.
pub(crate) const USUAL_BLOCKS: u32 = 11;
/// The factor by which a second try of a candidate may exceed the usual number of blocks.
pub(crate) const SECOND_CHANCE: u32 = 2;
/// The least number of tests planned, unless there are fewer candidates: the usual budget of five minutes has time for
/// as many.
const USUAL_TESTS: u32 = 12;
/// The largest number of blocks of a step: beyond it, drift over hours matters more than noise.
const MOST_BLOCKS: u32 = 2_000;

/// The rules of a tuning run: its goal, its budget, and its limits of error and harm.
#[derive(Debug, Clone, PartialEq)]
pub struct LadderRules {
    pub goal: Metric,
    pub budget: Nanos,
    /// The share of the budget that is reserved for the final check, limited to the range 0.25 to 0.9.
    pub final_share: f64,
    /// The largest probability that the run keeps anything useless.
    pub alpha: f64,
    /// The least effect of interest, as a share: 0.02 is 2 %.
    pub least_effect: f64,
    /// The share that a guarded figure may lose, per step and in all.
    pub guard: f64,
    /// The number of tests over which `alpha` is split, placebos included; 0 derives it from budget and block time.
    pub planned: u32,
    /// The largest number of blocks of a step. 0 derives it: 11, or more if the budget has time for more.
    pub max_blocks: u32,
    /// A block is discarded if it lost more than this share of its processor time to the hypervisor, and the loss also
    /// stands out among the losses of the run's blocks. A step's answer must hold both without the discarded blocks and
    /// with them.
    pub steal_limit: f64,
    /// The largest share of a step's blocks in which the goal's figure may be missing. Beyond it the step is undecided.
    pub unmeasured_limit: f64,
    /// The expected time of a block without toggles. The run corrects it by the blocks that it measures.
    pub block_time: Nanos,
    /// True if the path's round trip is short enough for trials of half the length, twice as many in a block. Much of
    /// the variation is between connections, not over time, so a block of eight short trials varies less than one of
    /// four long ones. Knobs that take over 0.1 s to toggle still get blocks of four trials.
    pub fine: bool,
    pub seed: u64,
    /// Candidates that change a knob to an equivalent value. The first is tried before all others, the second after
    /// them.
    pub placebos: Vec<Candidate>,
    pub against: Option<Cell>,
    /// The expected time of getting one verdict; `None` for no verdicts, so that the literature decides the order.
    pub watch_time: Option<Nanos>,
    /// The share of the budget that all verdicts together may take.
    pub watch_share: f64,
    /// The time that is expected to pass before the first verdict or block.
    pub preface_time: Nanos,
}

impl Default for LadderRules {
    /// Returns rules for five minutes with the documented values: an error probability of 5 %, a least effect of 2 %
    /// and a guard of 10 %.
    fn default() -> Self {
        LadderRules {
            goal: Metric::Rate,
            budget: Nanos::secs(300),
            final_share: 0.25,
            alpha: 0.05,
            least_effect: 0.02,
            guard: 0.1,
            planned: 0,
            max_blocks: 0,
            steal_limit: 0.05,
            unmeasured_limit: 0.2,
            block_time: Nanos::millis(1_800),
            fine: true,
            seed: 0,
            placebos: Vec::new(),
            against: None,
            watch_time: None,
            watch_share: 0.1,
            preface_time: Nanos(0),
        }
    }
}

/// The size of a run: the number of tests planned, and the largest number of blocks of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSize {
    pub(crate) planned: u32,
    pub(crate) max_blocks: u32,
}

impl LadderRules {
    pub(crate) fn least_ln(&self) -> f64 {
        self.least_effect.ln_1p()
    }

    /// Returns true if a comparison whose knobs take `toggle` each time has blocks of eight trials.
    pub(crate) fn is_fine(&self, toggle: Nanos) -> bool {
        self.fine && toggle <= QUICK
    }

    /// Returns the time of a block's toggles, which take `toggle` each. ABBA has two between its trials, and in half of
    /// the cases one more before the next block. ABBABAAB has five between its ping-pongs, one before its streams, and
    /// five between its streams.
    pub(crate) fn toggles(&self, toggle: Nanos) -> Nanos {
        let count = if self.is_fine(toggle) { 12 } else { 3 };
        Nanos(count * toggle.0)
    }

    pub(crate) fn final_part(&self) -> f64 {
        self.final_share.clamp(0.25, 0.9)
    }

    pub(crate) fn final_time(&self) -> Nanos {
        Nanos((self.budget.0 as f64 * self.final_part()) as u64)
    }

    /// Returns the size of a run over `candidates` that may be tried.
    pub(crate) fn size(&self, candidates: &[Candidate]) -> RunSize {
        let tests = (candidates.len() + self.placebos.len()).max(1) as u32;
        let time = self.budget.saturating_sub(self.final_time()).0 as f64;
        let cost = |c: &Candidate| (self.block_time + self.toggles(c.toggle_ns)).0.max(1) as f64;
        let placebos: f64 = self.placebos.iter().map(cost).sum::<f64>() * f64::from(USUAL_BLOCKS);
        let one_round = candidates.iter().map(cost).sum::<f64>().max(1.0);
        // A tenth is left for blocks that take longer than expected or are discarded.
        let rounds = (0.9 * (time - placebos).max(0.0) / one_round) as u32;
        let max_blocks =
            if self.max_blocks > 0 { self.max_blocks } else { rounds.clamp(USUAL_BLOCKS, MOST_BLOCKS) };
        let room = time / (self.block_time.0.max(1) as f64 * f64::from(USUAL_BLOCKS));
        // Steps with large effects end early, so even a short run makes more tests than `room`.
        let planned = if self.planned > 0 { self.planned } else { (room as u32).max(USUAL_TESTS).min(tests) };
        RunSize { planned, max_blocks }
    }
}

/// The longest toggle for blocks of eight trials. With a longer toggle, the additional toggles cost more than eight
/// trials gain over four.
const QUICK: Nanos = Nanos::millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_minutes_plan_about_twelve_tests_of_eleven_blocks() {
        let many = vec![Candidate::default(); 30];
        assert_eq!(LadderRules::default().size(&many), RunSize { planned: 12, max_blocks: 11 });
    }

    #[test]
    fn slow_toggles_are_not_multiplied() {
        let rules = LadderRules::default();
        assert_eq!(rules.toggles(Nanos::millis(1)), Nanos::millis(12));
        assert_eq!(rules.toggles(Nanos::secs(4)), Nanos::secs(12));
        assert!(!LadderRules { fine: false, ..rules }.is_fine(Nanos(0)), "a long path");
    }

    #[test]
    fn a_short_run_still_tries_what_matters_most() {
        let many = vec![Candidate::default(); 30];
        let rules = LadderRules { budget: Nanos::secs(30), ..LadderRules::default() };
        assert_eq!(rules.size(&many).planned, 12);
    }

    #[test]
    fn one_knob_gets_the_whole_budget() {
        let rules = LadderRules { budget: Nanos::secs(1_200), ..LadderRules::default() };
        let size = rules.size(&[Candidate::default()]);
        assert_eq!(size.planned, 1);
        assert!((430..500).contains(&size.max_blocks), "{size:?}");
    }
}
