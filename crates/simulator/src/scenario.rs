//! The description of a simulation.

use landspeed_congestion::{NativeControl, native};
use landspeed_record::Contestant;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_udt::packet::MIN_MSS;
use landspeed_udt::rate::{self, CONTROLS, RateControlFactory};
use thiserror::Error;

use crate::features::SenderFeatures;
use crate::link::LinkSpec;
use crate::receiver::ReceiverSpec;
use landspeed_stats::TrafficSpec;

/// A line, the flows that share it, and the samples to take.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationScenario {
    pub link: LinkSpec,
    pub flows: Vec<FlowSpec>,
    /// The sources of others, whose packets share the line's queue with the flows.
    pub traffic: Vec<TrafficSpec>,
    pub duration_ns: Nanos,
    pub sample_ns: Nanos,
    /// The round-trip probe that runs in parallel with the flows; `None` for no probe.
    pub probe: Option<ProbeSpec>,
}

/// A flow of a scenario. The default is Reno as in Linux, for the whole duration.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    /// The contestant, in the form of [`Contestant`]: `udt`, or a congestion control of TCP by its name in
    /// `landspeed-congestion`.
    pub contestant: String,
    /// The delay from the receiver back to the sender. The flow's RTT is the sum of this and the line's delay.
    pub return_ns: Nanos,
    /// The time of the first packet, since the start of the run.
    pub start_ns: Nanos,
    /// The time after which no new data is sent, since the start of the run; `None` for never.
    pub stop_ns: Option<Nanos>,
    /// The amount of data to send; `None` for data without end.
    pub data_bytes: Option<Bytes>,
    /// Size of a full IP packet, in bytes.
    pub mtu_bytes: u16,
    /// The length of the headers in a packet of TCP, in bytes. The default is 40 of IPv4 and TCP and 12 of
    /// timestamps.
    pub header_bytes: u16,
    /// The receive window; `None` for no limit.
    pub receive_window_bytes: Option<Bytes>,
    /// The buffer of TCP's receiver, which holds what arrives above a gap too; `None` for no limit.
    pub receive_buffer_bytes: Option<Bytes>,
    /// Initial congestion window, in segments (RFC 6928).
    pub initial_window: u32,
    /// The window at which slow start first ends, in segments, as `ip route ... ssthresh` would set it; `None` for no
    /// limit.
    pub initial_ssthresh: Option<u32>,
    /// The smallest difference between the retransmission timeout and the smoothed RTT (TCP_RTO_MIN).
    pub min_rto_ns: Nanos,
    pub receiver: ReceiverSpec,
    /// The parts of a sender of TCP that can be switched. UDT has none of them.
    pub features: SenderFeatures,
    /// Seed for the random choices of a congestion control, and for UDT's first sequence number.
    pub seed: u32,
}

impl Default for FlowSpec {
    fn default() -> Self {
        FlowSpec {
            contestant: "reno".to_owned(),
            return_ns: Nanos(0),
            start_ns: Nanos(0),
            stop_ns: None,
            data_bytes: None,
            mtu_bytes: 1500,
            header_bytes: 52,
            receive_window_bytes: None,
            receive_buffer_bytes: None,
            initial_window: 10,
            initial_ssthresh: None,
            min_rto_ns: Nanos::millis(200),
            receiver: ReceiverSpec::default(),
            features: SenderFeatures::default(),
            seed: 1,
        }
    }
}

impl FlowSpec {
    pub fn segment_bytes(&self) -> u16 {
        self.mtu_bytes.saturating_sub(self.header_bytes).max(1)
    }
}

/// Small packets that are sent periodically to measure the current RTT of the path (the ping of cottrell-2005 section
/// III.A).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSpec {
    /// Delay from the line's end back to the sender.
    pub return_ns: Nanos,
    /// Time between two probes.
    pub every_ns: Nanos,
    /// The size of a probe's IP packet, in bytes.
    pub packet_bytes: u16,
}

impl Default for ProbeSpec {
    fn default() -> Self {
        ProbeSpec { return_ns: Nanos(0), every_ns: Nanos::secs(1), packet_bytes: 84 }
    }
}

/// The reason why a scenario cannot be simulated.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SimulationError {
    #[error("flow {flow}: {reason}")]
    NotSimulated { flow: usize, reason: String },
    /// The congestion control cannot run on this flow.
    #[error("flow {flow}: {reason}")]
    Refused { flow: usize, reason: landspeed_congestion::ControlRefusal },
    #[error("{what} is {value}: it must be {must}")]
    Figure { what: String, value: String, must: &'static str },
}

/// The largest number of flows. Packets number their flow in 16 bits.
const MOST: usize = 60_000;

impl SimulationScenario {
    /// Returns an error if a simulation cannot run this scenario.
    pub fn check(&self) -> Result<(), SimulationError> {
        require(self.sample_ns.0 > 0, "the time between samples", self.sample_ns, "above 0")?;
        require(self.flows.len() <= MOST, "the number of flows", self.flows.len(), "at most 60,000")?;
        let rate = self.link.rate_bps;
        require((1.0..=1e13).contains(&rate.0), "the rate of the line", rate, "1 b/s to 10 Tb/s")?;
        let loss = &self.link.loss;
        require(
            loss.is_possible(),
            "the loss of the line",
            format!("{loss:?}"),
            "shares and lengths that can be",
        )?;
        for (n, source) in self.traffic.iter().enumerate() {
            let said = format!("{source:?}");
            require(
                source.is_possible(),
                &format!("source {n} of others"),
                said,
                "rates, times and tails that can be",
            )?;
        }
        for (n, flow) in self.flows.iter().enumerate() {
            let room = flow.mtu_bytes > flow.header_bytes;
            require(room, &format!("the MTU of flow {n}"), flow.mtu_bytes, "larger than its headers")?;
            require(flow.initial_window > 0, &format!("the first window of flow {n}"), 0, "at least 1")?;
            if matches!(self.protocol(n)?, SimulatedProtocol::Udt(_)) {
                let room = u32::from(flow.mtu_bytes) >= MIN_MSS;
                require(
                    room,
                    &format!("the MTU of flow {n}"),
                    flow.mtu_bytes,
                    "76 at least, for UDT's handshake",
                )?;
            }
        }
        if let Some(probe) = &self.probe {
            require(probe.every_ns.0 > 0, "the time between probes", probe.every_ns, "above 0")?;
        }
        Ok(())
    }

    pub(crate) fn protocol(&self, flow: usize) -> Result<SimulatedProtocol, SimulationError> {
        let text = &self.flows[flow].contestant;
        SimulatedProtocol::of(text).map_err(|reason| SimulationError::NotSimulated { flow, reason })
    }
}

/// The simulator's implementation of a contestant.
#[derive(Debug)]
pub(crate) enum SimulatedProtocol {
    Tcp(NativeControl),
    Udt(RateControlFactory),
}

impl SimulatedProtocol {
    fn of(text: &str) -> Result<Self, String> {
        const UDT_CONTROL: &str = "udt-congestion";
        let contestant: Contestant = text.parse()?;
        let is_udt = contestant.transport() == "udt";
        let known = |name: &str| name == "transport" || is_udt && name == UDT_CONTROL;
        if !contestant.settings.keys().all(|name| known(name)) {
            return Err(format!(
                "{text}: of all settings of flows the simulator knows {UDT_CONTROL} alone, with udt"
            ));
        }
        match (contestant.transport(), contestant.control.as_deref()) {
            ("udt", _) => {
                let name = contestant.settings.get(UDT_CONTROL).map_or(CONTROLS[0].0, String::as_str);
                let names = || CONTROLS.map(|(name, _)| name).join(", ");
                let unknown = || format!("{text}: UDT has no control {name:?}; there are {}", names());
                rate::control(name).map(SimulatedProtocol::Udt).ok_or_else(unknown)
            }
            ("tcp", Some(name)) => native(name).map(SimulatedProtocol::Tcp).ok_or_else(|| {
                format!("no congestion control is called {name:?}; `landspeed cc list` names them")
            }),
            ("tcp", None) => Err(format!("{text}: the simulator has no host whose default this would be")),
            (transport, _) => Err(format!(
                "{text}: the simulator has no {transport}, only udt and congestion controls of TCP: leave out --simulate"
            )),
        }
    }
}

/// Returns an error, with the reason, if the simulator cannot run `contestant`.
pub fn simulates(contestant: &str) -> Result<(), String> {
    SimulatedProtocol::of(contestant).map(|_| ())
}

fn require(
    holds: bool,
    what: &str,
    value: impl std::fmt::Display,
    must: &'static str,
) -> Result<(), SimulationError> {
    if holds {
        return Ok(());
    }
    Err(SimulationError::Figure { what: what.to_owned(), value: value.to_string(), must })
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
