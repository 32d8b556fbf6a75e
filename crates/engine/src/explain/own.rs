//! Explaining with a stream of landspeed's own.

use landspeed_analysis::{figures, remarks};
use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, ExplainReport, HostLimits, PathTrace, Settings, Workload};
use landspeed_workload::{lasts, stream};

use super::effect::{self, TraceMeasurement, trace};
use super::{ExplainOptions, HostObservations, INTERVAL, ProgressSink, ReportInputs, limits, observers};
use crate::pair::WatchOptions;
use crate::{Error, Host, Pair, stall};

/// Sends a stream over `pair`, watches it from both ends, and explains what holds it back.
pub fn explain(
    pair: &Pair,
    options: &ExplainOptions,
    progress: ProgressSink<'_>,
) -> Result<ExplainReport, Error> {
    let limits = match options.limits {
        true => {
            progress("measuring what memory, copies and raw packets can do at most");
            limits::of(&[&pair.a, &pair.b], &called(&pair.a, options))?
        }
        false => Vec::new(),
    };
    let seen_both = match &options.program {
        None => {
            progress(&format!("watching a stream for {}", options.time));
            watched_stream(pair, &options.flow, options.time)?
        }
        Some(program) => {
            progress(&format!("watching {} while it runs", program.name));
            watched_program(pair, &options.flow, program)?
        }
    };
    let probe = stall::broken(&seen_both).map(|broken| {
        progress("sending packets of several sizes, because the stream stalled");
        stall::probe(pair, broken)
    });
    let [mut a, b] = seen_both;
    let traced = match options.trace && options.program.is_none() && probe.is_none() {
        true => {
            progress("following packets through the kernel");
            Some(trace(pair, &options.flow)?)
        }
        false => None,
    };
    let goodput = figures(&a, &b, [&pair.a.facts, &pair.b.facts], None).rate_bps;
    let goodput = options.program.is_none().then_some(goodput);
    let effect = traced.as_ref().and_then(|traced| traced.effect);
    let [path_a, path_b] = paths(traced, &mut a);
    let mut limits = limits.into_iter();
    let name = |host| called(host, options);
    let seen = vec![
        seen(&pair.a, name(&pair.a), a, (path_a, limits.next())),
        seen(&pair.b, name(&pair.b), b, (path_b, limits.next())),
    ];
    let rtt = Some(pair.path.rtt_ns);
    let report = ReportInputs { seen, rtt, goodput, tracer_effect: effect, probe }.report(options);
    Ok(ExplainReport { notes: remarks(&pair.path), ..report })
}

/// Returns how long [`explain`] takes, without the limits.
pub fn explain_time(options: &ExplainOptions, rtt: Nanos) -> Nanos {
    let trace = if options.trace { effect::time() } else { Nanos(0) };
    warm_up(rtt) + options.time + trace
}

/// Sends a stream over `pair` for `time`, watched from both ends by all observers except the tracer, as the basis of a
/// verdict.
pub(crate) fn watched_stream(
    pair: &Pair,
    flow: &Settings,
    time: Nanos,
) -> Result<[EndpointOutcome; 2], Error> {
    let watching = WatchOptions {
        observers: observers(false),
        interval: INTERVAL,
        keeps_broken: true,
        ..WatchOptions::default()
    };
    pair.run_watched(stream::spec(time), flow, warm_up(pair.path.rtt_ns), &watching)
}

/// Runs a program over `pair`, watched in the same way; the verdict is about its own flows.
pub(crate) fn watched_program(
    pair: &Pair,
    flow: &Settings,
    program: &Workload,
) -> Result<[EndpointOutcome; 2], Error> {
    // A program may be done in a fraction of a second. A long one gets at most the samples that a trial may have.
    const OFTEN: Nanos = Nanos::millis(10);
    const SAMPLES: u64 = 20_000;
    let interval = OFTEN.max(Nanos(lasts(program, Nanos(0)).0 / SAMPLES));
    let watching = WatchOptions { observers: observers(false), interval, ..WatchOptions::default() };
    pair.run_watched(program.clone(), flow, Nanos(0), &watching)
}

/// Returns the start-up of a watched stream: slow start needs several RTTs before a long path is at its rate.
pub(crate) fn warm_up(rtt: Nanos) -> Nanos {
    Nanos::millis(200).max(Nanos(20 * rtt.0))
}

/// Returns the sum of each host's traces. The reasons for missing ones go to `a`'s `unseen`.
fn paths(traced: Option<TraceMeasurement>, a: &mut EndpointOutcome) -> [Option<PathTrace>; 2] {
    let Some(traced) = traced else { return [None, None] };
    a.observed.unseen.extend(traced.unseen);
    traced.paths.map(PathTrace::sum)
}

/// Returns the user's name for a host: those of a lab are A and B in every command, whatever their namespaces are
/// called.
fn called(host: &Host, options: &ExplainOptions) -> String {
    let lab = options.topology.starts_with("lab");
    if lab && host.name.len() == 1 { host.name.to_uppercase() } else { host.name.clone() }
}

fn seen(
    host: &Host,
    name: String,
    outcome: EndpointOutcome,
    (path, limits): (Option<PathTrace>, Option<HostLimits>),
) -> HostObservations {
    let mut observed = outcome.observed;
    observed.put(path);
    HostObservations { name, facts: host.facts.clone(), observed, limits, set: host.values() }
}
