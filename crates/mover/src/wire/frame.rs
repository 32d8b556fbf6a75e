//! Frames: a message in postcard's encoding, and a body of bytes. Both are bounded before memory is taken.

use std::io::{self, ErrorKind};

use landspeed_transport::{Receiver, Sender};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::digest::PIECE;

/// The length of a frame's head: the lengths of message and body, as little-endian numbers of 32 bits.
const HEAD: usize = 8;
/// The longest message: an offer of [`super::MOST_OFFERED`] entries, each with the longest name and the longest link, or
/// the answers to it, each with the most ranges.
const LONGEST_MESSAGE: usize = 4 << 20;
/// The room for what arrives with one call.
const ROOM: usize = 64 << 10;

/// Writes frames to a flow.
pub(crate) struct FrameWriter<'a> {
    sender: Box<dyn Sender + 'a>,
    /// Messages that are not yet sent.
    waiting: Vec<u8>,
}

impl<'a> FrameWriter<'a> {
    pub(crate) fn new(sender: Box<dyn Sender + 'a>) -> Self {
        FrameWriter { sender, waiting: Vec::new() }
    }

    /// Sends a message with a body, and those that wait.
    pub(crate) fn send(&mut self, message: &impl Serialize, body: &[u8]) -> io::Result<()> {
        self.queue(message, body.len())?;
        self.flush()?;
        send_all(self.sender.as_mut(), body)
    }

    /// Adds a message without a body to those that wait. They are sent if they are many.
    pub(crate) fn push(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.queue(message, 0)?;
        if self.waiting.len() >= ROOM { self.flush() } else { Ok(()) }
    }

    /// Sends the messages that wait.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let sent = send_all(self.sender.as_mut(), &self.waiting);
        self.waiting.clear();
        sent
    }

    fn queue(&mut self, message: &impl Serialize, body: usize) -> io::Result<()> {
        let encoded = postcard::to_stdvec(message).map_err(io::Error::other)?;
        if encoded.len() > LONGEST_MESSAGE || body > PIECE {
            return Err(io::Error::other("a message is longer than the other end takes"));
        }
        self.waiting.extend_from_slice(&(encoded.len() as u32).to_le_bytes());
        self.waiting.extend_from_slice(&(body as u32).to_le_bytes());
        self.waiting.extend_from_slice(&encoded);
        Ok(())
    }
}

fn send_all(sender: &mut dyn Sender, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match sender.send(bytes, 1) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Reads frames from a flow.
pub(crate) struct FrameReader<'a> {
    bytes: ByteReader<'a>,
    message: Vec<u8>,
    /// Room for the longest body so far.
    body: Vec<u8>,
}

impl<'a> FrameReader<'a> {
    pub(crate) fn new(receiver: Box<dyn Receiver + 'a>) -> Self {
        let bytes = ByteReader { receiver, room: vec![0; ROOM], from: 0, to: 0 };
        FrameReader { bytes, message: Vec::new(), body: Vec::new() }
    }

    /// Waits for the next frame, and returns its message and its body; `None` if the flow has ended between frames.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<(M, &[u8])>> {
        let mut head = [0; HEAD];
        if !self.bytes.fill_or_end(&mut head)? {
            return Ok(None);
        }
        let (message, body) = lengths(head)?;
        self.message.resize(message, 0);
        self.bytes.fill(&mut self.message)?;
        let message = postcard::from_bytes(&self.message).map_err(|_| invalid("a message cannot be read"))?;
        // The room keeps its length: zeros would be written into room that is made anew.
        if self.body.len() < body {
            self.body.resize(body, 0);
        }
        self.bytes.fill(&mut self.body[..body])?;
        Ok(Some((message, &self.body[..body])))
    }
}

/// Returns the lengths of message and body, if they are within their bounds.
fn lengths(head: [u8; HEAD]) -> io::Result<(usize, usize)> {
    let [m0, m1, m2, m3, b0, b1, b2, b3] = head;
    let length = |bytes| u32::from_le_bytes(bytes) as usize;
    let (message, body) = (length([m0, m1, m2, m3]), length([b0, b1, b2, b3]));
    match message <= LONGEST_MESSAGE && body <= PIECE {
        true => Ok((message, body)),
        false => Err(invalid("a message is longer than any end sends")),
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// Reads bytes from a flow through a buffer, so that short messages do not cost a call each.
struct ByteReader<'a> {
    receiver: Box<dyn Receiver + 'a>,
    room: Vec<u8>,
    /// The bytes of `room` that have arrived and were not yet read.
    from: usize,
    to: usize,
}

impl ByteReader<'_> {
    /// Fills `into`. Returns false if the flow has ended before its first byte.
    fn fill_or_end(&mut self, into: &mut [u8]) -> io::Result<bool> {
        let mut filled = 0;
        while filled < into.len() {
            match self.some(&mut into[filled..])? {
                0 if filled == 0 => return Ok(false),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                taken => filled += taken,
            }
        }
        Ok(true)
    }

    fn fill(&mut self, into: &mut [u8]) -> io::Result<()> {
        match self.fill_or_end(into)? {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Copies bytes that have arrived into `into`, or waits for some. Returns their number, zero at the end of the flow.
    fn some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.from == self.to {
            if into.len() >= self.room.len() {
                return receive(self.receiver.as_mut(), into);
            }
            (self.from, self.to) = (0, receive(self.receiver.as_mut(), &mut self.room)?);
        }
        let taken = into.len().min(self.to - self.from);
        into[..taken].copy_from_slice(&self.room[self.from..self.from + taken]);
        self.from += taken;
        Ok(taken)
    }
}

fn receive(receiver: &mut dyn Receiver, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match receiver.receive(into) {
            Err(error) if is_wait(&error) => {}
            received => return received,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::digest::Digest;
    use crate::wire::{PieceHeader, ToTarget};

    /// A flow that holds what was sent, and hands it out in pieces of at most `step` bytes.
    #[derive(Default)]
    struct Held {
        bytes: Vec<u8>,
        step: usize,
    }

    impl Sender for &mut Held {
        fn send(&mut self, message: &[u8], _: u64) -> io::Result<usize> {
            let taken = message.len().min(self.step);
            self.bytes.extend_from_slice(&message[..taken]);
            Ok(taken)
        }

        fn give_up_after(&mut self, _: std::time::Duration) -> io::Result<()> {
            Ok(())
        }
    }

    impl Receiver for Held {
        fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let taken = into.len().min(self.step).min(self.bytes.len());
            into[..taken].copy_from_slice(&self.bytes[..taken]);
            self.bytes.drain(..taken);
            Ok(taken)
        }

        fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.receive(into)
        }
    }

    #[test]
    fn frames_arrive_as_they_were_sent() {
        let digest = Digest([3; 32]);
        let header = PieceHeader { entry: 7, index: 1, length: 200_000, digest, is_sent: true };
        let body: Vec<u8> = (0..200_000).map(|n| (n % 253) as u8).collect();
        for step in [1, 7, 100_000] {
            let mut held = Held { bytes: Vec::new(), step };
            let mut writer = FrameWriter::new(Box::new(&mut held));
            writer.push(&ToTarget::Finish).unwrap();
            writer.send(&ToTarget::Pieces(vec![header]), &body).unwrap();
            drop(writer);
            let mut reader = FrameReader::new(Box::new(held));
            assert_eq!(reader.next::<ToTarget>().unwrap(), Some((ToTarget::Finish, &b""[..])));
            let pieces = reader.next::<ToTarget>().unwrap();
            assert_eq!(pieces, Some((ToTarget::Pieces(vec![header]), &body[..])));
            assert_eq!(reader.next::<ToTarget>().unwrap(), None);
        }
    }

    #[test]
    fn a_frame_that_is_cut_off_is_an_error() {
        let mut held = Held { bytes: Vec::new(), step: 1 << 20 };
        FrameWriter::new(Box::new(&mut held)).send(&ToTarget::Pieces(Vec::new()), b"body").unwrap();
        held.bytes.pop();
        let error = FrameReader::new(Box::new(held)).next::<ToTarget>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }

    proptest! {
        /// Bytes of a stranger give messages or an error, and never more memory than the bounds.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut reader = FrameReader::new(Box::new(Held { bytes, step: 64 }));
            while let Ok(Some(_)) = reader.next::<ToTarget>() {}
            prop_assert!(reader.message.len() <= LONGEST_MESSAGE && reader.body.len() <= PIECE);
        }
    }
}
