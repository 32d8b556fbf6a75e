//! A flow: its two ends, which use the line that all flows share, and its samples.

use landspeed_record::TcpSample;
use landspeed_record::units::{Bytes, Nanos};

use crate::agenda::NEVER;
use crate::ends::{self, FlowEnds};
use crate::link::PacketFate;
use crate::network::SimulatedNetwork;
use crate::output::{FlowOutcome, SimulatedFlowSample};
use crate::packet::SimulatedPacket;
use crate::scenario::{FlowSpec, SimulationError, SimulationScenario};

#[derive(Debug)]
pub(crate) struct SimulatedFlow {
    number: u16,
    starts: Nanos,
    /// Both ends; `None` before the flow starts.
    ends: Option<Box<dyn FlowEnds>>,
    outcome: FlowOutcome,
    /// Payload that had arrived in order by the last sample.
    sampled: Bytes,
}

impl SimulatedFlow {
    pub(crate) fn new(number: u16, spec: &FlowSpec) -> Self {
        let (contestant, starts) = (spec.contestant.clone(), spec.start_ns);
        let outcome = FlowOutcome { contestant, start_ns: starts, ..FlowOutcome::default() };
        SimulatedFlow { number, starts, ends: None, outcome, sampled: Bytes(0) }
    }

    pub(crate) fn start(
        &mut self,
        now: Nanos,
        scenario: &SimulationScenario,
        network: &mut SimulatedNetwork,
    ) -> Result<(), SimulationError> {
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

    pub(crate) fn on_packet(&mut self, now: Nanos, packet: &SimulatedPacket) {
        if let Some(ends) = &mut self.ends {
            ends.on_packet(now, packet.seq);
        }
    }

    /// Delivers the next answer to the sender.
    pub(crate) fn on_answer(&mut self, now: Nanos, network: &mut SimulatedNetwork) {
        if let Some(ends) = &mut self.ends {
            ends.on_answer(now);
            self.transmit(now, network);
            self.look_if_done(now);
        }
    }

    pub(crate) fn on_timer(&mut self, now: Nanos, network: &mut SimulatedNetwork) {
        if let Some(ends) = &mut self.ends {
            ends.on_timer(now);
            self.transmit(now, network);
        }
    }

    /// Returns the time at which the next answer reaches the sender.
    pub(crate) fn next_answer(&self) -> Nanos {
        self.ends.as_ref().map_or(NEVER, |ends| ends.next_answer())
    }

    /// Returns the time of the next timer of either end.
    pub(crate) fn next_timer(&self) -> Nanos {
        self.ends.as_ref().map_or(NEVER, |ends| ends.next_timer())
    }

    fn transmit(&mut self, now: Nanos, network: &mut SimulatedNetwork) {
        let Some(ends) = &mut self.ends else { return };
        let (outcome, flow) = (&mut self.outcome, self.number);
        ends.transmit(now, &mut |seq, size| {
            let fate =
                network.send(now, SimulatedPacket { seq, leaves: Nanos(0), flow, size, is_lost: false });
            match fate {
                PacketFate::Arrives => {}
                PacketFate::NoRoom => outcome.no_room += 1,
                PacketFate::Lost => outcome.lost += 1,
            }
            fate
        });
    }

    fn look_if_done(&mut self, now: Nanos) {
        if self.outcome.finished_ns.is_none() && self.ends.as_ref().is_some_and(|ends| ends.is_done()) {
            self.outcome.finished_ns = Some(now);
        }
    }

    pub(crate) fn samples(&self) -> &[SimulatedFlowSample] {
        &self.outcome.samples
    }

    /// Takes a sample, if the flow has started.
    pub(crate) fn sample(&mut self, now: Nanos) {
        let Some(ends) = &self.ends else { return };
        let goodput_bytes = ends.delivered() - self.sampled;
        self.sampled = ends.delivered();
        let previous = self.outcome.samples.last().map_or(self.starts, |sample| sample.at_ns);
        let tcp = TcpSample {
            flow: u32::from(self.number),
            at_ns: now - self.starts,
            delivery_rate_bps: goodput_bytes.per(now - previous),
            ..ends.state()
        };
        self.outcome.samples.push(SimulatedFlowSample { at_ns: now, goodput_bytes, tcp });
    }

    /// Returns the flow's outcome. `under_way` is the number of the flow's packets that are still on the line.
    pub(crate) fn finish(self, under_way: u64) -> FlowOutcome {
        let (sender, receiver) = self.ends.map(|ends| ends.counts()).unwrap_or_default();
        FlowOutcome { sender, receiver, under_way, ..self.outcome }
    }
}
