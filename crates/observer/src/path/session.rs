//! One window of the observer: when programs are attached, and what it saw.

use std::time::{Duration, Instant};

use landspeed_record::PathTrace;
use landspeed_units::Nanos;
use libbpf_rs::Link;

use super::aim::{Aim, Place};
use super::programs::Programs;
use crate::Error;

/// How long programs are attached at a time, and how often. Attached, they cost a few percent of a packet's
/// way; a 25th of that is below what an interleaved comparison can resolve.
const ATTACHED: Duration = Duration::from_millis(20);
const EVERY: Duration = Duration::from_millis(500);
/// After this long of the first time the size of segments is known, and with it which to follow.
const LEARN: Duration = Duration::from_millis(2);
/// Of how many packets of a flow one is followed.
const ONE_IN: u32 = 16;
/// IPv6 and TCP with timestamps: a full segment's payload is the MTU without this, or a little more.
const HEADERS: u64 = 72;

/// What is going on in an open window.
enum Phase {
    /// Attached for the first time, with a guess at the size of segments.
    Learning(Attached),
    Attached(Attached),
    Detached,
}

struct Attached {
    /// Dropping them detaches.
    _links: Vec<Link>,
    since: Instant,
}

/// An open window. Whatever is attached is detached when it is dropped.
pub(super) struct Session {
    aim: Aim,
    virtual_link: bool,
    phase: Phase,
    /// When the next phase begins.
    next: Instant,
    opened: Instant,
    attached: Duration,
    misses: u64,
}

impl Session {
    /// Clears the counts and attaches.
    pub(super) fn begin(aim: Aim, programs: &mut Programs, place: &Place) -> Result<Self, Error> {
        programs.prepare(&aim, ONE_IN, stride(place.mtu.0.saturating_sub(HEADERS)))?;
        let opened = Instant::now();
        let phase = Phase::Learning(attach(programs, &aim));
        let misses = programs.misses();
        Ok(Session {
            aim,
            virtual_link: !place.completion,
            phase,
            next: opened + LEARN,
            opened,
            attached: Duration::ZERO,
            misses,
        })
    }

    /// Time until [`Session::step`] is due.
    pub(super) fn until_next(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Goes on to the next phase.
    pub(super) fn step(&mut self, programs: &mut Programs) {
        let now = Instant::now();
        (self.phase, self.next) = match std::mem::replace(&mut self.phase, Phase::Detached) {
            Phase::Learning(attached) => {
                adapt(programs);
                (Phase::Attached(attached), self.next + (ATTACHED - LEARN))
            }
            Phase::Attached(attached) => {
                self.attached += attached.detach();
                adapt(programs);
                // A thread that was kept waiting does not make up for it.
                (Phase::Detached, now.max(self.next) + (EVERY - ATTACHED))
            }
            Phase::Detached => (Phase::Attached(attach(programs, &self.aim)), now + ATTACHED),
        };
    }

    /// Detaches and says what was seen.
    pub(super) fn end(mut self, programs: &Programs) -> Result<PathTrace, Error> {
        if let Phase::Learning(attached) | Phase::Attached(attached) =
            std::mem::replace(&mut self.phase, Phase::Detached)
        {
            self.attached += attached.detach();
        }
        let tally = programs.tally()?;
        let mut counts: std::collections::BTreeMap<_, _> =
            tally.counts.into_iter().map(|(what, count)| (what.to_owned(), count)).collect();
        counts.extend(programs.drops()?.into_iter().map(|(why, n)| (format!("dropped: {why}"), n)));
        Ok(PathTrace {
            one_in: ONE_IN,
            attached_ns: nanos(self.attached),
            window_ns: nanos(self.opened.elapsed()),
            hops: tally.hops,
            counts,
            lost: tally.lost + programs.misses().saturating_sub(self.misses),
            notes: self.notes(programs),
        })
    }

    fn notes(&self, programs: &Programs) -> Vec<String> {
        let mut notes = vec![format!(
            "programs are attached for {} ms in every {}: of hops that take nearly that long or longer only \
             some are seen, those of which both ends fall into such a time",
            ATTACHED.as_millis(),
            EVERY.as_millis()
        )];
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
    /// Detaches; returns how long it was attached, the time of detaching included.
    fn detach(self) -> Duration {
        let Attached { _links: links, since } = self;
        drop(links);
        since.elapsed()
    }
}

fn attach(programs: &mut Programs, aim: &Aim) -> Attached {
    let since = Instant::now();
    Attached { _links: programs.attach(aim), since }
}

/// Follows one packet in [`ONE_IN`] of the size seen so far.
fn adapt(programs: &mut Programs) {
    if let Some(payload) = programs.tally().ok().and_then(|tally| tally.mean_payload) {
        // Where that fails the size known before serves on; reading the maps at the end fails likewise and
        // says why.
        drop(programs.follow(stride(payload)));
    }
}

/// Bytes of a flow from one followed packet to the next: see state.h for why it is odd.
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
