//! Opens or accepts the flows of a copy.

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

/// The number of the first link that begins with a flow of another transport. A copy has fewer flows.
pub(crate) const FIRST_OTHER: u32 = 1 << 16;

/// Flows of another transport beside those of a running copy. Each has a link of its own. A flow of the copy's own
/// transport replaces one that does not open or that breaks.
pub struct OtherFlows {
    /// The name of the transport, as settings of a copy have it.
    pub transport: String,
    /// The number of these flows, of which there are no more than the copy has links.
    pub count: u32,
    /// How this end gets them.
    pub opening: Opening,
}

impl std::fmt::Debug for OtherFlows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OtherFlows { transport, count, .. } = self;
        let mut shown = f.debug_struct("OtherFlows");
        shown.field("transport", transport).field("count", count).finish_non_exhaustive()
    }
}

/// The way in which an end gets flows, the first time and again.
pub enum Opening {
    /// This end opens them.
    Connect(Caller),
    /// The other end opens them.
    Accept(Box<dyn Listener>),
}

/// The parameters for opening flows.
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
