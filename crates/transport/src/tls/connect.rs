//! Opens a TLS flow.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use landspeed_proof::{CONFIRM, HELLO};

use super::connection::TlsConnection;
use super::flow::TlsFlow;
use super::handshake::{Handshake, wait_for};
use super::identity;
use super::options::CipherChoice;
use crate::attempts::Attempts;
use crate::transport::{ConnectRequest, Flow, Transport};
use crate::{Error, Patience, socket};

/// Opens a flow of the transport `below`, which proves the key, and performs the TLS handshake on it. Tries again if the
/// server resets the connection because it has too many connections.
pub(super) fn connect(
    below: &dyn Transport,
    call: &ConnectRequest<'_>,
    patience: &Patience<'_>,
) -> Result<Box<dyn Flow>, Error> {
    let failed = |why| Error::refused("connect to", call.server, io::Error::other(why));
    let config = identity::client(call.key, &CipherChoice::of(call.settings)).map_err(failed)?;
    let proof_key = identity::proof_key(call.key);
    let call_below = ConnectRequest { key: &proof_key, ..*call };
    let attempts = Attempts::begin();
    loop {
        let flow = below.connect(&call_below, patience)?;
        let open = || TlsConnection::client(Arc::clone(&config));
        let handshake = Handshake::begin(flow, open, HELLO + CONFIRM).map_err(refused(call))?;
        if let Some(flow) = shake(handshake, below, call, patience)? {
            return Ok(Box::new(flow));
        }
        if !attempts.pause(patience)? {
            return Err(late(below, call));
        }
    }
}

/// Performs the handshake. Returns `None` if the server has reset the connection.
fn shake(
    mut handshake: Handshake,
    below: &dyn Transport,
    call: &ConnectRequest<'_>,
    patience: &Patience<'_>,
) -> Result<Option<TlsFlow>, Error> {
    loop {
        match handshake.step() {
            Ok(true) => break,
            Ok(false) => wait(&handshake, below, call, patience)?,
            Err(error) => return after(error, call),
        }
    }
    let set_up = handshake.flow.set_up() + handshake.begun.elapsed().into();
    // A later loss would be repaired only during the next call on the flow.
    while handshake.is_unheard() {
        wait(&handshake, below, call, patience)?;
    }
    let (flow, records) = handshake.finish();
    Ok(Some(TlsFlow::new(flow, records, set_up, call.settings)))
}

fn wait(
    handshake: &Handshake,
    below: &dyn Transport,
    call: &ConnectRequest<'_>,
    patience: &Patience<'_>,
) -> Result<(), Error> {
    let slice = patience.slice()?.ok_or_else(|| late(below, call))?;
    let mut ready: Vec<_> = handshake.interest().into_iter().collect();
    let waited = socket::wait(&mut ready, wait_for(handshake.flow.as_ref(), slice));
    waited.map(drop).map_err(refused(call))
}

/// Returns the error for a server that does not answer in time.
fn late(below: &dyn Transport, call: &ConnectRequest<'_>) -> Error {
    match below.about().protocol {
        "udp" => Error::no_datagram(call.server),
        _ => Error::no_stream(call.server, false),
    }
}

/// Returns what follows from a handshake that failed: another attempt (`None`) or an error.
fn after(error: io::Error, call: &ConnectRequest<'_>) -> Result<Option<TlsFlow>, Error> {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(None),
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => Err(Error::Unproven { server: call.server }),
        _ => Err(refused(call)(error)),
    }
}

fn refused(call: &ConnectRequest<'_>) -> impl Fn(io::Error) -> Error {
    let server = call.server;
    move |source| Error::refused("perform the TLS handshake with", server, source)
}
