//! Whether what is named to hold a copy holds it. By turns, the processor work of the end that it belongs to takes a tenth
//! longer: a part that holds the copy makes it slower, and one with slack does not (Curtsinger and Berger, "Coz: Finding
//! Code that Counts with Causal Profiling", SOSP 2015, section 2).
//!
//! What is compared is the copy as it is, as a candidate, with the slowed copy: "better" is then proof that the part holds it,
//! and "no useful effect" that it does not (docs/decisions/0099-what-holds-a-copy-is-slowed.md).

use landspeed_record::units::Nanos;
use landspeed_record::{
    CopyArm, CopyCount, CopyHold, CopyHolder, CopySlowAnswer, CopySlowed, CopyTrialResult, Estimate, Side,
};
use landspeed_stats::Random;

use super::trial::{CandidateEnd, CandidateTrial};
use super::{NextTurn, TrialSize};
use crate::LadderRules;

/// The share of the time from which a cause is tested. A tenth of a smaller one is near the least effect the test can show.
const LEAST_SHARE: f64 = 0.5;

/// Returns the side that is slowed to test whether this holds a copy from the side `from`; `None` if it cannot be tested. Only a
/// processor becomes slower by work that an end adds: a disk or a path that several flows share stays as fast while some of them wait.
pub fn slowed_side(first: &CopyHolder, from: Side) -> Option<Side> {
    let side = match first.hold {
        CopyHold::SourceProcessor | CopyHold::SourceQuota | CopyHold::SourceSteal => from,
        CopyHold::TargetProcessor | CopyHold::TargetQuota | CopyHold::TargetSteal => from.other(),
        _ => return None,
    };
    (first.share >= LEAST_SHARE).then_some(side)
}

/// The turns of a copy that is slowed.
#[derive(Debug)]
pub struct SlowedTrial {
    hold: CopyHold,
    arm: CopyArm,
    size: TrialSize,
    random: Random,
    trial: CandidateTrial,
    slowed: Nanos,
    /// When the slow turn under way began.
    slow_since: Option<Nanos>,
    end: Option<CandidateEnd>,
}

impl SlowedTrial {
    /// Returns the test of whether `hold` holds a copy with the setting `arm`.
    pub fn new(hold: CopyHold, arm: CopyArm, size: TrialSize, seed: u64) -> Self {
        let rules = LadderRules::default();
        let trial = CandidateTrial::new(arm.clone(), rules.alpha, rules.least_ln(), size.blocks).thorough();
        let random = Random::new(seed);
        SlowedTrial { hold, arm, size, random, trial, slowed: Nanos(0), slow_since: None, end: None }
    }

    /// Returns the next turn of a test that has taken `spent` so far, and may take `budget` as far as is known now; `None` once it is
    /// over. The end is slow in the turns whose `is_candidate` is true.
    pub fn next_turn(&mut self, spent: Nanos, budget: Nanos) -> Option<NextTurn> {
        self.slowed += self.slow_since.take().map_or(Nanos(0), |since| spent - since);
        // A copy that is faster than it was when the test began is over sooner.
        let is_over = spent + self.size.block(self.arm.flows) > self.size.budget.min(budget);
        if self.end.is_none() && self.trial.is_between_blocks() && is_over {
            self.end = Some(self.trial.out_of_time("1 % of the copy's time is spent"));
        }
        if self.end.is_some() {
            return None;
        }
        let is_slow = !self.trial.is_candidates_turn(&mut self.random);
        let [settle, count] = self.size.turn(self.arm.flows);
        self.slow_since = is_slow.then_some(spent);
        Some(NextTurn { arm: self.arm.clone(), candidate: 0, is_candidate: is_slow, settle, count })
    }

    /// Takes what was counted in the turn that was asked for last.
    pub fn take(&mut self, counted: &CopyCount) {
        self.end = self.trial.take(counted, &self.arm);
    }

    /// Returns what the turns have shown. A test that is not over has shown nothing, because of `why`.
    pub fn end(self, why: &str) -> CopySlowed {
        let blocks = self.trial.blocks();
        let CandidateEnd { result, ratio, why } = self.end.unwrap_or_else(|| self.trial.cut_off(why));
        let answer = match result {
            CopyTrialResult::Kept => CopySlowAnswer::Answers,
            CopyTrialResult::Harms | CopyTrialResult::NoEffect => CopySlowAnswer::Slack,
            CopyTrialResult::Undecided | CopyTrialResult::NotTried => CopySlowAnswer::NotTested,
        };
        let is_quiet = why.is_empty() && answer == CopySlowAnswer::NotTested;
        let why = if is_quiet { "the rate varies too much".to_owned() } else { why };
        let ratio = ratio.map(Estimate::inverse);
        CopySlowed { hold: self.hold, answer, blocks, ratio, slowed_ns: self.slowed, why }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;

    use super::*;

    const SIZE: TrialSize = TrialSize {
        least: Nanos::millis(500),
        of_flow: Nanos(0),
        candidates: 1,
        blocks: 20,
        budget: Nanos::secs(1_000),
    };

    fn trial(seed: u64, size: TrialSize) -> SlowedTrial {
        let arm = CopyArm { flows: 4, ..CopyArm::default() };
        SlowedTrial::new(CopyHold::SourceProcessor, arm, size, seed)
    }

    /// Returns what a test shows of a copy whose rate falls by a share while it is slowed, and varies from turn to turn.
    fn shown(seed: u64, fall: f64, noise: f64) -> CopySlowed {
        let (mut trial, mut random) = (trial(seed, SIZE), Random::stream(seed, 1));
        let (mut spent, mut drift) = (Nanos(0), 0.0_f64);
        while let Some(turn) = trial.next_turn(spent, SIZE.budget) {
            spent += turn.settle + turn.count;
            drift += 0.2 * noise * random.normal();
            let usual = 1e8 * (drift + noise * random.normal()).exp();
            let rate = if turn.is_candidate { usual * (1.0 - fall) } else { usual };
            trial.take(&counted(&turn, rate));
        }
        trial.end("")
    }

    fn counted(turn: &NextTurn, bytes: f64) -> CopyCount {
        let (taken_bytes, flows) = (Bytes(bytes as u64), turn.arm.flows);
        CopyCount { taken_bytes, counted_ns: turn.count, is_clean: true, flows, ..CopyCount::default() }
    }

    /// Returns how many of 200 tests answer, and how many show slack.
    fn of_all(fall: f64, noise: f64) -> [usize; 2] {
        let all: Vec<CopySlowed> = (0..200).map(|seed| shown(seed, fall, noise)).collect();
        [CopySlowAnswer::Answers, CopySlowAnswer::Slack]
            .map(|one| all.iter().filter(|shown| shown.answer == one).count())
    }

    #[test]
    fn what_holds_a_copy_answers() {
        let [answers, slack] = of_all(0.09, 0.05);
        assert!(answers >= 180 && slack <= 10, "{answers} answer, {slack} have slack");
        let one = shown(1, 0.09, 0.01);
        let ratio = one.ratio.expect("a ratio");
        assert!(ratio.is_plausible() && ratio.low > 0.89 && ratio.high < 0.93, "{ratio:?}");
        assert!((one.answer, one.blocks) == (CopySlowAnswer::Answers, 20) && one.why.is_empty(), "{one:?}");
        assert_eq!(one.slowed_ns, Nanos::millis(500).times(2 * 20));
    }

    #[test]
    fn what_has_slack_does_not_answer() {
        let [answers, slack] = of_all(0.0, 0.02);
        assert!(slack >= 150 && answers <= 10, "{answers} answer, {slack} have slack");
    }

    #[test]
    fn a_rate_that_varies_shows_nothing() {
        let [answers, slack] = of_all(0.0, 0.6);
        assert!(answers + slack <= 40, "{answers} answer, {slack} have slack");
        let nothing =
            (0..200).map(|seed| shown(seed, 0.0, 0.6)).find(|one| one.answer == CopySlowAnswer::NotTested);
        assert!(nothing.is_some_and(|one| !one.why.is_empty()));
    }

    #[test]
    fn a_test_that_cannot_go_on_says_why() {
        let mut refused = trial(7, SIZE);
        let turn = refused.next_turn(Nanos(0), SIZE.budget).expect("a turn");
        assert!(!turn.is_candidate, "it begins as the copy is");
        refused.take(&CopyCount { refused: "gone".to_owned(), ..CopyCount::default() });
        assert_eq!(refused.next_turn(Nanos(0), SIZE.budget), None);
        let shown = refused.end("");
        assert_eq!((shown.answer, shown.why.as_str()), (CopySlowAnswer::NotTested, "gone"));
        let cut = trial(7, SIZE).end("the copy came to its end");
        assert_eq!((cut.answer, cut.ratio, cut.slowed_ns), (CopySlowAnswer::NotTested, None, Nanos(0)));
        let short = TrialSize { budget: Nanos(0), ..SIZE };
        assert!(trial(7, short).next_turn(Nanos(0), SIZE.budget).is_none());
        assert!(trial(7, SIZE).next_turn(Nanos(0), Nanos(0)).is_none(), "it is faster than it was");
    }

    #[test]
    fn only_a_processor_that_takes_most_of_the_time_is_tested() {
        let side = |hold, share| slowed_side(&CopyHolder { hold, stage: None, share }, Side::B);
        assert_eq!(side(CopyHold::SourceQuota, 0.9), Some(Side::B));
        assert_eq!(side(CopyHold::TargetProcessor, 0.5), Some(Side::A));
        assert_eq!(side(CopyHold::TargetProcessor, 0.4), None);
        for shared in [CopyHold::SourceDisk, CopyHold::NetworkRate, CopyHold::Answers, CopyHold::Limit] {
            assert_eq!(side(shared, 1.0), None, "{shared:?}");
        }
    }
}
