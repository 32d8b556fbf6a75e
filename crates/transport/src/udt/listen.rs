//! Accepts UDT flows, and drops the datagrams of strangers.
//!
//! The server keeps no state of a client until the client has returned the cookie of UDT's handshake
//! (`landspeed_udt::HandshakeListener`). Then the client has a connection, on which it must prove the key within the
//! time limit of all transports (`admission.rs`).

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use landspeed_proof::{ServerProof, ServerProofStep, random};
use landspeed_record::Settings;
use landspeed_record::units::Nanos;
use landspeed_udt::{Connection, HANDSHAKE, HandshakeRequest, ListenerResponse, Seq, UdtSocketId};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{SendFlags, sendto};
use socket2::{SockAddr, Socket};

use super::channel::UdtChannel;
use super::connect::packet;
use super::flow::UdtFlow;
use super::identity;
use super::options::{self, OPTIONS, UdtSettings};
use crate::admission::{Applicant, Applicants, ProofState, is_shortage};
use crate::shared_port::{DatagramIntake, ReceivedDatagram, another, bind};
use crate::transport::{Flow, Listener, ProofKey};
use crate::{Error, Patience, socket};

/// The size of the receive buffer for handshakes, in bytes. Longer handshakes, which probe the path's packet size, are
/// truncated. They lose only padding.
const ROOM: usize = 2048;

/// The values of a handshake request that distinguish connections: the client's address, its socket ID and the first
/// sequence number.
type RequestId = (SocketAddr, UdtSocketId, Seq);

pub(super) struct UdtListener {
    socket: Socket,
    at: SocketAddr,
    settings: Settings,
    key: ProofKey,
    began: Instant,
    listener: landspeed_udt::HandshakeListener,
    applicants: Applicants<UdtApplicant>,
    /// Requests that became flows. A duplicate must not open a second socket, because the kernel might then deliver
    /// the client's datagrams to the second one.
    accepted: HashSet<RequestId>,
}

/// A connection whose proof is under way.
struct UdtApplicant {
    channel: UdtChannel,
    request: RequestId,
    server_proof: ServerProof,
}

impl UdtListener {
    pub(super) fn start(at: SocketAddr, settings: &Settings, key: &ProofKey) -> Result<Self, Error> {
        Ok(UdtListener {
            socket: bind(at)?,
            at,
            settings: settings.clone(),
            key: *key,
            began: Instant::now(),
            listener: landspeed_udt::HandshakeListener::new(random()),
            applicants: Applicants::new(),
            accepted: HashSet::new(),
        })
    }

    /// Waits for at most `slice` until a datagram arrives, or a timer or a packet of a connection is due.
    fn wait(&self, slice: Duration) -> Result<(), Error> {
        let due = self.applicants.iter().map(|applicant| applicant.channel.due()).min();
        let sockets = self.applicants.iter().map(|applicant| &applicant.channel.socket);
        let sockets = std::iter::once(&self.socket).chain(sockets);
        let mut ready: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let waited = socket::wait(&mut ready, due.unwrap_or(slice).min(slice));
        waited.map(drop).map_err(|source| Error::refused("wait on", self.at, source))
    }

    fn take_in(&mut self) -> io::Result<()> {
        let mut intake = DatagramIntake::new();
        while let Some(datagram) = intake.next(&self.socket)? {
            self.examine(&datagram, &mut intake)?;
        }
        Ok(())
    }

    /// Processes one datagram: answers a handshake request, opens a connection for a proven one, and drops anything
    /// else as a stranger's. Datagrams of other clients that reached a new connection's socket are put into `intake`.
    fn examine(
        &mut self,
        &ReceivedDatagram { from, ref bytes }: &ReceivedDatagram,
        intake: &mut DatagramIntake<ROOM>,
    ) -> io::Result<()> {
        let now = Nanos::from(self.began.elapsed());
        let mut reply = [0; HANDSHAKE];
        match self.listener.handle(now, from, bytes, &mut reply) {
            ListenerResponse::Ignore => self.applicants.add_stranger(),
            // If the reply gets lost, the client asks again.
            ListenerResponse::Reply(length) => {
                let _ = sendto(&self.socket, &reply[..length], SendFlags::DONTWAIT, &from);
            }
            ListenerResponse::Proven(request) => match self.admit(&request, intake) {
                Err(error) if !is_shortage(&error) => return Err(error),
                // A client without an answer asks again.
                _ => {}
            },
        }
        Ok(())
    }

    /// Opens a connection with its own socket, which receives the client's datagrams from then on. Ignores a
    /// duplicate of a request that already has a connection.
    fn admit(&mut self, request: &HandshakeRequest, intake: &mut DatagramIntake<ROOM>) -> io::Result<()> {
        let peer = request.peer;
        if self.accepted.contains(&request.id()) || self.applicants.iter().any(|one| one.request.0 == peer) {
            return Ok(());
        }
        let socket = another(self.at)?;
        OPTIONS.set(&socket, &self.settings);
        options::deepen(&socket, &self.settings);
        socket.connect(&SockAddr::from(peer))?;
        intake.take_astray(&socket, peer)?;
        let config = options::config(&self.settings, packet(&socket, &self.settings)?);
        let channel = UdtChannel::new(socket, UdtSettings::of(&self.settings), |now| {
            Connection::accept(now, config, identity(), request)
        })?;
        channel.act(&mut channel.lock());
        let applicant = UdtApplicant { channel, request: request.id(), server_proof: ServerProof::begin() };
        self.applicants.admit(Some(peer.ip()), applicant, &self.key);
        Ok(())
    }

    fn hand_out(&mut self, number: u32, applicant: UdtApplicant) -> UdtFlow {
        self.accepted.insert(applicant.request);
        UdtFlow::new(applicant.channel, number, Nanos(0), &self.settings)
    }
}

impl UdtApplicant {
    /// Reads the client's messages of the proof that have arrived, and answers them.
    fn read(&mut self, key: &ProofKey) -> ServerProofStep {
        let UdtApplicant { channel, server_proof, .. } = self;
        let mut state = channel.lock();
        channel.catch_up(&mut state);
        let step = loop {
            let came = state.connection.read(server_proof.room()).unwrap_or(0);
            if came == 0 {
                break if state.connection.closed().is_some() {
                    ServerProofStep::Stranger
                } else {
                    ServerProofStep::More
                };
            }
            match server_proof.came(key, came) {
                ServerProofStep::More => {}
                ServerProofStep::Answer(answer) if state.connection.write(&answer).is_ok() => {}
                ServerProofStep::Answer(_) => break ServerProofStep::Stranger,
                step => break step,
            }
        };
        channel.act(&mut state);
        step
    }

    fn hang_up(&self) {
        let mut state = self.channel.lock();
        state.connection.abort();
        self.channel.act(&mut state);
    }
}

impl Applicant for UdtApplicant {
    fn step(&mut self, key: &ProofKey) -> ProofState {
        match self.read(key) {
            ServerProofStep::Proven(number) => ProofState::Proven(number),
            ServerProofStep::More => ProofState::Waiting,
            ServerProofStep::Answer(_) | ServerProofStep::Stranger => {
                self.hang_up();
                ProofState::Stranger
            }
        }
    }

    fn has_greeted(&self) -> bool {
        self.server_proof.has_greeted()
    }

    fn turn_away(self) {
        self.hang_up();
    }
}

impl Listener for UdtListener {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        loop {
            if let Some((number, applicant)) = self.applicants.next_proven() {
                return Ok(Box::new(self.hand_out(number, applicant)));
            }
            self.wait(patience.slice_at(self.at, self.strangers())?)?;
            self.take_in().map_err(|source| Error::refused("receive on", self.at, source))?;
            self.applicants.advance_all(&self.key);
        }
    }

    fn strangers(&self) -> u64 {
        self.applicants.strangers()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::udt::connect;
    use crate::{CancelFlag, ConnectRequest};

    const KEY: ProofKey = [7; 32];

    /// Takes in what arrives until a flow is proven. Returns the flow, and all datagrams received.
    fn prove(listener: &mut UdtListener) -> Option<(UdtFlow, Vec<ReceivedDatagram>)> {
        let (until, mut received) = (Instant::now() + Duration::from_secs(5), Vec::new());
        while Instant::now() < until {
            listener.wait(Duration::from_millis(10)).expect("it waits");
            let mut intake = DatagramIntake::new();
            while let Some(datagram) = intake.next(&listener.socket).expect("received") {
                listener.examine(&datagram, &mut intake).expect("examined");
                received.push(datagram);
            }
            listener.applicants.advance_all(&listener.key.clone());
            if let Some((number, applicant)) = listener.applicants.next_proven() {
                return Some((listener.hand_out(number, applicant), received));
            }
        }
        None
    }

    /// A second socket would take what the client sends to its flow.
    #[test]
    fn a_request_that_was_sent_twice_opens_no_second_socket_beside_its_flow() {
        let held = bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port on loopback");
        let at = socket::local(&held).expect("its address");
        held.connect(&at.into()).expect("it takes nothing");
        let settings = Settings::new();
        let mut listener = UdtListener::start(at, &settings, &KEY).expect("it listens");
        let cancel = CancelFlag::new();
        std::thread::scope(|scope| {
            let patience = Patience { until: Instant::now() + Duration::from_secs(5), cancel: &cancel };
            let call =
                ConnectRequest { server: at, number: 1, source_port: 0, settings: &settings, key: &KEY };
            scope.spawn(move || connect::connect(&call, &patience).map(drop));
            let (_flow, received) = prove(&mut listener).expect("a flow");
            cancel.cancel();
            for datagram in &received {
                listener.examine(datagram, &mut DatagramIntake::new()).expect("examined");
            }
            assert!(received.len() >= 2, "a request and one with the cookie");
            assert_eq!(listener.applicants.iter().count(), 0);
        });
    }
}
