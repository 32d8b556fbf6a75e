//! A study as it could have been: ten TCPs over 100 Mb/s and 164 ms, scaled to a tenth. Same bytes every time.

use landspeed_record::{
    Contest, DirectionStats, Engine, FlowPlan, Header, Line, ProbeSample, Question, QueueSample, Record,
    RunFlow, RunSample, Study, StudyPath, StudyRun, WanStats,
};
use landspeed_units::{BitRate, Bytes, CpuNanos, Nanos};

/// How a protocol behaves: (name, what it carries of the path, how deep and how long its teeth are in seconds, how
/// unequal its flows, how full the queue).
type Manner = (&'static str, f64, (f64, f64), f64, f64);

const MANNERS: [Manner; 10] = [
    ("reno", 0.86, (0.35, 19.0), 0.55, 0.5),
    ("highspeed", 0.90, (0.25, 11.0), 0.75, 0.6),
    ("htcp", 0.95, (0.15, 5.0), 0.97, 0.7),
    ("scalable", 0.96, (0.10, 3.0), 0.45, 0.9),
    ("fast", 0.97, (0.02, 7.0), 0.92, 0.1),
    ("ltcp", 0.92, (0.18, 8.0), 0.70, 0.6),
    ("hstcp_lp", 0.80, (0.30, 9.0), 0.65, 0.2),
    ("bic", 0.95, (0.12, 6.0), 0.90, 0.8),
    ("cubic", 0.94, (0.20, 9.0), 0.88, 0.7),
    ("bbr", 0.93, (0.04, 10.0), 0.80, 0.3),
];

fn contest(name: &str, controls: &[&str], question: Question) -> Contest {
    Contest { name: name.into(), controls: controls.iter().map(|c| (*c).to_owned()).collect(), question }
}

fn contests() -> Vec<Contest> {
    let mut contests: Vec<Contest> =
        MANNERS.iter().map(|manner| contest(manner.0, &[manner.0], Question::Regions)).collect();
    let pairs =
        [("reno", "scalable"), ("reno", "bbr"), ("reno", "fast"), ("htcp", "bic"), ("htcp", "scalable")];
    contests.extend(
        pairs.map(|(one, two)| contest(&format!("{one} beside {two}"), &[one, two], Question::Meeting)),
    );
    let short = Question::ShortFlows { size_bytes: Bytes::kib(64), every_ns: Nanos::secs(2) };
    contests.push(contest("cubic with short flows", &["cubic"], short));
    let far = Question::RoundTrips { longer_ns: Nanos::millis(164) };
    contests.push(contest("reno over two round trips", &["reno"], far));
    contests
}

/// Three repeats of each, one run of which does not count.
pub(crate) fn study() -> Study {
    let path = StudyPath {
        rate_bps: BitRate(1e8),
        rtt_ns: Nanos::millis(164),
        queue_bytes: Bytes(1_025_000),
        mtu_bytes: 1500,
        window_bytes: None,
        topology: "lab:wan:rate=100M,rtt=164ms,queue=0.5bdp".into(),
    };
    let study =
        Study { engine: Engine::Kernel, path, contests: contests(), repeats: 3, seed: 7, ..Study::paper() };
    let study = study.scaled(0.1);
    Study { sample_ns: Nanos::millis(500), probe_ns: Nanos::millis(500), ..study }
}

/// A number from 0 to 1 that has no pattern.
fn chance(seed: u64) -> f64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)) as f64 / u64::MAX as f64
}

fn manner(control: &str) -> Manner {
    *MANNERS.iter().find(|manner| manner.0 == control).expect("a manner of its own")
}

/// What a flow weighs beside others.
fn weight(flow: usize, plan: &FlowPlan) -> f64 {
    let (.., even, _) = manner(&plan.control);
    let far = if plan.longer_ns.0 > 0 { 0.3 } else { 1.0 };
    even.powi(flow as i32) * far * (1.0 + manner(&plan.control).4)
}

/// Goodput of all flows at a time, as a share of the path.
fn rates(plans: &[FlowPlan], at: Nanos, seed: u64) -> Vec<f64> {
    let here = |plan: &FlowPlan| plan.data_bytes.is_none() && plan.enters_ns < at && at <= plan.leaves_ns;
    let weights: Vec<f64> =
        plans.iter().enumerate().map(|(n, plan)| if here(plan) { weight(n, plan) } else { 0.0 }).collect();
    let all: f64 = weights.iter().sum();
    let rate = |(n, (plan, weight)): (usize, (&FlowPlan, &f64))| {
        let (_, share, (depth, period), ..) = manner(&plan.control);
        let phase = at.as_secs_f64() / period + n as f64 * 0.37 + chance(seed) * 0.2;
        let entered = (at - plan.enters_ns).as_secs_f64();
        let ramp = 1.0 - (-entered / 1.2).exp();
        let noise = 1.0 + 0.06 * (chance(seed + at.0 / 1_000_000 + n as u64 * 7919) - 0.5);
        if all > 0.0 {
            share * weight / all * (1.0 - depth * (1.0 - phase.fract())) * ramp * noise
        } else {
            0.0
        }
    };
    plans.iter().zip(&weights).enumerate().map(rate).collect()
}

fn run(study: &Study, contest: &Contest, repeat: u32) -> StudyRun {
    let seed = u64::from(repeat) * 31 + contest.name.len() as u64 * 1009;
    let plans = study.schedule(contest);
    let ends: Vec<Nanos> =
        (1..=study.duration().0 / study.sample_ns.0).map(|n| Nanos(n * study.sample_ns.0)).collect();
    let flow = |(n, plan): (usize, &FlowPlan)| RunFlow {
        plan: plan.clone(),
        took_ns: plan.data_bytes.map(|_| Nanos((0.7e9 + 2e9 * chance(seed + n as u64)) as u64)),
        samples: if plan.data_bytes.is_some() { vec![] } else { samples(study, (&plans, n), &ends, seed) },
    };
    let (.., (_, period), _, full) = manner(&contest.controls[0]);
    let fill = |at: Nanos| full * (0.4 + 0.6 * (at.as_secs_f64() / period * 1.7).fract());
    let probe = |at: &Nanos| ProbeSample { at_ns: *at, rtt_ns: Nanos((164e6 + 82e6 * fill(*at)) as u64) };
    let queue = |at: &Nanos| QueueSample {
        at_ns: *at,
        waiting_bytes: Bytes((1_025_000.0 * fill(*at)) as u64),
        drops: 0,
    };
    let late = DirectionStats {
        late_p99_ns: Nanos::micros(110),
        late_max_ns: Nanos::millis(2),
        ..DirectionStats::default()
    };
    StudyRun {
        contest: contest.name.clone(),
        repeat,
        at_ns: Nanos::secs(100 * u64::from(repeat)),
        flows: plans.iter().enumerate().map(flow).collect(),
        probes: ends.iter().map(probe).collect(),
        queue: ends.iter().map(queue).collect(),
        sender_cpu_ns: Some(CpuNanos((4e9 * (1.0 + 0.2 * chance(seed))) as u64)),
        sender_clock_hz: Some(2.45e9),
        link: Some(WanStats { a_to_b: late.clone(), b_to_a: late, ..WanStats::default() }),
        ..StudyRun::default()
    }
}

fn samples(study: &Study, (plans, flow): (&[FlowPlan], usize), ends: &[Nanos], seed: u64) -> Vec<RunSample> {
    let mut resent = 0;
    let whole = study.path.rate_bps.0 / 8.0 * study.sample_ns.as_secs_f64();
    let sample = |at: &Nanos| {
        resent += u64::from(chance(seed + at.0 / 1_000 + flow as u64) > 0.9) * 12;
        RunSample {
            at_ns: *at,
            goodput_bytes: Bytes((rates(plans, *at, seed)[flow] * whole) as u64),
            cwnd_segments: 400,
            rtt_ns: Nanos::millis(180),
            retransmits: resent,
        }
    };
    ends.iter().map(sample).collect()
}

fn header() -> Header {
    Header {
        landspeed: "0.1.0".into(),
        kind: "compare".into(),
        started: "2026-11-21T20:02:11Z".into(),
        command: "landspeed compare lab:wan:rate=100M,rtt=164ms,queue=0.5bdp --repeats 3 --seed 7".into(),
        topology: "lab:wan:rate=100M,rtt=164ms,queue=0.5bdp".into(),
        seed: 7,
        ..Header::default()
    }
}

/// The record of `study`; the second repeat of Reno's does not count.
pub(crate) fn record_of(study: &Study) -> Record {
    let mut lines = vec![Line::Study(Box::new(study.clone()))];
    for repeat in 0..study.repeats {
        for contest in &study.contests {
            let mut run = run(study, contest, repeat);
            if contest.name == "reno" && repeat == 1 {
                run.invalid = vec!["A to B: one frame in a hundred was over 12.4 ms late".into()];
            }
            lines.push(Line::Run(Box::new(run)));
        }
    }
    Record { header: header(), lines, cut_off: false }
}

/// The whole.
pub(crate) fn record() -> Record {
    record_of(&study())
}

/// At the paper's size and on its path, in the simulator: three protocols, and nothing else asked.
pub(crate) fn full_size() -> Record {
    let path = StudyPath {
        rate_bps: BitRate(1e9),
        queue_bytes: Bytes(10_250_000),
        topology: "lab:wan:rate=1G,rtt=164ms,queue=0.5bdp".into(),
        ..study().path
    };
    let contests =
        ["reno", "htcp", "scalable"].map(|name| contest(name, &[name], Question::Regions)).to_vec();
    let repeats = Study { repeats: 2, varied_share: 0.02, seed: 7, ..Study::paper() };
    let study = Study { engine: Engine::Simulator, path, contests, ..repeats };
    let mut record = record_of(&study);
    for line in &mut record.lines {
        if let Line::Run(run) = line {
            (run.sender_cpu_ns, run.link, run.invalid) = (None, None, vec![]);
            run.queue.clear();
        }
    }
    record
}
