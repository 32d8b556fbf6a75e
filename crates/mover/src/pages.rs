//! Memory that begins with a page.

/// The length of a page of memory, and a multiple of the blocks of usual disks.
pub(crate) const PAGE: usize = 4096;

/// Memory that begins with a page, and is used again and again. It never gets shorter, because zeros would be written into
/// memory that is made anew. Files are read by whole pages, and AMD's Zen 3 and 4 copy a page (`rep movsb`) three to four times
/// as slowly to an address that lies 1 to 31 bytes after the page's own offset. malloc gives just such ones.
#[derive(Debug, Default)]
pub(crate) struct PageBuffer {
    room: Vec<u8>,
    /// The offset in `room` at which a page begins.
    first: usize,
}

impl PageBuffer {
    /// Returns the first `length` bytes, with whatever is in them.
    pub(crate) fn front(&mut self, length: usize) -> &mut [u8] {
        self.grow(length, 0);
        &mut self.bytes_mut()[..length]
    }

    /// Makes room for at least `length` bytes, of which the first `kept` stay as they are.
    pub(crate) fn grow(&mut self, length: usize, kept: usize) {
        if self.bytes().len() >= length {
            return;
        }
        let mut room = vec![0; length.next_power_of_two() + PAGE];
        // An offset that cannot be had is as good as none for a copy, and nothing is written directly from there.
        let first = room.as_ptr().align_offset(PAGE).min(PAGE);
        room[first..first + kept].copy_from_slice(&self.bytes()[..kept]);
        (self.room, self.first) = (room, first);
    }

    /// Returns all bytes that there is room for.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[self.first..]
    }

    /// Returns all bytes that there is room for, to be changed.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.first..]
    }
}

/// Returns true if bytes begin with a page of memory.
pub(crate) fn begins_with_page(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_with_a_page_however_it_grows() {
        let mut buffer = PageBuffer::default();
        assert_eq!(buffer.front(0), [0; 0]);
        assert_eq!(buffer.front(1), [0]);
        for length in [1, 100, 5_000, 1 << 20] {
            buffer.grow(length, 1);
            assert!(begins_with_page(buffer.bytes()) && buffer.bytes().len() >= length);
            buffer.bytes_mut()[0] += 1;
        }
        assert_eq!(buffer.front(2), [4, 0]);
        assert!(!begins_with_page(&buffer.bytes()[1..]));
    }
}
