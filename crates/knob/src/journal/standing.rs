//! What each turned knob reads since our last write, so that a later write can tell our values from other people's.
//!
//! A knob stands at what we wrote last, or, where that write was taken back, at what it read before. Turning one
//! knob can set another that was turned before (an offload goes with the one that it needs): what an own value reads
//! right after such a write is ours too. What somebody else writes in the milliseconds of a write of ours, and a value
//! of theirs that equals ours, cannot be told from ours.

use super::value::same;
use crate::{Domain, Error, HostKnob, Knob, Place, Row};

/// One knob that was turned.
pub(super) struct Standing {
    knob: &'static Knob,
    turn: &'static dyn HostKnob,
    place: Place,
    original: String,
    /// What our last write left.
    ours: String,
}

impl Standing {
    /// A knob that is about to be turned for the first time.
    pub(super) fn found(
        knob: &'static Knob,
        turn: &'static dyn HostKnob,
        place: Place,
        original: &str,
    ) -> Standing {
        Standing { knob, turn, place, original: original.to_owned(), ours: original.to_owned() }
    }

    fn domain(&self) -> &Domain {
        &self.knob.row.domain
    }

    fn is_ours(&self, now: &str) -> bool {
        same(self.domain(), now, &self.ours) || same(self.domain(), now, &self.original)
    }

    /// Whether the knob may be written over `now`.
    ///
    /// # Errors
    /// [`Error::Foreign`] where somebody else set it; the row's reason where what we found there cannot be written.
    pub(super) fn check(&self, now: &str) -> Result<(), Error> {
        if !self.is_ours(now) {
            let (knob, found) = (self.knob.row.name.to_owned(), now.to_owned());
            return Err(Error::Foreign { knob, found, ours: self.ours.clone() });
        }
        // Of a value of our own the row would say that somebody configured it.
        if same(self.domain(), now, &self.original) { self.turn.can_write(&self.place) } else { Ok(()) }
    }
}

/// A write that was allowed and is not over: what it is to set, and what stood before it.
pub(super) struct Write {
    at: usize,
    /// What the table says of the knob.
    pub(super) row: &'static Row,
    to: String,
    before: String,
    /// Own values of other knobs that the write can set too, by their place in the list.
    others: Vec<(usize, String)>,
}

impl Write {
    /// Of the knob at `at` of `standing`, which reads `before`, to `to`.
    pub(super) fn begin(standing: &[Standing], at: usize, before: String, to: &str) -> Write {
        let row = &standing[at].knob.row;
        let others = match row.disturbs {
            [] => Vec::new(),
            _ => (0..standing.len()).filter(|n| *n != at).filter_map(|n| own(standing, n)).collect(),
        };
        Write { at, row, to: to.to_owned(), before, others }
    }

    /// Learns what it left.
    pub(super) fn end(self, standing: &mut [Standing]) {
        let written = &mut standing[self.at];
        let now = written.turn.read(&written.place).unwrap_or_default();
        let is = |value: &str| same(&written.knob.row.domain, &now, value);
        let taken_back = is(&self.before) && !is(&self.to);
        written.ours = if taken_back { self.before } else { self.to };
        for (n, before) in self.others {
            let other = &mut standing[n];
            if let Ok(now) = other.turn.read(&other.place)
                && !same(other.domain(), &now, &before)
            {
                other.ours = now;
            }
        }
    }
}

/// What a knob reads, where that is ours.
fn own(standing: &[Standing], n: usize) -> Option<(usize, String)> {
    let knob = &standing[n];
    knob.turn.read(&knob.place).ok().filter(|now| knob.is_ours(now)).map(|now| (n, now))
}
