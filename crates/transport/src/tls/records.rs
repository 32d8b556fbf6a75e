//! A TLS connection over a stream, for two threads: one sends, the other receives.
//!
//! The lock of the connection is held only for cryptography. Each direction has a lock of its own for its bytes, which
//! is held while its thread waits for the stream. The order of records on the wire is the order in which they were
//! encrypted, because only the sending direction encrypts.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustls::SupportedCipherSuite;

use super::buffer::Buffer;
use super::clock::counted;
use super::connection::{Progress, TlsConnection, broken};

/// The most payload that one call encrypts, and the most bytes that one call takes from the stream.
const PIECE: usize = 256 << 10;
/// The least room for a call that takes bytes from the stream: at least a record.
const LEAST: usize = 20 << 10;

/// A TLS connection whose handshake is over.
pub(super) struct TlsRecords {
    connection: Mutex<TlsConnection>,
    outgoing: Mutex<Buffer>,
    incoming: Mutex<IncomingRecords>,
    /// The bytes of payload that were encrypted.
    payload: AtomicU64,
    /// The bytes of the stream that are not payload: those of the proof and of the handshake, and what encryption
    /// adds.
    overhead: AtomicU64,
    /// The bytes of payload that were ever reported as acknowledged.
    acked: AtomicU64,
}

/// The receiving direction.
#[derive(Default)]
pub(super) struct IncomingRecords {
    /// Encrypted bytes as they arrived.
    pub(super) sealed: Buffer,
    /// Payload that the caller had no room for.
    pub(super) opened: Buffer,
    /// True if the peer sent close_notify.
    pub(super) is_closed: bool,
}

/// A call that hands bytes to the stream, and returns how many it took.
pub(super) type Give<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<usize>;
/// A call that takes bytes from the stream, and returns how many; zero at the stream's end.
pub(super) type Take<'a> = &'a mut dyn FnMut(&mut [u8]) -> io::Result<usize>;

impl TlsRecords {
    /// Continues after a handshake. `incoming` has the bytes that followed the peer's handshake, and `overhead` is the
    /// number of bytes that this end has sent so far.
    pub(super) fn new(connection: TlsConnection, incoming: IncomingRecords, overhead: u64) -> Self {
        TlsRecords {
            connection: Mutex::new(connection),
            outgoing: Mutex::default(),
            incoming: Mutex::new(incoming),
            payload: AtomicU64::new(0),
            overhead: AtomicU64::new(overhead),
            acked: AtomicU64::new(0),
        }
    }

    pub(super) fn cipher(&self) -> Option<SupportedCipherSuite> {
        self.connection.lock().cipher()
    }

    /// Returns the lock of the sending direction.
    pub(super) fn outgoing(&self) -> &Mutex<Buffer> {
        &self.outgoing
    }

    /// Returns the lock of the receiving direction.
    pub(super) fn incoming(&self) -> &Mutex<IncomingRecords> {
        &self.incoming
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Mutex<TlsConnection> {
        &self.connection
    }

    /// Returns how many bytes of payload are acknowledged, if `acked` bytes of the stream are. The overhead of all
    /// bytes sent is subtracted, so that the result may be too small, but it never decreases.
    pub(super) fn payload_of(&self, acked: u64) -> u64 {
        let payload = acked.saturating_sub(self.overhead.load(Ordering::Relaxed)).min(self.sent());
        self.acked.fetch_max(payload, Ordering::Relaxed).max(payload)
    }

    /// Returns the bytes of payload that were encrypted.
    pub(super) fn sent(&self) -> u64 {
        self.payload.load(Ordering::Relaxed)
    }

    /// Encrypts the beginning of `message`, and returns its length.
    pub(super) fn encrypt(&self, message: &[u8], outgoing: &mut Buffer) -> io::Result<usize> {
        let piece = &message[..message.len().min(PIECE)];
        let before = outgoing.waiting().len();
        counted(|| self.connection.lock().encrypt(piece, outgoing))?;
        let added = outgoing.waiting().len() - before - piece.len();
        // There is only one sender at a time. The overhead comes first, so that it is never counted as payload.
        self.overhead.fetch_add(added as u64, Ordering::Relaxed);
        self.payload.fetch_add(piece.len() as u64, Ordering::Relaxed);
        Ok(piece.len())
    }

    /// Encrypts close_notify.
    pub(super) fn close(&self, outgoing: &mut Buffer) -> io::Result<()> {
        self.connection.lock().close(outgoing)
    }

    /// Receives payload into `into`, and returns its length: zero if the peer has sent close_notify. `take` takes bytes from
    /// the stream.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ConnectionReset`] if the stream ends without close_notify.
    pub(super) fn receive(&self, into: &mut [u8], take: Take<'_>) -> io::Result<usize> {
        let mut incoming = self.incoming.lock();
        loop {
            if let Some(got) = self.open(&mut incoming, into)? {
                return Ok(got);
            }
            if take_in(&mut incoming.sealed, into.len(), take)? == 0 {
                let why = "the peer's stream ended without TLS's close_notify";
                return Err(io::Error::new(ErrorKind::ConnectionReset, why));
            }
        }
    }

    /// Decrypts the received records. Returns `None` if they have no payload and the stream has not ended.
    fn open(&self, incoming: &mut IncomingRecords, into: &mut [u8]) -> io::Result<Option<usize>> {
        let got = incoming.opened.take(into);
        // Most calls come before anything has arrived.
        let is_empty = incoming.sealed.is_empty();
        let mut open = || self.open_all(incoming, &mut into[got..]);
        let more = if is_empty { open() } else { counted(open) }?;
        Ok((got + more > 0 || incoming.is_closed).then_some(got + more))
    }

    /// Decrypts records for as long as there is room for payload. Returns its length.
    fn open_all(&self, incoming: &mut IncomingRecords, into: &mut [u8]) -> io::Result<usize> {
        let IncomingRecords { sealed, opened, is_closed } = incoming;
        let (mut got, mut connection) = (0, self.connection.lock());
        while got < into.len() && !*is_closed {
            match open_one(&mut connection, sealed, |payload| {
                let fits = payload.len().min(into.len() - got);
                into[got..got + fits].copy_from_slice(&payload[..fits]);
                opened.put(&payload[fits..]);
                got += fits;
            })? {
                Progress::Moved => {}
                Progress::Blocked => break,
                Progress::Closed => *is_closed = true,
            }
        }
        Ok(got)
    }
}

/// Processes a record. A receiver never sends: rustls leaves its answer to an update of keys to the next payload.
fn open_one(
    connection: &mut MutexGuard<'_, TlsConnection>,
    sealed: &mut Buffer,
    payload: impl FnMut(&[u8]),
) -> io::Result<Progress> {
    let mut answer = Buffer::default();
    let progress = connection.advance(sealed, &mut answer, payload)?;
    if answer.is_empty() { Ok(progress) } else { Err(broken("the peer's records are not valid")) }
}

/// Sends the bytes that wait in `outgoing` by calls of `give`. If `is_brief`, gives up after the first call that takes only a
/// part.
pub(super) fn send_all(outgoing: &mut Buffer, is_brief: bool, give: Give<'_>) -> io::Result<()> {
    while !outgoing.is_empty() {
        let taken = give(outgoing.waiting())?;
        outgoing.consume(taken);
        if is_brief && !outgoing.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
    }
    Ok(())
}

/// Receives about as many bytes as `wanted` by a call of `take`, and returns how many; zero at the end of the stream.
pub(super) fn take_in(sealed: &mut Buffer, wanted: usize, take: Take<'_>) -> io::Result<usize> {
    let got = take(sealed.room(wanted.clamp(LEAST, PIECE)))?;
    sealed.add(got);
    Ok(got)
}
