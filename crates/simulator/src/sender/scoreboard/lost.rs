//! The detection of lost segments by RFC 8985 (RACK), section 6.2, and after a timeout.

use landspeed_record::units::Nanos;

use super::{LOST, RESENT, Retransmission, SACKED, Scoreboard};
use crate::agenda::NEVER;

/// Of all delivered segments, the one that was sent last (RACK). Segments that were sent before it and have not
/// arrived may be lost.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::sender) struct NewestDelivery {
    pub(in crate::sender) sent_at: Nanos,
    pub(in crate::sender) seq: u64,
    pub(in crate::sender) rtt: Nanos,
}

impl NewestDelivery {
    fn is_after(&self, sent_at: Nanos, seq: u64) -> bool {
        (sent_at, seq) < (self.sent_at, self.seq)
    }
}

impl Scoreboard {
    /// Marks segments as lost that were sent before the newest delivered one and are overdue by more than `patience`
    /// (RFC 8985, section 6.2, step 5). Returns the time at which the next segment will be marked if nothing arrives
    /// until then; [`NEVER`] if there is none.
    pub(in crate::sender) fn detect(
        &mut self,
        newest: &NewestDelivery,
        now: Nanos,
        patience: Nanos,
    ) -> Nanos {
        let first = self.detect_first(newest, now, patience);
        first.min(self.detect_again(newest, now, patience))
    }

    fn detect_first(&mut self, newest: &NewestDelivery, now: Nanos, patience: Nanos) -> Nanos {
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

    fn detect_again(&mut self, newest: &NewestDelivery, now: Nanos, patience: Nanos) -> Nanos {
        while let Some(&Retransmission { at: sent_at, seq, .. }) = self.again.front() {
            if self.is_under_way(sent_at, seq) {
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

    /// Returns true if the retransmission of segment `seq` at `sent_at` has neither arrived nor been found lost.
    fn is_under_way(&self, sent_at: Nanos, seq: u64) -> bool {
        let sent = self.at(seq);
        seq >= self.una && sent.flags & RESENT != 0 && sent.at == sent_at
    }

    /// Marks the retransmissions as lost after which a segment was first sent that has arrived, and `beyond` segments
    /// more were.
    pub(in crate::sender) fn detect_again_by_counts(&mut self, beyond: u64) {
        while let Some(&Retransmission { at, seq, next }) = self.again.front() {
            if self.is_under_way(at, seq) {
                if self.reached <= next + beyond {
                    break;
                }
                self.mark_lost(seq);
            }
            self.again.pop_front();
        }
    }

    /// Marks the segments below `end` as lost that have neither arrived nor been marked.
    pub(in crate::sender) fn mark_below(&mut self, end: u64) {
        self.unjudged = self.unjudged.max(self.una);
        while self.unjudged < end.min(self.next) {
            if self.at(self.unjudged).flags == 0 {
                self.mark_lost(self.unjudged);
            }
            self.unjudged += 1;
        }
    }

    /// Marks the first outstanding segment as lost if it has not been marked.
    pub(in crate::sender) fn mark_head(&mut self) {
        if self.una < self.next && self.at(self.una).flags == 0 {
            self.mark_lost(self.una);
        }
    }

    fn mark_lost(&mut self, seq: u64) {
        let sent = self.at_mut(seq);
        let flags = sent.flags;
        sent.flags = (flags | LOST) & !RESENT;
        self.lost_ever = self.lost_ever.wrapping_add(1);
        self.lost += u32::from(flags & LOST == 0);
        if flags & RESENT == 0 {
            self.lost_first.push_back(seq);
        } else {
            self.resent -= 1;
            self.lost_again.push_back(seq);
        }
    }

    /// Marks all segments as lost that are not acknowledged, as needed after a timeout (RFC 6675, section 5.1).
    pub(in crate::sender) fn mark_all_lost(&mut self) {
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
