//! Explains a path with a stream of landspeed's own, or with a program.

use std::collections::BTreeMap;

use landspeed_analysis::verdict::{joined_staircases, together};
use landspeed_analysis::{disturbances_without_a_cause, remarks};
use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, ExplainReport, PathTrace, Settings, Verdict, Workload};
use landspeed_workload::{has_own_flows, lasts, stream};

use super::capacity;
use super::effect::{self, TraceMeasurement, trace};
use super::slower::repeat;
use super::{ExplainOptions, HostObservations, INTERVAL, ProgressSink, ReportInputs, limits, observers};
use crate::carried;
use crate::factors::{affects, transport_of};
use crate::{Error, Host, HostGroup, Pair, RunSpec, WatchOptions, stall};

/// Sends a stream over all pairs of a group, or runs the program of `options` instead, watches it from both ends, and
/// explains what limits it.
pub fn explain(
    group: &HostGroup,
    options: &ExplainOptions,
    progress: ProgressSink<'_>,
) -> Result<ExplainReport, Error> {
    if let Some(program) = &options.program {
        group.suits(program)?;
    }
    let limits = match options.limits {
        true => {
            progress("measuring what memory, copies and raw packets can do at most");
            limits::of(group.hosts(), &|host| called(host, options))?
        }
        false => BTreeMap::new(),
    };
    let mut seen = match &options.program {
        None => {
            progress(&format!("watching a stream for {}", options.time));
            group.run(&watched_stream(&options.flow, options.time, group.rtt()))?
        }
        Some(program) => {
            progress(&format!("watching {} while it runs", program.name));
            group.run(&watched_program(&options.flow, program))?
        }
    };
    let ends: Vec<_> = group.pairs().zip(&seen).map(|(pair, seen)| pair.ends(seen)).collect();
    let disturbed = disturbances_without_a_cause(&ends);
    let mut pairs = group.pairs().zip(&seen).enumerate();
    let stalled = pairs.find_map(|(number, (pair, seen))| Some((number, pair, stall::broken(seen)?)));
    let probe = stalled.map(|(number, pair, broken)| {
        progress("sending packets of several sizes, because the stream stalled");
        (number, stall::probe(&pair, broken))
    });
    // The tracer's effect is measured with more streams, which a group's other pairs would disturb.
    let traces = options.trace && options.program.is_none() && probe.is_none() && seen.len() == 1;
    let traced = match traces {
        true => {
            progress("following packets through the kernel");
            Some(trace(&group.first(), &options.flow)?)
        }
        false => None,
    };
    let effect = traced.as_ref().and_then(|traced| traced.effect);
    let mut traces = paths(traced, &mut seen[0][0]).into_iter();
    let mut inputs: Vec<ReportInputs> = Vec::new();
    for (pair, seen) in group.pairs().zip(seen) {
        let goodput = options.has_own_flows().then(|| pair.figures(&seen).rate_bps);
        let hosts = [pair.a, pair.b].into_iter().zip(seen).map(|(host, outcome)| {
            let mut observed = outcome.observed;
            observed.put(traces.next().flatten());
            HostObservations {
                name: called(host, options),
                facts: host.facts.clone(),
                observed,
                limits: limits.get(&host.name).cloned(),
                set: host.values(),
                states: host.states.clone(),
                device: host.device.clone(),
            }
        });
        let (seen, rtt) = (hosts.collect(), Some(pair.path.rtt_ns));
        inputs.push(ReportInputs { seen, rtt, goodput, tracer_effect: effect, ..ReportInputs::default() });
    }
    if let Some((number, probe)) = probe {
        inputs[number].probe = Some(probe);
    }
    if let [only] = inputs.as_mut_slice() {
        follow(only, &group.first(), options, progress)?;
    }
    let reports = group
        .pairs()
        .zip(inputs)
        .map(|(pair, inputs)| ExplainReport { notes: remarks(pair.path), ..inputs.report(options) });
    let mut report = reports.reduce(joined).unwrap_or_default();
    report.notes.extend(group.moved());
    report.notes.extend(disturbed);
    Ok(report)
}

/// Makes the measurements that follow a stream: the stream at a lower rate if segments were lost, and the search for
/// the path's rate if the user permits it.
fn follow(
    inputs: &mut ReportInputs,
    pair: &Pair<'_>,
    options: &ExplainOptions,
    progress: ProgressSink<'_>,
) -> Result<(), Error> {
    if let Some(how) = inputs.repetition(options) {
        progress(&format!("sending again at {}, because segments were lost", how.pace));
        inputs.slower = repeat(pair, &options.flow, how)?;
    }
    if options.capacity && inputs.probe.is_none() {
        progress("searching with datagrams for the rate that the path carries");
        match capacity::find(pair)? {
            Ok(found) => inputs.capacity = Some(found),
            Err(why) => inputs.unseen(format!("capacity: {why}")),
        }
    }
    Ok(())
}

/// Joins the reports of two pairs into one. A host that is in both is listed once.
fn joined(all: ExplainReport, one: ExplainReport) -> ExplainReport {
    let ([mut all, mut one], mut verdicts) = ([all, one], Vec::new());
    for report in [&mut all, &mut one] {
        verdicts.push(Verdict {
            goodput_bps: report.goodput_bps,
            path_rate: report.path_rate.take(),
            findings: std::mem::take(&mut report.verdict),
            cannot_tell: report.cannot_tell,
            unjudged: std::mem::take(&mut report.unjudged),
            ..Verdict::default()
        });
    }
    let Verdict { goodput_bps, path_rate, findings, cannot_tell, unjudged, .. } = together(verdicts);
    let new = one.hosts.into_iter().filter(|host| all.hosts.iter().all(|known| known.name != host.name));
    let new: Vec<_> = new.collect();
    all.hosts.extend(new);
    all.windows.extend(one.windows);
    all.notes.extend(one.notes);
    let probe = all.probe.take().or(one.probe);
    let staircase = joined_staircases(std::mem::take(&mut all.staircase), one.staircase, goodput_bps);
    ExplainReport {
        goodput_bps,
        path_rate,
        verdict: findings,
        cannot_tell,
        unjudged,
        probe,
        staircase,
        ..all
    }
}

/// Returns the duration of [`explain`], without the measurement of the limits.
pub fn explain_time(options: &ExplainOptions, rtt: Nanos) -> Nanos {
    let trace = if options.trace { effect::time() } else { Nanos(0) };
    let search = if options.capacity { carried::LIMIT + capacity::HOLD } else { Nanos(0) };
    warm_up(rtt) + options.time + trace + search
}

/// Returns the run of a stream that all observers except the tracer watch from both ends. A verdict is based on it.
pub(crate) fn watched_stream(flow: &Settings, time: Nanos, rtt: Nanos) -> RunSpec {
    let watching = WatchOptions {
        observers: observers(false),
        interval: INTERVAL,
        keeps_broken: true,
        ..WatchOptions::default()
    };
    RunSpec::new(stream::spec(time), flow).after(warm_up(rtt)).watched(watching)
}

/// Returns the run of a program that all observers except the tracer watch from both ends. The verdict is about the
/// program's own flows.
pub(crate) fn watched_program(flow: &Settings, program: &Workload) -> RunSpec {
    // A program may be done in a fraction of a second. A long one gets at most the samples that a trial may have.
    const OFTEN: Nanos = Nanos::millis(10);
    const SAMPLES: u64 = 20_000;
    let interval = OFTEN.max(Nanos(lasts(program, Nanos(0)).0 / SAMPLES));
    let watching = WatchOptions { observers: observers(false), interval, ..WatchOptions::default() };
    RunSpec::new(program.clone(), flow).watched(watching)
}

/// Returns a verdict on `flow` without the remedies that cannot affect the watched workload of landspeed's own.
/// Remedies for another program are described in words.
pub(crate) fn fitting(mut verdict: Verdict, workload: Option<&Workload>, flow: &Settings) -> Verdict {
    let Ok(transport) = transport_of(flow) else { return verdict };
    let own = workload.filter(|workload| has_own_flows(workload));
    for finding in &mut verdict.findings {
        finding.remedies.retain(|remedy| affects(&remedy.knob, own, transport));
    }
    verdict
}

/// Returns the duration of the start-up of a watched stream: 20 RTTs, and at least 200 ms, because slow start needs
/// several RTTs to reach the rate of a long path.
pub(crate) fn warm_up(rtt: Nanos) -> Nanos {
    Nanos::millis(200).max(Nanos(20 * rtt.0))
}

/// Returns the sum of each host's traces. The reasons why traces are missing are added to the `unseen` lines of `a`.
fn paths(traced: Option<TraceMeasurement>, a: &mut EndpointOutcome) -> [Option<PathTrace>; 2] {
    let Some(traced) = traced else { return [None, None] };
    a.observed.unseen.extend(traced.unseen);
    traced.paths.map(PathTrace::sum)
}

/// Returns the name of a host for the user. The hosts of a lab are always A and B.
fn called(host: &Host, options: &ExplainOptions) -> String {
    let lab = options.topology.starts_with("lab");
    if lab && host.name.len() == 1 { host.name.to_uppercase() } else { host.name.clone() }
}
