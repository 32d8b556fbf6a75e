//! The lines, and the agenda of everything that happens.

use landspeed_units::Nanos;

use crate::agenda::Agenda;
use crate::link::{Fate, Link};
use crate::packet::Packet;
use crate::scenario::Scenario;

/// A source of events. They are numbered in this order, and the lower number goes first at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Starts, stops, samples and probes.
    Schedule,
    /// A packet reaches the end of a line.
    Line(usize),
    /// An acknowledgement reaches a flow's sender.
    Acks(usize),
    Timers(usize),
}

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) agenda: Agenda,
    links: Vec<Link>,
    flows: usize,
}

impl Network {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let links: Vec<_> =
            scenario.links.iter().zip(0..).map(|(spec, n)| Link::new(spec, scenario.seed, n)).collect();
        let flows = scenario.flows.len();
        Network { agenda: Agenda::new(1 + links.len() + 2 * flows), links, flows }
    }

    pub(crate) fn next(&self) -> (Nanos, Source) {
        let (at, number) = self.agenda.first();
        let lines = self.links.len();
        let source = match number {
            0 => Source::Schedule,
            n if n <= lines => Source::Line(n - 1),
            n if n <= lines + self.flows => Source::Acks(n - 1 - lines),
            n => Source::Timers(n - 1 - lines - self.flows),
        };
        (at, source)
    }

    pub(crate) fn place(&self, source: Source) -> usize {
        match source {
            Source::Schedule => 0,
            Source::Line(n) => 1 + n,
            Source::Acks(n) => 1 + self.links.len() + n,
            Source::Timers(n) => 1 + self.links.len() + self.flows + n,
        }
    }

    pub(crate) fn send(&mut self, now: Nanos, line: usize, packet: Packet) -> Fate {
        let link = &mut self.links[line];
        let fate = link.admit(now, packet);
        self.agenda.set_earlier(1 + line, link.next());
        fate
    }

    /// Takes the packet that reaches the end of a line now; `None` if it was lost on the way.
    pub(crate) fn take(&mut self, now: Nanos, line: usize) -> Option<Packet> {
        let link = &mut self.links[line];
        let packet = link.take(now);
        self.agenda.set(1 + line, link.next());
        packet
    }

    pub(crate) fn links(&mut self) -> &mut [Link] {
        &mut self.links
    }

    /// Packets of each flow that are under way and will arrive.
    pub(crate) fn under_way(&self) -> Vec<u64> {
        let mut counts = vec![0; self.flows];
        for flow in self.links.iter().flat_map(Link::under_way) {
            if let Some(count) = counts.get_mut(usize::from(flow)) {
                *count += 1;
            }
        }
        counts
    }
}
