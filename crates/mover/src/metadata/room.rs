//! The memory for attributes of entries under way. Few entries have many, so it is counted apart from their number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A source offers no further entry while the attributes of those under way have as many bytes.
const MOST_HELD: usize = 32 << 20;
/// A target takes no further file beyond this, which leaves room for what an honest source adds at a time.
const MOST_TAKEN: usize = 2 * MOST_HELD;

/// Counts the bytes of attributes under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttributeRoom(Arc<AtomicUsize>);

impl AttributeRoom {
    /// Returns true if a source is to add no further entry.
    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= MOST_HELD
    }

    /// Returns true if a target has room for this number of further bytes.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        self.0.load(Ordering::Relaxed) + bytes <= MOST_TAKEN
    }

    /// Counts bytes until the returned value is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> HeldRoom {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        HeldRoom { room: self.clone(), bytes }
    }
}

/// Bytes that are counted.
#[derive(Debug)]
pub(crate) struct HeldRoom {
    room: AttributeRoom,
    bytes: usize,
}

impl Drop for HeldRoom {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
