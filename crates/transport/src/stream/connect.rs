//! Opens a flow over a stream socket, and proves the key.

use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};

use landspeed_proof::{ANSWER, KeyProof, random};
use landspeed_record::units::Nanos;
use rustix::event::{PollFd, PollFlags};
use socket2::{SockAddr, Socket};

use super::StreamTransport;
use super::flow::StreamFlow;
use crate::attempts::Attempts;
use crate::transport::{ConnectRequest, Flow};
use crate::{Error, Patience, ports, socket};

/// Opens one flow and proves the key. Tries again if the server resets the connection because it has too many
/// connections.
pub(crate) fn connect(
    kind: &'static dyn StreamTransport,
    call: &ConnectRequest<'_>,
    patience: &Patience<'_>,
) -> Result<Box<dyn Flow>, Error> {
    let attempts = Attempts::begin();
    loop {
        let (socket, set_up) = reach(kind, call, patience, &attempts)?;
        if prove(&socket, call, patience)? {
            return Ok(Box::new(StreamFlow::new(kind, socket, call.number, set_up, call.settings)));
        }
        drop(socket);
        if !attempts.pause(patience)? {
            return Err(Error::no_stream(call.server, false));
        }
    }
}

/// Connects to the server. Tries again while the server refuses or does not listen yet. Returns the socket and the
/// duration of the successful connection's set-up.
fn reach(
    kind: &dyn StreamTransport,
    call: &ConnectRequest<'_>,
    patience: &Patience<'_>,
    attempts: &Attempts,
) -> Result<(Socket, Nanos), Error> {
    let server = kind.address(call.server, call.key);
    let server = server.map_err(|source| Error::refused("connect to", call.server, source))?;
    loop {
        let socket = kind.dial(call.server, call.source_port)?;
        // Sets the options before connect(2) sends the SYN.
        kind.options().set(&socket, call.settings);
        // A blocking connect measures the set-up with one system call; the timeout lets this thread check its
        // patience.
        let refused = |source| Error::refused("connect to", call.server, source);
        socket.set_write_timeout(Some(Duration::from_millis(50))).map_err(refused)?;
        let begun = Instant::now();
        match attempt(&socket, &server, patience) {
            Ok(true) => {
                let set_up = Nanos::from(begun.elapsed());
                socket.set_write_timeout(None).map_err(refused)?;
                return Ok((socket, set_up));
            }
            Ok(false) => return Err(Error::no_stream(call.server, false)),
            Err(ConnectError::GaveUp(error)) => return Err(error),
            Err(ConnectError::Failed(error))
                if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) =>
            {
                if !attempts.pause(patience)? {
                    return Err(Error::no_stream(call.server, true));
                }
            }
            Err(ConnectError::Failed(error)) => return Err(no_port(call, error).unwrap_or_else(refused)),
        }
    }
}

/// Returns [`Error::NoPort`] if `error` means that the kernel has no local port for the flow; otherwise returns
/// `error` as the error.
fn no_port(call: &ConnectRequest<'_>, error: io::Error) -> Result<Error, io::Error> {
    let is_port = error.raw_os_error() == Some(libc::EADDRNOTAVAIL) && call.source_port == 0;
    let Some(range) = is_port.then(ports::local_range).flatten() else { return Err(error) };
    let [first, last] = range.map(u64::from);
    let (server, held) = (call.server, ports::held_towards(call.server, range));
    Ok(Error::NoPort { server, held, all: last - first + 1, range, source: error })
}

enum ConnectError {
    GaveUp(Error),
    Failed(io::Error),
}

/// Makes one connection attempt, repeating connect(2) while the kernel reports that the attempt is under way. Returns
/// false if the patience ends first.
fn attempt(socket: &Socket, server: &SockAddr, patience: &Patience<'_>) -> Result<bool, ConnectError> {
    loop {
        let error = match socket.connect(server) {
            Ok(()) => return Ok(true),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EINPROGRESS | libc::EALREADY | libc::EAGAIN | libc::EINTR) => {}
            Some(libc::EISCONN) => return Ok(true),
            _ => return Err(ConnectError::Failed(error)),
        }
        if patience.slice().map_err(ConnectError::GaveUp)?.is_none() {
            return Ok(false);
        }
    }
}

/// Performs the client's part of the proof. Returns false if the server reset the connection.
fn prove(socket: &Socket, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<bool, Error> {
    let proof = KeyProof::start(call.number, random());
    if !send(socket, &proof.hello(call.key), call)? {
        return Ok(false);
    }
    let Some(answer) = read_answer(socket, call, patience)? else { return Ok(false) };
    let proof = proof.answered(call.key, &answer).ok_or(Error::Unproven { server: call.server })?;
    send(socket, &proof.confirm(call.key), call)
}

/// Sends one message of the proof. Returns false if the server has reset the connection.
fn send(mut socket: &Socket, pass: &[u8], call: &ConnectRequest<'_>) -> Result<bool, Error> {
    match socket.write_all(pass) {
        Ok(()) => Ok(true),
        Err(error) if was_reset(&error) => Ok(false),
        Err(error) => Err(Error::refused("prove the key to", call.server, error)),
    }
}

/// Returns true if the server reset the connection, which means that it has too many connections. If one end does not
/// have the key, the server closes the connection in order and does not reset it.
fn was_reset(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// Reads the server's answer; `None` if the server has reset the connection.
fn read_answer(
    socket: &Socket,
    call: &ConnectRequest<'_>,
    patience: &Patience<'_>,
) -> Result<Option<[u8; ANSWER]>, Error> {
    let mut answer = [0; ANSWER];
    let mut got = 0;
    while got < ANSWER {
        let Some(slice) = patience.slice()? else {
            return Err(Error::no_stream(call.server, false));
        };
        let mut ready = [PollFd::new(socket, PollFlags::IN)];
        let waited = socket::wait(&mut ready, slice);
        if !waited.map_err(|source| Error::refused("wait for", call.server, source))? {
            continue;
        }
        match io::Read::read(&mut &*socket, &mut answer[got..]) {
            Ok(0) => return Err(Error::Unproven { server: call.server }),
            Ok(n) => got += n,
            Err(error) if was_reset(&error) => return Ok(None),
            Err(error) => return Err(Error::refused("prove the key to", call.server, error)),
        }
    }
    Ok(Some(answer))
}
