//! What is to be simulated.

use landspeed_congestion::{Native, native};
use landspeed_units::{BitRate, Bytes, Nanos};
use thiserror::Error;

use crate::link::LinkSpec;
use crate::receiver::ReceiverSpec;

/// Lines, the flows over them, and what is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    pub links: Vec<LinkSpec>,
    pub flows: Vec<FlowSpec>,
    pub duration_ns: Nanos,
    pub sample_ns: Nanos,
    /// A round-trip probe beside the flows.
    pub probe: Option<ProbeSpec>,
    pub seed: u64,
}

/// One flow. Its default is Reno as Linux has it, over the first line, for the whole time.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    /// Congestion control, by its name in `landspeed-congestion`.
    pub control: String,
    /// The lines that its packets take, by their places in [`Scenario::links`].
    pub route: Vec<usize>,
    /// From the receiver back to the sender; with the delays of its lines, the flow's round trip.
    pub return_ns: Nanos,
    /// When its first packet is sent.
    pub start_ns: Nanos,
    /// When it stops to send anything new; `None` for never.
    pub stop_ns: Option<Nanos>,
    /// All that it has to send; `None` for no end.
    pub data_bytes: Option<Bytes>,
    pub mtu_bytes: u16,
    /// Of these, headers: 40 of IPv4 and TCP, 12 of timestamps.
    pub header_bytes: u16,
    /// What its receiver takes; `None` for anything.
    pub receive_window_bytes: Option<Bytes>,
    /// Congestion window at its start, in segments (RFC 6928).
    pub initial_window: u32,
    /// Where slow start ends, in segments, as `ip route ... ssthresh` would set it.
    pub initial_ssthresh: Option<u32>,
    /// Whether marks of its packets are understood (RFC 3168).
    pub ecn: bool,
    /// Whether its host paces it, as fq does, at the rate that Linux sets. Rate-based controls always are.
    pub is_paced: bool,
    /// Bound on its sending rate in bits of payload (SO_MAX_PACING_RATE); it is paced then.
    pub max_pacing_bps: Option<BitRate>,
    /// Shortest retransmission timeout beyond the round trip (TCP_RTO_MIN).
    pub min_rto_ns: Nanos,
    pub receiver: ReceiverSpec,
    /// Seed of a congestion control that throws dice.
    pub seed: u32,
}

impl Default for FlowSpec {
    fn default() -> Self {
        FlowSpec {
            control: "reno".to_owned(),
            route: vec![0],
            return_ns: Nanos(0),
            start_ns: Nanos(0),
            stop_ns: None,
            data_bytes: None,
            mtu_bytes: 1500,
            header_bytes: 52,
            receive_window_bytes: None,
            initial_window: 10,
            initial_ssthresh: None,
            ecn: false,
            is_paced: false,
            max_pacing_bps: None,
            min_rto_ns: Nanos::millis(200),
            receiver: ReceiverSpec::default(),
            seed: 1,
        }
    }
}

impl FlowSpec {
    pub fn segment_bytes(&self) -> u16 {
        self.mtu_bytes.saturating_sub(self.header_bytes).max(1)
    }
}

/// A small packet sent again and again: how long the path is just now (ping, of cottrell-2005 section III.A).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSpec {
    pub route: Vec<usize>,
    /// From their end back to the sender.
    pub return_ns: Nanos,
    /// Time between two.
    pub every_ns: Nanos,
    /// Bytes of its IP packet.
    pub packet_bytes: u16,
}

impl Default for ProbeSpec {
    fn default() -> Self {
        ProbeSpec { route: vec![0], return_ns: Nanos(0), every_ns: Nanos::secs(1), packet_bytes: 84 }
    }
}

#[derive(Debug, Clone, PartialEq, Error)]
pub enum ScenarioError {
    #[error("flow {flow}: no congestion control is called {name:?}; `landspeed cc list` names them")]
    UnknownControl { flow: usize, name: String },
    /// The control cannot run on this flow.
    #[error("flow {flow}: {reason}")]
    Refused { flow: usize, reason: landspeed_congestion::Refused },
    #[error("{who} goes over line {line}, but the lines are 0 to {last}; mend its `route`")]
    NoSuchLine {
        /// "flow 3", or "the probe".
        who: String,
        line: usize,
        last: usize,
    },
    #[error("{what} is {value}: it must be {must}")]
    Figure { what: String, value: String, must: &'static str },
}

/// The most lines or flows; flows are numbered in 16 bits within packets.
const MOST: usize = 60_000;

impl Scenario {
    /// Checks everything that a simulation relies on.
    ///
    /// # Errors
    /// [`ScenarioError`] names the first thing that is wrong.
    pub fn check(&self) -> Result<(), ScenarioError> {
        require(self.sample_ns.0 > 0, "the time between samples", self.sample_ns, "above 0")?;
        require(!self.links.is_empty(), "the number of lines", self.links.len(), "at least 1")?;
        require(self.flows.len() <= MOST, "the number of flows", self.flows.len(), "at most 60,000")?;
        for (n, link) in self.links.iter().enumerate() {
            let rate = link.rate_bps;
            require(
                (1.0..=1e13).contains(&rate.0),
                &format!("the rate of line {n}"),
                rate,
                "1 b/s to 10 Tb/s",
            )?;
            for share in link.loss.shares() {
                require((0.0..=1.0).contains(&share), &format!("a loss of line {n}"), share, "from 0 to 1")?;
            }
        }
        for (n, flow) in self.flows.iter().enumerate() {
            self.check_route(&format!("flow {n}"), &flow.route)?;
            let room = flow.mtu_bytes > flow.header_bytes;
            require(room, &format!("the MTU of flow {n}"), flow.mtu_bytes, "larger than its headers")?;
            require(flow.initial_window > 0, &format!("the first window of flow {n}"), 0, "at least 1")?;
            self.control(n)?;
        }
        if let Some(probe) = &self.probe {
            self.check_route("the probe", &probe.route)?;
            require(probe.every_ns.0 > 0, "the time between probes", probe.every_ns, "above 0")?;
        }
        Ok(())
    }

    fn check_route(&self, who: &str, route: &[usize]) -> Result<(), ScenarioError> {
        let lines = route.len();
        require(
            (1..=255).contains(&lines),
            &format!("the number of lines of {who}"),
            lines,
            "from 1 to 255",
        )?;
        match route.iter().find(|line| **line >= self.links.len()) {
            Some(&line) => {
                Err(ScenarioError::NoSuchLine { who: who.to_owned(), line, last: self.links.len() - 1 })
            }
            None => Ok(()),
        }
    }

    pub(crate) fn control(&self, flow: usize) -> Result<Native, ScenarioError> {
        let name = &self.flows[flow].control;
        native(name).ok_or_else(|| ScenarioError::UnknownControl { flow, name: name.clone() })
    }

    /// Round trip of the smallest packet over a route of idle lines.
    pub(crate) fn idle_rtt(&self, route: &[usize], return_ns: Nanos) -> Nanos {
        route.iter().map(|line| self.links[*line].delay_ns).sum::<Nanos>() + return_ns
    }
}

fn require(
    holds: bool,
    what: &str,
    value: impl std::fmt::Display,
    must: &'static str,
) -> Result<(), ScenarioError> {
    if holds {
        return Ok(());
    }
    Err(ScenarioError::Figure { what: what.to_owned(), value: value.to_string(), must })
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
