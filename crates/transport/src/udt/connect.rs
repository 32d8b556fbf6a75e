//! Opens a UDT flow, and proves the key to the server.

use std::io;
use std::time::{Duration, Instant};

use landspeed_proof::{ANSWER, KeyProof, random};
use landspeed_record::Settings;
use landspeed_record::units::Nanos;
use landspeed_udt::packet::UDP_HEADERS;
use landspeed_udt::{CloseReason, Connection};
use socket2::{SockAddr, Socket};

use super::channel::UdtChannel;
use super::flow::UdtFlow;
use super::identity;
use super::options::{self, OPTIONS, UdtSettings};
use crate::attempts::Attempts;
use crate::shared_port::{self, dial};
use crate::transport::{ConnectRequest, Flow};
use crate::{Error, Patience};

/// The pause before another attempt, if the server has closed the connection.
const LATER: Duration = Duration::from_millis(10);
/// The largest UDP datagram over IPv4, in bytes with its headers.
const LARGEST: u32 = 65_535;

/// Opens one flow and proves the key. Tries again if the server closes the connection, for example because it has too
/// many connections.
pub(super) fn connect(call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
    let dialer = UdtDialer { call, patience };
    let mut has_hung_up = false;
    loop {
        match dialer.reach().and_then(|(channel, set_up)| Ok((dialer.prove(&channel)?, channel, set_up))) {
            Ok((true, channel, set_up)) => {
                return Ok(Box::new(UdtFlow::new(channel, call.number, set_up, call.settings)));
            }
            Ok((false, ..)) => has_hung_up = true,
            // A listener closes the connection if it has no room, or if it finds that this end lacks the key.
            Err(Error::NoAnswer { server, .. }) if has_hung_up => return Err(Error::Unproven { server }),
            Err(error) => return Err(error),
        }
        std::thread::sleep(LATER);
    }
}

/// Returns the size of the largest packet for a connected socket, in bytes. As in UDT, the size includes the headers of
/// IPv4 and UDP, even over IPv6.
pub(super) fn packet(socket: &Socket, settings: &Settings) -> io::Result<u32> {
    let path = (shared_port::largest(socket)? + UDP_HEADERS as u32).min(LARGEST);
    Ok(options::packet(settings).map_or(path, |asked| asked.min(LARGEST)))
}

struct UdtDialer<'a> {
    call: &'a ConnectRequest<'a>,
    patience: &'a Patience<'a>,
}

impl UdtDialer<'_> {
    fn refused(&self, operation: &'static str) -> impl FnOnce(io::Error) -> Error {
        let server = self.call.server;
        move |source| Error::refused(operation, server, source)
    }

    /// Returns a connection after its handshake, and the duration of the handshake. Tries again while the server does
    /// not listen.
    fn reach(&self) -> Result<(UdtChannel, Nanos), Error> {
        let attempts = Attempts::begin();
        loop {
            let channel = self.begin()?;
            let begun = Instant::now();
            if self.work(&channel, |connection| connection.payload().is_some())? {
                shared_port::cut_large(&channel.socket, true).map_err(self.refused("let go on to"))?;
                return Ok((channel, begun.elapsed().into()));
            }
            drop(channel);
            if !attempts.pause(self.patience)? {
                return Err(Error::no_datagram(self.call.server));
            }
        }
    }

    fn begin(&self) -> Result<UdtChannel, Error> {
        let ConnectRequest { server, settings, .. } = *self.call;
        let socket = dial(server, self.call.source_port)?;
        OPTIONS.set(&socket, settings);
        options::deepen(&socket, settings);
        socket.connect(&SockAddr::from(server)).map_err(self.refused("connect to"))?;
        let packet = packet(&socket, settings).map_err(self.refused("read the MTU towards"))?;
        // A handshake request that is fragmented on its way would not measure the path.
        shared_port::cut_large(&socket, false).map_err(self.refused("probe the path to"))?;
        let config = options::config(settings, packet);
        let channel = UdtChannel::new(socket, UdtSettings::of(settings), |now| {
            Connection::connect(now, config, identity(), server)
        });
        channel.map_err(self.refused("connect to"))
    }

    /// Drives the connection until `is_done` returns true. Returns false if the server does not listen or has closed
    /// the connection.
    fn work(
        &self,
        channel: &UdtChannel,
        mut is_done: impl FnMut(&mut Connection) -> bool,
    ) -> Result<bool, Error> {
        loop {
            let mut state = channel.lock();
            channel.catch_up(&mut state);
            if is_done(&mut state.connection) {
                return Ok(true);
            }
            if channel.is_refused() {
                return Ok(false);
            }
            match state.connection.closed() {
                None => {}
                Some(CloseReason::PeerClosed) => return Ok(false),
                Some(reason) => return Err(self.refused("connect to")(io::Error::other(reason))),
            }
            let Some(slice) = self.patience.slice()? else {
                return Err(Error::no_datagram(self.call.server));
            };
            channel.sleep(state, slice).map_err(self.refused("wait for"))?;
        }
    }

    /// Performs the client's part of the proof. Returns false if the server has closed the connection. Waits until
    /// the server has acknowledged the whole proof, because a later loss would be repaired only during the next call
    /// on the flow.
    fn prove(&self, channel: &UdtChannel) -> Result<bool, Error> {
        let call = self.call;
        let proof = KeyProof::start(call.number, random());
        self.write(channel, &proof.hello(call.key))?;
        let (mut answer, mut got) = ([0; ANSWER], 0);
        let has_answered = self.work(channel, |connection| {
            got += connection.read(&mut answer[got..]).unwrap_or(0);
            got == ANSWER
        })?;
        if !has_answered {
            return Ok(false);
        }
        let unproven = Error::Unproven { server: call.server };
        let proof = proof.answered(call.key, &answer).ok_or(unproven)?;
        self.write(channel, &proof.confirm(call.key))?;
        self.work(channel, |connection| connection.progress().is_all).map(|_| true)
    }

    fn write(&self, channel: &UdtChannel, pass: &[u8]) -> Result<(), Error> {
        let mut state = channel.lock();
        let written = state.connection.write(pass).map_err(io::Error::other);
        written.map(drop).map_err(self.refused("prove the key to"))
    }
}
