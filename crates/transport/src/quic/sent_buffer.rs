//! Counts the acknowledged bytes of a stream: each piece of sent data counts its bytes when quinn frees the piece.
//!
//! quinn keeps each piece until the peer has acknowledged the whole piece and everything before it. quinn has no
//! function that returns the number of acknowledged bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// The memory of one write to the stream.
pub(super) struct SentBuffer {
    memory: Box<[u8]>,
    /// The number of bytes of this memory that the stream accepted.
    taken: AtomicU64,
    acked: Arc<AtomicU64>,
}

impl SentBuffer {
    /// Returns a copy of `message`. When the copy is freed, the number of its bytes that the stream accepted is added
    /// to `acked`.
    pub(super) fn of(message: &[u8], acked: &Arc<AtomicU64>) -> Arc<SentBuffer> {
        Arc::new(SentBuffer { memory: message.into(), taken: AtomicU64::new(0), acked: Arc::clone(acked) })
    }

    /// Returns this memory as `Bytes`, which quinn accepts without a copy.
    pub(super) fn bytes(self: &Arc<SentBuffer>) -> Bytes {
        Bytes::from_owner(SentBufferOwner(Arc::clone(self)))
    }

    /// Records that the stream accepted the first `bytes` bytes.
    pub(super) fn was_taken(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Relaxed);
    }
}

impl Drop for SentBuffer {
    fn drop(&mut self) {
        self.acked.fetch_add(*self.taken.get_mut(), Ordering::Relaxed);
    }
}

struct SentBufferOwner(Arc<SentBuffer>);

impl AsRef<[u8]> for SentBufferOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_bytes_count_once_the_last_reference_is_freed() {
        let acked = Arc::default();
        let sent_buffer = SentBuffer::of(&[1, 2, 3, 4], &acked);
        let mut whole = sent_buffer.bytes();
        let taken = whole.split_to(3);
        drop(whole);
        sent_buffer.was_taken(3);
        drop(sent_buffer);
        assert_eq!((&taken[..], acked.load(Ordering::Relaxed)), (&[1, 2, 3][..], 0));
        drop(taken);
        assert_eq!(acked.load(Ordering::Relaxed), 3);
    }
}
