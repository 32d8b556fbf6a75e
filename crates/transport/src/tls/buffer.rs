//! A buffer of bytes that wait for their consumer.

/// Bytes that wait, in order. The memory is never given back, so that no call has to clear it anew.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// Returns room for `length` bytes behind those that wait. [`Buffer::add`] appends what was written there.
    pub(super) fn room(&mut self, length: usize) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let needed = self.end + length;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        &mut self.bytes[self.end..needed]
    }

    /// Appends the first `length` bytes of the latest room.
    pub(super) fn add(&mut self, length: usize) {
        self.end += length;
    }

    /// Appends a copy of `bytes`.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.add(bytes.len());
    }

    /// Returns the bytes that wait.
    pub(super) fn waiting(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Removes the first `length` bytes that wait.
    pub(super) fn consume(&mut self, length: usize) {
        self.start += length;
    }

    /// Moves bytes that wait to `into`, and returns how many.
    pub(super) fn take(&mut self, into: &mut [u8]) -> usize {
        let taken = into.len().min(self.end - self.start);
        into[..taken].copy_from_slice(&self.waiting()[..taken]);
        self.consume(taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came() {
        let mut buffer = Buffer::default();
        buffer.put(b"abc");
        buffer.consume(1);
        buffer.room(4)[..2].copy_from_slice(b"de");
        buffer.add(2);
        assert_eq!(buffer.waiting(), b"bcde");
        let mut three = [0; 3];
        assert_eq!((buffer.take(&mut three), &three), (3, b"bcd"));
        assert_eq!((buffer.take(&mut three), three[0], buffer.is_empty()), (1, b'e', true));
    }
}
