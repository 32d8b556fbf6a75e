//! The studies of `landspeed compare` in the simulator: a run's scenario, and its outcome. The study, its schedule and
//! its record are the same as for real hosts.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    Contest, ContestQuestion, CrossTraffic, FlowPlan, LineLoss, ProbeSample, QueueSample, RunFlow, RunPath,
    RunSample, SenderPart, Study, StudyRun, TcpSample,
};
use landspeed_stats::{Random, TrafficMix};

use crate::features::SenderFeatures;
use crate::link::LinkSpec;
use crate::loss::LossSpec;
use crate::output::{FlowOutcome, SimulatedFlowSample, SimulationOutcome};
use crate::scenario::{FlowSpec, ProbeSpec, SimulationError, SimulationScenario};
use crate::simulation::simulate;

/// The usual largest relative difference between the rate, RTT and queue of a repeat and those of the study's path. It
/// is large enough to change which packets meet in the queue, and small compared with the changes of a real path from
/// day to day.
pub const VARIED_SHARE: f64 = 0.02;

/// A value that makes the random numbers of paths independent of those of flows.
const PATHS: u64 = 0x7061_7468;
/// A value that makes the random numbers of losses and of cross traffic independent of those of paths and flows.
pub(crate) const OTHERS: u64 = 0x6f74_6865_7273;

/// Returns the path of a repeat. Its rate, RTT and queue are drawn uniformly around the study's values, within
/// [`Study::varied_share`].
fn path_of(study: &Study, repeat: u32) -> RunPath {
    let mut random = Random::stream(study.seed ^ PATHS, u64::from(repeat));
    let mut factor = || 1.0 + study.varied_share * (2.0 * (random.draw() as f64 / u64::MAX as f64) - 1.0);
    let path = &study.path;
    RunPath {
        rate_bps: BitRate(path.rate_bps.0 * factor()),
        rtt_ns: Nanos((path.rtt_ns.0 as f64 * factor()) as u64),
        queue_bytes: Bytes((path.room().0 as f64 * factor()) as u64),
    }
}

/// Returns the scenario of one run of a contest. Repeats differ in their path ([`Study::varied_share`]), in the times
/// at which flows enter (by up to one RTT), and in the seeds of controls with random choices. All contests of a
/// repeat have the same path.
pub fn study_scenario(study: &Study, contest: &Contest, repeat: u32) -> SimulationScenario {
    let path = path_of(study, repeat);
    let one_way = Nanos(path.rtt_ns.0 / 2);
    let mut others = Random::stream(study.seed ^ OTHERS, u64::from(repeat));
    let loss = study.path.loss.map_or(LossSpec::None, |loss| losing(loss, others.draw()));
    let traffic = study.path.cross.map(|cross| mix(cross, path.rate_bps).sources(&mut others));
    let link = LinkSpec { rate_bps: path.rate_bps, delay_ns: one_way, queue_bytes: path.queue_bytes, loss };
    let return_ns = path.rtt_ns - one_way;
    let mut random = Random::stream(study.seed, u64::from(repeat));
    let plans = study.schedule(contest);
    let window = match contest.question {
        ContestQuestion::Streams { window_bytes, .. } => Some(window_bytes),
        _ => study.path.window_bytes,
    };
    let flow = |plan: &FlowPlan, dice| FlowSpec {
        receive_window_bytes: window,
        receive_buffer_bytes: Some(study.path.buffer_bytes()),
        ..flow(study, plan, return_ns, dice)
    };
    let flows = plans.iter().map(|plan| flow(plan, random.draw())).collect();
    SimulationScenario {
        link,
        flows,
        traffic: traffic.unwrap_or_default(),
        duration_ns: study.duration(),
        sample_ns: study.sample_ns,
        probe: Some(ProbeSpec { return_ns, every_ns: study.probe_ns, ..ProbeSpec::default() }),
    }
}

fn losing(LineLoss { share, burst_packets }: LineLoss, seed: u64) -> LossSpec {
    match burst_packets > 1.0 {
        true => LossSpec::Bursts { share, mean_packets: burst_packets, seed },
        false => LossSpec::Chance { share, seed },
    }
}

/// Returns the sources of cross traffic on a line of this rate.
fn mix(cross: CrossTraffic, rate: BitRate) -> TrafficMix {
    let CrossTraffic { load, on_ns, off_ns, short } = cross;
    TrafficMix { load_bps: BitRate(rate.0 * load), on_ns, off_ns, short }
}

fn flow(study: &Study, plan: &FlowPlan, return_ns: Nanos, dice: u64) -> FlowSpec {
    FlowSpec {
        contestant: plan.contestant.clone(),
        return_ns: return_ns + plan.longer_ns,
        start_ns: plan.enters_ns + Nanos(dice % study.path.rtt_ns.0.max(1)),
        stop_ns: Some(plan.leaves_ns),
        data_bytes: plan.data_bytes,
        mtu_bytes: study.path.mtu_bytes,
        seed: (dice >> 32) as u32 | 1,
        features: features(study),
        ..FlowSpec::default()
    }
}

/// Returns a sender of today without the parts that the study leaves out.
fn features(study: &Study) -> SenderFeatures {
    let has = |part: SenderPart| !study.without.contains(&part);
    SenderFeatures {
        sack: has(SenderPart::Sack),
        tail_loss_probe: has(SenderPart::TailLossProbes),
        ..SenderFeatures::default()
    }
}

/// Simulates a scenario as a run of a contest.
pub(crate) fn run_of(
    study: &Study,
    contest: &Contest,
    repeat: u32,
    scenario: &SimulationScenario,
) -> Result<StudyRun, SimulationError> {
    let outcome = simulate(scenario)?;
    let plans = study.schedule(contest);
    Ok(StudyRun {
        contest: contest.name.clone(),
        repeat,
        path: (study.varied_share > 0.0).then(|| path_of(study, repeat)),
        probes_lost: outcome.probes_sent - outcome.probes.len() as u64,
        probes: outcome.probes.iter().map(|p| ProbeSample { at_ns: p.at_ns, rtt_ns: p.rtt_ns }).collect(),
        queue: queue(&outcome),
        flows: plans.into_iter().zip(outcome.flows).map(|(plan, seen)| run_flow(plan, &seen)).collect(),
        ..StudyRun::default()
    })
}

fn queue(outcome: &SimulationOutcome) -> Vec<QueueSample> {
    let samples = outcome.link.samples.iter();
    samples
        .map(|s| QueueSample { at_ns: s.at_ns, waiting_bytes: s.waiting_bytes, drops: s.no_room })
        .collect()
}

fn run_flow(plan: FlowPlan, seen: &FlowOutcome) -> RunFlow {
    let took_ns = plan.data_bytes.and(seen.finished_ns).map(|finished| finished - seen.start_ns);
    let samples = match plan.data_bytes {
        Some(_) => Vec::new(),
        None => seen.samples.iter().map(|sample| run_sample(sample, &plan)).collect(),
    };
    RunFlow { plan, samples, took_ns }
}

/// Converts a sample. After the flow's planned end, window and goodput are zero. On real hosts the flow is closed by
/// then, and its packets that are still in flight do not count.
fn run_sample(sample: &SimulatedFlowSample, plan: &FlowPlan) -> RunSample {
    let TcpSample { cwnd_segments, rtt_ns, retransmits, .. } = sample.tcp;
    let here = sample.at_ns <= plan.leaves_ns;
    RunSample {
        at_ns: sample.at_ns,
        goodput_bytes: if here { sample.goodput_bytes } else { Bytes(0) },
        cwnd_segments: Some(if here { cwnd_segments } else { 0 }),
        rtt_ns,
        retransmits,
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;

    use super::*;

    /// Returns a study that runs fast: it has a hundredth of the paper's rate, about a tenth of its RTT, and a
    /// twentieth of its time.
    fn small() -> Study {
        let mut study = Study::paper().scaled(0.05);
        study.path.rate_bps = BitRate(1e7);
        study.path.rtt_ns = Nanos::millis(16);
        study.path.queue_bytes = Some(study.path.bdp());
        study
    }

    fn study_run(study: &Study, contest: &Contest, repeat: u32) -> Result<StudyRun, SimulationError> {
        run_of(study, contest, repeat, &study_scenario(study, contest, repeat))
    }

    fn contest(contestants: &[&str], question: ContestQuestion) -> Contest {
        let contestants = contestants.iter().map(|name| (*name).to_owned()).collect();
        Contest { name: "one".into(), contestants, question }
    }

    #[test]
    fn flows_come_and_go_as_planned() {
        let study = small();
        let run = study_run(&study, &contest(&["cubic", "reno"], ContestQuestion::Meeting), 0).unwrap();
        assert_eq!(run.flows.len(), 4);
        for flow in &run.flows {
            assert!(!flow.is_short());
            for sample in &flow.samples {
                let here = sample.at_ns > flow.plan.enters_ns && sample.at_ns <= flow.plan.leaves_ns;
                assert!(here || sample.goodput_bytes == Bytes(0), "{sample:?}");
            }
            assert!(flow.samples.iter().any(|sample| sample.goodput_bytes > Bytes(0)));
        }
        assert!(!run.probes.is_empty() && !run.queue.is_empty());
    }

    #[test]
    fn repeats_differ_and_each_is_the_same_again() {
        let (study, contest) = (small(), contest(&["reno"], ContestQuestion::Regions));
        let run = |repeat| study_run(&study, &contest, repeat).unwrap();
        assert_eq!(run(0), run(0));
        assert_ne!(run(0).flows, run(1).flows);
    }

    #[test]
    fn each_repeat_has_a_path_of_its_own_and_all_contests_share_it() {
        let study = Study { varied_share: 0.02, ..small() };
        let link = |control: &str, repeat| {
            study_scenario(&study, &contest(&[control], ContestQuestion::Regions), repeat).link
        };
        assert_ne!(link("reno", 0).rate_bps, link("reno", 1).rate_bps);
        assert_ne!(link("reno", 0).delay_ns, link("reno", 1).delay_ns);
        assert_ne!(link("reno", 0).queue_bytes, link("reno", 1).queue_bytes);
        assert_eq!(link("reno", 1), link("cubic", 1));

        let paths: Vec<RunPath> = (0..20).map(|repeat| path_of(&study, repeat)).collect();
        let within = |one: f64, other: f64| (one / other - 1.0).abs() < 0.0201;
        assert!(paths.iter().all(|path| within(path.rate_bps.0, study.path.rate_bps.0)
            && within(path.rtt_ns.0 as f64, study.path.rtt_ns.0 as f64)
            && within(path.queue_bytes.0 as f64, study.path.room().0 as f64)));
        let run = study_run(&study, &contest(&["reno"], ContestQuestion::Regions), 1).unwrap();
        assert_eq!(run.path, Some(paths[1]), "each run says what its path was");
    }

    #[test]
    fn flows_lack_the_features_that_the_study_leaves_out() {
        let study = Study { without: [SenderPart::TailLossProbes].into(), ..small() };
        let contest = contest(&["reno"], ContestQuestion::Regions);
        let scenario = study_scenario(&study, &contest, 0);
        let expected = SenderFeatures { tail_loss_probe: false, ..SenderFeatures::default() };
        assert!(scenario.flows.iter().all(|flow| flow.features == expected));
        let without_sack = Study { without: [SenderPart::Sack].into(), ..small() };
        let bytes = |study: &Study| {
            let run = study_run(study, &contest, 0).unwrap();
            run.flows.iter().flat_map(|flow| &flow.samples).map(|sample| sample.goodput_bytes).sum::<Bytes>()
        };
        assert_ne!(bytes(&without_sack), bytes(&small()), "losses are repaired another way");
    }

    /// Checks that records of older builds, in which paths did not vary, are continued with one path.
    #[test]
    fn a_study_that_varies_nothing_has_one_path() {
        let study = small();
        let path = path_of(&study, 3);
        assert_eq!((path.rate_bps, path.rtt_ns), (study.path.rate_bps, study.path.rtt_ns));
        assert_eq!(path.queue_bytes, study.path.room());
        let run = study_run(&study, &contest(&["reno"], ContestQuestion::Regions), 3).unwrap();
        assert_eq!(run.path, None);
    }

    #[test]
    fn short_flows_end_and_long_round_trips_get_less() {
        let study = small();
        let question = ContestQuestion::ShortFlows { size_bytes: Bytes::kib(20), every_ns: Nanos::secs(5) };
        let run = study_run(&study, &contest(&["reno"], question), 0).unwrap();
        let short: Vec<_> = run.flows.iter().filter(|flow| flow.is_short()).collect();
        assert_eq!(short.len(), 9);
        assert!(short.iter().all(|flow| flow.took_ns.is_some_and(|took| took > study.path.rtt_ns)));

        let question = ContestQuestion::RoundTrips { longer_ns: Nanos::millis(64) };
        let run = study_run(&study, &contest(&["reno"], question), 0).unwrap();
        let bytes = |n: usize| run.flows[n].samples.iter().map(|s| s.goodput_bytes).sum::<Bytes>();
        assert!(bytes(0).0 > 2 * bytes(1).0, "{} {}", bytes(0), bytes(1));
    }

    #[test]
    fn a_study_of_nothing_known_is_refused() {
        assert!(study_run(&small(), &contest(&["carrier-pigeon"], ContestQuestion::Regions), 0).is_err());
    }
}
