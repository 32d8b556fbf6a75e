//! Runs one window of the path tracer: decides when the programs are attached, and returns the trace.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use landspeed_record::PathTrace;
use landspeed_record::units::Nanos;
use libbpf_rs::Link;

use super::programs::PathPrograms;
use super::request::TracerRequest;
use super::selection::{PacketSelection, TracedLink};
use super::turn::AttachTurn;
use crate::Error;

/// The time for which programs stay attached. It is not shorter for two reasons: attaching and detaching them costs
/// about four milliseconds of processor time, and hops that take longer than this time are hardly ever observed.
const ATTACHED: Duration = Duration::from_millis(30);
/// The reciprocal of the share of time for which programs may be attached on a machine. When they were attached all the
/// time, they raised the processing cost of packets by a tenth to a third (in a lab with a tracer on each host,
/// tests/path/cost.rs, without the cost of attaching). With this share, the cost is about one percent.
const ATTACHED_ONE_IN: u32 = 50;
/// The longest time for which a tracer waits before it requests the turn again, so that other tracers can take it.
const YIELD_TIME: Duration = Duration::from_millis(20);
/// The time from the first attachment until the mean payload of segments is read. The stride is then computed from this
/// mean.
const LEARN: Duration = Duration::from_millis(2);
/// The sampling ratio: one packet of a flow in `ONE_IN` is followed.
const ONE_IN: u32 = 16;
/// Size of the headers of IPv6 and of TCP with timestamps, in bytes. The payload of a full segment is the MTU minus
/// this size, or a little more with shorter headers.
const HEADERS: u64 = 72;

/// The budget for attaching programs: after each attachment there is a pause that is [`ATTACHED_ONE_IN`] - 1 times as
/// long. The budget continues from one window to the next, so that many short windows cost no more than a long one. The
/// tracer keeps the turn during the pause, so that several tracers on a machine cost no more than one.
pub(super) struct AttachBudget {
    free_from: Instant,
    /// The turn of the last attachment, kept until the pause is over.
    turn: Option<AttachTurn>,
    /// The channel on which a requested turn arrives once another tracer has released it.
    requests: Sender<TracerRequest>,
    /// True while a turn is expected on the channel.
    requested: bool,
    /// The time at which the last turn ended, and the length of the pause after it.
    last: Option<(Instant, Duration)>,
}

impl AttachBudget {
    pub(super) fn new(requests: Sender<TracerRequest>) -> Self {
        AttachBudget { free_from: Instant::now(), turn: None, requests, requested: false, last: None }
    }

    /// Returns the turn if it is free. Otherwise returns `None`, and the turn arrives later as a
    /// [`TracerRequest::Turn`].
    fn request_turn(&mut self) -> Option<AttachTurn> {
        if self.requested {
            return None;
        }
        let requests = self.requests.clone();
        let turn = AttachTurn::request(move |turn| drop(requests.send(TracerRequest::Turn(turn))));
        self.requested = turn.is_none();
        turn
    }

    /// Records that the requested turn arrived.
    pub(super) fn turn_arrived(&mut self) {
        self.requested = false;
    }

    /// Records that programs were attached for `time` until now, and begins the pause after this attachment. On a busy
    /// machine `time` may be longer than planned, and so is the pause.
    fn charge(&mut self, time: Duration, turn: AttachTurn) {
        let (now, pause) = (Instant::now(), time * (ATTACHED_ONE_IN - 1));
        self.free_from = now + pause;
        self.turn = Some(turn);
        self.last = Some((now, pause));
    }

    /// Returns the time for which this tracer waits before it requests the turn. The more recently it has had the turn,
    /// the longer it waits. Otherwise one host of a lab might always be first, because the windows of both hosts open
    /// at the same time.
    fn polite(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |(ended, pause)| {
            let waited = ended.elapsed().as_secs_f64().max(1e-3);
            YIELD_TIME.mul_f64((pause.as_secs_f64() / waited).min(1.0))
        })
    }

    /// Returns the time until [`AttachBudget::release`] must be called; [`Duration::MAX`] if the budget keeps no turn.
    pub(super) fn until_free(&self) -> Duration {
        match self.turn {
            Some(_) => self.free_from.saturating_duration_since(Instant::now()),
            None => Duration::MAX,
        }
    }

    /// Releases the turn to the next waiting tracer if the pause after the last attachment is over.
    pub(super) fn release(&mut self) {
        let now = Instant::now();
        if now >= self.free_from && self.turn.take().is_some() {
            self.free_from = now + YIELD_TIME;
        }
    }
}

enum AttachPhase {
    Detached,
    /// Detached, because another tracer has the turn.
    Waiting,
    /// Attached for the first time in this window. The stride is computed from an estimate of the segments' size.
    Learning(Attachment),
    Attached(Attachment),
}

struct Attachment {
    /// Dropping the links detaches the programs.
    links: Vec<Link>,
    since: Instant,
    turn: AttachTurn,
}

/// An open window. If it is dropped, the programs are detached.
pub(super) struct TraceSession {
    selection: PacketSelection,
    virtual_link: bool,
    phase: AttachPhase,
    /// True if programs were attached in this window.
    learnt: bool,
    /// The time at which the next phase begins.
    next: Instant,
    opened: Instant,
    attached: Duration,
    misses: u64,
}

impl TraceSession {
    /// Begins a window: clears the counts, and attaches the programs if the budget and the turn allow it.
    pub(super) fn begin(
        selection: PacketSelection,
        programs: &mut PathPrograms,
        traced_link: &TracedLink,
        budget: &mut AttachBudget,
    ) -> Result<Self, Error> {
        programs.prepare(&selection, ONE_IN, stride(traced_link.mtu.0.saturating_sub(HEADERS)))?;
        let opened = Instant::now();
        let mut session = TraceSession {
            selection,
            virtual_link: !traced_link.completion,
            phase: AttachPhase::Detached,
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

    /// Returns the time until [`TraceSession::step`] must be called; [`Duration::MAX`] while the session waits for the
    /// turn.
    pub(super) fn until_next(&self) -> Duration {
        match self.phase {
            AttachPhase::Waiting => Duration::MAX,
            _ => self.next.saturating_duration_since(Instant::now()),
        }
    }

    /// Attaches the programs if the session waits for the turn. Otherwise drops the turn, which releases it to other
    /// tracers.
    pub(super) fn turn_arrived(&mut self, turn: AttachTurn, programs: &mut PathPrograms) {
        if let AttachPhase::Waiting = self.phase {
            self.attach(turn, programs);
        }
    }

    fn attach(&mut self, turn: AttachTurn, programs: &mut PathPrograms) {
        let attached = Attachment::now(programs, &self.selection, turn);
        let first = !std::mem::replace(&mut self.learnt, true);
        self.next = attached.since + if first { LEARN } else { ATTACHED };
        self.phase = if first { AttachPhase::Learning(attached) } else { AttachPhase::Attached(attached) };
    }

    /// Advances to the next phase, which attaches or detaches the programs.
    pub(super) fn step(&mut self, programs: &mut PathPrograms, budget: &mut AttachBudget) {
        match std::mem::replace(&mut self.phase, AttachPhase::Detached) {
            AttachPhase::Detached => {
                budget.release();
                if Instant::now() < budget.free_from {
                    self.next = budget.free_from;
                    return;
                }
                match budget.request_turn() {
                    Some(turn) => self.attach(turn, programs),
                    None => self.phase = AttachPhase::Waiting,
                }
            }
            AttachPhase::Waiting => self.phase = AttachPhase::Waiting,
            AttachPhase::Learning(attached) => {
                adapt(programs);
                self.next = attached.since + ATTACHED;
                self.phase = AttachPhase::Attached(attached);
            }
            AttachPhase::Attached(attached) => {
                self.attached += attached.detach(budget);
                self.next = budget.free_from;
                adapt(programs);
            }
        }
    }

    /// Detaches the programs if they are attached.
    pub(super) fn stop(&mut self, budget: &mut AttachBudget) {
        let phase = std::mem::replace(&mut self.phase, AttachPhase::Detached);
        if let AttachPhase::Learning(attached) | AttachPhase::Attached(attached) = phase {
            self.attached += attached.detach(budget);
        }
    }

    /// Ends the window: detaches the programs if they are attached, and returns the trace.
    pub(super) fn end(
        mut self,
        programs: &PathPrograms,
        budget: &mut AttachBudget,
    ) -> Result<PathTrace, Error> {
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

    fn notes(&self, programs: &PathPrograms) -> Vec<String> {
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
        if self.selection.datagrams {
            notes.push("UDP: the way from the send call to the queueing discipline is not traced".into());
        }
        notes.extend(self.selection.notes.iter().cloned());
        notes.extend(programs.notes.iter().cloned());
        notes
    }
}

impl Attachment {
    fn now(programs: &mut PathPrograms, selection: &PacketSelection, turn: AttachTurn) -> Self {
        let since = Instant::now();
        Attachment { links: programs.attach(selection), since, turn }
    }

    /// Detaches the programs. Returns the time for which they were attached, including the time for attaching and
    /// detaching them.
    fn detach(self, budget: &mut AttachBudget) -> Duration {
        drop(self.links);
        let time = self.since.elapsed();
        budget.charge(time, self.turn);
        time
    }
}

/// Adjusts the stride to the mean payload of the packets so far, so that one packet in [`ONE_IN`] is followed.
fn adapt(programs: &mut PathPrograms) {
    if let Some(payload) = programs.tally().ok().and_then(|tally| tally.mean_payload) {
        // On an error the previous stride stays in use. Reading the maps at the end of the window then fails too and
        // reports the reason.
        drop(programs.follow(stride(payload)));
    }
}

/// Returns the stride for packets with `payload` bytes: the number of bytes of a flow from one followed packet to the
/// next. It is odd, so that over time the followed packets are at all offsets of the application's writes.
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
