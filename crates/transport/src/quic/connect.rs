//! Opens a QUIC flow, and proves the key to the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use quinn_proto::ClientConfig;
use rustix::event::PollFd;
use socket2::{SockAddr, Socket};

use super::disconnect::DisconnectReason;
use super::driver::QuicDriver;
use super::flow::QuicFlow;
use super::identity;
use super::listen::{NUMBER, WELCOME};
use super::options::{self, QuicSettings};
use super::wire::QuicSocket;
use crate::attempts::Attempts;
use crate::transport::{ConnectRequest, Flow};
use crate::{Error, Patience, shared_port, socket};

/// The time without an answer after which a connection's first packet is repeated. The time doubles with each
/// repetition. QUIC's own timer starts at about a second (RFC 9002 section 6.2.2). With that timer alone, a server that
/// does not listen yet would delay the flow by a whole second.
const FIRST: Duration = Duration::from_millis(20);
/// The longest time between two repetitions of the first packet. On a slow path, each packet may take a second.
const LONGEST: Duration = Duration::from_millis(2_560);

/// Opens one flow and proves the key. Tries again if the server has too many connections.
pub(super) fn connect(call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
    let attempts = Attempts::begin();
    loop {
        let mut dialer = QuicDialer::new(call)?;
        if let Some(set_up) = dialer.prove(patience, &attempts)? {
            return dialer.flow(set_up);
        }
        drop(dialer);
        if !attempts.pause(patience)? {
            return Err(Error::no_datagram(call.server));
        }
    }
}

/// A client whose proof is under way.
struct QuicDialer<'a> {
    call: &'a ConnectRequest<'a>,
    socket: Arc<Socket>,
    driver: QuicDriver,
    /// The first packet, to be repeated until an answer arrives.
    knock: Vec<u8>,
    knocked: Instant,
    pause: Duration,
    begun: Instant,
    /// The duration of the connection's set-up; `None` until it is set up.
    set_up: Option<Nanos>,
    /// True if the flow's number was sent.
    has_said: bool,
}

impl<'a> QuicDialer<'a> {
    fn new(call: &'a ConnectRequest<'a>) -> Result<Self, Error> {
        let refused = |source| Error::refused("connect to", call.server, source);
        let failed = |why| refused(std::io::Error::other(why));
        let socket = Arc::new(prepare(call)?);
        let parsed = QuicSettings::of(call.settings);
        let wire = QuicSocket::new(Arc::clone(&socket), call.server, &parsed).map_err(refused)?;
        let mut config = ClientConfig::new(Arc::new(identity::client(call.key).map_err(failed)?));
        let key = *call.key;
        config.initial_dst_cid_provider(Arc::new(move || identity::knock(&key)));
        let mut driver = QuicDriver::calling(wire, &parsed, config).map_err(failed)?;
        let begun = Instant::now();
        let knock = driver.knock(begun);
        Ok(QuicDialer {
            call,
            socket,
            driver,
            knock,
            knocked: begun,
            pause: FIRST,
            begun,
            set_up: None,
            has_said: false,
        })
    }

    /// Waits until the server has proven the key and has acknowledged the flow's number. Returns the duration of the
    /// connection's set-up; `None` if the server has too many connections.
    fn prove(&mut self, patience: &Patience<'_>, attempts: &Attempts) -> Result<Option<Nanos>, Error> {
        let server = self.call.server;
        loop {
            self.driver.drive(Instant::now());
            // The welcome counts even if the server has closed the connection since.
            if self.is_welcome() {
                return Ok(self.set_up);
            }
            if !self.has_room()? {
                return Ok(None);
            }
            let slice = patience.slice()?.ok_or(Error::no_datagram(server))?;
            let until = Instant::now() + slice;
            self.knock_again(patience, attempts)?;
            self.wait(until)?;
        }
    }

    /// Returns true while the connection exists, and false if a server with the key has ended it, so that another
    /// attempt may succeed. Returns an error if the connection has ended for another reason.
    fn has_room(&self) -> Result<bool, Error> {
        let server = self.call.server;
        match self.driver.lost() {
            None => Ok(true),
            Some(DisconnectReason::There(_) | DisconnectReason::Gone) => Ok(false),
            Some(DisconnectReason::Unproven) => Err(Error::Unproven { server }),
            Some(lost) => Err(Error::refused("prove the key to", server, lost.error())),
        }
    }

    /// Sends the flow's number once there is a connection. Returns true if the server has acknowledged it.
    fn is_welcome(&mut self) -> bool {
        if self.driver.is_connected() && !self.driver.is_open() {
            self.set_up = Some(self.begun.elapsed().into());
            self.driver.open();
        }
        if self.driver.is_open() && !self.has_said {
            // If pacing delays the number, the next call tries again. Even the smallest window that can be set has room
            // for the number.
            self.has_said =
                self.driver.write(&self.call.number.to_be_bytes()).is_ok_and(|said| said == NUMBER);
            self.driver.transmit(Instant::now());
        }
        self.driver.read(&mut [0; WELCOME]).is_ok_and(|got| got > 0)
    }

    /// Repeats the first packet if it was refused or is not answered in time. After a refusal, the measurement of the
    /// set-up time starts again.
    fn knock_again(&mut self, patience: &Patience<'_>, attempts: &Attempts) -> Result<(), Error> {
        if self.driver.has_heard() {
            return Ok(());
        }
        let is_refused = self.driver.wire().take_refusal();
        if is_refused {
            // The caller looks at the patience.
            attempts.pause(patience)?;
            self.begun = Instant::now();
        } else if self.knocked.elapsed() < self.pause {
            return Ok(());
        }
        self.driver.wire().repeat(&self.knock);
        self.knocked = Instant::now();
        self.pause = (self.pause * 2).min(LONGEST);
        Ok(())
    }

    fn wait(&mut self, until: Instant) -> Result<(), Error> {
        let again = if self.driver.has_heard() { until } else { self.knocked + self.pause };
        let due = self.driver.due().unwrap_or(until);
        let time = until.min(again).min(due).saturating_duration_since(Instant::now());
        let mut ready = [PollFd::new(&*self.socket, self.driver.interest())];
        let waited = socket::wait(&mut ready, time);
        waited.map(drop).map_err(|source| Error::refused("wait for", self.call.server, source))
    }

    fn flow(self, set_up: Nanos) -> Result<Box<dyn Flow>, Error> {
        let QuicDialer { call, socket, mut driver, .. } = self;
        // The server's host refused first packets that arrived too early. These refusals do not concern the flow.
        driver.wire().take_refusal();
        let flow = QuicFlow::new(socket, driver, call.number, set_up, call.settings);
        Ok(Box::new(flow.map_err(|source| Error::refused("open a flow to", call.server, source))?))
    }
}

/// Opens the flow's socket, sets its options, and connects it to the server, so that the socket receives only datagrams
/// of the server.
fn prepare(call: &ConnectRequest<'_>) -> Result<Socket, Error> {
    let socket = shared_port::dial(call.server, call.source_port)?;
    options::prepare(&socket, call.settings);
    let refused = |source| Error::refused("connect to", call.server, source);
    socket.connect(&SockAddr::from(call.server)).map_err(refused)?;
    Ok(socket)
}
