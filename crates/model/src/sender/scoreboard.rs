//! Which segments are where: RFC 6675's scoreboard, as Linux keeps it, with RFC 8985's (RACK) rule of when
//! one is lost.
//!
//! Segments between the first not acknowledged and the next to send lie in a ring by their number. Two more
//! orders are needed, and both are first in, first out: of sending (the ring itself for first
//! transmissions, a queue for repeated ones), and of what is to be sent again.

use std::collections::VecDeque;

use landspeed_units::Nanos;

use crate::agenda::NEVER;

/// Acknowledged selectively.
pub(super) const SACKED: u8 = 1;
/// Thought lost; stays set while it is under way again.
pub(super) const LOST: u8 = 2;
/// Under way again.
pub(super) const RESENT: u8 = 4;
/// Was sent more than once.
pub(super) const EVER_RESENT: u8 = 8;

/// What is remembered of a segment that was sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    /// When it was last sent.
    pub(super) at: Nanos,
    /// When the segment was sent whose delivery was the last news then (tcp_rate.c: first_tx_mstamp).
    pub(super) first_at: Nanos,
    /// When the last news came (delivered_mstamp).
    pub(super) news_at: Nanos,
    /// How many segments had been delivered then.
    pub(super) delivered: u32,
    /// [`SACKED`], [`LOST`], [`RESENT`], [`EVER_RESENT`].
    pub(super) flags: u8,
}

/// The delivered segment that was sent last: what was sent before it and has not arrived is suspect.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Newest {
    pub(super) sent_at: Nanos,
    pub(super) seq: u64,
    /// Its round trip.
    pub(super) rtt: Nanos,
}

impl Newest {
    /// Whether it was sent after that segment.
    fn is_after(&self, sent_at: Nanos, seq: u64) -> bool {
        (sent_at, seq) < (self.sent_at, self.seq)
    }
}

/// All segments under way.
#[derive(Debug, Clone)]
pub(super) struct Scoreboard {
    ring: Box<[Sent]>,
    una: u64,
    next: u64,
    sacked: u32,
    lost: u32,
    resent: u32,
    lost_ever: u32,
    /// First transmissions below this have been judged: arrived, lost, or sent again.
    unjudged: u64,
    /// Repeated transmissions in the order of sending: when, and which.
    again: VecDeque<(Nanos, u64)>,
    /// Lost when sent again: to be sent first, they are the oldest.
    lost_again: VecDeque<u64>,
    lost_first: VecDeque<u64>,
}

impl Scoreboard {
    pub(super) fn new() -> Self {
        Scoreboard {
            ring: vec![Sent::default(); 64].into_boxed_slice(),
            una: 0,
            next: 0,
            sacked: 0,
            lost: 0,
            resent: 0,
            lost_ever: 0,
            unjudged: 0,
            again: VecDeque::new(),
            lost_again: VecDeque::new(),
            lost_first: VecDeque::new(),
        }
    }

    /// The first segment not acknowledged cumulatively.
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// The next segment to be sent for the first time.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// `packets_out`, `sacked_out`, `lost_out`, `retrans_out` of struct tcp_sock.
    pub(super) fn counts(&self) -> [u32; 4] {
        [self.out(), self.sacked, self.lost, self.resent]
    }

    /// Sent and not acknowledged cumulatively.
    pub(super) fn out(&self) -> u32 {
        (self.next - self.una) as u32
    }

    /// Segments acknowledged selectively.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments thought lost.
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments that were thought lost since the start.
    pub(super) fn lost_ever(&self) -> u32 {
        self.lost_ever
    }

    /// Whether a segment that was sent again has not been acknowledged.
    pub(super) fn any_resent(&self) -> bool {
        self.resent > 0
    }

    /// RFC 6675's "pipe", as Linux counts it.
    pub(super) fn in_flight(&self) -> u32 {
        self.out() - self.sacked - self.lost + self.resent
    }

    /// A segment under way.
    pub(super) fn at(&self, seq: u64) -> &Sent {
        &self.ring[seq as usize & (self.ring.len() - 1)]
    }

    fn at_mut(&mut self, seq: u64) -> &mut Sent {
        let mask = self.ring.len() - 1;
        &mut self.ring[seq as usize & mask]
    }

    /// A first transmission; its number.
    pub(super) fn push(&mut self, sent: Sent) -> u64 {
        if self.out() as usize == self.ring.len() {
            self.grow();
        }
        let seq = self.next;
        *self.at_mut(seq) = sent;
        self.next += 1;
        seq
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = vec![Sent::default(); 2 * self.ring.len()].into_boxed_slice();
        let mask = larger.len() - 1;
        for seq in self.una..self.next {
            larger[seq as usize & mask] = *self.at(seq);
        }
        self.ring = larger;
    }

    /// Takes out the first segment, which was acknowledged: as it was.
    pub(super) fn pop(&mut self) -> Sent {
        let sent = *self.at(self.una);
        self.una += 1;
        if sent.flags != 0 {
            self.sacked -= u32::from(sent.flags & SACKED != 0);
            self.lost -= u32::from(sent.flags & LOST != 0);
            self.resent -= u32::from(sent.flags & RESENT != 0);
        }
        sent
    }

    /// A segment arrived above a gap: as it was before, or `None` if that is no news.
    pub(super) fn sack(&mut self, seq: u64) -> Option<Sent> {
        if seq < self.una || seq >= self.next || self.at(seq).flags & SACKED != 0 {
            return None;
        }
        let was = *self.at(seq);
        self.lost -= u32::from(was.flags & LOST != 0);
        self.resent -= u32::from(was.flags & RESENT != 0);
        self.sacked += 1;
        self.at_mut(seq).flags = (was.flags & EVER_RESENT) | SACKED;
        Some(was)
    }

    /// The lost segment that is next to be sent again: it is under way again, with these times.
    pub(super) fn resend(&mut self, sent: Sent) -> Option<u64> {
        let seq = loop {
            let seq = self.lost_again.pop_front().or_else(|| self.lost_first.pop_front())?;
            if seq >= self.una && self.at(seq).flags & (LOST | RESENT) == LOST {
                break seq;
            }
        };
        *self.at_mut(seq) = Sent { flags: LOST | RESENT | EVER_RESENT, ..sent };
        self.resent += 1;
        self.again.push_back((sent.at, seq));
        Some(seq)
    }

    /// Whether some segment waits to be sent again.
    pub(super) fn any_to_resend(&self) -> bool {
        self.lost > self.resent
    }

    /// RFC 8985, section 7.2: what was sent before the newest delivered segment, by more than `patience`,
    /// is lost. Returns when the next one would be judged if nothing arrives until then.
    pub(super) fn detect(&mut self, newest: &Newest, now: Nanos, patience: Nanos) -> Nanos {
        let first = self.detect_first(newest, now, patience);
        first.min(self.detect_again(newest, now, patience))
    }

    fn detect_first(&mut self, newest: &Newest, now: Nanos, patience: Nanos) -> Nanos {
        self.unjudged = self.unjudged.max(self.una);
        while self.unjudged < self.next {
            let seq = self.unjudged;
            let sent = *self.at(seq);
            if sent.flags == 0 {
                if !newest.is_after(sent.at, seq) {
                    break;
                }
                let due = sent.at + newest.rtt + patience;
                if due > now {
                    return due;
                }
                self.mark_lost(seq);
            }
            self.unjudged += 1;
        }
        NEVER
    }

    fn detect_again(&mut self, newest: &Newest, now: Nanos, patience: Nanos) -> Nanos {
        while let Some(&(sent_at, seq)) = self.again.front() {
            let sent = self.at(seq);
            if seq >= self.una && sent.flags & RESENT != 0 && sent.at == sent_at {
                if !newest.is_after(sent_at, seq) {
                    break;
                }
                let due = sent_at + newest.rtt + patience;
                if due > now {
                    return due;
                }
                self.mark_lost(seq);
            }
            self.again.pop_front();
        }
        NEVER
    }

    fn mark_lost(&mut self, seq: u64) {
        let sent = self.at_mut(seq);
        let flags = sent.flags;
        sent.flags = (flags | LOST) & !RESENT;
        self.lost_ever = self.lost_ever.wrapping_add(1);
        if flags & RESENT != 0 {
            self.resent -= 1;
            self.lost_again.push_back(seq);
        } else {
            self.lost += 1;
            self.lost_first.push_back(seq);
        }
    }

    /// After a timeout everything that was not acknowledged is lost (RFC 6675, section 5.1).
    pub(super) fn mark_all_lost(&mut self) {
        (self.lost_again, self.lost_first, self.again) = Default::default();
        for seq in self.una..self.next {
            let flags = self.at(seq).flags;
            match flags {
                _ if flags & SACKED != 0 => {}
                _ if flags & (LOST | RESENT) == LOST => self.lost_first.push_back(seq),
                _ => self.mark_lost(seq),
            }
        }
        self.lost_first.append(&mut self.lost_again);
        self.lost_first.make_contiguous().sort_unstable();
        self.unjudged = self.next;
    }
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
