//! The workload of cottrell-2005 (section III.A): flows enter one after another and leave last in, first
//! out, beside a round-trip probe.

use landspeed_stats::Random;
use landspeed_units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::link::LinkSpec;
use crate::loss::LossSpec;
use crate::queue::QueueSpec;
use crate::scenario::{FlowSpec, ProbeSpec, Scenario};

/// The study on one path, with one protocol or with several against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StudySpec {
    /// Congestion controls of the flows, in turn: one for all, as in the paper, or several.
    pub controls: Vec<String>,
    /// The path's rate.
    pub rate_bps: BitRate,
    /// Its round trip when idle.
    pub rtt_ns: Nanos,
    /// Its queue, in units of rate times round trip.
    pub queue_bdp: f64,
    /// Size of packets.
    pub mtu_bytes: u16,
    /// What the receivers take; `None` for anything.
    pub receive_window_bytes: Option<Bytes>,
    /// How many flows.
    pub flows: u16,
    /// How long each of the regions is in which the number of flows stays the same; the middle one, with
    /// all flows, is twice as long.
    pub region_ns: Nanos,
    /// Repeats differ by it: each flow starts at some time within one round trip.
    pub seed: u64,
}

impl Default for StudySpec {
    /// The paper's full size on its longest path, with a queue of half a bandwidth-delay product.
    fn default() -> Self {
        StudySpec {
            controls: vec!["reno".to_owned()],
            rate_bps: BitRate(1e9),
            rtt_ns: Nanos::millis(164),
            queue_bdp: 0.5,
            mtu_bytes: 1500,
            receive_window_bytes: None,
            flows: 4,
            region_ns: Nanos::secs(120),
            seed: 1,
        }
    }
}

impl StudySpec {
    /// The regions shortened (or lengthened) by a factor.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        StudySpec { region_ns: Nanos((self.region_ns.0 as f64 * scale) as u64), ..self }
    }

    /// All regions together.
    pub fn duration(&self) -> Nanos {
        Nanos(self.region_ns.0 * 2 * u64::from(self.flows))
    }

    /// As it is simulated.
    pub fn scenario(&self) -> Scenario {
        let one_way = Nanos(self.rtt_ns.0 / 2);
        let link = LinkSpec {
            rate_bps: self.rate_bps,
            delay_ns: one_way,
            queue: QueueSpec::Bdp { times: self.queue_bdp, rtt_ns: self.rtt_ns },
            mark_above: None,
            loss: LossSpec::None,
        };
        let return_ns = self.rtt_ns - one_way;
        let mut random = Random::new(self.seed);
        Scenario {
            links: vec![link],
            flows: (0..self.flows).map(|n| self.flow(n, return_ns, random.draw())).collect(),
            duration_ns: self.duration(),
            sample_ns: Nanos::secs(1),
            probe: Some(ProbeSpec { return_ns, ..ProbeSpec::default() }),
            seed: self.seed,
        }
    }

    fn flow(&self, n: u16, return_ns: Nanos, dice: u64) -> FlowSpec {
        let enters = Nanos(self.region_ns.0 * u64::from(n));
        FlowSpec {
            control: self
                .controls
                .get(usize::from(n) % self.controls.len().max(1))
                .cloned()
                .unwrap_or_default(),
            return_ns,
            start_ns: enters + Nanos(dice % self.rtt_ns.0.max(1)),
            stop_ns: Some(self.duration() - enters),
            mtu_bytes: self.mtu_bytes,
            receive_window_bytes: self.receive_window_bytes,
            seed: (dice >> 32) as u32 | 1,
            ..FlowSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_leave_last_in_first_out() {
        let scenario = StudySpec::default().scenario();
        let entered: Vec<_> = scenario.flows.iter().map(|flow| flow.start_ns.0 / 1_000_000_000).collect();
        let left: Vec<_> = scenario.flows.iter().filter_map(|flow| flow.stop_ns).collect();
        assert_eq!(entered, [0, 120, 240, 360]);
        assert_eq!(left, [960, 840, 720, 600].map(Nanos::secs));
        assert_eq!(scenario.duration_ns, Nanos::secs(960));
        assert_eq!(StudySpec::default().scaled(0.1).duration(), Nanos::secs(96));
        let other = StudySpec { seed: 2, ..StudySpec::default() }.scenario();
        assert_ne!(other.flows[1].start_ns, scenario.flows[1].start_ns);
    }

    #[test]
    fn protocols_take_turns() {
        let study = StudySpec { controls: vec!["cubic".into(), "bbr".into()], ..StudySpec::default() };
        let controls: Vec<_> = study.scenario().flows.into_iter().map(|flow| flow.control).collect();
        assert_eq!(controls, ["cubic", "bbr", "cubic", "bbr"]);
        let none = StudySpec { controls: Vec::new(), ..StudySpec::default() };
        assert!(none.scenario().check().is_err());
    }
}
