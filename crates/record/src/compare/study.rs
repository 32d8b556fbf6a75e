//! What a study is: the same words for real hosts and for the simulator.

use landspeed_units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::unknown;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Sockets of real hosts, or of a lab's.
    #[default]
    Kernel,
    /// The simulator: the same C sources, packet by packet.
    Simulator,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StudyPath {
    /// Rate of the bottleneck, in bits of IP packets; null where neither host's link tells its speed.
    #[serde(with = "unknown::measured")]
    pub rate_bps: BitRate,
    /// Round trip when idle.
    pub rtt_ns: Nanos,
    /// Most bytes of IP packets that wait in front of the bottleneck; `None` between real hosts, which do not tell.
    #[serde(deserialize_with = "unknown::or_default")]
    pub queue_bytes: Option<Bytes>,
    /// MTU of the path.
    pub mtu_bytes: u16,
    /// Largest receive window that hosts grant a flow; `None` where nothing bounds it.
    pub window_bytes: Option<Bytes>,
    /// The topology in words: "lab:wan:rate=100M,rtt=164ms,queue=0.5bdp", or the hosts' names.
    pub topology: String,
}

/// What a study has room for where the rate is not known.
const AMPLE: BitRate = BitRate(1e10);

impl StudyPath {
    /// Bandwidth-delay product, at 10 Gb/s where the rate is not known.
    pub fn bdp(&self) -> Bytes {
        Bytes((self.rate().unwrap_or(AMPLE).0 / 8.0 * self.rtt_ns.as_secs_f64()) as u64)
    }

    pub fn rate(&self) -> Option<BitRate> {
        Some(self.rate_bps).filter(|rate| rate.0 > 0.0)
    }

    /// "1 Gb/s, 164 ms round trip".
    pub fn told(&self) -> String {
        let rate = self.rate().map_or_else(|| "rate not known".to_owned(), |rate| rate.to_string());
        format!("{rate}, {} round trip", self.rtt_ns)
    }

    /// Room in front of the bottleneck that may be counted on: none where it is not known.
    pub fn room(&self) -> Bytes {
        self.queue_bytes.unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "question", rename_all = "kebab-case")]
pub enum Question {
    /// How flows of one protocol share a path as they come and go: cottrell-2005 section III.A.
    #[default]
    Regions,
    /// How flows of two protocols share it: the same schedule, flows 1 and 3 of the first, 2 and 4 of the second.
    Meeting,
    /// How short flows fare beside a long one: one long flow of the contest's protocol from the start to the end, and
    /// short ones one after another (RFC 5166 section 2.1.3).
    ShortFlows {
        /// What each short flow sends.
        size_bytes: Bytes,
        /// Time between the starts of two.
        every_ns: Nanos,
    },
    /// What a bit costs the sender with so many parallel streams of one protocol from the start to the end, none of which
    /// has more than this in flight: cottrell-2005 section IV.B.2, Figures 6 and 7.
    Streams {
        /// How many.
        streams: u16,
        /// Most that each has in flight.
        window_bytes: Bytes,
    },
    /// How flows of one protocol with different round trips share it; the second flow's is longer by so much.
    /// Only the simulator answers it.
    RoundTrips {
        /// Beyond the path's own round trip.
        longer_ns: Nanos,
    },
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Contest {
    /// Its name in records: "htcp", "htcp beside reno", "htcp with short flows"; unique within a study.
    pub name: String,
    /// The contestants, each as [`super::Contestant`] writes it; flows take them in turn.
    #[serde(alias = "controls")]
    pub contestants: Vec<String>,
    #[serde(flatten)]
    pub question: Question,
}

/// Short flows of one run, at most: each is a connection that real hosts hold open from the start.
const MOST_SHORT: u64 = 60;

/// Parallel streams of one run, at most.
const MOST_STREAMS: u16 = 64;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowPlan {
    /// Whose flow it is, as [`super::Contestant`] writes it.
    #[serde(alias = "control")]
    pub contestant: String,
    /// When it enters, since the start of the run.
    pub enters_ns: Nanos,
    /// When it leaves, since the start of the run.
    pub leaves_ns: Nanos,
    /// All that it sends, where it is a short flow; `None` where it sends until it leaves.
    pub data_bytes: Option<Bytes>,
    /// How much longer than the path's its round trip is.
    pub longer_ns: Nanos,
}

/// A study: every contest, so many times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Study {
    /// What carries the flows.
    pub engine: Engine,
    /// The path that they share.
    pub path: StudyPath,
    /// Who meets whom, and what is asked.
    pub contests: Vec<Contest>,
    /// Flows of a run (4 in the paper).
    pub flows: u16,
    /// Length of a region, in which the number of flows stays the same (120 s in the paper); the middle one, with
    /// all flows, is twice as long.
    pub region_ns: Nanos,
    /// `region_ns` over the paper's 120 s. Where it is not 1, figures are never set beside the paper's.
    pub scale: f64,
    /// Runs of each contest.
    pub repeats: u32,
    /// How far rate, round trip and queue of each repeat may lie from the path's: 0.02 is 2 % either way, drawn evenly
    /// from the seed, the same for all contests of a repeat. 0 is the same path each time.
    pub varied_share: f64,
    /// Time between samples of flows (1 s in the paper, and shorter where regions are).
    pub sample_ns: Nanos,
    /// Time between probes of the round trip (1 s in the paper).
    pub probe_ns: Nanos,
    /// Seed of the order of runs, of the link's chance and of entry times.
    pub seed: u64,
}

/// The size of a packet in the paper: its hosts' Ethernet.
const MTU: u16 = 1500;
const REGION: Nanos = Nanos::secs(120);

impl Study {
    /// The study of cottrell-2005 at full size on its longest path: 1 Gb/s, 164 ms, four flows, 16 minutes. The queue,
    /// which the paper does not tell, is half a bandwidth-delay product.
    pub fn paper() -> Self {
        let (rate_bps, rtt_ns) = (BitRate(1e9), Nanos::millis(164));
        let path = StudyPath { rate_bps, rtt_ns, mtu_bytes: MTU, ..StudyPath::default() };
        Study {
            engine: Engine::Kernel,
            path: StudyPath { queue_bytes: Some(Bytes(path.bdp().0 / 2)), ..path },
            contests: Vec::new(),
            flows: 4,
            region_ns: REGION,
            scale: 1.0,
            repeats: 1,
            varied_share: 0.0,
            sample_ns: Nanos::secs(1),
            probe_ns: Nanos::secs(1),
            seed: 1,
        }
    }

    /// The regions shortened (or lengthened) by a factor, and samples and probes with them where regions get shorter:
    /// a region keeps as many samples as the paper's, down to one in 100 ms.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        let region_ns = Nanos((REGION.0 as f64 * scale) as u64);
        let sample = Nanos((1e9 * scale.min(1.0)) as u64).max(Nanos::millis(100));
        Study { region_ns, scale, sample_ns: sample, probe_ns: sample, ..self }
    }

    /// Repeats that an interval or a difference may be taken over. Real hosts differ from run to run by themselves; the
    /// simulator's hosts do not, so that runs over the very same path, with other dice, are one measurement: a simulated
    /// network locks flows into patterns that hold for one ratio of rate, round trip and queue (Floyd and Jacobson, "On
    /// traffic phase effects in packet-switched gateways", 1992).
    pub fn independent_repeats(&self) -> u32 {
        match self.engine {
            Engine::Simulator if self.varied_share <= 0.0 => self.repeats.min(1),
            _ => self.repeats,
        }
    }

    pub fn duration(&self) -> Nanos {
        Nanos(self.region_ns.0.saturating_mul(2 * u64::from(self.flows)))
    }

    /// The flows of a contest: the same for every engine.
    pub fn schedule(&self, contest: &Contest) -> Vec<FlowPlan> {
        let contestants = contest.contestants.iter().cycle();
        match contest.question {
            Question::Regions | Question::Meeting => (0..self.flows)
                .zip(contestants)
                .map(|(n, contestant)| self.in_region(n, contestant))
                .collect(),
            Question::ShortFlows { size_bytes, every_ns } => {
                let long = contestants.clone().take(1).map(|contestant| self.whole(contestant));
                let starts = (1..MOST_SHORT).map(|n| Nanos(every_ns.0.saturating_mul(n)));
                let starts = starts.take_while(|start| every_ns.0 > 0 && *start < self.duration());
                let short = |(enters_ns, contestant): (Nanos, &String)| FlowPlan {
                    enters_ns,
                    data_bytes: Some(size_bytes),
                    ..self.whole(contestant)
                };
                long.chain(starts.zip(contestants).map(short)).collect()
            }
            Question::Streams { streams, .. } => (0..streams.min(MOST_STREAMS))
                .zip(contestants)
                .map(|(_, contestant)| self.whole(contestant))
                .collect(),
            Question::RoundTrips { longer_ns } => [Nanos(0), longer_ns]
                .into_iter()
                .zip(contestants)
                .map(|(longer_ns, contestant)| FlowPlan { longer_ns, ..self.whole(contestant) })
                .collect(),
        }
    }

    /// Flow `n` of the paper's schedule (section III.A): flows enter one region apart and leave last in, first out.
    fn in_region(&self, n: u16, contestant: &str) -> FlowPlan {
        let enters = Nanos(self.region_ns.0.saturating_mul(u64::from(n)));
        FlowPlan { enters_ns: enters, leaves_ns: self.duration() - enters, ..self.whole(contestant) }
    }

    /// A flow from the start to the end.
    fn whole(&self, contestant: &str) -> FlowPlan {
        FlowPlan { contestant: contestant.to_owned(), leaves_ns: self.duration(), ..FlowPlan::default() }
    }

    /// Regions from first to last: start, end, and number of flows in it. One flow has one region.
    pub fn regions(&self) -> Vec<(Nanos, Nanos, u16)> {
        let all = u64::from(self.flows);
        let bound = |n: u64| Nanos(self.region_ns.0.saturating_mul(n));
        let rising = (1..all).map(|n| (bound(n - 1), bound(n), n as u16));
        let falling = (1..all).map(|n| (bound(all + n), bound(all + n + 1), (all - n) as u16));
        rising.chain([(bound(all.saturating_sub(1)), bound(all + 1), self.flows)]).chain(falling).collect()
    }
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
            question: Question::Meeting,
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
            study().regions().iter().map(|r| ((r.1 - r.0).0 / 1_000_000_000, r.2)).collect();
        assert_eq!(regions, [(120, 1), (120, 2), (120, 3), (240, 4), (120, 3), (120, 2), (120, 1)]);
        let one = Study { flows: 1, ..study() };
        assert_eq!(one.regions(), [(Nanos(0), Nanos::secs(240), 1)]);
    }

    #[test]
    fn short_flows_start_beside_a_long_one() {
        let contest = Contest {
            contestants: vec!["reno".into()],
            question: Question::ShortFlows { size_bytes: Bytes::kib(64), every_ns: Nanos::secs(300) },
            ..Contest::default()
        };
        let plan = study().schedule(&contest);
        assert_eq!(plan.iter().map(|p| p.enters_ns).collect::<Vec<_>>(), [0, 300, 600, 900].map(Nanos::secs));
        assert_eq!(plan.iter().filter(|p| p.data_bytes.is_some()).count(), 3);
        let often = Contest {
            question: Question::ShortFlows { size_bytes: Bytes(1), every_ns: Nanos(1) },
            ..contest.clone()
        };
        assert_eq!(study().schedule(&often).len(), 60);
        let never = Contest {
            question: Question::ShortFlows { size_bytes: Bytes(1), every_ns: Nanos(0) },
            ..contest
        };
        assert_eq!(study().schedule(&never).len(), 1);
    }

    #[test]
    fn shorter_regions_have_as_many_samples() {
        let study = Study::paper().scaled(0.1);
        assert_eq!((study.region_ns, study.sample_ns), (Nanos::secs(12), Nanos::millis(100)));
        assert_eq!(Study::paper().scaled(1.0), Study::paper());
        assert_eq!(Study::paper().path.queue_bytes, Some(Bytes(10_250_000)));
    }
}
