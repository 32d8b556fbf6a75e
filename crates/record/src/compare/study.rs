//! The plan of a study, the same for real hosts and for the simulator.

use std::collections::{BTreeMap, BTreeSet};

use crate::units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::unknown;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StudyEngine {
    /// Sockets of real hosts, or of a lab's hosts.
    #[default]
    Kernel,
    /// The simulator, which runs the C sources of the same congestion controls packet by packet.
    Simulator,
}

/// A part of a TCP host that both the kernel and the simulator can leave out.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SenderPart {
    /// Selective acknowledgements (RFC 2018).
    Sack,
    /// Tail loss probes (RFC 8985, section 7).
    TailLossProbes,
    /// Segmentation and receive offloads (TSO, GSO, GRO), by which hosts hand on many segments as one superpacket. The
    /// simulator's hosts never have them.
    Superpackets,
}

impl SenderPart {
    pub fn words(self) -> &'static str {
        match self {
            SenderPart::Sack => "selective acknowledgements",
            SenderPart::TailLossProbes => "tail loss probes",
            SenderPart::Superpackets => "superpackets",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StudyPath {
    /// Rate of the bottleneck, in bits of IP packets; `None` if neither host's link reports its speed.
    #[serde(with = "unknown::Measured::<BitRate>")]
    pub rate_bps: BitRate,
    /// Idle round trip.
    pub rtt_ns: Nanos,
    /// Idle round trip of flows whose packets are marked for it; `None` if all flows have the same round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_rtt_ns: Option<Nanos>,
    /// Capacity of the queue in front of the bottleneck, in bytes of IP packets; `None` between real hosts, which do
    /// not report it.
    #[serde(deserialize_with = "unknown::or_default")]
    pub queue_bytes: Option<Bytes>,
    /// MTU of the path.
    pub mtu_bytes: u16,
    /// Largest receive window that the hosts grant a flow; `None` if nothing bounds it.
    pub window_bytes: Option<Bytes>,
    /// Random losses on the bottleneck's line; `None` if there are none, or if they are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<LineLoss>,
    /// Cross traffic at the bottleneck; `None` if there is none, or if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross: Option<CrossTraffic>,
    /// The topology: "lab:wan:rate=100M,rtt=164ms,queue=0.5bdp", or the hosts' names.
    pub topology: String,
}

/// Random losses of a line, from the first host to the second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LineLoss {
    /// Share of the packets that are lost, 0 to 1.
    pub share: f64,
    /// Mean number of packets that are lost in a row, at least 1.
    pub burst_packets: f64,
}

/// Cross traffic from the first host to the second. It occupies the queue and the line, and does not react to losses.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CrossTraffic {
    /// Mean rate of all sources as a share of the line's rate, 0 to 1.
    pub load: f64,
    /// Mean time for which a source is on.
    pub on_ns: Nanos,
    /// Mean time for which a source is off.
    pub off_ns: Nanos,
    /// Share of the load from short flows, 0 to 1.
    pub short: f64,
}

/// Rate for which a study sizes its buffers if the path's rate is unknown.
const AMPLE: BitRate = BitRate(1e10);

impl StudyPath {
    /// Returns the bandwidth-delay product. An unknown rate counts as 10 Gb/s.
    pub fn bdp(&self) -> Bytes {
        self.holds(self.rtt_ns)
    }

    /// Returns the largest number of bytes that one flow can have in flight: over the longest round trip, and in the
    /// queue.
    pub fn most_under_way(&self) -> Bytes {
        let longest = self.rtt_ns + self.longer_ns().unwrap_or_default();
        Bytes(self.holds(longest).0 + self.room().0)
    }

    /// Returns the limit of the kernel's buffer for a flow at either end. It is four times the flow's largest number of
    /// bytes in flight, because the kernel counts its own overhead too, and at least the kernel's default for
    /// receiving.
    pub fn buffer_bytes(&self) -> Bytes {
        Bytes(4 * self.most_under_way().0).max(LEAST_BUFFER)
    }

    fn holds(&self, rtt: Nanos) -> Bytes {
        Bytes((self.rate().unwrap_or(AMPLE).0 / 8.0 * rtt.as_secs_f64()) as u64)
    }

    /// Returns the time by which the second round trip is longer; `None` if the path has only one.
    pub fn longer_ns(&self) -> Option<Nanos> {
        self.second_rtt_ns
            .map(|second| second.saturating_sub(self.rtt_ns))
            .filter(|longer| *longer > Nanos(0))
    }

    pub fn rate(&self) -> Option<BitRate> {
        Some(self.rate_bps).filter(|rate| rate.0 > 0.0)
    }

    /// Returns a description such as "1 Gb/s, 164 ms round trip".
    pub fn description(&self) -> String {
        let rate = self.rate().map_or_else(|| "rate not known".to_owned(), |rate| rate.to_string());
        let loss = self.loss.map(|loss| format!(", {:.3} % lost by chance", 100.0 * loss.share));
        let cross =
            self.cross.map(|cross| format!(", {:.0} % of it taken by cross traffic", 100.0 * cross.load));
        let (loss, cross) = (loss.unwrap_or_default(), cross.unwrap_or_default());
        let rtt = self.rtt_ns;
        let rtts = match self.second_rtt_ns {
            Some(second) => format!("{rtt} and {second} round trips"),
            None => format!("{rtt} round trip"),
        };
        format!("{rate}, {rtts}{loss}{cross}")
    }

    /// Returns the capacity of the queue in front of the bottleneck, or zero if it is unknown.
    pub fn room(&self) -> Bytes {
        self.queue_bytes.unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "question", rename_all = "kebab-case")]
pub enum ContestQuestion {
    /// How flows of one protocol share a path while flows enter and leave (cottrell-2005 section III.A).
    #[default]
    Regions,
    /// How flows of two protocols share a path while flows enter and leave. Flows 1 and 3 are of the first protocol,
    /// and 2 and 4 of the second.
    Meeting,
    /// How long short flows take beside a long flow. The long flow of the contest's protocol lasts for the whole run,
    /// and short flows start at fixed intervals (RFC 5166 section 2.1.3).
    ShortFlows {
        /// Bytes that each short flow sends.
        size_bytes: Bytes,
        /// Time between the starts of two short flows.
        every_ns: Nanos,
    },
    /// How much processor time a bit costs the sender. Several parallel streams of one protocol last for the whole
    /// run (cottrell-2005 section IV.B.2, Figures 6 and 7).
    Streams {
        /// Number of streams.
        streams: u16,
        /// Largest number of bytes that each stream has in flight.
        window_bytes: Bytes,
    },
    /// How two flows of one protocol share a path if the second has a longer round trip. On sockets, the path must have
    /// such a second round trip (`StudyPath`).
    RoundTrips {
        /// Time by which the second flow's round trip exceeds the path's.
        longer_ns: Nanos,
    },
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Contest {
    /// Name in records: "htcp", "htcp beside reno", "htcp with short flows". Unique within a study.
    pub name: String,
    /// The contestants in text form (`Contestant`). Flows are assigned to the contestants in turn.
    #[serde(alias = "controls")]
    pub contestants: Vec<String>,
    #[serde(flatten)]
    pub question: ContestQuestion,
}

/// Largest number of flows in a run with short flows, including the long one. Real hosts hold the connection of each
/// flow open from the start.
const MOST_FLOWS: u64 = 60;

/// Largest number of parallel streams in one run.
const MOST_STREAMS: u16 = 64;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct FlowPlan {
    /// The flow's contestant in text form (`Contestant`).
    #[serde(alias = "control")]
    pub contestant: String,
    /// Time when the flow enters, from the start of the run.
    pub enters_ns: Nanos,
    /// Time when the flow leaves, from the start of the run.
    pub leaves_ns: Nanos,
    /// Bytes that a short flow sends; `None` for a flow that sends until it leaves.
    pub data_bytes: Option<Bytes>,
    /// Time by which the flow's round trip exceeds the path's; zero if it does not.
    pub longer_ns: Nanos,
}

/// A study: a number of runs of each contest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Study {
    /// What carries the flows: sockets of hosts or the simulator.
    pub engine: StudyEngine,
    /// The path that the flows share.
    pub path: StudyPath,
    /// The contests: the contestants of each, and the question that it answers.
    pub contests: Vec<Contest>,
    /// Short titles of contestants, by contestant. Empty in older records.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub titles: BTreeMap<String, String>,
    /// Number of flows in a run (4 in the paper).
    pub flows: u16,
    /// Length of a region, in which the number of flows stays the same (120 s in the paper). The middle region, with
    /// all flows, is twice as long.
    pub region_ns: Nanos,
    /// Length of a region, divided by the paper's 120 s. Figures are compared with the paper's only if this is 1.
    pub scale: f64,
    /// Number of runs of each contest.
    pub repeats: u32,
    /// Largest deviation of a repeat's rate, round trip and queue from the path's, as a share: 0.02 is 2 % either way.
    /// Deviations are distributed uniformly, follow from the seed, and are the same for all contests of a repeat. With
    /// 0, all repeats have the same path.
    pub varied_share: f64,
    /// Time between samples of flows (1 s in the paper; shorter for shorter regions).
    pub sample_ns: Nanos,
    /// Time between probes of the round trip (1 s in the paper).
    pub probe_ns: Nanos,
    /// Name of the scene, such as "2004", that defines the losses, the cross traffic and the senders of a simulated
    /// study; `None` for a path that the flows have to themselves and that loses packets only in its queue. Sockets
    /// have no scene.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scene: Option<String>,
    /// The parts of a TCP sender that the flows do without.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub without: BTreeSet<SenderPart>,
    /// Seed of the order of runs, of the link's random losses and of entry times.
    pub seed: u64,
}

/// MTU of the paper's hosts, which use Ethernet.
const MTU: u16 = 1500;

/// The kernel's default limit of a receive buffer (tcp(7), tcp_rmem).
const LEAST_BUFFER: Bytes = Bytes::mib(6);
const REGION: Nanos = Nanos::secs(120);

impl Study {
    /// Returns the study of cottrell-2005 at full size on its longest path: 1 Gb/s, 164 ms, four flows, 16 minutes. The
    /// paper does not state the capacity of the queue; here it is half a bandwidth-delay product.
    pub fn paper() -> Self {
        let (rate_bps, rtt_ns) = (BitRate(1e9), Nanos::millis(164));
        let path = StudyPath { rate_bps, rtt_ns, mtu_bytes: MTU, ..StudyPath::default() };
        Study {
            engine: StudyEngine::Kernel,
            path: StudyPath { queue_bytes: Some(Bytes(path.bdp().0 / 2)), ..path },
            contests: Vec::new(),
            titles: BTreeMap::new(),
            flows: 4,
            region_ns: REGION,
            scale: 1.0,
            repeats: 1,
            varied_share: 0.0,
            sample_ns: Nanos::secs(1),
            probe_ns: Nanos::secs(1),
            scene: None,
            without: BTreeSet::new(),
            seed: 1,
        }
    }

    /// Returns the study with regions of the paper's length multiplied by `scale`. In shorter regions, samples and
    /// probes are more frequent, so that each region has as many of them as in the paper. Two samples or probes are at
    /// least 100 ms apart.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        let region_ns = Nanos((REGION.0 as f64 * scale) as u64);
        let sample = Nanos((1e9 * scale.min(1.0)) as u64).max(Nanos::millis(100));
        Study { region_ns, scale, sample_ns: sample, probe_ns: sample, ..self }
    }

    /// Returns the number of repeats that are independent of each other. Only these count for an interval or a
    /// difference. Real hosts vary from run to run. Simulated hosts do not: even with other seeds, simulated runs over
    /// exactly the same path count as one measurement. A simulated network locks flows into patterns that depend on the
    /// ratio of rate, round trip and queue (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways",
    /// 1992).
    pub fn independent_repeats(&self) -> u32 {
        match self.engine {
            StudyEngine::Simulator if self.varied_share <= 0.0 => self.repeats.min(1),
            _ => self.repeats,
        }
    }

    pub fn duration(&self) -> Nanos {
        Nanos(self.region_ns.0.saturating_mul(2 * u64::from(self.flows)))
    }

    /// Returns the flows of a contest. They are the same for every engine.
    pub fn schedule(&self, contest: &Contest) -> Vec<FlowPlan> {
        let contestants = contest.contestants.iter().cycle();
        match contest.question {
            ContestQuestion::Regions | ContestQuestion::Meeting => (0..self.flows)
                .zip(contestants)
                .map(|(n, contestant)| self.in_region(n, contestant))
                .collect(),
            ContestQuestion::ShortFlows { size_bytes, every_ns } => {
                let long = contestants.clone().take(1).map(|contestant| self.whole(contestant));
                let starts = (1..MOST_FLOWS).map(|n| Nanos(every_ns.0.saturating_mul(n)));
                let starts = starts.take_while(|start| every_ns.0 > 0 && *start < self.duration());
                let short = |(enters_ns, contestant): (Nanos, &String)| FlowPlan {
                    enters_ns,
                    data_bytes: Some(size_bytes),
                    ..self.whole(contestant)
                };
                long.chain(starts.zip(contestants).map(short)).collect()
            }
            ContestQuestion::Streams { streams, .. } => (0..streams.min(MOST_STREAMS))
                .zip(contestants)
                .map(|(_, contestant)| self.whole(contestant))
                .collect(),
            ContestQuestion::RoundTrips { longer_ns } => [Nanos(0), longer_ns]
                .into_iter()
                .zip(contestants)
                .map(|(longer_ns, contestant)| FlowPlan { longer_ns, ..self.whole(contestant) })
                .collect(),
        }
    }

    /// Returns flow `n` of the paper's schedule (section III.A): flows enter one region apart and leave last in,
    /// first out.
    fn in_region(&self, n: u16, contestant: &str) -> FlowPlan {
        let enters = Nanos(self.region_ns.0.saturating_mul(u64::from(n)));
        FlowPlan { enters_ns: enters, leaves_ns: self.duration() - enters, ..self.whole(contestant) }
    }

    /// Returns a flow that lasts for the whole run.
    fn whole(&self, contestant: &str) -> FlowPlan {
        FlowPlan { contestant: contestant.to_owned(), leaves_ns: self.duration(), ..FlowPlan::default() }
    }

    /// Returns the regions of the schedule in order of time. With a single flow there is one region.
    pub fn regions(&self) -> Vec<StudyRegion> {
        let all = u64::from(self.flows);
        let bound = |n: u64| Nanos(self.region_ns.0.saturating_mul(n));
        let region = |from, to, flows| StudyRegion { start: bound(from), end: bound(to), flows };
        let rising = (1..all).map(|n| region(n - 1, n, n as u16));
        let falling = (1..all).map(|n| region(all + n, all + n + 1, (all - n) as u16));
        rising.chain([region(all.saturating_sub(1), all + 1, self.flows)]).chain(falling).collect()
    }
}

/// A part of a study's schedule in which the same flows run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyRegion {
    pub start: Nanos,
    pub end: Nanos,
    /// The number of flows that run.
    pub flows: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study() -> Study {
        Study { flows: 4, region_ns: Nanos::secs(120), ..Study::default() }
    }

    #[test]
    fn the_papers_schedule_is_last_in_first_out() {
        let contest = Contest {
            contestants: vec!["reno".into(), "htcp".into()],
            question: ContestQuestion::Meeting,
            ..Contest::default()
        };
        let plan = study().schedule(&contest);
        let seconds =
            |f: fn(&FlowPlan) -> Nanos| plan.iter().map(|p| f(p).0 / 1_000_000_000).collect::<Vec<_>>();
        assert_eq!(seconds(|p| p.enters_ns), [0, 120, 240, 360]);
        assert_eq!(seconds(|p| p.leaves_ns), [960, 840, 720, 600]);
        assert_eq!(
            plan.iter().map(|p| p.contestant.as_str()).collect::<Vec<_>>(),
            ["reno", "htcp", "reno", "htcp"]
        );
    }

    #[test]
    fn the_papers_seven_regions() {
        let regions: Vec<_> =
            study().regions().iter().map(|r| ((r.end - r.start).0 / 1_000_000_000, r.flows)).collect();
        assert_eq!(regions, [(120, 1), (120, 2), (120, 3), (240, 4), (120, 3), (120, 2), (120, 1)]);
        let one = Study { flows: 1, ..study() };
        assert_eq!(one.regions(), [StudyRegion { start: Nanos(0), end: Nanos::secs(240), flows: 1 }]);
    }

    #[test]
    fn short_flows_start_beside_a_long_one() {
        let contest = Contest {
            contestants: vec!["reno".into()],
            question: ContestQuestion::ShortFlows { size_bytes: Bytes::kib(64), every_ns: Nanos::secs(300) },
            ..Contest::default()
        };
        let plan = study().schedule(&contest);
        assert_eq!(plan.iter().map(|p| p.enters_ns).collect::<Vec<_>>(), [0, 300, 600, 900].map(Nanos::secs));
        assert_eq!(plan.iter().filter(|p| p.data_bytes.is_some()).count(), 3);
        let often = Contest {
            question: ContestQuestion::ShortFlows { size_bytes: Bytes(1), every_ns: Nanos(1) },
            ..contest.clone()
        };
        assert_eq!(study().schedule(&often).len(), 60);
        let never = Contest {
            question: ContestQuestion::ShortFlows { size_bytes: Bytes(1), every_ns: Nanos(0) },
            ..contest
        };
        assert_eq!(study().schedule(&never).len(), 1);
    }

    #[test]
    fn a_second_round_trip_needs_larger_buffers() {
        let path = Study::paper().path;
        assert_eq!((path.longer_ns(), path.most_under_way()), (None, Bytes(20_500_000 + 10_250_000)));
        let two = StudyPath { second_rtt_ns: Some(Nanos::millis(328)), ..path.clone() };
        assert_eq!((two.longer_ns(), two.bdp()), (Some(Nanos::millis(164)), path.bdp()));
        assert_eq!(two.most_under_way(), Bytes(2 * 20_500_000 + 10_250_000));
        assert_eq!(two.description(), "1 Gb/s, 164 ms and 328 ms round trips");
        let shorter = StudyPath { second_rtt_ns: Some(Nanos::millis(13)), ..path.clone() };
        assert_eq!((shorter.longer_ns(), shorter.most_under_way()), (None, path.most_under_way()));
    }

    #[test]
    fn shorter_regions_have_as_many_samples() {
        let study = Study::paper().scaled(0.1);
        assert_eq!((study.region_ns, study.sample_ns), (Nanos::secs(12), Nanos::millis(100)));
        assert_eq!(Study::paper().scaled(1.0), Study::paper());
        assert_eq!(Study::paper().path.queue_bytes, Some(Bytes(10_250_000)));
    }
}
