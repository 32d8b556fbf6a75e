//! Measures the cost of tracing packets: bytes per processor second with the tracer, divided by bytes per processor
//! second without it, in interleaved trials.

use landspeed_observer::PATH;
use landspeed_record::units::Nanos;
use landspeed_record::{Estimate, PathTrace, Settings};
use landspeed_stats::estimate;
use landspeed_workload::stream;

use crate::{Error, Pair, RunSpec, WatchOptions};

/// Number of blocks. Each has four trials, with and without the tracer, alternately in the orders ABBA and BAAB.
const BLOCKS: u32 = 5;
/// Duration of a trial. The tracer is attached several times within it.
const TRIAL: Nanos = Nanos::millis(1_000);
const WARM_UP: Nanos = Nanos::millis(100);
const CONFIDENCE: f64 = 0.95;

/// Returns the total duration of the trials that measure the tracer's effect, warm-up included. Attaching the tracer
/// takes additional time.
pub(super) fn time() -> Nanos {
    (WARM_UP + TRIAL).times(4 * u64::from(BLOCKS))
}

/// The traces of both hosts, and the tracer's effect on bytes per processor second.
pub(super) struct TraceMeasurement {
    pub(super) paths: [Vec<PathTrace>; 2],
    pub(super) effect: Option<Estimate>,
    pub(super) unseen: Vec<String>,
}

pub(super) fn trace(pair: &Pair<'_>, flow: &Settings) -> Result<TraceMeasurement, Error> {
    let mut traced = TraceMeasurement { paths: [Vec::new(), Vec::new()], effect: None, unseen: Vec::new() };
    let mut ratios = Vec::new();
    for block in 0..BLOCKS {
        let mut ratio = 0.0;
        for position in 0..4 {
            let with = (position == 0 || position == 3) == (block % 2 == 0);
            let cost = trial(pair, flow, with, &mut traced)?;
            ratio += if with { cost.ln() } else { -cost.ln() } / 2.0;
        }
        ratios.push(ratio);
    }
    let ran = traced.paths.iter().any(|paths| !paths.is_empty());
    traced.effect = (ran && ratios.iter().all(|r| r.is_finite())).then(|| estimate(&ratios, CONFIDENCE));
    Ok(traced)
}

fn trial(pair: &Pair<'_>, flow: &Settings, with: bool, traced: &mut TraceMeasurement) -> Result<f64, Error> {
    let observers = if with { vec![PATH.name.to_owned()] } else { Vec::new() };
    let watching = WatchOptions { observers, ..WatchOptions::default() };
    let seen = pair.run(&RunSpec::new(stream::spec(TRIAL), flow).after(WARM_UP).watched(watching))?;
    let cost = pair.figures(&seen).bytes_per_cpu_s.0;
    for (paths, outcome) in traced.paths.iter_mut().zip(seen) {
        paths.extend(outcome.observed.get::<Option<PathTrace>>().clone());
        let lines = outcome.observed.unseen.into_iter().filter(|line| line.starts_with(PATH.name));
        for line in lines {
            if !traced.unseen.contains(&line) {
                traced.unseen.push(line);
            }
        }
    }
    Ok(cost)
}
