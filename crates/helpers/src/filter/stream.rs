//! Streams: the inputs and outputs of a filter's copy.
//!
//! Between each copy of a producer and each copy of its consumer, at most `credits` frames are in flight. A frame is
//! a buffer or an end-of-work marker. The frame's credit returns when the consumer requests the next frame. A slow
//! filter therefore stops the filters before it, one after the other, and no data accumulates.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError};
use std::time::Duration;

use crate::filter::error::PeerHost;
use crate::filter::frame::{self, FrameKind, FrameReadError, HEADER, SocketFrame};
use crate::filter::query::Query;
use crate::filter::{Distribution, Error};

/// Interval at which a waiting filter checks that the query continues.
const SLICE: Duration = Duration::from_millis(100);

/// A message from a producer's copy.
#[derive(Debug)]
pub(crate) enum StreamMessage {
    Buffer(Vec<u8>),
    End(u32),
}

/// A message, with the index of the producer's copy that sent it.
pub(crate) type InboxEntry = (usize, StreamMessage);

/// The channel or socket to one copy of the consumer or, for credits, to one copy of the producer.
#[derive(Debug)]
pub(crate) enum StreamEndpoint<T> {
    Local(T),
    Socket(TcpStream, PeerHost),
}

/// The stream from which one instance (copy) of a filter takes buffers.
#[derive(Debug)]
pub struct FilterInput<'a> {
    query: &'a Query,
    credits: usize,
    inbox: Receiver<InboxEntry>,
    producers: Vec<Producer>,
    /// The buffer that the filter uses now, with the index of its producer.
    held: Option<(usize, Vec<u8>)>,
    unit: u32,
}

#[derive(Debug)]
struct Producer {
    back: StreamEndpoint<(SyncSender<usize>, usize)>,
    /// The messages that arrived before they were requested, because one producer may be a unit ahead of another.
    waiting: VecDeque<StreamMessage>,
    /// True once the producer's marker of the current unit has arrived.
    ended: bool,
}

impl<'a> FilterInput<'a> {
    /// Creates an input. `back` holds, for each producer, the endpoint to which its credits return.
    pub(crate) fn new(
        query: &'a Query,
        credits: usize,
        inbox: Receiver<InboxEntry>,
        back: Vec<StreamEndpoint<(SyncSender<usize>, usize)>>,
    ) -> Self {
        let producer = |back| Producer { back, waiting: VecDeque::new(), ended: false };
        FilterInput {
            query,
            credits,
            inbox,
            producers: back.into_iter().map(producer).collect(),
            held: None,
            unit: 0,
        }
    }

    /// Returns the next buffer of this unit; `None` once every copy of the producer has sent its marker. The buffer
    /// of the previous call counts as used up.
    ///
    /// # Errors
    /// Returns an error if the query has ended, or if a producer breaks the protocol.
    pub fn take(&mut self) -> Result<Option<&[u8]>, Error> {
        if let Some((producer, _)) = self.held.take() {
            self.release(producer)?;
        }
        loop {
            let Some(n) = self.producers.iter().position(|one| !one.ended) else { return Ok(None) };
            let first = (n..self.producers.len()).find_map(|n| {
                let one = &mut self.producers[n];
                let message = if one.ended { None } else { one.waiting.pop_front() };
                message.map(|message| (n, message))
            });
            match first {
                Some((n, StreamMessage::Buffer(buffer))) => {
                    return Ok(Some(&self.held.insert((n, buffer)).1));
                }
                Some((n, StreamMessage::End(unit))) => self.ended(n, unit)?,
                None => self.pull()?,
            }
        }
    }

    /// Moves to the next unit. The buffers of the current unit that the filter has not taken are dropped.
    pub(crate) fn turn(&mut self) -> Result<(), Error> {
        while self.take()?.is_some() {}
        self.producers.iter_mut().for_each(|one| one.ended = false);
        self.unit += 1;
        Ok(())
    }

    fn ended(&mut self, producer: usize, unit: u32) -> Result<(), Error> {
        let expected = self.unit;
        if unit != expected {
            return self.wrong(producer, format!("the end of unit {unit} came in unit {expected}"));
        }
        self.producers[producer].ended = true;
        self.release(producer)
    }

    /// Waits for a message from any producer, for one [`SLICE`] at most.
    fn pull(&mut self) -> Result<(), Error> {
        match self.inbox.recv_timeout(SLICE) {
            Ok((n, message)) => {
                self.producers[n].waiting.push_back(message);
                if self.producers[n].waiting.len() > self.credits {
                    return self.wrong(n, "it sent more than its credits".to_owned());
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => self.query.check(),
            // Each reader has reported why it ended.
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(SLICE);
                self.query.check()
            }
        }
    }

    fn wrong(&self, producer: usize, why: String) -> Result<(), Error> {
        Err(match &self.producers[producer].back {
            StreamEndpoint::Socket(_, peer) => Error::protocol(*peer, why),
            StreamEndpoint::Local(_) => unreachable!("this process keeps its own protocol: {why}"),
        })
    }

    fn release(&mut self, producer: usize) -> Result<(), Error> {
        match &mut self.producers[producer].back {
            // The channel has room for every credit, so the send fails only if the producer has ended after its last
            // marker.
            StreamEndpoint::Local((back, consumer)) => drop(back.try_send(*consumer)),
            StreamEndpoint::Socket(stream, peer) => {
                frame::write(stream, FrameKind::Credit, &[])
                    .map_err(|error| self.query.verdict(Error::lost(*peer, error)))?;
            }
        }
        Ok(())
    }
}

/// The stream to which a copy of a filter sends its buffers.
#[derive(Debug)]
pub struct FilterOutput<'a> {
    query: &'a Query,
    to: OutputTarget,
}

#[derive(Debug)]
enum OutputTarget {
    Stream(OutgoingStream),
    /// The output of the last filter: the picture of this unit so far, and the size of the complete picture in bytes.
    Picture(Vec<u8>, usize),
}

#[derive(Debug)]
struct OutgoingStream {
    distribution: Distribution,
    credits: usize,
    largest: usize,
    producer: usize,
    consumers: Vec<Consumer>,
    back: Receiver<usize>,
    /// The index of the copy that is next in round robin. With [`Distribution::Demand`], it is the copy preferred among
    /// those with equally few frames in flight.
    turn: usize,
}

#[derive(Debug)]
struct Consumer {
    endpoint: StreamEndpoint<SyncSender<InboxEntry>>,
    /// The payload of each frame in flight in bytes, oldest first.
    owed: VecDeque<u64>,
}

/// The parts from which an output is created.
#[derive(Debug)]
pub(crate) struct OutputParts {
    pub(crate) distribution: Distribution,
    pub(crate) credits: usize,
    /// Size of the largest buffer, in bytes.
    pub(crate) largest: usize,
    /// The index of this copy of the producer.
    pub(crate) producer: usize,
    pub(crate) endpoints: Vec<StreamEndpoint<SyncSender<InboxEntry>>>,
    /// The returned credits: for each, the index of the consumer's copy that returned it.
    pub(crate) back: Receiver<usize>,
}

impl<'a> FilterOutput<'a> {
    pub(crate) fn stream(query: &'a Query, parts: OutputParts) -> Self {
        let OutputParts { distribution, credits, largest, producer, endpoints, back } = parts;
        let consumers =
            endpoints.into_iter().map(|endpoint| Consumer { endpoint, owed: VecDeque::new() }).collect();
        let stream = OutgoingStream { distribution, credits, largest, producer, consumers, back, turn: 0 };
        FilterOutput { query, to: OutputTarget::Stream(stream) }
    }

    pub(crate) fn picture(query: &'a Query, size: usize) -> Self {
        FilterOutput { query, to: OutputTarget::Picture(Vec::new(), size) }
    }

    /// Waits for a credit, and sends a buffer to one copy of the consumer.
    ///
    /// # Errors
    /// Returns an error if the query has ended, or if a consumer breaks the protocol.
    ///
    /// # Panics
    /// Panics if the buffer is larger than the filter's stage allows, which is a bug of the filter.
    pub fn send(&mut self, buffer: Vec<u8>) -> Result<(), Error> {
        match &mut self.to {
            OutputTarget::Picture(picture, size) => {
                picture.extend(buffer);
                assert!(picture.len() <= *size, "a picture is as large as its stage says");
                Ok(())
            }
            OutputTarget::Stream(stream) => {
                assert!(buffer.len() <= stream.largest, "a buffer is no larger than its stage says");
                let consumer = stream.choose(self.query)?;
                stream.post(self.query, consumer, StreamMessage::Buffer(buffer))
            }
        }
    }

    /// Sends the end-of-work marker of a unit to every copy of the consumer.
    pub(crate) fn end(&mut self, unit: u32) -> Result<(), Error> {
        match &mut self.to {
            OutputTarget::Picture(picture, _) => {
                self.query.finish(std::mem::take(picture));
                Ok(())
            }
            OutputTarget::Stream(stream) => (0..stream.consumers.len()).try_for_each(|n| {
                stream.await_credit(self.query, |stream| stream.is_free(n))?;
                stream.post(self.query, n, StreamMessage::End(unit))
            }),
        }
    }
}

impl OutgoingStream {
    fn is_free(&self, n: usize) -> bool {
        self.consumers[n].owed.len() < self.credits
    }

    /// Waits for a credit, and returns the index of the copy that gets the next buffer.
    fn choose(&mut self, query: &Query) -> Result<usize, Error> {
        let copies = self.consumers.len();
        let first = self.turn;
        let chosen = match self.distribution {
            Distribution::RoundRobin => {
                self.await_credit(query, |stream| stream.is_free(first))?;
                first
            }
            Distribution::Demand => {
                self.await_credit(query, |stream| (0..copies).any(|n| stream.is_free(n)))?;
                let around = (first..first + copies).map(|n| n % copies);
                around.min_by_key(|n| self.consumers[*n].owed.len()).unwrap_or(first)
            }
        };
        self.turn = (chosen + 1) % copies;
        Ok(chosen)
    }

    /// Receives returned credits until `enough` returns true.
    fn await_credit(&mut self, query: &Query, enough: impl Fn(&Self) -> bool) -> Result<(), Error> {
        loop {
            match self.back.try_recv() {
                Ok(consumer) => self.credited(query, consumer)?,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) if enough(self) => return Ok(()),
                Err(_) => match self.back.recv_timeout(SLICE) {
                    Ok(consumer) => self.credited(query, consumer)?,
                    Err(RecvTimeoutError::Timeout) => query.check()?,
                    Err(RecvTimeoutError::Disconnected) => {
                        std::thread::sleep(SLICE);
                        query.check()?;
                    }
                },
            }
        }
    }

    fn credited(&mut self, query: &Query, consumer: usize) -> Result<(), Error> {
        let consumer = &mut self.consumers[consumer];
        match (consumer.owed.pop_front(), &consumer.endpoint) {
            (Some(bytes), _) => query.used(bytes),
            (None, StreamEndpoint::Socket(_, peer)) => {
                return Err(Error::protocol(*peer, "it returned a credit too many"));
            }
            (None, StreamEndpoint::Local(_)) => {}
        }
        Ok(())
    }

    fn post(&mut self, query: &Query, n: usize, message: StreamMessage) -> Result<(), Error> {
        let consumer = &mut self.consumers[n];
        let is_remote = matches!(consumer.endpoint, StreamEndpoint::Socket(..));
        if let StreamMessage::Buffer(buffer) = &message {
            let bytes = buffer.len() as u64;
            query.sent(bytes, if is_remote { bytes + HEADER as u64 } else { 0 });
            consumer.owed.push_back(bytes);
        } else {
            consumer.owed.push_back(0);
        }
        match &mut consumer.endpoint {
            // The inbox has room for every credit, so the send fails only if the consumer has ended. It has then
            // reported the reason.
            StreamEndpoint::Local(inbox) => match inbox.try_send((self.producer, message)) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => query.check(),
            },
            StreamEndpoint::Socket(stream, peer) => {
                let sent = match &message {
                    StreamMessage::Buffer(buffer) => frame::write(stream, FrameKind::Buffer, buffer),
                    StreamMessage::End(unit) => frame::write(stream, FrameKind::End, &unit.to_le_bytes()),
                };
                sent.map_err(|error| query.verdict(Error::lost(*peer, error)))
            }
        }
    }
}

/// Reads the frames of one producer's copy from its socket, until the query ends.
pub(crate) fn receive(
    query: &Query,
    (mut stream, peer): (TcpStream, PeerHost),
    largest: usize,
    (inbox, producer): (SyncSender<InboxEntry>, usize),
) {
    let error = loop {
        let message = match frame::read(&mut stream, largest.max(4)) {
            Ok(SocketFrame { kind: FrameKind::Buffer, body }) if body.len() <= largest => {
                StreamMessage::Buffer(body)
            }
            Ok(SocketFrame { kind: FrameKind::End, body }) if body.len() == 4 => {
                StreamMessage::End(u32::from_le_bytes([body[0], body[1], body[2], body[3]]))
            }
            Ok(SocketFrame { kind, body }) => {
                break Error::protocol(peer, format!("{kind:?} of {} bytes on a stream", body.len()));
            }
            Err(FrameReadError::Io(error)) => return query.suspect(Error::lost(peer, error)),
            Err(wrong) => break Error::protocol(peer, wrong),
        };
        match inbox.try_send((producer, message)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => break Error::protocol(peer, "it sent more than its credits"),
            Err(TrySendError::Disconnected(_)) => return,
        }
    };
    query.fail(error);
}

/// Reads the credits that one consumer's copy returns over its socket, until the query ends.
pub(crate) fn receive_credits(
    query: &Query,
    (mut stream, peer): (TcpStream, PeerHost),
    (back, consumer): (SyncSender<usize>, usize),
) {
    loop {
        match frame::read(&mut stream, 0) {
            Ok(SocketFrame { kind: FrameKind::Credit, .. }) => match back.try_send(consumer) {
                Err(TrySendError::Full(_)) => {
                    return query.fail(Error::protocol(peer, "it returned a credit too many"));
                }
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            },
            Ok(SocketFrame { kind, .. }) => {
                return query.fail(Error::protocol(peer, format!("{kind:?} instead of a credit")));
            }
            Err(FrameReadError::Io(error)) => return query.suspect(Error::lost(peer, error)),
            Err(wrong) => return query.fail(Error::protocol(peer, wrong)),
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
