//! Loss reports (draft-gg-udt-03 section 6.4).

use super::PacketError;
use super::words::{put, words};
use crate::loss::SeqRange;
use crate::seq::Seq;

/// The lost packets of a validated loss report, in wire format (draft-gg-udt-03 section 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossReport<'a>(&'a [u8]);

const IS_RANGE: u32 = 1 << 31;

impl<'a> LossReport<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
            return Err(PacketError::Short);
        }
        let mut words = words(bytes);
        while let Some(word) = words.next() {
            if word & IS_RANGE != 0 {
                let last = words.next().and_then(Seq::from_wire);
                last.filter(|last| !last.is_before(Seq::new(word))).ok_or(PacketError::Sequence)?;
            }
        }
        Ok(LossReport(bytes))
    }

    /// Writes as many of `ranges` as fit into `room`, and returns them as a report that borrows `room`.
    pub fn write(ranges: impl Iterator<Item = SeqRange>, room: &'a mut [u8]) -> Self {
        let mut length = 0;
        for range in ranges {
            let single = range.first == range.last;
            let needed = if single { 4 } else { 8 };
            let Some(place) = room.get_mut(length..length + needed) else { break };
            if single {
                put(place, 0, range.first.to_wire());
            } else {
                put(place, 0, range.first.to_wire() | IS_RANGE);
                put(place, 1, range.last.to_wire());
            }
            length += needed;
        }
        LossReport(&room[..length])
    }

    /// Iterates over the ranges of lost packets, in the report's order.
    pub(crate) fn ranges(self) -> impl Iterator<Item = SeqRange> + 'a {
        let mut words = words(self.0);
        std::iter::from_fn(move || {
            let word = words.next()?;
            let first = Seq::new(word);
            let last = if word & IS_RANGE != 0 { Seq::new(words.next()?) } else { first };
            Some(SeqRange { first, last })
        })
    }

    /// Returns the control information of the report in wire format.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }
}
