//! Buffers to send from and to receive into.

use std::ops::{Deref, DerefMut};

/// Alignment in bytes: a page, so that zero-copy sends pin as few pages as the size allows.
const PAGE: usize = 4096;

/// A page-aligned buffer. The thread that will use it creates it and writes every byte, so that the traffic loop has
/// no page faults and the memory is near the thread's core.
pub(crate) struct PageBuffer {
    /// The allocation, one page longer than `len`.
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl PageBuffer {
    /// Returns a buffer of `len` bytes (at least one). Its content does not compress well.
    pub(crate) fn new(len: usize) -> Self {
        let len = len.max(1);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let random = || {
            // xorshift64 (Marsaglia 2003). The bytes are random, so that a link that compresses data does not seem
            // faster than it is.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let bytes: Vec<u8> = std::iter::repeat_with(random).take(len + PAGE).collect();
        let start = bytes.as_ptr().align_offset(PAGE);
        PageBuffer { bytes, start, len }
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_on_a_page_and_are_full() {
        let buffer = PageBuffer::new(3 * PAGE + 1);
        assert_eq!(buffer.as_ptr() as usize % PAGE, 0);
        assert_eq!(buffer.len(), 3 * PAGE + 1);
        let distinct: std::collections::BTreeSet<u8> = buffer.iter().copied().collect();
        assert_eq!(distinct.len(), 256, "random bytes take every value in 12 KiB");
    }
}
