//! How an end gets the flows of a copy.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_transport::{CancelFlag, ConnectRequest, Error, Flow, Listener, Patience, ProofKey, Transport};

/// The flows of a copy. Both ends of a copy have the same number of them, and the same limits.
pub struct Flows {
    /// The number of flows. They have the numbers from 0.
    pub count: u32,
    /// How this end gets them.
    pub opening: Opening,
    /// The longest wait for the flows to open the first time. A flow on which nothing was heard for as long is broken, and
    /// is opened again.
    pub patience: Duration,
    /// The time after which this end gives up, if it has not heard the other end on a flow for as long.
    pub give_up_after: Duration,
}

/// How an end gets flows, the first time and again.
pub enum Opening {
    /// This end opens them.
    Connect(Caller),
    /// The other end opens them.
    Accept(Box<dyn Listener>),
}

/// What an end needs to open flows.
pub struct Caller {
    /// Their transport.
    pub transport: &'static dyn Transport,
    /// The address of the other end.
    pub server: SocketAddr,
    /// Their settings.
    pub settings: Settings,
    /// The key of the session, which both ends prove on each flow.
    pub key: ProofKey,
}

impl Caller {
    /// Opens the flow with this number.
    pub(crate) fn open(
        &self,
        number: u32,
        within: Duration,
        stop: &CancelFlag,
    ) -> Result<Box<dyn Flow>, Error> {
        let Caller { transport, server, settings, key } = self;
        let call = ConnectRequest { server: *server, number, source_port: 0, settings, key };
        transport.connect(&call, &Patience { until: Instant::now() + within, cancel: stop })
    }
}
