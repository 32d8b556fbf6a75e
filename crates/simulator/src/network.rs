//! The line that all flows share, and the agenda of all events.

use landspeed_record::units::Nanos;

use crate::agenda::Agenda;
use crate::link::{PacketFate, SimulatedLink};
use crate::packet::SimulatedPacket;
use crate::scenario::SimulationScenario;
use landspeed_stats::TrafficProcess;

/// A source of events. Sources are numbered in the order of declaration. Of two events at the same time, the one whose
/// source has the lower number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// The events at fixed times: starts and stops of flows, samples and probes.
    Schedule,
    /// A packet reaches the end of the line.
    Line,
    /// An answer reaches a flow's sender: an acknowledgement, or another control packet.
    Answers(usize),
    Timers(usize),
    /// A source of others sends a packet.
    Traffic(usize),
}

#[derive(Debug)]
pub(crate) struct SimulatedNetwork {
    pub(crate) agenda: Agenda,
    pub(crate) link: SimulatedLink,
    pub(crate) traffic: Vec<TrafficProcess>,
    flows: usize,
}

impl SimulatedNetwork {
    pub(crate) fn new(scenario: &SimulationScenario) -> Self {
        let flows = scenario.flows.len();
        let traffic: Vec<_> = scenario.traffic.iter().map(TrafficProcess::new).collect();
        let mut agenda = Agenda::new(2 + 2 * flows + traffic.len());
        for (n, source) in traffic.iter().enumerate() {
            agenda.set(2 + 2 * flows + n, source.next());
        }
        SimulatedNetwork { agenda, link: SimulatedLink::new(&scenario.link), traffic, flows }
    }

    pub(crate) fn next(&self) -> (Nanos, EventSource) {
        let (at, number) = self.agenda.first();
        let source = match number {
            0 => EventSource::Schedule,
            1 => EventSource::Line,
            n if n < 2 + self.flows => EventSource::Answers(n - 2),
            n if n < 2 + 2 * self.flows => EventSource::Timers(n - 2 - self.flows),
            n => EventSource::Traffic(n - 2 - 2 * self.flows),
        };
        (at, source)
    }

    pub(crate) fn agenda_index(&self, source: EventSource) -> usize {
        match source {
            EventSource::Schedule => 0,
            EventSource::Line => 1,
            EventSource::Answers(n) => 2 + n,
            EventSource::Timers(n) => 2 + self.flows + n,
            EventSource::Traffic(n) => 2 + 2 * self.flows + n,
        }
    }

    pub(crate) fn send(&mut self, now: Nanos, packet: SimulatedPacket) -> PacketFate {
        let fate = self.link.admit(now, packet);
        self.agenda.set_earlier(self.agenda_index(EventSource::Line), self.link.next());
        fate
    }

    /// Takes the next event of source `n` of others. Returns the size of the packet that leaves now; `None` if none does.
    pub(crate) fn take_traffic(&mut self, n: usize) -> Option<u16> {
        let size = self.traffic[n].take();
        self.agenda.set(self.agenda_index(EventSource::Traffic(n)), self.traffic[n].next());
        size
    }

    /// Returns the packet that reaches the end of the line now; `None` if the line lost it.
    pub(crate) fn take(&mut self, now: Nanos) -> Option<SimulatedPacket> {
        let packet = self.link.take(now);
        self.agenda.set(self.agenda_index(EventSource::Line), self.link.next());
        packet
    }

    /// Returns for each flow the number of its packets that are in flight and will arrive.
    pub(crate) fn under_way(&self) -> Vec<u64> {
        let mut counts = vec![0; self.flows];
        for flow in self.link.under_way() {
            if let Some(count) = counts.get_mut(usize::from(flow)) {
                *count += 1;
            }
        }
        counts
    }
}
