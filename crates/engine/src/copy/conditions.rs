//! Reads the settings that decide figures from both ends of a copy, and detects changes of these settings and of the
//! links during the copy.
//!
//! The copy does not wait for the answers: they are collected while it runs
//! (docs/decisions/0100-the-conditions-of-a-copy.md).

use std::time::{Duration, Instant};

use landspeed_agent::session::PendingReply;
use landspeed_record::factor::largest_window;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{ConditionChange, KnobState, Line, Settings, Side};

use super::condition_changes::condition_changes;
use crate::{Error, Pair};

/// The longest wait for both answers once the copy is over. A host reads these settings in milliseconds.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// The shortest time between two readings.
const AGAIN: Duration = Duration::from_secs(30);
/// In a long copy, the time until the next reading is the elapsed time divided by this. A copy of a week has some 160
/// readings.
const PART: u32 = 20;
/// A shorter copy reads its conditions only once.
const LEAST_COPY: Duration = Duration::from_secs(1);
/// The largest number of changes in a record.
const MOST_CHANGES: usize = 200;

/// A pending request for the conditions of a host.
struct Question {
    at: Instant,
    pending: PendingReply,
}

/// The conditions of a host at one time.
struct Reading {
    /// The time of the request.
    at: Instant,
    states: Vec<KnobState>,
}

enum Stage {
    /// A pending request, and the previous reading.
    Asked(Question, Option<Reading>),
    Read(Reading),
    /// The host was not asked, or could not be. The record gets the host without its conditions.
    Untold,
    Over,
}

/// The conditions of both hosts of a running copy.
pub(super) struct CopyHosts<'a> {
    pair: &'a Pair<'a>,
    /// The side of the source.
    from: Side,
    begun: Instant,
    /// The time of the next request since the start of the copy.
    next: Duration,
    /// By side.
    stages: [Stage; 2],
    /// The number of changes for which the record has room.
    room: usize,
}

impl<'a> CopyHosts<'a> {
    /// Asks both hosts, unless their data is relayed: the links of relayed data are unknown.
    pub(super) fn ask(pair: &'a Pair<'a>, from: Side) -> Self {
        let begun = Instant::now();
        let stage = |side: Side| match pair.is_relayed() {
            true => Stage::Untold,
            false => question(pair, side).map_or(Stage::Untold, |asked| Stage::Asked(asked, None)),
        };
        let stages = Side::BOTH.map(stage);
        CopyHosts { pair, from, begun, next: AGAIN, stages, room: MOST_CHANGES }
    }

    /// Asks again if it is time, and returns the record's lines for the answers since the last call, without waiting.
    pub(super) fn step(&mut self) -> Vec<Line> {
        let elapsed = self.begun.elapsed();
        if elapsed >= self.next {
            self.next = due_after(elapsed);
            self.ask_again();
        }
        Side::BOTH.into_iter().flat_map(|side| self.lines(side, Duration::ZERO)).collect()
    }

    /// Requests the conditions at the end of the copy. [`CopyHosts::finish`] collects the answers.
    pub(super) fn ask_last(&mut self) {
        if self.begun.elapsed() >= LEAST_COPY {
            self.ask_again();
        }
    }

    /// Returns the remaining lines for the record of a finished copy.
    pub(super) fn finish(mut self) -> Vec<Line> {
        let end = Instant::now() + LAST_WAIT;
        let left = || end.saturating_duration_since(Instant::now());
        let mut lines: Vec<Line> = Side::BOTH.into_iter().flat_map(|side| self.lines(side, left())).collect();
        lines.extend(Side::BOTH.into_iter().filter_map(|side| self.missed(side)));
        lines
    }

    /// Returns the largest window of a flow that the source's send buffer allows, and that the target's receive buffer
    /// does, by the last readings. A buffer that the flows' settings name does not grow up to the host's limit: its
    /// window is not known.
    pub(super) fn windows(&self, flow: &Settings) -> [Option<Bytes>; 2] {
        let window = |side: Side, knob: &str, own: &str| {
            let is_own = flow.get(own).is_some_and(|size| size != "0");
            self.value(side, knob).filter(|_| !is_own).and_then(largest_window)
        };
        [window(self.from, "tcp-wmem", "sndbuf"), window(self.from.other(), "tcp-rmem", "rcvbuf")]
    }

    /// Returns the value of a setting by the last reading of a host.
    fn value(&self, side: Side, knob: &str) -> Option<&str> {
        match &self.stages[side as usize] {
            Stage::Read(reading) | Stage::Asked(_, Some(reading)) => {
                reading.states.iter().find(|state| state.knob == knob)?.value.as_deref()
            }
            _ => None,
        }
    }

    fn ask_again(&mut self) {
        for side in Side::BOTH {
            // Two ends on one host have the same conditions.
            let is_asked = self.room > 0 && (side == self.from || !self.pair.is_one_host());
            let stage = &mut self.stages[side as usize];
            *stage = match std::mem::replace(stage, Stage::Over) {
                Stage::Read(reading) if is_asked => match question(self.pair, side) {
                    Some(question) => Stage::Asked(question, Some(reading)),
                    None => Stage::Read(reading),
                },
                stage => stage,
            };
        }
    }

    /// Returns the record's lines for the answer of a host, if it arrives within `wait`.
    fn lines(&mut self, side: Side, wait: Duration) -> Vec<Line> {
        let host = self.pair.host(side);
        let stage = std::mem::replace(&mut self.stages[side as usize], Stage::Over);
        let (stage, lines) = match stage {
            Stage::Untold => (Stage::Over, vec![self.host_line(side, &[])]),
            Stage::Asked(question, before) => match host.poll(&question.pending, wait) {
                Some((answered, answer)) => {
                    let states = host.answered_conditions(answer);
                    self.read(side, before, [question.at, answered], states)
                }
                None => (Stage::Asked(question, before), Vec::new()),
            },
            stage => (stage, Vec::new()),
        };
        self.stages[side as usize] = stage;
        lines
    }

    /// Handles a reading that was requested and answered at these times. A host that answers with an error is not asked
    /// again.
    fn read(
        &mut self,
        side: Side,
        before: Option<Reading>,
        [at, answered]: [Instant; 2],
        states: Result<Vec<KnobState>, Error>,
    ) -> (Stage, Vec<Line>) {
        match (before, states) {
            (None, Err(_)) => (Stage::Over, vec![self.host_line(side, &[])]),
            (Some(_), Err(error)) => (Stage::Over, vec![self.not_read_again(side, &error)]),
            (None, Ok(states)) => {
                let line = self.host_line(side, &states);
                (Stage::Read(Reading { at, states }), vec![line])
            }
            (Some(before), Ok(states)) => {
                let times = [before.at, answered].map(|time| self.since_the_beginning(time));
                let changes = condition_changes(self.recorded(side), times, [&before.states, &states]);
                let lines = self.change_lines(changes);
                (Stage::Read(Reading { at, states }), lines)
            }
        }
    }

    /// Returns the lines for the changes, up to the record's limit.
    fn change_lines(&mut self, changes: impl Iterator<Item = ConditionChange>) -> Vec<Line> {
        let line = |change| Line::ConditionChange(Box::new(change));
        let mut lines: Vec<Line> = changes.take(self.room).map(line).collect();
        self.room -= lines.len();
        if self.room == 0 && !lines.is_empty() {
            let text =
                format!("conditions changed {MOST_CHANGES} times: they were not read again after that");
            lines.push(Line::Note { text });
        }
        lines
    }

    /// Returns the line for a host that has not answered; `None` if it has answered.
    fn missed(&self, side: Side) -> Option<Line> {
        match &self.stages[side as usize] {
            Stage::Asked(_, None) => Some(self.host_line(side, &[])),
            Stage::Asked(_, Some(_)) => {
                let silent = self.pair.host(side).silent("conditions", LAST_WAIT);
                Some(self.not_read_again(side, &silent))
            }
            _ => None,
        }
    }

    fn host_line(&self, side: Side, states: &[KnobState]) -> Line {
        let facts = self.pair.host(side).facts_with(states);
        Line::Host { side: self.recorded(side), facts: Box::new(facts) }
    }

    fn not_read_again(&self, side: Side, why: &Error) -> Line {
        Line::Note { text: self.pair.host(side).not_read_again(why) }
    }

    fn since_the_beginning(&self, time: Instant) -> Nanos {
        time.saturating_duration_since(self.begun).into()
    }

    /// Returns the side of a host in the record, where the source is always side A.
    fn recorded(&self, side: Side) -> Side {
        if self.from == Side::A { side } else { side.other() }
    }
}

/// Returns the time of the next request, after one at the time `elapsed`. Both count from the start of the copy.
fn due_after(elapsed: Duration) -> Duration {
    elapsed + AGAIN.max(elapsed / PART)
}

fn question(pair: &Pair<'_>, side: Side) -> Option<Question> {
    let at = Instant::now();
    let pending = pair.host(side).ask_conditions(pair.path.link(side)).ok()?;
    Some(Question { at, pending })
}

#[cfg(test)]
mod tests;
