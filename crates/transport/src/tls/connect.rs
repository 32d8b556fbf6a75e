//! Opens a TLS flow.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use landspeed_proof::{CONFIRM, HELLO};

use super::connection::TlsConnection;
use super::flow::TlsFlow;
use super::handshake::Handshake;
use super::{identity, options};
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
    let config = identity::client(call.key, options::cipher(call.settings)).map_err(failed)?;
    let proof_key = identity::proof_key(call.key);
    let call_below = ConnectRequest { key: &proof_key, ..*call };
    let attempts = Attempts::begin();
    loop {
        let flow = below.connect(&call_below, patience)?;
        let open = || TlsConnection::client(Arc::clone(&config));
        let handshake = Handshake::begin(flow, open, HELLO + CONFIRM).map_err(refused(call))?;
        if let Some(flow) = shake(handshake, call, patience)? {
            return Ok(Box::new(flow));
        }
        if !attempts.pause(patience)? {
            return Err(Error::no_stream(call.server, false));
        }
    }
}

/// Performs the handshake. Returns `None` if the server has reset the connection.
fn shake(
    mut handshake: Handshake,
    call: &ConnectRequest<'_>,
    patience: &Patience<'_>,
) -> Result<Option<TlsFlow>, Error> {
    loop {
        match handshake.step() {
            Ok(true) => break,
            Ok(false) => wait(&handshake, call, patience)?,
            Err(error) => return after(error, call),
        }
    }
    let set_up = handshake.flow.set_up() + handshake.begun.elapsed().into();
    let (flow, records) = handshake.finish();
    Ok(Some(TlsFlow::new(flow, records, set_up, call.settings)))
}

fn wait(handshake: &Handshake, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<(), Error> {
    let slice = patience.slice()?.ok_or(Error::no_stream(call.server, false))?;
    let mut ready: Vec<_> = handshake.interest().into_iter().collect();
    socket::wait(&mut ready, slice).map(drop).map_err(refused(call))
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
