//! Small studies for tests, in which a rule gives the bytes that arrive.

use landspeed_record::units::{Bytes, CpuNanos, Nanos};
use landspeed_record::{
    Contest, ContestQuestion, Header, Line, ProbeSample, Record, RunFlow, RunSample, Study, StudyPath,
    StudyRun,
};

/// The bytes of a sample of 1 s at 1 kb/s.
pub(super) const KILOBIT: u64 = 125;

/// Returns a contest of one protocol under the schedule.
pub(super) fn alone(protocol: &str) -> Contest {
    Contest { name: protocol.into(), contestants: vec![protocol.into()], question: ContestQuestion::Regions }
}

/// Returns a study with samples of 1 s, in which a full packet has a kilobit of payload.
pub(super) fn study(flows: u16, region_s: u64, contests: Vec<Contest>) -> Study {
    let path = StudyPath { mtu_bytes: 125 + 52, rtt_ns: Nanos::millis(100), ..StudyPath::default() };
    Study {
        path,
        contests,
        flows,
        region_ns: Nanos::secs(region_s),
        scale: 0.1,
        repeats: 1,
        sample_ns: Nanos::secs(1),
        probe_ns: Nanos::secs(1),
        ..Study::default()
    }
}

/// Returns a run in which `bytes` of a flow arrive in each second of its presence, with three probes of 100 to 140 ms
/// and a tenth of a processor of 1 GHz.
pub(super) fn run(
    study: &Study,
    contest: &Contest,
    repeat: u32,
    bytes: impl Fn(usize, u64) -> u64,
) -> StudyRun {
    let seconds = study.duration().0 / 1_000_000_000;
    let flow = |(index, plan): (usize, landspeed_record::FlowPlan)| {
        let here =
            |second: u64| plan.enters_ns <= Nanos::secs(second) && Nanos::secs(second) < plan.leaves_ns;
        let sample = |second: u64| RunSample {
            at_ns: Nanos::secs(second + 1),
            goodput_bytes: Bytes(if here(second) { bytes(index, second) } else { 0 }),
            ..RunSample::default()
        };
        RunFlow { samples: (0..seconds).map(sample).collect(), plan, took_ns: None }
    };
    let probe = |(n, ms): (u64, u64)| ProbeSample { at_ns: Nanos::secs(n), rtt_ns: Nanos::millis(ms) };
    StudyRun {
        contest: contest.name.clone(),
        repeat,
        flows: study.schedule(contest).into_iter().enumerate().map(flow).collect(),
        probes: [(0, 100), (1, 120), (2, 140)].map(probe).to_vec(),
        sender_cpu_ns: Some(CpuNanos(seconds * 100_000_000)),
        sender_clock_hz: Some(1e9),
        ..StudyRun::default()
    }
}

pub(super) fn record(study: &Study, runs: Vec<StudyRun>) -> Record {
    let mut lines = vec![Line::Study(Box::new(study.clone()))];
    lines.extend(runs.into_iter().map(|run| Line::Run(Box::new(run))));
    Record { header: Header { kind: "compare".into(), ..Header::default() }, lines, ..Record::default() }
}
