//! The studies of `landspeed compare` in the simulator: the same study, schedule and record as on real hosts.

use landspeed_record::{
    Contest, FlowPlan, ProbeSample, Question, QueueSample, RunFlow, RunSample, Study, StudyRun, TcpSample,
};
use landspeed_stats::Random;
use landspeed_units::{Bytes, Nanos};

use crate::link::LinkSpec;
use crate::loss::LossSpec;
use crate::output::{FlowOutcome, FlowSample, Outcome};
use crate::queue::QueueSpec;
use crate::scenario::{FlowSpec, ProbeSpec, Scenario, ScenarioError};
use crate::simulation::simulate;

/// One run of a contest as it is simulated. Repeats differ by the time, within one round trip, at which flows enter,
/// and by the dice of controls that throw some; the paths of one repeat are the same for all contests.
pub fn study_scenario(study: &Study, contest: &Contest, repeat: u32) -> Scenario {
    let path = &study.path;
    let one_way = Nanos(path.rtt_ns.0 / 2);
    let link = LinkSpec {
        rate_bps: path.rate_bps,
        delay_ns: one_way,
        queue: QueueSpec::Bytes { bytes: path.queue_bytes },
        mark_above: None,
        loss: LossSpec::None,
    };
    let return_ns = path.rtt_ns - one_way;
    let mut random = Random::stream(study.seed, u64::from(repeat));
    let plans = study.schedule(contest);
    let window = match contest.question {
        Question::Streams { window_bytes, .. } => Some(window_bytes),
        _ => path.window_bytes,
    };
    let flow = |plan: &FlowPlan, dice| FlowSpec {
        receive_window_bytes: window,
        ..flow(study, plan, return_ns, dice)
    };
    let flows = plans.iter().map(|plan| flow(plan, random.draw())).collect();
    Scenario {
        links: vec![link],
        flows,
        duration_ns: study.duration(),
        sample_ns: study.sample_ns,
        probe: Some(ProbeSpec { return_ns, every_ns: study.probe_ns, ..ProbeSpec::default() }),
        seed: study.seed.wrapping_add(u64::from(repeat)),
    }
}

fn flow(study: &Study, plan: &FlowPlan, return_ns: Nanos, dice: u64) -> FlowSpec {
    FlowSpec {
        control: plan.control.clone(),
        return_ns: return_ns + plan.longer_ns,
        start_ns: plan.enters_ns + Nanos(dice % study.path.rtt_ns.0.max(1)),
        stop_ns: Some(plan.leaves_ns),
        data_bytes: plan.data_bytes,
        mtu_bytes: study.path.mtu_bytes,
        seed: (dice >> 32) as u32 | 1,
        ..FlowSpec::default()
    }
}

/// Simulates one run of a contest, packet by packet.
///
/// # Errors
/// [`ScenarioError`] where the study makes no sense, or a control is unknown.
pub fn study_run(study: &Study, contest: &Contest, repeat: u32) -> Result<StudyRun, ScenarioError> {
    let outcome = simulate(&study_scenario(study, contest, repeat))?;
    let plans = study.schedule(contest);
    Ok(StudyRun {
        contest: contest.name.clone(),
        repeat,
        probes_lost: outcome.probes_sent - outcome.probes.len() as u64,
        probes: outcome.probes.iter().map(|p| ProbeSample { at_ns: p.at_ns, rtt_ns: p.rtt_ns }).collect(),
        queue: queue(&outcome),
        flows: plans.into_iter().zip(outcome.flows).map(|(plan, seen)| run_flow(plan, &seen)).collect(),
        ..StudyRun::default()
    })
}

fn queue(outcome: &Outcome) -> Vec<QueueSample> {
    let samples = outcome.links.first().map(|line| line.samples.as_slice()).unwrap_or_default();
    samples
        .iter()
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

/// A flow that has left is closed on real hosts: it has no window any more, and what is still under way counts for
/// nothing.
fn run_sample(sample: &FlowSample, plan: &FlowPlan) -> RunSample {
    let TcpSample { cwnd_segments, rtt_ns, retransmits, .. } = sample.tcp;
    let here = sample.at_ns <= plan.leaves_ns;
    RunSample {
        at_ns: sample.at_ns,
        goodput_bytes: if here { sample.goodput_bytes } else { Bytes(0) },
        cwnd_segments: if here { cwnd_segments } else { 0 },
        rtt_ns,
        retransmits,
    }
}

#[cfg(test)]
mod tests {
    use landspeed_units::BitRate;

    use super::*;

    /// A tenth of the paper's rate and round trip, so that it takes no time.
    fn small() -> Study {
        let mut study = Study::paper().scaled(0.05);
        study.path.rate_bps = BitRate(1e7);
        study.path.rtt_ns = Nanos::millis(16);
        study.path.queue_bytes = study.path.bdp();
        study
    }

    fn contest(controls: &[&str], question: Question) -> Contest {
        let controls = controls.iter().map(|name| (*name).to_owned()).collect();
        Contest { name: "one".into(), controls, question }
    }

    #[test]
    fn flows_come_and_go_as_planned() {
        let study = small();
        let run = study_run(&study, &contest(&["cubic", "reno"], Question::Meeting), 0).unwrap();
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
        let (study, contest) = (small(), contest(&["reno"], Question::Regions));
        let run = |repeat| study_run(&study, &contest, repeat).unwrap();
        assert_eq!(run(0), run(0));
        assert_ne!(run(0).flows, run(1).flows);
    }

    #[test]
    fn short_flows_end_and_long_round_trips_get_less() {
        let study = small();
        let question = Question::ShortFlows { size_bytes: Bytes::kib(20), every_ns: Nanos::secs(5) };
        let run = study_run(&study, &contest(&["reno"], question), 0).unwrap();
        let short: Vec<_> = run.flows.iter().filter(|flow| flow.is_short()).collect();
        assert_eq!(short.len(), 9);
        assert!(short.iter().all(|flow| flow.took_ns.is_some_and(|took| took > study.path.rtt_ns)));

        let question = Question::RoundTrips { longer_ns: Nanos::millis(64) };
        let run = study_run(&study, &contest(&["reno"], question), 0).unwrap();
        let bytes = |n: usize| run.flows[n].samples.iter().map(|s| s.goodput_bytes).sum::<Bytes>();
        assert!(bytes(0).0 > 2 * bytes(1).0, "{} {}", bytes(0), bytes(1));
    }

    #[test]
    fn a_study_of_nothing_known_is_refused() {
        assert!(study_run(&small(), &contest(&["carrier-pigeon"], Question::Regions), 0).is_err());
    }
}
