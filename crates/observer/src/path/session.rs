//! One window of the observer: when programs are attached, and what they saw.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use landspeed_record::PathTrace;
use landspeed_units::Nanos;
use libbpf_rs::Link;

use super::aim::{Aim, Place};
use super::programs::Programs;
use super::tracer::Ask;
use super::turn::Turn;
use crate::Error;

/// The time for which programs are attached each time. Attaching and detaching them costs some four milliseconds of
/// processor time, so a much shorter time is no cheaper; and a hop that takes longer than this is hardly ever seen.
const ATTACHED: Duration = Duration::from_millis(30);
/// The reciprocal of the share of the time for which programs may be attached on a machine. Attached all the time,
/// they made a packet's way cost a tenth to a third more in a lab with a tracer on either host (tests/path/cost.rs),
/// and attaching adds its milliseconds; with this share, about a percent remains.
const SHARE: u32 = 50;
/// The longest time for which a tracer that had the turn leaves it to others.
const AFTER_YOU: Duration = Duration::from_millis(20);
/// The time after the first attachment at which the size of segments, and so which of them to follow, is known.
const LEARN: Duration = Duration::from_millis(2);
/// The sampling ratio: one packet of a flow in `ONE_IN` is followed.
const ONE_IN: u32 = 16;
/// Bytes of the headers of IPv6 and TCP with timestamps: a full segment's payload is the MTU minus this, or a little
/// more.
const HEADERS: u64 = 72;

/// The time at which programs may be attached again. It outlives a window, so that many short windows cost no more
/// than a long one. The turn is kept until then, so that many tracers cost a machine no more than one.
pub(super) struct Budget {
    free_from: Instant,
    /// The turn, kept until the pause that pays for it is over.
    turn: Option<Turn>,
    /// The channel on which a turn arrives that another tracer held; `asked` is true while one is expected.
    asks: Sender<Ask>,
    asked: bool,
    /// When the last turn ended, and the length of the pause after it.
    last: Option<(Instant, Duration)>,
}

impl Budget {
    pub(super) fn new(asks: Sender<Ask>) -> Self {
        Budget { free_from: Instant::now(), turn: None, asks, asked: false, last: None }
    }

    /// Returns the turn if it is free; otherwise `None`, and it arrives later as [`Ask::Turn`].
    fn ask(&mut self) -> Option<Turn> {
        if self.asked {
            return None;
        }
        let asks = self.asks.clone();
        let turn = Turn::ask(move |turn| drop(asks.send(Ask::Turn(turn))));
        self.asked = turn.is_none();
        turn
    }

    /// Records that the requested turn arrived.
    pub(super) fn came(&mut self) {
        self.asked = false;
    }

    /// Records that programs were attached for `time`, until now. On a busy machine that may be longer than planned.
    fn charge(&mut self, time: Duration, turn: Turn) {
        let (now, pause) = (Instant::now(), time * (SHARE - 1));
        self.free_from = now + pause;
        self.turn = Some(turn);
        self.last = Some((now, pause));
    }

    /// Returns how long to leave a free turn to others: the less this tracer waited since its last turn, the longer.
    /// Windows of two hosts open together, and otherwise the same host would always be first.
    fn polite(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |(ended, pause)| {
            let waited = ended.elapsed().as_secs_f64().max(1e-3);
            AFTER_YOU.mul_f64((pause.as_secs_f64() / waited).min(1.0))
        })
    }

    /// Returns the time until [`Budget::release`] is due.
    pub(super) fn until_free(&self) -> Duration {
        match self.turn {
            Some(_) => self.free_from.saturating_duration_since(Instant::now()),
            None => Duration::MAX,
        }
    }

    /// Releases the turn to the next waiting tracer, once it is paid for.
    pub(super) fn release(&mut self) {
        let now = Instant::now();
        if now >= self.free_from && self.turn.take().is_some() {
            self.free_from = now + AFTER_YOU;
        }
    }
}

enum Phase {
    Detached,
    /// Detached, and waits for the turn.
    Waiting,
    /// Attached for the first time, with a guess at the size of segments.
    Learning(Attached),
    Attached(Attached),
}

struct Attached {
    /// Dropping the links detaches the programs.
    links: Vec<Link>,
    since: Instant,
    turn: Turn,
}

/// An open window. Dropping it detaches what is attached.
pub(super) struct Session {
    aim: Aim,
    virtual_link: bool,
    phase: Phase,
    /// True if programs were attached in this window.
    learnt: bool,
    /// When the next phase begins.
    next: Instant,
    opened: Instant,
    attached: Duration,
    misses: u64,
}

impl Session {
    /// Clears the counts, and attaches if the budget allows.
    pub(super) fn begin(
        aim: Aim,
        programs: &mut Programs,
        place: &Place,
        budget: &mut Budget,
    ) -> Result<Self, Error> {
        programs.prepare(&aim, ONE_IN, stride(place.mtu.0.saturating_sub(HEADERS)))?;
        let opened = Instant::now();
        let mut session = Session {
            aim,
            virtual_link: !place.completion,
            phase: Phase::Detached,
            learnt: false,
            next: budget.free_from.max(opened + budget.polite()),
            opened,
            attached: Duration::ZERO,
            misses: programs.misses(),
        };
        if session.next <= opened {
            session.step(programs, budget);
        }
        Ok(session)
    }

    /// Returns the time until [`Session::step`] is due.
    pub(super) fn until_next(&self) -> Duration {
        match self.phase {
            Phase::Waiting => Duration::MAX,
            _ => self.next.saturating_duration_since(Instant::now()),
        }
    }

    /// Attaches if the session waits for the turn; otherwise drops the turn, which leaves it to others.
    pub(super) fn given(&mut self, turn: Turn, programs: &mut Programs) {
        if let Phase::Waiting = self.phase {
            self.attach(turn, programs);
        }
    }

    fn attach(&mut self, turn: Turn, programs: &mut Programs) {
        let attached = Attached::now(programs, &self.aim, turn);
        let first = !std::mem::replace(&mut self.learnt, true);
        self.next = attached.since + if first { LEARN } else { ATTACHED };
        self.phase = if first { Phase::Learning(attached) } else { Phase::Attached(attached) };
    }

    /// Advances to the next phase.
    pub(super) fn step(&mut self, programs: &mut Programs, budget: &mut Budget) {
        match std::mem::replace(&mut self.phase, Phase::Detached) {
            Phase::Detached => {
                budget.release();
                if Instant::now() < budget.free_from {
                    self.next = budget.free_from;
                    return;
                }
                match budget.ask() {
                    Some(turn) => self.attach(turn, programs),
                    None => self.phase = Phase::Waiting,
                }
            }
            Phase::Waiting => self.phase = Phase::Waiting,
            Phase::Learning(attached) => {
                adapt(programs);
                self.next = attached.since + ATTACHED;
                self.phase = Phase::Attached(attached);
            }
            Phase::Attached(attached) => {
                self.attached += attached.detach(budget);
                self.next = budget.free_from;
                adapt(programs);
            }
        }
    }

    /// Detaches what is attached.
    pub(super) fn stop(&mut self, budget: &mut Budget) {
        let phase = std::mem::replace(&mut self.phase, Phase::Detached);
        if let Phase::Learning(attached) | Phase::Attached(attached) = phase {
            self.attached += attached.detach(budget);
        }
    }

    /// Detaches, and returns what was seen.
    pub(super) fn end(mut self, programs: &Programs, budget: &mut Budget) -> Result<PathTrace, Error> {
        self.stop(budget);
        let window = self.opened.elapsed();
        let tally = programs.tally()?;
        let mut counts: BTreeMap<_, _> =
            tally.counts.into_iter().map(|(what, count)| (what.to_owned(), count)).collect();
        counts.extend(programs.drops()?.into_iter().map(|(why, n)| (format!("dropped: {why}"), n)));
        Ok(PathTrace {
            one_in: ONE_IN,
            attached_ns: nanos(self.attached),
            window_ns: nanos(window),
            hops: tally.hops,
            counts,
            lost: tally.lost + programs.misses().saturating_sub(self.misses),
            notes: self.notes(programs),
        })
    }

    fn notes(&self, programs: &Programs) -> Vec<String> {
        let mut notes = vec![format!(
            "programs are attached for {} ms at a time: of hops that take nearly that long or longer only \
             some are seen, those of which both ends fall into such a time",
            ATTACHED.as_millis()
        )];
        if self.attached.is_zero() {
            notes.push(
                "nothing was attached in this window: it was too short, or another tracer's turn".into(),
            );
        }
        if self.virtual_link {
            notes.push(
                "the link is a virtual device: its driver's time ends when it hands the packet over".into(),
            );
        }
        if self.aim.datagrams {
            notes.push("UDP: the way from the send call to the queueing discipline is not traced".into());
        }
        notes.extend(self.aim.notes.iter().cloned());
        notes.extend(programs.notes.iter().cloned());
        notes
    }
}

impl Attached {
    fn now(programs: &mut Programs, aim: &Aim, turn: Turn) -> Self {
        let since = Instant::now();
        Attached { links: programs.attach(aim), since, turn }
    }

    /// Returns how long they were attached, including attaching and detaching.
    fn detach(self, budget: &mut Budget) -> Duration {
        drop(self.links);
        let time = self.since.elapsed();
        budget.charge(time, self.turn);
        time
    }
}

/// Adjusts the stride, so that one packet in [`ONE_IN`] of the size seen so far is followed.
fn adapt(programs: &mut Programs) {
    if let Some(payload) = programs.tally().ok().and_then(|tally| tally.mean_payload) {
        // On an error the previous size stays in use; reading the maps at the end fails in the same way and reports
        // why.
        drop(programs.follow(stride(payload)));
    }
}

/// Returns the bytes of a flow from one followed packet to the next; state.h explains why it is odd.
fn stride(payload: u64) -> u32 {
    u32::try_from(payload.max(1) * u64::from(ONE_IN)).unwrap_or(1 << 30) | 1
}

fn nanos(duration: Duration) -> Nanos {
    Nanos(duration.as_nanos().try_into().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_in_sixteen_whatever_its_size() {
        assert_eq!(stride(1448), 16 * 1448 + 1);
        assert_eq!(stride(1), 17);
        assert_eq!(stride(0), 17, "no payload yet");
        assert_eq!(stride(u64::from(u32::MAX)), (1 << 30) | 1);
    }
}
