//! Frames: a message in postcard's encoding, and a body of bytes. Both are bounded before memory is taken. The first frame in each
//! direction of a flow follows the version ([`GREETING`]).

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use landspeed_transport::{Flow, Receiver, Sender, TcpLimits, tcp_limits};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::version::{self, GREETING};
use crate::Error;
use crate::digest::PIECE;
use crate::link::Pulse;
use crate::pages::PageBuffer;

/// The length of a frame's head: the lengths of message and body, as little-endian numbers of 32 bits, and the number of
/// messages that the sender has taken, of 64 bits.
const HEAD: usize = 16;
/// The longest message: an offer of [`super::MOST_OFFERED`] entries, each with the longest name and the longest link, and of the
/// most attributes, or the answers to it, each with the most ranges.
const LONGEST_MESSAGE: usize = 4 << 20;
/// The room for what arrives with one call.
const ROOM: usize = 64 << 10;

/// Returns a message as it is sent, which is never empty.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    let encoded = postcard::to_stdvec(message).expect("a message has an encoding");
    debug_assert!((1..=LONGEST_MESSAGE).contains(&encoded.len()), "{} bytes", encoded.len());
    encoded
}

/// Writes frames to a flow. Several threads may write: each frame is written whole.
pub(crate) struct FrameWriter<'a> {
    flow: &'a dyn Flow,
    /// The number of messages of the other end that this end has taken.
    taken: &'a AtomicU64,
    /// Frames that are about to be sent. The version precedes the first one.
    waiting: Mutex<Vec<u8>>,
}

impl<'a> FrameWriter<'a> {
    pub(crate) fn new(flow: &'a dyn Flow, taken: &'a AtomicU64) -> Self {
        FrameWriter { flow, taken, waiting: Mutex::new(GREETING.to_vec()) }
    }

    /// Sends a message with a body.
    pub(crate) fn send(&self, message: &[u8], body: &[u8]) -> Result<(), Error> {
        let mut waiting = self.waiting.lock();
        push_frame(&mut waiting, message, body.len(), self.taken.load(Ordering::Acquire));
        if body.len() > ROOM {
            // Sending the head together with a piece of 1 MiB would save no TLS record and no call: the piece fills 64
            // records, and four calls encrypt 16 each.
            return self.flush(&mut waiting, body);
        }
        // Copying a short body costs less than another call.
        waiting.extend_from_slice(body);
        self.flush(&mut waiting, &[])
    }

    /// Sends messages without bodies.
    pub(crate) fn send_together(&self, messages: &[Arc<[u8]>]) -> Result<(), Error> {
        let mut waiting = self.waiting.lock();
        let taken = self.taken.load(Ordering::Acquire);
        messages.iter().for_each(|message| push_frame(&mut waiting, message, 0, taken));
        self.flush(&mut waiting, &[])
    }

    /// Sends a frame without a message: a keep-alive that acknowledges messages.
    pub(crate) fn beat(&self) -> Result<(), Error> {
        self.send(&[], &[])
    }

    /// Returns the flow's TCP_INFO; `None` if its transport is not TCP.
    pub(crate) fn limits(&self) -> Option<TcpLimits> {
        self.flow.sockets().first().and_then(|socket| tcp_limits(socket).ok())
    }

    /// Sends the frames that wait, and the body of the last one. A sending half is made for each call, because a thread cannot
    /// hand one over.
    fn flush(&self, waiting: &mut Vec<u8>, body: &[u8]) -> Result<(), Error> {
        let mut sender = self.flow.sender()?;
        let sent = send_all(sender.as_mut(), waiting).and_then(|()| send_all(sender.as_mut(), body));
        waiting.clear();
        if sent.is_err() {
            // The other end would read the next frame as the rest of this one.
            drop(self.flow.abort());
        }
        sent.map_err(Error::Flow)
    }
}

/// Appends a frame without its body.
fn push_frame(frames: &mut Vec<u8>, message: &[u8], body: usize, taken: u64) {
    // No message is longer than LONGEST_MESSAGE, and no body longer than PIECE.
    frames.extend_from_slice(&(message.len() as u32).to_le_bytes());
    frames.extend_from_slice(&(body as u32).to_le_bytes());
    frames.extend_from_slice(&taken.to_le_bytes());
    frames.extend_from_slice(message);
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

/// A frame that has arrived.
#[derive(Debug, PartialEq)]
pub(crate) struct Frame<'r, M> {
    /// `None` in a frame that only acknowledges messages.
    pub(crate) message: Option<M>,
    pub(crate) body: &'r [u8],
    /// The number of messages that its sender has taken.
    pub(crate) taken: u64,
}

/// Reads frames from a flow.
pub(crate) struct FrameReader<'a> {
    bytes: ByteReader<'a>,
    /// True once the other end's version was read, and is that of this end.
    is_greeted: bool,
    message: Vec<u8>,
    /// Room for the longest body so far. A body that is one piece of a long file can be written from it past the page cache.
    body: PageBuffer,
}

impl<'a> FrameReader<'a> {
    pub(crate) fn new(receiver: Box<dyn Receiver + 'a>, pulse: &'a Pulse) -> Self {
        let bytes = ByteReader { receiver, pulse, room: vec![0; ROOM], from: 0, to: 0 };
        FrameReader { bytes, is_greeted: false, message: Vec::new(), body: PageBuffer::default() }
    }

    /// Waits for the next frame; `None` if the flow has ended between frames.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> Result<Option<Frame<'_, M>>, Error> {
        let mut head = [0; HEAD];
        if !self.hears_greeting()? || !self.bytes.fill_or_end(&mut head).map_err(Error::Flow)? {
            return Ok(None);
        }
        let (message, body, taken) = fields(head)?;
        self.message.resize(message, 0);
        self.bytes.fill(&mut self.message).map_err(Error::Flow)?;
        let message = decode(&self.message)?;
        let body = self.body.front(body);
        self.bytes.fill(body).map_err(Error::Flow)?;
        Ok(Some(Frame { message, body, taken }))
    }
}

impl FrameReader<'_> {
    /// Reads the other end's version, the first time. Returns false if the flow has ended before.
    fn hears_greeting(&mut self) -> Result<bool, Error> {
        if !self.is_greeted {
            let mut greeting = GREETING;
            if !self.bytes.fill_or_end(&mut greeting).map_err(Error::Flow)? {
                return Ok(false);
            }
            version::check(greeting)?;
            self.is_greeted = true;
        }
        Ok(true)
    }
}

/// Returns the lengths of message and body, if they are within their bounds, and the number of messages that were taken.
fn fields(head: [u8; HEAD]) -> Result<(usize, usize, u64), Error> {
    let [m0, m1, m2, m3, b0, b1, b2, b3, taken @ ..] = head;
    let length = |bytes| u32::from_le_bytes(bytes) as usize;
    let (message, body) = (length([m0, m1, m2, m3]), length([b0, b1, b2, b3]));
    match message <= LONGEST_MESSAGE && body <= PIECE && (message > 0 || body == 0) {
        true => Ok((message, body, u64::from_le_bytes(taken))),
        false => Err(Error::Protocol("a frame is not as long as one that an end sends")),
    }
}

fn decode<M: DeserializeOwned>(message: &[u8]) -> Result<Option<M>, Error> {
    if message.is_empty() {
        return Ok(None);
    }
    postcard::from_bytes(message).map(Some).map_err(|_| Error::Protocol("a message cannot be read"))
}

/// Reads bytes from a flow through a buffer, so that short messages do not cost a call each.
struct ByteReader<'a> {
    receiver: Box<dyn Receiver + 'a>,
    pulse: &'a Pulse,
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
                return receive(self.receiver.as_mut(), into, self.pulse);
            }
            (self.from, self.to) = (0, receive(self.receiver.as_mut(), &mut self.room, self.pulse)?);
        }
        let taken = into.len().min(self.to - self.from);
        into[..taken].copy_from_slice(&self.room[self.from..self.from + taken]);
        self.from += taken;
        Ok(taken)
    }
}

fn receive(receiver: &mut dyn Receiver, into: &mut [u8], pulse: &Pulse) -> io::Result<usize> {
    pulse.listen(|| {
        loop {
            match receiver.receive(into) {
                Err(error) if is_wait(&error) => {}
                received => return received,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::digest::Digest;
    use crate::pages::{PAGE, begins_with_page};
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

    fn frame(message: &[u8], body: &[u8], taken: u64) -> Vec<u8> {
        let mut frame = Vec::new();
        push_frame(&mut frame, message, body.len(), taken);
        [frame.as_slice(), body].concat()
    }

    /// Reads what is held, after the version.
    fn read(held: Held, look: impl FnOnce(&mut FrameReader<'_>)) {
        let bytes = [&GREETING[..], &held.bytes].concat();
        read_all(Held { bytes, ..held }, look);
    }

    fn read_all(held: Held, look: impl FnOnce(&mut FrameReader<'_>)) {
        let pulse = Pulse::new();
        look(&mut FrameReader::new(Box::new(held), &pulse));
    }

    #[test]
    fn frames_arrive_as_they_were_sent() {
        let digest = Digest([3; 32]);
        let header = PieceHeader { entry: 7, index: 1, length: 200_000, digest, is_sent: true };
        let body: Vec<u8> = (0..200_000).map(|n| (n % 253) as u8).collect();
        let pieces = ToTarget::Pieces(vec![header]);
        for step in [1, 7, 100_000] {
            let mut held = Held { bytes: Vec::new(), step };
            let all = [
                frame(&encode(&ToTarget::Finish), &[], 5),
                frame(&[], &[], 6),
                frame(&encode(&pieces), &body, 7),
            ];
            send_all(&mut &mut held, &all.concat()).unwrap();
            read(held, |reader| {
                let finish = Frame { message: Some(ToTarget::Finish), body: &[], taken: 5 };
                assert_eq!(reader.next::<ToTarget>().unwrap(), Some(finish));
                let beat = Frame { message: None, body: &[], taken: 6 };
                assert_eq!(reader.next::<ToTarget>().unwrap(), Some(beat));
                let arrived = reader.next::<ToTarget>().unwrap().expect("a frame");
                assert!(begins_with_page(arrived.body));
                assert!(
                    arrived.message.as_ref() == Some(&pieces) && arrived.body == body && arrived.taken == 7
                );
                assert_eq!(reader.next::<ToTarget>().unwrap(), None);
            });
        }
    }

    /// Opening the flow again would not help.
    #[test]
    fn another_version_is_refused_and_is_no_error_of_the_flow() {
        let [name @ .., version] = GREETING;
        let greeting = [&name[..], &[version + 1]].concat();
        let bytes = [greeting, frame(&encode(&ToTarget::Finish), &[], 0)].concat();
        read_all(Held { bytes, step: 3 }, |reader| {
            let error = reader.next::<ToTarget>().unwrap_err();
            assert!(matches!(error, Error::Version { .. }) && !error.is_of_flow(), "{error}");
        });
        read_all(Held { bytes: Vec::new(), step: 3 }, |reader| {
            assert_eq!(reader.next::<ToTarget>().unwrap(), None);
        });
    }

    #[test]
    fn a_frame_that_is_cut_off_is_an_error_of_the_flow() {
        let mut bytes = frame(&encode(&ToTarget::Pieces(Vec::new())), b"body", 0);
        bytes.pop();
        read(Held { bytes, step: 1 << 20 }, |reader| {
            let error = reader.next::<ToTarget>().unwrap_err();
            assert!(error.is_of_flow(), "{error}");
        });
    }

    /// Opening the flow again would not help.
    #[test]
    fn an_invalid_frame_is_no_error_of_the_flow() {
        let long = [frame(&[], b"body", 0), u64::MAX.to_le_bytes().repeat(2), frame(&[0xff], &[], 0)];
        for bytes in long {
            read(Held { bytes, step: 64 }, |reader| {
                let error = reader.next::<ToTarget>().unwrap_err();
                assert!(matches!(error, Error::Protocol(_)), "{error}");
            });
        }
    }

    proptest! {
        /// Bytes of a stranger give messages or an error, and never more memory than the bounds.
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let pulse = Pulse::new();
            let bytes = [&GREETING[..], &bytes].concat();
            let mut reader = FrameReader::new(Box::new(Held { bytes, step: 64 }), &pulse);
            while let Ok(Some(_)) = reader.next::<ToTarget>() {}
            prop_assert!(reader.message.len() <= LONGEST_MESSAGE && reader.body.bytes().len() <= PIECE + PAGE);
        }
    }
}
