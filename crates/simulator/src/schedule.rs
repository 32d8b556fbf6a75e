//! The events at fixed times: flows start and stop, samples are taken, and probes are sent.

use landspeed_record::units::Nanos;

use crate::agenda::NEVER;
use crate::scenario::SimulationScenario;

/// An event at a fixed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScheduledEvent {
    Start(usize),
    /// A flow stops sending new data.
    Stop(usize),
    Sample,
    Probe,
}

/// The events at fixed times of a scenario, in order.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// The starts and stops of flows, the latest first.
    flows: Vec<(Nanos, ScheduledEvent)>,
    sample_at: Nanos,
    sample_every: Nanos,
    probe_at: Nanos,
    probe_every: Nanos,
}

impl Schedule {
    pub(crate) fn new(scenario: &SimulationScenario) -> Self {
        let start = |(n, flow): (usize, &crate::FlowSpec)| (flow.start_ns, ScheduledEvent::Start(n));
        let stop = |(n, flow): (usize, &crate::FlowSpec)| {
            flow.stop_ns.map(|at| (at.max(flow.start_ns), ScheduledEvent::Stop(n)))
        };
        let flows = scenario.flows.iter().enumerate();
        let mut times: Vec<_> = flows.clone().map(start).chain(flows.filter_map(stop)).collect();
        // The sort is stable: events at the same time keep the scenario's order, with starts before stops.
        times.sort_by_key(|(at, _)| *at);
        times.reverse();
        let probe_every = scenario.probe.as_ref().map_or(NEVER, |probe| probe.every_ns);
        Schedule {
            flows: times,
            sample_at: scenario.sample_ns,
            sample_every: scenario.sample_ns,
            probe_at: if probe_every == NEVER { NEVER } else { Nanos(0) },
            probe_every,
        }
    }

    pub(crate) fn next(&self) -> Nanos {
        let flow = self.flows.last().map_or(NEVER, |(at, _)| *at);
        flow.min(self.sample_at).min(self.probe_at)
    }

    /// Removes and returns the next event. Of events at the same time, a sample comes first, then a probe.
    pub(crate) fn take(&mut self) -> ScheduledEvent {
        let at = self.next();
        if self.sample_at == at {
            self.sample_at += self.sample_every;
            return ScheduledEvent::Sample;
        }
        if self.probe_at == at {
            self.probe_at += self.probe_every;
            return ScheduledEvent::Probe;
        }
        // Only the flows' time can be the earliest here. If no start or stop is left, that time is NEVER, and the
        // simulation is over.
        self.flows.pop().map_or(ScheduledEvent::Sample, |(_, event)| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowSpec, ProbeSpec};

    #[test]
    fn events_come_in_order_and_samples_first() {
        let flow = |start, stop| FlowSpec {
            start_ns: Nanos(start),
            stop_ns: Some(Nanos(stop)),
            ..FlowSpec::default()
        };
        let scenario = SimulationScenario {
            link: crate::LinkSpec {
                rate_bps: landspeed_record::units::BitRate(1e9),
                delay_ns: Nanos(0),
                queue_bytes: landspeed_record::units::Bytes(1),
                loss: crate::LossSpec::None,
            },
            flows: vec![flow(0, 9), flow(5, 7)],
            traffic: Vec::new(),
            duration_ns: Nanos(10),
            sample_ns: Nanos(5),
            probe: Some(ProbeSpec { every_ns: Nanos(4), ..ProbeSpec::default() }),
        };
        let mut schedule = Schedule::new(&scenario);
        let mut seen = Vec::new();
        while schedule.next() <= Nanos(10) {
            seen.push((schedule.next().0, schedule.take()));
        }
        let expected = [
            (0, ScheduledEvent::Probe),
            (0, ScheduledEvent::Start(0)),
            (4, ScheduledEvent::Probe),
            (5, ScheduledEvent::Sample),
            (5, ScheduledEvent::Start(1)),
            (7, ScheduledEvent::Stop(1)),
            (8, ScheduledEvent::Probe),
            (9, ScheduledEvent::Stop(0)),
            (10, ScheduledEvent::Sample),
        ];
        assert_eq!(seen, expected);
    }
}
