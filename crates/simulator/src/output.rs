//! The results of a simulation.

use landspeed_record::TcpSample;
use landspeed_record::units::{BitRate, Bytes, Nanos};

use crate::link::LinkCounts;
use crate::receiver::ReceiverCounts;
use crate::sender::SenderCounts;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimulationOutcome {
    /// The flows, in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    pub link: LinkOutcome,
    pub probes: Vec<SimulatedProbeSample>,
    /// Probes sent. Those without a sample were dropped or were still under way at the end.
    pub probes_sent: u64,
    /// Number of events: arrivals of packets and acknowledgements, timers, samples.
    pub events: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowOutcome {
    /// The contestant, as in the scenario.
    pub contestant: String,
    pub start_ns: Nanos,
    /// The time at which the flow's last data was acknowledged; `None` if the data had no end or was not all
    /// acknowledged.
    pub finished_ns: Option<Nanos>,
    pub samples: Vec<SimulatedFlowSample>,
    pub sender: SenderCounts,
    pub receiver: ReceiverCounts,
    /// Packets of the flow for which a queue had no room.
    pub no_room: u64,
    /// Packets of the flow that a line lost.
    pub lost: u64,
    pub under_way: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimulatedFlowSample {
    /// End of the interval, since the start of the run.
    pub at_ns: Nanos,
    /// Payload that reached the receiver in order within the interval.
    pub goodput_bytes: Bytes,
    /// The sender at the end of the interval, as TCP_INFO would report it.
    pub tcp: TcpSample,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkOutcome {
    /// One sample at the end of each interval.
    pub samples: Vec<LinkSample>,
    /// Counts from the start to the end.
    pub counts: LinkCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkSample {
    /// Time of the sample, since the start of the run.
    pub at_ns: Nanos,
    /// Packets that wait, including the one on the line.
    pub waiting_packets: u64,
    /// Bytes of the IP packets that wait.
    pub waiting_bytes: Bytes,
    /// Packets for which the queue had no room, so far.
    pub no_room: u64,
    /// Packets that the line lost, so far.
    pub lost: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimulatedProbeSample {
    /// Sending time, since the start of the run.
    pub at_ns: Nanos,
    pub rtt_ns: Nanos,
}

impl FlowOutcome {
    /// Returns the rate of the payload that arrived in order in the intervals that end after `from` and not after
    /// `to`.
    pub fn goodput(&self, from: Nanos, to: Nanos) -> BitRate {
        let within = self.samples.iter().filter(|sample| sample.at_ns > from && sample.at_ns <= to);
        within.map(|sample| sample.goodput_bytes).sum::<Bytes>().per(to - from)
    }

    /// Returns true if every packet sent is accounted for: it arrived, was dropped, or is under way.
    pub fn is_whole(&self) -> bool {
        self.sender.sent == self.receiver.received + self.no_room + self.lost + self.under_way
    }
}
