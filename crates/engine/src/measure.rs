//! One workload over one pair, or over several at the same time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use landspeed_analysis::figures;
use landspeed_analysis::verdict::stalls;
use landspeed_observer::observer;
use landspeed_record::units::Nanos;
use landspeed_record::{
    CustomQuantity, EndpointOutcome, Figure, FigureValue, Headline, MEASURE_FORMAT, MeasureReport,
    PartFigures, ProgramFigure, ProgramFigures, Settings, Side, TrialProgress, Workload,
};
use landspeed_transport::settings::TRANSPORT;
use landspeed_workload::{check_hosts, find, lasts};

use crate::answers::RunCallbacks;
use crate::pair::WatchOptions;
use crate::{Error, Pair, stall};

/// The workload of a measurement, its settings, and what to report.
#[derive(Debug, Clone)]
pub struct MeasureOptions {
    pub workload: Workload,
    /// Socket options, sizes, flows, placement.
    pub flow: Settings,
    /// Start-up that is not counted.
    pub warm_up: Nanos,
    /// Names of the observers whose figures are requested. They run even if they usually do not.
    pub watch: Vec<String>,
    /// Time between two progress messages of the flows; zero for none.
    pub interval: Nanos,
    /// For the report: "lab:back-to-back", or the hosts.
    pub topology: String,
    pub command: String,
    /// For the report: RFC 3339 UTC.
    pub started: String,
}

/// Time between samples of requested observers.
const INTERVAL: Nanos = Nanos::millis(50);
/// Most samples of a flow, so that those of all flows fit one message however long they last.
const MOST_SAMPLES: u64 = 100;

/// Runs the workload on all `pairs` at the same time (one, except for fan-in and fan-out) and reports it: goodput by
/// pair and direction, and the first pair's hosts. `on_progress` receives the progress of each end of each pair.
pub fn measure(
    pairs: &[Pair],
    what: &MeasureOptions,
    on_progress: &(dyn Fn(usize, Side, TrialProgress) + Sync),
) -> Result<MeasureReport, Error> {
    let [first, others @ ..] = pairs else {
        return Err(Error::Other("nothing to measure: no pair of hosts".into()));
    };
    let distinct = |of: fn(&Pair) -> &String| pairs.iter().map(of).collect::<BTreeSet<_>>().len();
    check_hosts(&what.workload, [distinct(|pair| &pair.a.name), distinct(|pair| &pair.b.name)])
        .map_err(Error::Other)?;
    for host in pairs.iter().flat_map(|pair| [&pair.a, &pair.b]) {
        host.can_watch(&what.watch)?;
    }
    let outcomes = run_all(pairs, what, on_progress)?;
    let stalled = pairs.iter().zip(&outcomes).find_map(|(pair, seen)| Some((pair, stall::broken(seen)?)));
    let probe = stalled.map(|(pair, broken)| stall::probe(pair, broken));
    let mut report = one(first, what, &outcomes[0], !others.is_empty());
    for (pair, outcome) in others.iter().zip(&outcomes[1..]) {
        let other = one(pair, what, outcome, true);
        report.streams.extend(other.streams);
        report.silences.extend(other.silences);
        report.partial = report.partial.or(other.partial);
        report.latency.extend(other.latency);
        report.tcp.extend(other.tcp);
        report.figures.extend(other.figures);
        report.observed.extend(other.observed);
        report.notes.extend(other.notes);
    }
    report.causes = probe.as_ref().map(stalls).unwrap_or_default();
    report.probe = probe;
    if !report.streams.is_empty() && others.is_empty() {
        let [a, b] = &outcomes[0];
        let cost = figures(a, b, (&first.a.facts, &first.b.facts), None).bytes_per_cpu_s;
        report.bytes_per_cpu_s = (cost.0 > 0.0).then_some(cost);
    }
    Ok(report)
}

/// Returns the report of one pair. Among several pairs, it names its hosts.
fn one(pair: &Pair, what: &MeasureOptions, [a, b]: &[EndpointOutcome; 2], several: bool) -> MeasureReport {
    let mut report = empty(pair, what).with_outcomes(a, b);
    for stream in report.streams.iter_mut().filter(|_| several) {
        let (from, to) = match stream.sender {
            Side::A => (&pair.a.name, &pair.b.name),
            Side::B => (&pair.b.name, &pair.a.name),
        };
        stream.between = Some(format!("{from} to {to}"));
    }
    for latency in report.latency.iter_mut().filter(|_| several) {
        latency.between = Some(format!("{} to {}", pair.a.name, pair.b.name));
    }
    let names = if several { [pair.a.name.as_str(), pair.b.name.as_str()] } else { ["A", "B"] };
    for (name, end) in names.into_iter().zip([a, b]) {
        let rows: Vec<_> = what.watch.iter().filter_map(|asked| observer(asked)).collect();
        let (observed, unread) = landspeed_observer::figures(&rows, name, &end.observed);
        report.observed.extend(observed);
        report.notes.extend(unread);
        for (part, headlines) in printing(what) {
            match Headline::figures(headlines, end) {
                Ok(figures) if figures.is_empty() => {}
                Ok(figures) => report.figures.push(PartFigures { host: name.to_owned(), part, figures }),
                Err(error) => report.notes.push(format!("{name}: {part}: {error}")),
            }
        }
        report.figures.extend(of_program(&what.workload.name, name, end));
    }
    report
}

/// Returns the figures of a program, at the end that ran it.
fn of_program(workload: &str, host: &str, end: &EndpointOutcome) -> Option<PartFigures> {
    let figure = |one: &ProgramFigure| Figure {
        name: one.name.clone(),
        about: String::new(),
        amount: FigureValue::Measured(CustomQuantity { value: one.value, unit: one.unit.clone() }),
    };
    let figures: Vec<_> = end.get::<ProgramFigures>().all.iter().map(figure).collect();
    let (host, part) = (host.to_owned(), workload.to_owned());
    (!figures.is_empty()).then_some(PartFigures { host, part, figures })
}

/// Returns the headlines of an end that the workload and the transport print, with their names.
fn printing(what: &MeasureOptions) -> [(String, &'static [Headline<EndpointOutcome>]); 2] {
    let (workload, transport) = (&what.workload.name, TRANSPORT.of(&what.flow));
    let of_workload = find(&what.workload).map_or(&[][..], |runner| runner.headlines());
    let of_transport = landspeed_transport::find(transport).map_or(&[][..], |row| row.about().headlines);
    [(workload.clone(), of_workload), (transport.to_owned(), of_transport)]
}

/// Returns what to watch. If observers are requested, samples are taken within the window, because some need them.
fn watching(what: &MeasureOptions) -> WatchOptions {
    let time = lasts(&what.workload, what.warm_up) + what.warm_up;
    let interval = INTERVAL.max(Nanos(time.0 / MOST_SAMPLES));
    let interval = if what.watch.is_empty() { Nanos(0) } else { interval };
    WatchOptions {
        observers: what.watch.clone(),
        interval,
        progress: what.interval,
        keeps_broken: true,
        ..WatchOptions::default()
    }
}

/// Returns the outcomes of all pairs. The first pair that fails ends the others; its error is returned.
pub(crate) fn run_all(
    pairs: &[Pair],
    what: &MeasureOptions,
    on_progress: &(dyn Fn(usize, Side, TrialProgress) + Sync),
) -> Result<Vec<[EndpointOutcome; 2]>, Error> {
    let watching = watching(what);
    let failed = AtomicBool::new(false);
    let first = Mutex::new(None);
    let run = |(number, pair): (usize, &Pair)| {
        let workload = (what.workload.clone(), what.warm_up);
        let callbacks = RunCallbacks {
            stop: &|| failed.load(Ordering::Relaxed),
            on_progress: &|side, so_far| on_progress(number, side, so_far),
        };
        let seen = pair.run_followed(workload, &what.flow, &watching, &callbacks);
        seen.unwrap_or_else(|error| {
            failed.store(true, Ordering::Relaxed);
            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            None
        })
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = pairs.iter().enumerate().map(|one| scope.spawn(move || run(one))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a measuring thread does not panic")).collect()
    });
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(outcomes.into_iter().flatten().collect()),
    }
}

fn empty(pair: &Pair, what: &MeasureOptions) -> MeasureReport {
    MeasureReport {
        format: MEASURE_FORMAT,
        landspeed: env!("CARGO_PKG_VERSION").to_owned(),
        started: what.started.clone(),
        command: what.command.clone(),
        topology: what.topology.clone(),
        workload: what.workload.clone(),
        host_a: pair.a.facts.clone(),
        host_b: pair.b.facts.clone(),
        path: pair.path.clone(),
        latency_of: find(&what.workload).map_or("", |runner| runner.latency()).to_owned(),
        ..MeasureReport::default()
    }
}
