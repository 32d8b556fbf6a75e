//! A flow: its two ends on the line that all flows share, and its samples.

use landspeed_record::TcpSample;
use landspeed_units::{Bytes, Nanos};

use crate::agenda::NEVER;
use crate::ends::{self, Ends};
use crate::link::Fate;
use crate::network::Network;
use crate::output::{FlowOutcome, FlowSample};
use crate::packet::Packet;
use crate::scenario::{FlowSpec, Scenario, ScenarioError};

#[derive(Debug)]
pub(crate) struct Flow {
    number: u16,
    starts: Nanos,
    /// `None` before the start.
    ends: Option<Box<dyn Ends>>,
    seen: FlowOutcome,
    /// Payload that had arrived in order by the last sample.
    sampled: Bytes,
}

impl Flow {
    pub(crate) fn new(number: u16, spec: &FlowSpec) -> Self {
        let (contestant, starts) = (spec.contestant.clone(), spec.start_ns);
        let seen = FlowOutcome { contestant, start_ns: starts, ..FlowOutcome::default() };
        Flow { number, starts, ends: None, seen, sampled: Bytes(0) }
    }

    pub(crate) fn start(
        &mut self,
        now: Nanos,
        scenario: &Scenario,
        network: &mut Network,
    ) -> Result<(), ScenarioError> {
        self.ends = Some(ends::start(scenario, self.number.into(), now)?);
        self.transmit(now, network);
        Ok(())
    }

    /// Stops sending new data.
    pub(crate) fn stop(&mut self, now: Nanos) {
        if let Some(ends) = &mut self.ends {
            ends.stop(now);
            self.look_if_done(now);
        }
    }

    pub(crate) fn on_packet(&mut self, now: Nanos, packet: &Packet) {
        if let Some(ends) = &mut self.ends {
            ends.on_packet(now, packet.seq);
        }
    }

    /// Delivers the next answer to the sender.
    pub(crate) fn on_answer(&mut self, now: Nanos, network: &mut Network) {
        if let Some(ends) = &mut self.ends {
            ends.on_answer(now);
            self.transmit(now, network);
            self.look_if_done(now);
        }
    }

    pub(crate) fn on_timer(&mut self, now: Nanos, network: &mut Network) {
        if let Some(ends) = &mut self.ends {
            ends.on_timer(now);
            self.transmit(now, network);
        }
    }

    /// Returns when the next answer reaches the sender.
    pub(crate) fn next_answer(&self) -> Nanos {
        self.ends.as_ref().map_or(NEVER, |ends| ends.next_answer())
    }

    /// Returns when the next timer of either end is due.
    pub(crate) fn next_timer(&self) -> Nanos {
        self.ends.as_ref().map_or(NEVER, |ends| ends.next_timer())
    }

    fn transmit(&mut self, now: Nanos, network: &mut Network) {
        let Some(ends) = &mut self.ends else { return };
        let (seen, flow) = (&mut self.seen, self.number);
        ends.transmit(now, &mut |seq, size| {
            let fate = network.send(now, Packet { seq, leaves: Nanos(0), flow, size, is_lost: false });
            match fate {
                Fate::Arrives => {}
                Fate::NoRoom => seen.no_room += 1,
                Fate::Lost => seen.lost += 1,
            }
            fate
        });
    }

    fn look_if_done(&mut self, now: Nanos) {
        if self.seen.finished_ns.is_none() && self.ends.as_ref().is_some_and(|ends| ends.is_done()) {
            self.seen.finished_ns = Some(now);
        }
    }

    pub(crate) fn samples(&self) -> &[FlowSample] {
        &self.seen.samples
    }

    /// Takes a sample, if the flow has started.
    pub(crate) fn sample(&mut self, now: Nanos) {
        let Some(ends) = &self.ends else { return };
        let goodput_bytes = ends.delivered() - self.sampled;
        self.sampled = ends.delivered();
        let previous = self.seen.samples.last().map_or(self.starts, |sample| sample.at_ns);
        let tcp = TcpSample {
            flow: u32::from(self.number),
            at_ns: now - self.starts,
            delivery_rate_bps: goodput_bytes.per(now - previous),
            ..ends.state()
        };
        self.seen.samples.push(FlowSample { at_ns: now, goodput_bytes, tcp });
    }

    /// Returns all that was recorded; `under_way` is the number of its packets on the line.
    pub(crate) fn finish(self, under_way: u64) -> FlowOutcome {
        let (sender, receiver) = self.ends.map(|ends| ends.counts()).unwrap_or_default();
        FlowOutcome { sender, receiver, under_way, ..self.seen }
    }
}
