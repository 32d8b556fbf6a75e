//! The state of each segment: RFC 6675's scoreboard, as Linux keeps it, with RFC 8985's (RACK) rule for losses.
//!
//! The segments from the first unacknowledged one to the next one to send are in a ring, by their number. The
//! scoreboard also keeps two orders, both FIFO. The first is the order of sending: the ring itself for first
//! transmissions, and a queue for retransmissions. The second is the order of the segments that wait to be sent again.

mod lost;

use std::collections::VecDeque;

use landspeed_record::units::Nanos;

pub(super) use lost::NewestDelivery;

/// The flag of a segment that was acknowledged selectively.
pub(super) const SACKED: u8 = 1;
/// The flag of a segment that was marked as lost. It stays set while the retransmission is in flight.
pub(super) const LOST: u8 = 2;
/// The flag of a segment whose retransmission is in flight.
pub(super) const RESENT: u8 = 4;
/// The flag of a segment that was sent more than once.
pub(super) const EVER_RESENT: u8 = 8;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SentSegment {
    /// The time of the segment's last transmission.
    pub(super) at: Nanos,
    /// The sending time of the newest segment that was known to be delivered when this segment was sent
    /// (first_tx_mstamp).
    pub(super) first_at: Nanos,
    /// Time of the last delivery before this segment was sent (tcp_rate.c: delivered_mstamp).
    pub(super) news_at: Nanos,
    /// Number of segments that had been delivered when this segment was sent.
    pub(super) delivered: u32,
    /// The flags [`SACKED`], [`LOST`], [`RESENT`] and [`EVER_RESENT`].
    pub(super) flags: u8,
}

#[derive(Debug, Clone, Copy)]
struct Retransmission {
    at: Nanos,
    seq: u64,
    /// The next segment to be sent for the first time, when this one was sent again.
    next: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Scoreboard {
    ring: Box<[SentSegment]>,
    una: u64,
    next: u64,
    sacked: u32,
    lost: u32,
    resent: u32,
    lost_ever: u32,
    /// The first transmission of each segment below this number has been judged: the segment arrived, is lost, or was
    /// sent again.
    unjudged: u64,
    /// The retransmissions in the order of sending.
    again: VecDeque<Retransmission>,
    /// The segment after the highest one that was acknowledged selectively.
    reached: u64,
    /// Segments whose retransmission was lost. They are the oldest, so they are sent first.
    lost_again: VecDeque<u64>,
    lost_first: VecDeque<u64>,
}

impl Scoreboard {
    pub(super) fn new() -> Self {
        Scoreboard {
            ring: vec![SentSegment::default(); 64].into_boxed_slice(),
            una: 0,
            next: 0,
            sacked: 0,
            lost: 0,
            resent: 0,
            lost_ever: 0,
            unjudged: 0,
            again: VecDeque::new(),
            reached: 0,
            lost_again: VecDeque::new(),
            lost_first: VecDeque::new(),
        }
    }

    /// Returns the first segment not acknowledged cumulatively.
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// Returns the number of the next segment to be sent for the first time.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the counts `packets_out`, `sacked_out`, `lost_out` and `retrans_out` of struct tcp_sock.
    pub(super) fn counts(&self) -> [u32; 4] {
        [self.out(), self.sacked, self.lost, self.resent]
    }

    /// Returns the number of segments sent and not acknowledged cumulatively.
    pub(super) fn out(&self) -> u32 {
        (self.next - self.una) as u32
    }

    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of segments from the first outstanding one to the highest that was acknowledged selectively:
    /// fackets_out of Linux 2.4.
    pub(super) fn reach(&self) -> u32 {
        self.reached.saturating_sub(self.una) as u32
    }

    /// Counts a segment above the first gap as arrived, without knowing which (tcp_add_reno_sack). Returns false if no
    /// more can have arrived.
    pub(super) fn add_duplicate(&mut self) -> bool {
        let can = self.sacked < self.most_duplicates();
        self.sacked += u32::from(can);
        can
    }

    /// Forgets `count` of the segments that [`Scoreboard::add_duplicate`] counted.
    pub(super) fn remove_duplicates(&mut self, count: u32) {
        self.sacked = self.sacked.saturating_sub(count).min(self.most_duplicates());
    }

    /// Returns how many segments can have arrived at most: all but the lost ones, and the first (tcp_check_reno_reordering).
    fn most_duplicates(&self) -> u32 {
        self.out().saturating_sub(self.lost.max(1))
    }

    pub(super) fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns the number of segments marked as lost since the start.
    pub(super) fn lost_ever(&self) -> u32 {
        self.lost_ever
    }

    /// Returns true if a segment that was sent again has not been acknowledged.
    pub(super) fn any_resent(&self) -> bool {
        self.resent > 0
    }

    /// Returns the number of segments in flight: RFC 6675's "pipe", as Linux counts it.
    pub(super) fn in_flight(&self) -> u32 {
        self.out() - self.sacked - self.lost + self.resent
    }

    pub(super) fn at(&self, seq: u64) -> &SentSegment {
        &self.ring[seq as usize & (self.ring.len() - 1)]
    }

    fn at_mut(&mut self, seq: u64) -> &mut SentSegment {
        let mask = self.ring.len() - 1;
        &mut self.ring[seq as usize & mask]
    }

    /// Adds the first transmission of a new segment and returns the segment's number.
    pub(super) fn push(&mut self, sent: SentSegment) -> u64 {
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
        let mut larger = vec![SentSegment::default(); 2 * self.ring.len()].into_boxed_slice();
        let mask = larger.len() - 1;
        for seq in self.una..self.next {
            larger[seq as usize & mask] = *self.at(seq);
        }
        self.ring = larger;
    }

    /// Removes the first segment, which was acknowledged cumulatively, and returns its state.
    pub(super) fn pop(&mut self) -> SentSegment {
        let sent = *self.at(self.una);
        self.una += 1;
        if sent.flags != 0 {
            self.sacked -= u32::from(sent.flags & SACKED != 0);
            self.lost -= u32::from(sent.flags & LOST != 0);
            self.resent -= u32::from(sent.flags & RESENT != 0);
        }
        sent
    }

    /// Marks segment `seq` as acknowledged selectively. Returns its earlier state; `None` if it was already
    /// acknowledged or never sent.
    pub(super) fn sack(&mut self, seq: u64) -> Option<SentSegment> {
        if seq < self.una || seq >= self.next || self.at(seq).flags & SACKED != 0 {
            return None;
        }
        let was = *self.at(seq);
        self.lost -= u32::from(was.flags & LOST != 0);
        self.resent -= u32::from(was.flags & RESENT != 0);
        self.sacked += 1;
        self.reached = self.reached.max(seq + 1);
        self.at_mut(seq).flags = (was.flags & EVER_RESENT) | SACKED;
        Some(was)
    }

    /// Returns the number of the next lost segment to send again, and records its transmission `sent`; `None` if none
    /// waits.
    pub(super) fn resend(&mut self, sent: SentSegment) -> Option<u64> {
        let seq = loop {
            let seq = self.lost_again.pop_front().or_else(|| self.lost_first.pop_front())?;
            if seq >= self.una && self.at(seq).flags & (LOST | RESENT) == LOST {
                break seq;
            }
        };
        *self.at_mut(seq) = SentSegment { flags: LOST | RESENT | EVER_RESENT, ..sent };
        self.resent += 1;
        self.again.push_back(Retransmission { at: sent.at, seq, next: self.next });
        Some(seq)
    }

    /// Records that the last segment is sent again, as the transmission `sent`, although it is not known to be lost.
    /// Returns its number; `None` if it has arrived or its retransmission is in flight.
    pub(super) fn resend_last(&mut self, sent: SentSegment) -> Option<u64> {
        let seq = self.next.checked_sub(1).filter(|seq| *seq >= self.una)?;
        let flags = self.at(seq).flags;
        if flags & (SACKED | RESENT) != 0 {
            return None;
        }
        *self.at_mut(seq) = SentSegment { flags: flags | RESENT | EVER_RESENT, ..sent };
        self.resent += 1;
        self.again.push_back(Retransmission { at: sent.at, seq, next: self.next });
        Some(seq)
    }

    /// Returns true if a segment waits to be sent again.
    pub(super) fn any_to_resend(&self) -> bool {
        self.lost > self.resent
    }
}

#[cfg(test)]
mod tests;
