//! Accepts TLS flows.
//!
//! A listener of the transport below accepts the connections and keeps strangers away. Connections that have proven the key perform
//! their handshakes side by side.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use landspeed_proof::ANSWER;
use landspeed_record::Settings;
use landspeed_record::units::Nanos;
use rustls::ServerConfig;

use super::connection::TlsConnection;
use super::flow::TlsFlow;
use super::handshake::Handshake;
use super::identity;
use super::options::CipherChoice;
use crate::admission::is_shortage;
use crate::transport::{Flow, Listener, ProofKey, ReservedPort};
use crate::{Error, Patience, socket};

/// The longest wait for handshakes before new connections are looked for, and the other way round.
const TURN: Duration = Duration::from_millis(1);
/// The most steps of handshakes before new connections are looked for.
const STEPS: usize = 16;
/// The longest time that a handshake may take: the time that a proof may take (`admission.rs`).
const LONGEST: Duration = Duration::from_secs(30);

pub(super) struct TlsListener {
    below: Box<dyn Listener>,
    at: SocketAddr,
    settings: Settings,
    config: Arc<ServerConfig>,
    /// The handshakes under way, oldest first.
    shaking: VecDeque<Handshake>,
    /// The handshakes that are over, oldest first.
    ready: VecDeque<Handshake>,
    /// The number of connections whose handshake failed.
    failed: u64,
}

impl TlsListener {
    pub(super) fn start(port: &dyn ReservedPort, settings: &Settings, key: &ProofKey) -> Result<Self, Error> {
        let at = port.address();
        let failed = |why| Error::refused("listen on", at, io::Error::other(why));
        let config = identity::server(key, &CipherChoice::of(settings)).map_err(failed)?;
        let below = port.listen(settings, &identity::proof_key(key))?;
        let (shaking, ready) = (VecDeque::new(), VecDeque::new());
        Ok(TlsListener { below, at, settings: settings.clone(), config, shaking, ready, failed: 0 })
    }

    /// Begins the handshake of a connection that has proven the key.
    fn begin(&mut self, flow: Box<dyn Flow>) -> Result<(), Error> {
        let open = || TlsConnection::server(Arc::clone(&self.config));
        let handshake = Handshake::begin(flow, open, ANSWER);
        self.shaking.push_back(handshake.map_err(|source| Error::refused("accept on", self.at, source))?);
        Ok(())
    }

    /// Continues the handshakes while one of them moves, up to a limit. Returns one that is over.
    fn settle(&mut self) -> Result<Option<Handshake>, Error> {
        for _ in 0..STEPS {
            self.step_all();
            if self.shaking.is_empty() || !self.ready.is_empty() || !self.wait()? {
                break;
            }
        }
        Ok(self.ready.pop_front())
    }

    /// Continues each handshake as far as possible without waiting.
    fn step_all(&mut self) {
        for _ in 0..self.shaking.len() {
            let Some(mut handshake) = self.shaking.pop_front() else { break };
            match handshake.step() {
                Ok(true) => self.ready.push_back(handshake),
                Ok(false) if handshake.begun.elapsed() < LONGEST => self.shaking.push_back(handshake),
                Ok(false) | Err(_) => self.failed += 1,
            }
        }
    }

    /// Waits for a short time until a handshake can continue. Returns false if none can.
    fn wait(&self) -> Result<bool, Error> {
        let mut ready: Vec<_> = self.shaking.iter().filter_map(Handshake::interest).collect();
        socket::wait(&mut ready, TURN).map_err(|source| Error::refused("wait on", self.at, source))
    }

    /// Returns an error unless the listener below only waited briefly, or lacked files or memory, which it may have
    /// again before `patience` ends.
    fn again(&self, error: Error, patience: &Patience<'_>) -> Result<(), Error> {
        match error {
            Error::NobodyCame { .. } => patience.slice_at(self.at, self.strangers()).map(drop),
            Error::Refused { ref source, .. } if is_shortage(source) && patience.slice()?.is_some() => Ok(()),
            error => Err(error),
        }
    }

    /// Returns until when to look for new connections: only briefly while handshakes are under way.
    fn until(&self, patience: &Patience<'_>) -> Instant {
        if self.shaking.is_empty() { patience.until } else { patience.until.min(Instant::now() + TURN) }
    }
}

impl Listener for TlsListener {
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error> {
        loop {
            if let Some(handshake) = self.settle()? {
                let (flow, records) = handshake.finish();
                return Ok(Box::new(TlsFlow::new(flow, records, Nanos(0), &self.settings)));
            }
            match self.below.accept(&Patience { until: self.until(patience), ..*patience }) {
                Ok(flow) => self.begin(flow)?,
                Err(error) => self.again(error, patience)?,
            }
        }
    }

    fn strangers(&self) -> u64 {
        self.below.strangers() + self.failed
    }
}
