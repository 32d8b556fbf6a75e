//! Captures a program's output, up to a limit.

use std::io::Read;

/// The largest size, in bytes, of an output from which figures are read. A longer output is an error.
const MOST: usize = 4 << 20;
/// The number of bytes at the end of an output that are kept if no figures are read from it.
const TAIL: usize = 64 << 10;
/// The most bytes of one read.
const PIECE: usize = 64 << 10;

/// An output pipe, and the part of the output that is kept.
pub(super) struct OutputCapture<R> {
    pub(super) pipe: Option<R>,
    kept: Vec<u8>,
    whole: bool,
    pub(super) overflowed: bool,
}

impl<R: Read> OutputCapture<R> {
    /// Returns a capture that keeps the whole output. An output of more than [`MOST`] bytes is cut, and sets
    /// `overflowed`.
    pub(super) fn whole(pipe: R) -> Self {
        OutputCapture { pipe: Some(pipe), kept: Vec::new(), whole: true, overflowed: false }
    }

    /// Returns a capture that keeps the end of the output, at least the last [`TAIL`] bytes.
    pub(super) fn end(pipe: R) -> Self {
        OutputCapture { whole: false, ..OutputCapture::whole(pipe) }
    }

    /// Reads what has arrived, without blocking, and returns it for callers that wait for a line.
    pub(super) fn read(&mut self) -> Vec<u8> {
        let mut piece = vec![0; PIECE];
        let Some(pipe) = &mut self.pipe else { return Vec::new() };
        match pipe.read(&mut piece) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                piece.truncate(count);
                self.keep(&piece);
                return piece;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
        Vec::new()
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.whole {
            self.overflowed |= self.kept.len() + piece.len() > MOST;
            self.kept.extend(&piece[..piece.len().min(MOST.saturating_sub(self.kept.len()))]);
            return;
        }
        self.kept.extend(piece);
        if self.kept.len() > 2 * TAIL {
            self.kept.drain(..self.kept.len() - TAIL);
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_output_takes_more_room_than_its_bound() {
        let gigabytes = std::io::repeat(b'x').take(64 << 20);
        let mut whole = OutputCapture::whole(gigabytes);
        while whole.pipe.is_some() {
            whole.read();
        }
        assert!(whole.overflowed && whole.kept.len() == MOST);
        let mut end = OutputCapture::end(
            (&b"first"[..]).chain(std::io::repeat(b'y').take(1 << 20)).chain(&b"last"[..]),
        );
        while end.pipe.is_some() {
            end.read();
        }
        assert!(!end.overflowed && end.kept.len() <= 2 * TAIL && end.text().ends_with("ylast"));
    }
}
