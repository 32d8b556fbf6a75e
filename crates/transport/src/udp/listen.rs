//! Accepts UDP flows, and drops the datagrams of strangers.
//!
//! The server keeps no state of a client before the client's confirm. The challenge in the server's answer is a
//! cookie, computed from the server's secret and the client's address (as in RFC 9147 section 5.1). The confirm
//! returns the cookie, which shows that the client receives datagrams at that address.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use landspeed_proof::{CHALLENGE, CONFIRM, Challenge, HELLO, KeyProof, random};
use landspeed_record::Settings;
use rustix::event::{PollFd, PollFlags};
use socket2::SockAddr;

use super::flow::UdpFlow;
use super::identity::FlowIdentity;
use super::options::OPTIONS;
use super::wire::{CONTROL, ProofPass};
use crate::admission::is_shortage;
use crate::shared_port::{DatagramIntake, ReceivedDatagram, another, bind};
use crate::transport::{Flow, Listener, ProofKey};
use crate::{Error, Patience, socket};

/// The size of the receive buffer: one byte more than the longest pass, so that longer datagrams are recognised.
const ROOM: usize = CONTROL + 1;

pub(super) struct UdpListener {
    socket: UdpSocket,
    at: SocketAddr,
    settings: Settings,
    key: ProofKey,
    secret: ProofKey,
    /// The addresses of clients that have a flow. A late copy of a client's confirm does not open another flow.
    accepted: HashSet<SocketAddr>,
    proven: VecDeque<UdpFlow>,
    strangers: u64,
}

impl UdpListener {
    pub(super) fn start(at: SocketAddr, settings: &Settings, key: &ProofKey) -> Result<Self, Error> {
        let socket = bind(at)?;
        socket.set_nonblocking(true).map_err(|source| Error::refused("listen on", at, source))?;
        Ok(UdpListener {
            socket: socket.into(),
            at,
            settings: settings.clone(),
            key: *key,
            secret: random(),
            accepted: HashSet::new(),
            proven: VecDeque::new(),
            strangers: 0,
        })
    }

    /// Waits for at most `slice` until a datagram arrives.
    fn wait(&self, slice: Duration) -> Result<(), Error> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        socket::wait(&mut ready, slice).map_err(|source| Error::refused("wait on", self.at, source))?;
        Ok(())
    }

    fn take_in(&mut self) -> Result<(), Error> {
        let refused = |at| move |source| Error::refused("receive on", at, source);
        let mut intake = DatagramIntake::new();
        while let Some(datagram) = intake.next(&self.socket).map_err(refused(self.at))? {
            self.examine(&datagram, &mut intake).map_err(refused(self.at))?;
        }
        Ok(())
    }

    /// Processes one datagram: answers a hello, opens a flow for a confirm, and drops anything else as a stranger's.
    /// Datagrams of other clients that reached a new flow's socket are put into `intake`.
    fn examine(
        &mut self,
        &ReceivedDatagram { from, ref bytes }: &ReceivedDatagram,
        intake: &mut DatagramIntake<ROOM>,
    ) -> io::Result<()> {
        match ProofPass::parse(bytes) {
            Some(ProofPass::Hello(hello)) => self.greet(from, &hello),
            Some(ProofPass::Confirm(proof, mac)) if self.holds(from, &proof, &mac) => {
                match self.admit(from, &proof, intake) {
                    Err(error) if !is_shortage(&error) => return Err(error),
                    // A client without an answer asks again.
                    _ => {}
                }
            }
            _ => self.strangers += 1,
        }
        Ok(())
    }

    /// Answers a hello if it proves the key; otherwise counts a stranger.
    fn greet(&mut self, from: SocketAddr, hello: &[u8; HELLO]) {
        let greeted = KeyProof::greeted(&self.key, hello, [0; CHALLENGE]);
        match greeted.map(|proof| self.with_cookie(from, &proof)) {
            // If the answer gets lost, the client asks again.
            Some(proof) => {
                drop(self.socket.send_to(&ProofPass::Answer(proof.answer(&self.key)).bytes(), from))
            }
            None => self.strangers += 1,
        }
    }

    fn with_cookie(&self, from: SocketAddr, proof: &KeyProof) -> KeyProof {
        KeyProof { server: self.cookie(from, proof), ..*proof }
    }

    fn cookie(&self, from: SocketAddr, proof: &KeyProof) -> Challenge {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(from.to_string().as_bytes());
        hasher.update(&proof.number.to_be_bytes());
        hasher.update(&proof.client);
        *hasher.finalize().as_bytes().first_chunk().expect("a hash is longer than a challenge")
    }

    fn holds(&self, from: SocketAddr, proof: &KeyProof, mac: &[u8; CONFIRM]) -> bool {
        proof.confirmed(&self.key, mac).is_some() && *proof == self.with_cookie(from, proof)
    }

    /// Opens a flow with its own socket, which receives the client's datagrams from then on. Does nothing if the
    /// client has a flow.
    fn admit(
        &mut self,
        from: SocketAddr,
        proof: &KeyProof,
        intake: &mut DatagramIntake<ROOM>,
    ) -> io::Result<()> {
        // The confirm is a duplicate, which the client sent before the first one was processed.
        if self.accepted.contains(&from) {
            return Ok(());
        }
        let socket = another(self.at)?;
        OPTIONS.set(&socket, &self.settings);
        socket.connect(&SockAddr::from(from))?;
        intake.take_astray(&socket, from)?;
        let identity = FlowIdentity::server(proof, &self.key);
        let flow = UdpFlow::new(socket, proof.number, &self.settings, identity)?;
        flow.shared.welcome();
        self.accepted.insert(from);
        self.proven.push_back(flow);
        Ok(())
    }
}

impl Listener for UdpListener {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        loop {
            if let Some(flow) = self.proven.pop_front() {
                return Ok(Box::new(flow));
            }
            self.wait(patience.slice_at(self.at, self.strangers)?)?;
            self.take_in()?;
        }
    }

    fn strangers(&self) -> u64 {
        self.strangers
    }
}
