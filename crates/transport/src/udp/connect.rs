//! Opens a UDP flow, and proves the key to the server.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use landspeed_proof::{KeyProof, random};
use rustix::event::{PollFd, PollFlags};
use socket2::{SockAddr, Socket};

use super::flow::UdpFlow;
use super::identity::FlowIdentity;
use super::options::OPTIONS;
use super::wire::{CONTROL, ProofPass};
use crate::attempts::Attempts;
use crate::message;
use crate::shared_port::dial;
use crate::transport::{ConnectRequest, Flow};
use crate::{Error, Patience, socket};

/// The time without an answer after which a pass is repeated. The time doubles with each repetition.
const FIRST: Duration = Duration::from_millis(20);
/// The limit up to which the time between two copies of the same pass (a message of the proof) doubles.
const LONGEST: Duration = Duration::from_millis(320);

pub(super) fn connect(call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
    let socket = prepare(call)?;
    let mut dialer = UdpDialer { socket: &socket, call, patience, attempts: Attempts::begin(), wrong: false };
    let proof = dialer.prove()?;
    let identity = FlowIdentity::client(&proof, call.key);
    // Errors about passes that reached no listener do not concern the flow.
    let flow = socket.take_error().and_then(|_| UdpFlow::new(socket, call.number, call.settings, identity));
    Ok(Box::new(flow.map_err(|source| Error::refused("open a flow to", call.server, source))?))
}

/// Opens the flow's socket, sets its options, and connects it to the server, so that the socket receives only datagrams
/// of the server.
fn prepare(call: &ConnectRequest<'_>) -> Result<Socket, Error> {
    let socket = dial(call.server, call.source_port)?;
    OPTIONS.set(&socket, call.settings);
    let refused = |source| Error::refused("connect to", call.server, source);
    socket.connect(&SockAddr::from(call.server)).map_err(refused)?;
    Ok(socket)
}

struct UdpDialer<'a> {
    socket: &'a Socket,
    call: &'a ConnectRequest<'a>,
    patience: &'a Patience<'a>,
    attempts: Attempts,
    /// True if a reply arrived that does not prove the key.
    wrong: bool,
}

impl UdpDialer<'_> {
    fn prove(&mut self) -> Result<KeyProof, Error> {
        let key = self.call.key;
        let proof = KeyProof::start(self.call.number, random());
        let proof = self.ask(&ProofPass::Hello(proof.hello(key)), |pass| match pass {
            ProofPass::Answer(answer) => Some(proof.answered(key, &answer)),
            _ => None,
        })?;
        self.ask(&ProofPass::Confirm(proof, proof.confirm(key)), |pass| match pass {
            ProofPass::Welcome(mac) => Some(proof.welcomed(key, &mac).then_some(())),
            _ => None,
        })?;
        Ok(proof)
    }

    /// Sends `pass` again and again until its reply arrives. `pick` returns `Some(Some(value))` for the reply,
    /// `Some(None)` for a reply that does not prove the key, and `None` for another pass.
    fn ask<T>(
        &mut self,
        pass: &ProofPass,
        pick: impl Fn(ProofPass) -> Option<Option<T>>,
    ) -> Result<T, Error> {
        let datagram = pass.bytes();
        let mut pause = FIRST;
        loop {
            match self.socket.send(&datagram) {
                Ok(_) => {}
                Err(error) if passes(error.kind()) => {}
                Err(source) => return Err(Error::refused("prove the key to", self.call.server, source)),
            }
            if let Some(reply) = self.hear(Instant::now() + pause, &pick)? {
                return Ok(reply);
            }
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Waits for the reply; returns `None` at `until`, or earlier if the server does not listen. The pass must then
    /// be sent again.
    fn hear<T>(
        &mut self,
        until: Instant,
        pick: impl Fn(ProofPass) -> Option<Option<T>>,
    ) -> Result<Option<T>, Error> {
        loop {
            let Some(slice) = self.patience.slice()? else { return Err(self.no_answer()) };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.wait(slice.min(left))?;
            let mut datagram = [0; CONTROL];
            match message::receive(self.socket.as_fd(), &mut datagram, libc::MSG_DONTWAIT) {
                Ok(length) => match datagram.get(..length).and_then(ProofPass::parse).and_then(&pick) {
                    Some(Some(reply)) => return Ok(Some(reply)),
                    Some(None) => self.wrong = true,
                    None => {}
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The server does not listen yet.
                Err(error) if passes(error.kind()) => {
                    // The next wait for a reply looks at the patience.
                    self.attempts.pause(self.patience)?;
                    return Ok(None);
                }
                Err(source) => return Err(Error::refused("prove the key to", self.call.server, source)),
            }
        }
    }

    fn wait(&self, time: Duration) -> Result<(), Error> {
        let mut ready = [PollFd::new(self.socket, PollFlags::IN)];
        let waited = socket::wait(&mut ready, time);
        waited.map_err(|source| Error::refused("wait for", self.call.server, source))?;
        Ok(())
    }

    fn no_answer(&self) -> Error {
        let server = self.call.server;
        if self.wrong { Error::Unproven { server } } else { Error::no_datagram(server) }
    }
}

/// Returns true if the error only means that the server does not listen yet or that the call was interrupted.
fn passes(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::Interrupted)
}
