//! Memory that begins with a page.

/// The length of a page of memory, and a multiple of the blocks of usual disks.
pub(crate) const PAGE: usize = 4096;

/// Returns zeros for at least `length` bytes, and the offset in them at which a page begins.
pub(crate) fn zeros(length: usize) -> (Vec<u8>, usize) {
    let room = vec![0; length + PAGE];
    // An offset that cannot be had is as good as none for a copy, and a direct write is refused then.
    let first = room.as_ptr().align_offset(PAGE).min(PAGE);
    (room, first)
}
