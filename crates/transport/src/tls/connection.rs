//! The TLS state machine of either end, without sockets.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{ClientConfig, CommonState, ServerConfig, SupportedCipherSuite};

use super::buffer::Buffer;
use crate::raw_keys::NAME;

/// The largest payload of a record (RFC 8446 section 5.1), in bytes.
const RECORD: usize = 1 << 14;
/// The most bytes that encryption adds to a record: its header, the type of its content, and the tag. It is an upper
/// bound (RFC 8446 section 5.2).
const ADDED: usize = 5 + 256;

/// The TLS state of one end.
pub(super) struct TlsConnection {
    end: End,
    /// True after an error, after which nothing can be sent or received any more.
    is_broken: bool,
}

enum End {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

/// The result of processing the records that have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It read or wrote a record, and may do more.
    Moved,
    /// It needs more bytes from the peer.
    Blocked,
    /// The peer sent close_notify, after the handshake: no more payload comes.
    Closed,
}

impl TlsConnection {
    pub(super) fn client(config: Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let connection = UnbufferedClientConnection::new(config, name).map_err(broken)?;
        Ok(TlsConnection { end: End::Client(Box::new(connection)), is_broken: false })
    }

    pub(super) fn server(config: Arc<ServerConfig>) -> io::Result<Self> {
        let connection = UnbufferedServerConnection::new(config).map_err(broken)?;
        Ok(TlsConnection { end: End::Server(Box::new(connection)), is_broken: false })
    }

    fn common(&self) -> &CommonState {
        match &self.end {
            End::Client(connection) => connection,
            End::Server(connection) => connection,
        }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// Returns the cipher suite that both ends agreed on; `None` before they have.
    pub(super) fn cipher(&self) -> Option<SupportedCipherSuite> {
        self.common().negotiated_cipher_suite()
    }

    /// Processes at most one record that waits in `incoming`. Appends handshake messages to `outgoing`, and passes
    /// payload to `payload`.
    pub(super) fn advance(
        &mut self,
        incoming: &mut Buffer,
        outgoing: &mut Buffer,
        payload: impl FnMut(&[u8]),
    ) -> io::Result<Progress> {
        self.check()?;
        let bytes = incoming.waiting();
        let (discard, progress) = match &mut self.end {
            End::Client(one) => advance(one.process_tls_records(bytes), outgoing, payload),
            End::Server(one) => advance(one.process_tls_records(bytes), outgoing, payload),
        };
        incoming.consume(discard);
        // A record that stays is part of a message that the peer spread over several records. A handshake in progress
        // waits for the rest. Afterwards rustls expects these bytes again in the next call, but the next call may be a
        // sender's, which has none.
        let is_blocked = matches!(progress, Ok(Progress::Blocked));
        let spreads = is_blocked && !self.is_handshaking() && has_record(incoming.waiting());
        self.is_broken = progress.is_err() || spreads;
        progress.and_then(|progress| self.check().map(|()| progress))
    }

    /// Returns an error if the connection cannot continue.
    fn check(&self) -> io::Result<()> {
        if self.is_broken { Err(broken("the peer's records are not valid")) } else { Ok(()) }
    }

    /// Encrypts `payload` to the end of `outgoing`.
    pub(super) fn encrypt(&mut self, payload: &[u8], outgoing: &mut Buffer) -> io::Result<()> {
        self.write(outgoing, payload.len() + (payload.len() / RECORD + 4) * ADDED, Some(payload))
    }

    /// Appends close_notify to `outgoing`, which announces the end of the payload.
    pub(super) fn close(&mut self, outgoing: &mut Buffer) -> io::Result<()> {
        self.write(outgoing, RECORD, None)
    }

    fn write(&mut self, outgoing: &mut Buffer, room: usize, payload: Option<&[u8]>) -> io::Result<()> {
        // Encodes messages that must precede the payload, such as a key update.
        let mut nothing = Buffer::default();
        while self.advance(&mut nothing, outgoing, |_| {})? == Progress::Moved {}
        let room = outgoing.room(room);
        let written = match &mut self.end {
            End::Client(one) => write(one.process_tls_records(&mut []), room, payload),
            End::Server(one) => write(one.process_tls_records(&mut []), room, payload),
        }?;
        outgoing.add(written);
        Ok(())
    }
}

/// Returns the number of bytes to discard from the input, and what the connection did.
fn advance<Data>(
    UnbufferedStatus { discard, state, .. }: UnbufferedStatus<'_, '_, Data>,
    outgoing: &mut Buffer,
    payload: impl FnMut(&[u8]),
) -> (usize, io::Result<Progress>) {
    (discard, state.map_err(broken).and_then(|state| settle(state, outgoing, payload)))
}

fn settle<Data>(
    state: ConnectionState<'_, '_, Data>,
    outgoing: &mut Buffer,
    mut payload: impl FnMut(&[u8]),
) -> io::Result<Progress> {
    match state {
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                payload(record.map_err(broken)?.payload);
            }
            Ok(Progress::Moved)
        }
        ConnectionState::EncodeTlsData(mut data) => encode(&mut data, outgoing).map(|()| Progress::Moved),
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Ok(Progress::Moved)
        }
        ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => Ok(Progress::Blocked),
        ConnectionState::PeerClosed | ConnectionState::Closed => Ok(Progress::Closed),
        other => Err(broken(format!("{other:?} was not expected"))),
    }
}

fn encode<Data>(data: &mut EncodeTlsData<'_, Data>, outgoing: &mut Buffer) -> io::Result<()> {
    let needed = match data.encode(&mut []) {
        Ok(_) => return Ok(()),
        Err(EncodeError::InsufficientSize(needed)) => needed.required_size,
        Err(error) => return Err(broken(error)),
    };
    let written = data.encode(outgoing.room(needed)).map_err(broken)?;
    outgoing.add(written);
    Ok(())
}

fn write<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    room: &mut [u8],
    payload: Option<&[u8]>,
) -> io::Result<usize> {
    let ConnectionState::WriteTraffic(mut traffic) = status.state.map_err(broken)? else {
        return Err(broken("the connection takes no payload"));
    };
    let written = match payload {
        Some(payload) => traffic.encrypt(payload, room),
        None => traffic.queue_close_notify(room),
    };
    written.map_err(broken)
}

/// Returns true if `bytes` begin with a whole record.
fn has_record(bytes: &[u8]) -> bool {
    let Some((header, rest)) = bytes.split_first_chunk::<5>() else { return false };
    rest.len() >= u16::from_be_bytes([header[3], header[4]]).into()
}

/// Returns the error for a connection that cannot continue.
pub(super) fn broken(error: impl ToString) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("TLS: {}", error.to_string()))
}

#[cfg(test)]
impl TlsConnection {
    /// Asks for new keys in both directions, as a connection does after many records.
    pub(super) fn update_keys(&mut self) {
        let updated = match &mut self.end {
            End::Client(one) => update(one.process_tls_records(&mut [])),
            End::Server(one) => update(one.process_tls_records(&mut [])),
        };
        updated.expect("a connection of TLS 1.3 whose handshake is over");
    }
}

#[cfg(test)]
fn update<Data>(status: UnbufferedStatus<'_, '_, Data>) -> Result<(), rustls::Error> {
    match status.state? {
        ConnectionState::WriteTraffic(traffic) => traffic.refresh_traffic_keys(),
        other => panic!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_whole_with_the_last_byte_of_its_length() {
        let record = [23, 3, 3, 0, 2, 7, 7, 23];
        let whole = (0..=record.len()).filter(|length| has_record(&record[..*length]));
        assert_eq!(whole.collect::<Vec<_>>(), [7, 8]);
    }
}
