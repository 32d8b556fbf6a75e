//! Accepts QUIC flows, and turns strangers away.
//!
//! The listener's own socket receives the first packets of new connections, and late packets of ended connections. For
//! a client whose first packet proves the key, the listener opens another socket, which is connected to the client and
//! carries the connection.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_record::units::Nanos;
use quinn_proto::{DatagramEvent, Endpoint, EndpointConfig, ServerConfig};
use rustix::event::{PollFd, PollFlags};
use socket2::{SockAddr, Socket};

use super::connection::SharedConnection;
use super::disconnect::CloseCode;
use super::driver::{self, QuicDriver};
use super::flow::QuicFlow;
use super::identity;
use super::options::{QuicSettings, prepare};
use super::wire::QuicSocket;
use crate::admission::{Applicant, Applicants, ProofState, is_shortage};
use crate::shared_port::{DatagramIntake, ReceivedDatagram};
use crate::transport::{Flow, Listener, ProofKey};
use crate::{Error, Patience, shared_port, socket};

/// The length of the client's message with the flow's number, in bytes.
pub(super) const NUMBER: usize = 4;
/// The length of the server's acknowledgement of the flow's number, in bytes.
pub(super) const WELCOME: usize = 1;
/// The largest length of a client's first packet, in bytes. quinn pads the packet only to the size that every link
/// carries.
const FIRST_PACKET: usize = 1500;

pub(super) struct QuicListener {
    socket: Socket,
    at: SocketAddr,
    settings: Settings,
    key: ProofKey,
    config: ServerConfig,
    shared: Arc<EndpointConfig>,
    /// An endpoint without connections. It resets the connections of clients whose flows no longer exist at this end.
    resets: Endpoint,
    /// The source addresses of accepted first packets, by connection ID, so that no first packet opens two
    /// connections.
    taken: HashMap<[u8; 20], SocketAddr>,
    clients: HashSet<SocketAddr>,
    applicants: Applicants<QuicApplicant>,
    /// The flows that [`Listener::accept`] has returned. The listener keeps driving them, because a lost welcome must
    /// be sent again, and the callers may not use their flows before all flows have arrived.
    handed_out: Vec<Weak<SharedConnection>>,
}

/// A connection whose proof is under way.
struct QuicApplicant {
    socket: Arc<Socket>,
    driver: QuicDriver,
    /// The flow's number; `None` until the client has sent it.
    number: Option<u32>,
    /// True if the acknowledgement of the number was written.
    is_welcome: bool,
}

impl QuicListener {
    pub(super) fn start(at: SocketAddr, settings: &Settings, key: &ProofKey) -> Result<Self, Error> {
        let refused = |source| Error::refused("listen on", at, source);
        let socket = shared_port::bind(at)?;
        socket.set_nonblocking(true).map_err(refused)?;
        let crypto = identity::server(key).map_err(|why| refused(io::Error::other(why)))?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.migration(false);
        let shared = driver::endpoint();
        Ok(QuicListener {
            socket,
            at,
            settings: settings.clone(),
            key: *key,
            config,
            resets: Endpoint::new(Arc::clone(&shared), None, false, None),
            shared,
            taken: HashMap::new(),
            clients: HashSet::new(),
            applicants: Applicants::new(),
            handed_out: Vec::new(),
        })
    }

    /// Waits until a socket is ready or a timer is due, at most `slice`.
    fn wait(&mut self, slice: Duration) -> Result<(), Error> {
        let now = Instant::now();
        let due = self.applicants.iter_mut().filter_map(|applicant| applicant.driver.due()).min();
        let time = due.map_or(slice, |due| due.saturating_duration_since(now).min(slice));
        let own = PollFd::new(&self.socket, PollFlags::IN);
        let theirs = self.applicants.iter().map(|one| PollFd::new(&*one.socket, one.driver.interest()));
        let mut ready: Vec<PollFd<'_>> = std::iter::once(own).chain(theirs).collect();
        socket::wait(&mut ready, time).map_err(|source| Error::refused("wait on", self.at, source))?;
        Ok(())
    }

    fn take_in(&mut self) -> Result<(), Error> {
        let refused = |at| move |source| Error::refused("receive on", at, source);
        let mut intake = DatagramIntake::new();
        while let Some(datagram) = intake.next(&self.socket).map_err(refused(self.at))? {
            self.examine(&datagram, &mut intake)?;
        }
        Ok(())
    }

    /// Processes one datagram: opens a connection for a first packet that proves the key, and drops or resets
    /// anything else. Datagrams of other clients that reached a new socket are put into `intake`.
    fn examine(
        &mut self,
        datagram: &ReceivedDatagram,
        intake: &mut DatagramIntake<FIRST_PACKET>,
    ) -> Result<(), Error> {
        let from = datagram.from;
        let Some(id) = identity::knocked(&self.key, &datagram.bytes) else {
            self.reset(datagram);
            return Ok(());
        };
        match self.taken.get(&id) {
            // A duplicate that the client sent before its first packet was processed.
            Some(known) if *known == from => return Ok(()),
            Some(_) => {
                self.applicants.add_stranger();
                return Ok(());
            }
            None => {}
        }
        match self.admit(datagram, intake) {
            // A client without an answer repeats its first packet.
            Err(error) if is_shortage(&error) => return Ok(()),
            admitted => admitted.map_err(|source| Error::refused("accept on", self.at, source))?,
        }
        self.taken.insert(id, from);
        self.clients.insert(from);
        Ok(())
    }

    /// Answers a late packet of a client's ended connection with a stateless reset (RFC 9000 section 10.3). A
    /// datagram of any other sender counts as a stranger's.
    fn reset(&mut self, &ReceivedDatagram { from, ref bytes }: &ReceivedDatagram) {
        if !self.clients.contains(&from) {
            self.applicants.add_stranger();
            return;
        }
        let mut answer = Vec::new();
        let event =
            self.resets.handle(Instant::now(), from, None, None, bytes.as_slice().into(), &mut answer);
        if let Some(DatagramEvent::Response(_)) = event {
            // If the reset gets lost, the client's next packet causes another one.
            let _ = self.socket.send_to(&answer, &SockAddr::from(from));
        }
    }

    /// Opens a connection with its own socket, which receives the client's datagrams from then on.
    fn admit(
        &mut self,
        &ReceivedDatagram { from, bytes: ref first }: &ReceivedDatagram,
        intake: &mut DatagramIntake<FIRST_PACKET>,
    ) -> io::Result<()> {
        let socket = Arc::new(shared_port::another(self.at)?);
        prepare(&socket, &self.settings);
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::from(from))?;
        intake.take_astray(&socket, from)?;
        let parsed = QuicSettings::of(&self.settings);
        let wire = QuicSocket::new(Arc::clone(&socket), from, &parsed)?;
        match QuicDriver::answering(wire, &parsed, &self.shared, self.config.clone(), first) {
            Some(driver) => {
                let applicant = QuicApplicant { socket, driver, number: None, is_welcome: false };
                self.applicants.admit(Some(from.ip()), applicant, &self.key);
            }
            None => self.applicants.add_stranger(),
        }
        Ok(())
    }

    fn flow(&self, number: u32, applicant: QuicApplicant) -> Result<QuicFlow, Error> {
        let QuicApplicant { socket, driver, .. } = applicant;
        let flow = QuicFlow::new(socket, driver, number, Nanos(0), &self.settings);
        flow.map_err(|source| Error::refused("accept on", self.at, source))
    }

    /// Drives the flows that were handed out.
    fn look_after(&mut self) {
        self.handed_out.retain(|flow| flow.upgrade().map(|flow| drop(flow.look())).is_some());
    }
}

impl Applicant for QuicApplicant {
    fn step(&mut self, _: &ProofKey) -> ProofState {
        self.driver.drive(Instant::now());
        let state = self.hear_number().and_then(|()| self.welcome());
        if self.driver.lost().is_some() {
            ProofState::Stranger
        } else {
            state.unwrap_or(ProofState::Stranger)
        }
    }

    fn has_greeted(&self) -> bool {
        self.driver.is_connected()
    }

    fn turn_away(mut self) {
        self.driver.close(CloseCode::Abort);
    }
}

impl QuicApplicant {
    /// Reads the flow's number. Its four bytes arrive together, because they were written at once.
    fn hear_number(&mut self) -> io::Result<()> {
        let mut number = [0; NUMBER];
        match self.number.map_or_else(|| self.driver.read(&mut number), |_| Ok(0))? {
            0 => {}
            NUMBER => self.number = Some(u32::from_be_bytes(number)),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(())
    }

    /// Acknowledges the number. The proof is complete only once the acknowledgement has been sent, because a dropped
    /// flow discards unsent bytes.
    fn welcome(&mut self) -> io::Result<ProofState> {
        let Some(number) = self.number else { return Ok(ProofState::Waiting) };
        if !self.is_welcome {
            self.is_welcome = self.driver.write(&[0; WELCOME])? > 0;
            self.driver.transmit(Instant::now());
        }
        let is_out = self.is_welcome && self.driver.is_clear();
        Ok(if is_out { ProofState::Proven(number) } else { ProofState::Waiting })
    }
}

impl Listener for QuicListener {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        loop {
            if let Some((number, applicant)) = self.applicants.next_proven() {
                let flow = self.flow(number, applicant)?;
                self.handed_out.push(Arc::downgrade(flow.shared()));
                return Ok(Box::new(flow));
            }
            self.wait(patience.slice_at(self.at, self.strangers())?)?;
            self.take_in()?;
            self.applicants.advance_all(&self.key);
            self.look_after();
        }
    }

    fn strangers(&self) -> u64 {
        self.applicants.strangers()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use quinn_proto::ClientConfig;

    use super::*;
    use crate::quic::connect;
    use crate::quic::disconnect::DisconnectReason;
    use crate::{CancelFlag, ConnectRequest};

    const KEY: ProofKey = [7; 32];
    const OTHER: ProofKey = [8; 32];

    /// Returns a listener, and the socket that keeps its port from other tests.
    fn listener() -> (Socket, QuicListener) {
        let held = shared_port::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port on loopback");
        let at = socket::local(&held).expect("its address");
        held.connect(&at.into()).expect("it takes nothing");
        (held, QuicListener::start(at, &Settings::new(), &KEY).expect("it listens"))
    }

    /// The time in which both ends meet, also on a busy machine. The listener, to which no flow comes, waits for all of it.
    const MEET: Duration = Duration::from_millis(2_500);

    fn patience(cancel: &CancelFlag) -> Patience<'_> {
        Patience { until: Instant::now() + MEET, cancel }
    }

    #[test]
    fn a_server_that_has_read_a_first_packet_but_not_the_key_is_not_believed() {
        let (_held, mut listener) = listener();
        let crypto = identity::server(&OTHER).expect("keys");
        listener.config = ServerConfig::with_crypto(Arc::new(crypto));
        let (server, settings, cancel) = (listener.at, Settings::new(), CancelFlag::new());
        std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let call =
                    ConnectRequest { server, number: 1, source_port: 0, settings: &settings, key: &KEY };
                connect::connect(&call, &patience(&cancel)).map(drop)
            });
            let came = listener.accept(&patience(&cancel)).map(drop);
            assert!(matches!(came, Err(Error::NobodyCame { strangers: 1, .. })), "{came:?}");
            let called = calling.join().expect("no panic");
            assert!(matches!(called, Err(Error::Unproven { .. })), "{called:?}");
        });
    }

    #[test]
    fn a_client_that_has_read_a_first_packet_but_not_the_key_is_turned_away() {
        let (_held, mut listener) = listener();
        let socket = Arc::new(shared_port::open(listener.at).expect("a socket"));
        socket.connect(&listener.at.into()).expect("connects");
        let parsed = QuicSettings::of(&Settings::new());
        let wire = QuicSocket::new(socket, listener.at, &parsed).expect("a wire");
        // The client can verify the server, but its own key is that of another session.
        let crypto = identity::client_with(&OTHER, &KEY).expect("keys");
        let mut lying = ClientConfig::new(Arc::new(crypto));
        lying.initial_dst_cid_provider(Arc::new(|| identity::knock(&KEY)));
        let mut driver = QuicDriver::calling(wire, &parsed, lying).expect("a connection");
        let cancel = CancelFlag::new();
        std::thread::scope(|scope| {
            let calling = scope.spawn(move || {
                let until = Instant::now() + MEET;
                while driver.lost().is_none() && Instant::now() < until {
                    driver.drive(Instant::now());
                    std::thread::sleep(Duration::from_millis(1));
                }
                driver.lost().cloned()
            });
            let came = listener.accept(&patience(&cancel)).map(drop);
            assert!(matches!(came, Err(Error::NobodyCame { strangers: 1, .. })), "{came:?}");
            assert_eq!(calling.join().expect("no panic"), Some(DisconnectReason::Unproven));
        });
    }
}
