//! Tests the named limit of a long copy: the work of the limiting end takes a tenth longer, in alternate turns
//! (docs/decisions/0099-what-holds-a-copy-is-slowed.md).
//!
//! The test begins when the copy no longer compares settings. Nothing here waits: the copy's loop calls
//! [`CopySlowing::step`] several times a second.

use std::time::{Duration, Instant};

use landspeed_agent::session::{PendingReply, Reply, Request};
use landspeed_analysis::copy_choice::{NextTurn, SlowedTrial, slowed_side, slowed_size};
use landspeed_record::units::Nanos;
use landspeed_record::{CopyArm, CopyCount, CopySlowAnswer, CopySlowed, CopyTurn, Line, Side};

use super::CopyOptions;
use super::choose::{AGAIN, CopyTrials, LOOK};
use crate::Pair;

/// How long beyond its turn an end stays slow if it gets no further request.
const GRACE: Nanos = Nanos::secs(5);

enum Stage {
    /// The copy may still compare settings, or turn out to be long, or to have long files.
    Waits,
    /// The source was asked what it sends.
    Looks(PendingReply),
    /// The end was asked to be slow, or not, in the turn that follows.
    Slows(PendingReply, NextTurn),
    Turns(PendingReply, NextTurn),
    Over,
}

/// A running test.
struct Test {
    trial: SlowedTrial,
    /// The side that is slowed.
    side: Side,
    begun: Instant,
}

/// The test of the limit of a copy.
pub(super) struct CopySlowing<'a> {
    pair: &'a Pair<'a>,
    from: Side,
    stage: Stage,
    begun: Instant,
    look_after: Instant,
    test: Option<Test>,
    lines: Vec<Line>,
}

impl<'a> CopySlowing<'a> {
    /// Begins without a test if the copy must not compare settings (`--choose never`).
    pub(super) fn begin(pair: &'a Pair<'a>, what: &CopyOptions) -> Self {
        let stage = if what.choosing.is_some() { Stage::Waits } else { Stage::Over };
        let now = Instant::now();
        CopySlowing {
            pair,
            from: what.from,
            stage,
            begun: now,
            look_after: now,
            test: None,
            lines: Vec::new(),
        }
    }

    /// Advances as far as possible without waiting, and returns new lines for the record.
    pub(super) fn step(&mut self, trials: &CopyTrials<'_>) -> Vec<Line> {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Waits => self.look(trials),
            Stage::Looks(pending) => match self.counted(&pending) {
                None => Stage::Looks(pending),
                Some(counted) => self.looked(trials, &counted),
            },
            Stage::Slows(pending, turn) => self.slowed(pending, turn),
            Stage::Turns(pending, turn) => match self.counted(&pending) {
                None => Stage::Turns(pending, turn),
                Some(counted) => self.turned(trials, turn, counted),
            },
            Stage::Over => Stage::Over,
        };
        std::mem::take(&mut self.lines)
    }

    /// Returns the remaining lines for the record of a finished copy.
    pub(super) fn finish(mut self) -> Vec<Line> {
        self.end("the copy came to its end");
        self.lines
    }

    /// Finds out what the copy sends, once the copy is long enough and its limit can be slowed.
    fn look(&mut self, trials: &CopyTrials<'_>) -> Stage {
        if Instant::now() < self.look_after {
            return Stage::Waits;
        }
        self.look_after = Instant::now() + AGAIN;
        let copy = trials.settled().filter(|copy| copy.outlook.is_worth_a_test());
        match copy.filter(|copy| slowed_side(&copy.first, self.from).is_some()) {
            Some(copy) => self.ask(copy.arm, [Nanos(0), LOOK], Stage::Looks),
            None => Stage::Waits,
        }
    }

    /// Begins the test if only long files are being sent.
    fn looked(&mut self, trials: &CopyTrials<'_>, counted: &CopyCount) -> Stage {
        let copy = trials.settled().filter(|_| counted.is_clean && counted.refused.is_empty());
        let Some(copy) = copy else { return Stage::Waits };
        let Some(side) = slowed_side(&copy.first, self.from) else { return Stage::Waits };
        let hold = copy.first.hold;
        match slowed_size(&copy.outlook, counted.rtt_ns, copy.arm.flows) {
            Ok(size) => {
                let trial = SlowedTrial::new(hold, copy.arm, size, rand::random());
                self.test = Some(Test { trial, side, begun: Instant::now() });
                self.next_turn(trials)
            }
            Err(why) => {
                let answer = CopySlowAnswer::NotTested;
                let untested = CopySlowed { hold, answer, blocks: 0, ratio: None, slowed_ns: Nanos(0), why };
                self.lines.push(Line::CopySlowed(Box::new(untested)));
                Stage::Over
            }
        }
    }

    /// Begins the next turn, if there is one.
    fn next_turn(&mut self, trials: &CopyTrials<'_>) -> Stage {
        let budget = trials.outlook().map_or(Nanos(u64::MAX), |outlook| outlook.test_budget());
        let next = self.test.as_mut().and_then(|test| {
            let turn = test.trial.next_turn(test.begun.elapsed().into(), budget)?;
            Some((test.side, turn))
        });
        let Some((side, turn)) = next else { return self.give_up("") };
        let for_ns = if turn.is_candidate { turn.settle + turn.count + GRACE } else { Nanos(0) };
        match self.pair.host(side).start(&Request::CopySlow { for_ns }) {
            Ok(pending) => Stage::Slows(pending, turn),
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    /// Makes the source count a turn, once the end works at the requested speed.
    fn slowed(&mut self, pending: PendingReply, turn: NextTurn) -> Stage {
        let Some(side) = self.test.as_ref().map(|test| test.side) else { return Stage::Over };
        match self.pair.host(side).poll(&pending, Duration::ZERO) {
            None => Stage::Slows(pending, turn),
            Some((_, Ok(Reply::Done {}))) => {
                let (arm, times) = (turn.arm.clone(), [turn.settle, turn.count]);
                self.ask(arm, times, |pending| Stage::Turns(pending, turn))
            }
            Some((_, Ok(_))) => self.give_up("an end sent an unexpected answer"),
            Some((_, Err(error))) => self.give_up(&error.to_string()),
        }
    }

    fn turned(&mut self, trials: &CopyTrials<'_>, turn: NextTurn, counted: CopyCount) -> Stage {
        if let Some(test) = &mut self.test {
            test.trial.take(&counted);
        }
        let NextTurn { arm, candidate, is_candidate, settle, .. } = turn;
        let at_ns = self.begun.elapsed().into();
        let line =
            CopyTurn { at_ns, candidate, is_candidate, is_slowing: true, arm, settle_ns: settle, counted };
        self.lines.push(Line::CopyTurn(Box::new(line)));
        self.next_turn(trials)
    }

    /// Makes the source wait for the first of these times, and then count for the second.
    fn ask(
        &mut self,
        arm: CopyArm,
        [settle_ns, count_ns]: [Nanos; 2],
        then: impl FnOnce(PendingReply) -> Stage,
    ) -> Stage {
        match self.pair.host(self.from).start(&Request::CopyTurn { arm, settle_ns, count_ns }) {
            Ok(pending) => then(pending),
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    /// Returns the source's count, which includes its reason if it could not count; `None` while it still counts.
    fn counted(&self, pending: &PendingReply) -> Option<CopyCount> {
        let (_, answer) = self.pair.host(self.from).poll(pending, Duration::ZERO)?;
        let refused = |refused: String| CopyCount { refused, ..CopyCount::default() };
        Some(match answer {
            Ok(Reply::CopyTurned { counted }) => *counted,
            Ok(_) => refused("the source sent an unexpected answer".to_owned()),
            Err(error) => refused(error.to_string()),
        })
    }

    fn give_up(&mut self, why: &str) -> Stage {
        self.end(why);
        Stage::Over
    }

    fn end(&mut self, why: &str) {
        let Some(test) = self.test.take() else { return };
        // An end that does not get this request stays slow for a few seconds at most.
        drop(self.pair.host(test.side).start(&Request::CopySlow { for_ns: Nanos(0) }));
        self.lines.push(Line::CopySlowed(Box::new(test.trial.end(why))));
    }
}
