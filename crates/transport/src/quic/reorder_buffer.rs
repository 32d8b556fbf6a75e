//! Puts the stream's bytes into order.
//!
//! quinn can reorder them, but it ends the connection if more than 1024 pieces wait behind a gap. A path of 1 Gb/s and
//! 180 ms has that many gaps once slow start overruns its queue. Therefore this buffer takes the pieces from quinn in
//! the order of their arrival.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};

/// The number of bytes in order that are taken from quinn before the reader needs them. Bytes that stay in quinn
/// count against the peer's flow-control window; bytes that are taken do not.
const READY: usize = 256 << 10;

#[derive(Debug, Default)]
pub(super) struct ReorderBuffer {
    /// The offset of the next byte in order.
    next: u64,
    ready: VecDeque<Bytes>,
    ready_bytes: usize,
    /// Pieces behind a gap, by their offset in the stream.
    ahead: BTreeMap<u64, Bytes>,
    ahead_bytes: usize,
    /// The largest number of bytes in this buffer while there are gaps in the stream.
    most: usize,
}

impl ReorderBuffer {
    pub(super) fn within(most: usize) -> Self {
        ReorderBuffer { most, ..ReorderBuffer::default() }
    }

    /// Returns true if the driver must take more bytes from quinn. Bytes in order beyond [`READY`] stay in quinn, so
    /// that a slow reader slows its peer. Pieces behind a gap must not stay in quinn.
    pub(super) fn wants(&self) -> bool {
        let has_gaps = !self.ahead.is_empty() && self.ready_bytes + self.ahead_bytes < self.most;
        self.ready_bytes < READY || has_gaps
    }

    /// Adds the piece of the stream that begins at `offset`. Each byte must be added only once.
    pub(super) fn place(&mut self, offset: u64, bytes: Bytes) {
        if offset != self.next {
            self.ahead_bytes += bytes.len();
            self.ahead.insert(offset, bytes);
            return;
        }
        self.append(bytes);
        while let Some(first) = self.ahead.first_entry().filter(|first| *first.key() == self.next) {
            let bytes = first.remove();
            self.ahead_bytes -= bytes.len();
            self.append(bytes);
        }
    }

    fn append(&mut self, bytes: Bytes) {
        self.next += bytes.len() as u64;
        self.ready_bytes += bytes.len();
        self.ready.push_back(bytes);
    }

    /// Moves the next bytes in order into `into`, and returns their number.
    pub(super) fn take(&mut self, into: &mut [u8]) -> usize {
        let mut got = 0;
        while let Some(first) = self.ready.front_mut().filter(|_| got < into.len()) {
            let count = first.len().min(into.len() - got);
            first.copy_to_slice(&mut into[got..got + count]);
            got += count;
            if first.is_empty() {
                self.ready.pop_front();
            }
        }
        self.ready_bytes -= got;
        got
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_in_any_order_come_out_in_theirs(
            lengths in prop::collection::vec(1_usize..50, 1..60), seed in any::<u64>(), room in 1_usize..40,
        ) {
            let mut pieces = Vec::new();
            let mut at = 0_u64;
            for length in lengths {
                pieces.push((at, (at..at + length as u64).map(|byte| byte as u8).collect::<Vec<_>>()));
                at += length as u64;
            }
            pieces.sort_by_key(|(offset, _)| blake3::hash(&(offset ^ seed).to_le_bytes()).as_bytes().to_owned());
            let (mut reorder_buffer, mut all, mut into) = (ReorderBuffer::within(1000), Vec::new(), vec![0; room]);
            for (offset, bytes) in pieces {
                reorder_buffer.place(offset, bytes.into());
                let got = reorder_buffer.take(&mut into);
                all.extend_from_slice(&into[..got]);
            }
            loop {
                match reorder_buffer.take(&mut into) {
                    0 => break,
                    got => all.extend_from_slice(&into[..got]),
                }
            }
            prop_assert_eq!(all, (0..at).map(|byte| byte as u8).collect::<Vec<_>>());
            prop_assert_eq!((reorder_buffer.ready_bytes, reorder_buffer.ahead_bytes, reorder_buffer.next), (0, 0, at));
        }
    }

    #[test]
    fn a_slow_reader_leaves_the_rest_to_quinn_and_gaps_do_not() {
        let mut reorder_buffer = ReorderBuffer::within(4 * READY);
        reorder_buffer.place(0, vec![0; READY].into());
        assert!(!reorder_buffer.wants());
        reorder_buffer.place(READY as u64 + 1, vec![0; READY].into());
        assert!(reorder_buffer.wants(), "there is a gap");
        reorder_buffer.place(3 * READY as u64, vec![0; 2 * READY].into());
        assert!(!reorder_buffer.wants(), "and a bound");
        assert_eq!(reorder_buffer.take(&mut vec![0; 2 * READY]), READY);
        assert!(reorder_buffer.wants(), "nothing is there to read");
    }
}
