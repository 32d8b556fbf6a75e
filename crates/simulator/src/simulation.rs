//! The simulator's main loop, which handles the events in the order of their times.

use landspeed_record::units::{Bytes, Nanos};

use crate::flow::SimulatedFlow;
use crate::link::PacketFate;
use crate::network::{EventSource, SimulatedNetwork};
use crate::output::{LinkSample, SimulatedProbeSample, SimulationOutcome};
use crate::packet::{OTHERS, PROBE, SimulatedPacket};
use crate::scenario::{SimulationError, SimulationScenario};
use crate::schedule::{Schedule, ScheduledEvent};

/// Runs a scenario, packet by packet. The same scenario always gives the same outcome.
pub fn simulate(scenario: &SimulationScenario) -> Result<SimulationOutcome, SimulationError> {
    simulate_until(scenario, |_| false)
}

/// Runs a scenario, packet by packet, and stops at the end or at the first sample for which `ends` returns true.
pub(crate) fn simulate_until(
    scenario: &SimulationScenario,
    ends: impl FnMut(&[SimulatedFlow]) -> bool,
) -> Result<SimulationOutcome, SimulationError> {
    scenario.check()?;
    let mut simulation = Simulation::new(scenario);
    simulation.run(ends)?;
    Ok(simulation.finish())
}

struct Simulation<'a> {
    scenario: &'a SimulationScenario,
    schedule: Schedule,
    network: SimulatedNetwork,
    flows: Vec<SimulatedFlow>,
    outcome: SimulationOutcome,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a SimulationScenario) -> Self {
        let flows = scenario.flows.iter().zip(0..).map(|(spec, n)| SimulatedFlow::new(n, spec)).collect();
        let schedule = Schedule::new(scenario);
        let mut network = SimulatedNetwork::new(scenario);
        network.agenda.set(network.agenda_index(EventSource::Schedule), schedule.next());
        Simulation { scenario, schedule, network, flows, outcome: SimulationOutcome::default() }
    }

    fn run(&mut self, mut ends: impl FnMut(&[SimulatedFlow]) -> bool) -> Result<(), SimulationError> {
        let mut samples = 0;
        loop {
            let (now, source) = self.network.next();
            if now > self.scenario.duration_ns {
                return Ok(());
            }
            if samples < self.outcome.link.samples.len() {
                samples = self.outcome.link.samples.len();
                if ends(&self.flows) {
                    return Ok(());
                }
            }
            self.outcome.events += 1;
            match source {
                EventSource::Schedule => self.on_schedule(now)?,
                EventSource::Line => self.on_line(now),
                EventSource::Answers(flow) => self.on_answers(now, flow),
                EventSource::Timers(flow) => self.on_timers(now, flow),
                EventSource::Traffic(source) => self.on_traffic(now, source),
            }
        }
    }

    fn on_schedule(&mut self, now: Nanos) -> Result<(), SimulationError> {
        match self.schedule.take() {
            ScheduledEvent::Start(n) => {
                self.flows[n].start(now, self.scenario, &mut self.network)?;
                self.look_at_timers(n);
            }
            ScheduledEvent::Stop(n) => self.flows[n].stop(now),
            ScheduledEvent::Sample => self.sample(now),
            ScheduledEvent::Probe => self.send_probe(now),
        }
        self.network.agenda.set(self.network.agenda_index(EventSource::Schedule), self.schedule.next());
        Ok(())
    }

    /// Handles the arrival of a packet at the end of the line.
    fn on_line(&mut self, now: Nanos) {
        let Some(packet) = self.network.take(now) else { return };
        match packet.flow {
            PROBE => return self.on_probe(now, packet),
            OTHERS => return,
            _ => {}
        }
        let n = usize::from(packet.flow);
        self.flows[n].on_packet(now, &packet);
        let agenda_index = self.network.agenda_index(EventSource::Answers(n));
        self.network.agenda.set_earlier(agenda_index, self.flows[n].next_answer());
        self.look_at_timers(n);
    }

    fn on_answers(&mut self, now: Nanos, n: usize) {
        self.flows[n].on_answer(now, &mut self.network);
        self.network
            .agenda
            .set(self.network.agenda_index(EventSource::Answers(n)), self.flows[n].next_answer());
        self.look_at_timers(n);
    }

    fn on_timers(&mut self, now: Nanos, n: usize) {
        self.flows[n].on_timer(now, &mut self.network);
        let (answers, timers) = (
            self.network.agenda_index(EventSource::Answers(n)),
            self.network.agenda_index(EventSource::Timers(n)),
        );
        self.network.agenda.set_earlier(answers, self.flows[n].next_answer());
        self.network.agenda.set(timers, self.flows[n].next_timer());
    }

    /// Sends a packet of others.
    fn on_traffic(&mut self, now: Nanos, n: usize) {
        let Some(size) = self.network.take_traffic(n) else { return };
        let packet = SimulatedPacket { seq: 0, leaves: Nanos(0), flow: OTHERS, size, is_lost: false };
        let fate = self.network.send(now, packet);
        let counts = &mut self.outcome.traffic;
        counts.packets += 1;
        counts.bytes += Bytes(size.into());
        match fate {
            PacketFate::Arrives => {}
            PacketFate::NoRoom => counts.no_room += 1,
            PacketFate::Lost => counts.lost += 1,
        }
    }

    /// Updates the time of a flow's timers in the agenda if the new time is earlier. A later time is not stored,
    /// because nearly every packet postpones a timer. The timer's event then comes too early, which does no harm.
    fn look_at_timers(&mut self, n: usize) {
        let timers = self.network.agenda_index(EventSource::Timers(n));
        self.network.agenda.set_earlier(timers, self.flows[n].next_timer());
    }

    fn send_probe(&mut self, now: Nanos) {
        let Some(probe) = &self.scenario.probe else { return };
        self.outcome.probes_sent += 1;
        let (size, leaves) = (probe.packet_bytes, Nanos(0));
        let packet = SimulatedPacket { seq: now.0, leaves, flow: PROBE, size, is_lost: false };
        self.network.send(now, packet);
    }

    fn on_probe(&mut self, now: Nanos, packet: SimulatedPacket) {
        let Some(probe) = &self.scenario.probe else { return };
        let sent = Nanos(packet.seq);
        self.outcome.probes.push(SimulatedProbeSample { at_ns: sent, rtt_ns: now - sent + probe.return_ns });
    }

    fn sample(&mut self, now: Nanos) {
        for flow in &mut self.flows {
            flow.sample(now);
        }
        let (waiting, counts) = (self.network.link.waiting(now), self.network.link.counts());
        self.outcome.link.samples.push(LinkSample {
            at_ns: now,
            waiting_packets: waiting.packets,
            waiting_bytes: Bytes(waiting.bytes),
            no_room: counts.no_room,
            lost: counts.lost,
        });
    }

    fn finish(mut self) -> SimulationOutcome {
        let under_way = self.network.under_way();
        self.outcome.flows = self.flows.into_iter().zip(under_way).map(|(flow, n)| flow.finish(n)).collect();
        self.outcome.link.counts = self.network.link.counts();
        self.outcome
    }
}
