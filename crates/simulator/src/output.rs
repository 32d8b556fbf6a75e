//! The results of a simulation.

use landspeed_record::TcpSample;
use landspeed_record::units::{BitRate, Bytes, Nanos};

use crate::link::LinkCounts;
use crate::receiver::ReceiverCounts;
use crate::sender::SenderCounts;
use landspeed_stats::TrafficCounts;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimulationOutcome {
    /// The flows, in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    pub link: LinkOutcome,
    /// The packets of others.
    pub traffic: TrafficCounts,
    pub probes: Vec<SimulatedProbeSample>,
    /// The number of probes sent. Probes without a sample were dropped, or were still in flight at the end.
    pub probes_sent: u64,
    /// The number of simulated events: arrivals of packets and acknowledgements, timers, samples and others.
    pub events: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowOutcome {
    /// The contestant, as the scenario names it.
    pub contestant: String,
    pub start_ns: Nanos,
    /// The time at which all of the flow's data was acknowledged; `None` if some was not, or if the data had no end.
    pub finished_ns: Option<Nanos>,
    pub samples: Vec<SimulatedFlowSample>,
    pub sender: SenderCounts,
    pub receiver: ReceiverCounts,
    /// The number of the flow's packets for which the queue had no room.
    pub no_room: u64,
    /// The number of the flow's packets that the line lost.
    pub lost: u64,
    pub under_way: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimulatedFlowSample {
    /// The end of the sample's interval, since the start of the run.
    pub at_ns: Nanos,
    /// Payload that reached the receiver in order within the interval.
    pub goodput_bytes: Bytes,
    /// The sender's state at the end of the interval, as TCP_INFO would report it.
    pub tcp: TcpSample,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkOutcome {
    /// One sample at the end of each interval.
    pub samples: Vec<LinkSample>,
    /// The counts of the whole run.
    pub counts: LinkCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkSample {
    /// Time of the sample, since the start of the run.
    pub at_ns: Nanos,
    /// Packets that wait, including the one on the line.
    pub waiting_packets: u64,
    /// The sum of the sizes of the IP packets that wait.
    pub waiting_bytes: Bytes,
    /// The number of packets for which the queue had no room so far.
    pub no_room: u64,
    /// The number of packets that the line lost so far.
    pub lost: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimulatedProbeSample {
    /// The time at which the probe was sent, since the start of the run.
    pub at_ns: Nanos,
    pub rtt_ns: Nanos,
}

impl FlowOutcome {
    /// Returns the mean goodput from `from` to `to`: the payload of all intervals that end after `from` and not after
    /// `to`, divided by `to - from`.
    pub fn goodput(&self, from: Nanos, to: Nanos) -> BitRate {
        let within = self.samples.iter().filter(|sample| sample.at_ns > from && sample.at_ns <= to);
        within.map(|sample| sample.goodput_bytes).sum::<Bytes>().per(to - from)
    }

    /// Returns true if every packet sent is accounted for: it arrived, was dropped or lost, or is still in flight.
    pub fn is_whole(&self) -> bool {
        self.sender.sent == self.receiver.received + self.no_room + self.lost + self.under_way
    }
}
