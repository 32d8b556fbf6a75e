//! Buffers that the traffic comes from and goes to.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment: a page, so that zero-copy sends pin as few pages as the size allows.
const PAGE: usize = 4096;

/// A page-aligned buffer. Every byte is written once when it is made, by the thread that will use it:
/// no page fault in the loop, and memory near the core that runs it.
pub(crate) struct Buffer {
    bytes: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory alone, like a Box<[u8]>.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A buffer of `len` bytes (one at least) that do not compress well.
    pub(crate) fn new(len: usize) -> Self {
        let layout = Layout::from_size_align(len.max(1), PAGE).expect("sizes are checked to be sane");
        // SAFETY: the layout's size is not zero.
        let bytes = unsafe { alloc_zeroed(layout) };
        let Some(bytes) = NonNull::new(bytes) else { handle_alloc_error(layout) };
        let mut buffer = Buffer { bytes, layout };
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for byte in buffer.iter_mut() {
            // xorshift64 (Marsaglia 2003): links that compress must not look fast.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` is our allocation of this size, initialised (zeroed) when it was made.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not freed before.
        unsafe { dealloc(self.bytes.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_on_a_page_and_are_full() {
        let buffer = Buffer::new(3 * PAGE + 1);
        assert_eq!(buffer.as_ptr() as usize % PAGE, 0);
        assert_eq!(buffer.len(), 3 * PAGE + 1);
        let distinct: std::collections::BTreeSet<u8> = buffer.iter().copied().collect();
        assert_eq!(distinct.len(), 256, "random bytes take every value in 12 KiB");
    }
}
