//! Measures one workload over one pair, or over several pairs at the same time.

use landspeed_analysis::verdict::stalls;
use landspeed_analysis::{disturbances, figures};
use landspeed_observer::observer;
use landspeed_record::units::Nanos;
use landspeed_record::{
    CustomQuantity, EndpointOutcome, Figure, FigureValue, Headline, LostHost, MEASURE_FORMAT, MeasureReport,
    PartFigures, ProgramFigure, ProgramFigures, Settings, Workload,
};
use landspeed_transport::settings::TRANSPORT;
use landspeed_workload::staggered::StaggeredDetails;
use landspeed_workload::{find, lasts};

use crate::group::PairProgressSink;
use crate::{Error, HostGroup, Pair, RunSpec, WatchOptions, stall};

/// The options of a measurement: its workload, its settings, and what to report.
#[derive(Debug, Clone)]
pub struct MeasureOptions {
    pub workload: Workload,
    /// Settings of the flows: socket options, sizes, number of flows, placement.
    pub flow: Settings,
    /// Start-up that is not counted.
    pub warm_up: Nanos,
    /// Names of the observers whose figures are requested. They run even if they usually do not.
    pub watch: Vec<String>,
    /// Time between two progress messages of the flows; zero for none.
    pub interval: Nanos,
    /// True to sample the flows for [`MeasureReport::timeline`].
    pub over_time: bool,
    /// The topology for the report: the name of a lab such as "lab:back-to-back", or the hosts.
    pub topology: String,
    pub command: String,
    /// The time of the start for the report, in RFC 3339 and UTC.
    pub started: String,
}

/// Time between samples of requested observers.
const INTERVAL: Nanos = Nanos::millis(50);
/// The largest number of samples of a flow. It lets the samples of all flows fit into one message, however long they
/// last.
const MOST_SAMPLES: u64 = 100;

/// Runs the workload on all pairs at the same time and reports it: goodput by pair and direction, and the hosts of the
/// first pair. A pair that fails is listed in [`MeasureReport::lost`]. Its failure ends the other pairs only if the
/// workload is a program, whose hosts need each other.
///
/// # Errors
/// Returns an error if no pair has an outcome, if the workload cannot run on these hosts, or if a requested observer
/// cannot.
pub fn measure(
    group: &HostGroup,
    what: &MeasureOptions,
    on_progress: PairProgressSink<'_>,
) -> Result<MeasureReport, Error> {
    group.suits(&what.workload)?;
    group.hosts().iter().try_for_each(|host| host.can_watch(&what.watch))?;
    let run = RunSpec {
        workload: what.workload.clone(),
        flow: what.flow.clone(),
        warm_up: what.warm_up,
        watching: watching(what),
    };
    let needs_all = find(&what.workload).is_some_and(|runner| runner.application().is_some());
    let outcomes: Vec<_> = match needs_all {
        true => group.run_together(&run, on_progress)?.into_iter().map(Ok).collect(),
        false => group.run_each(&run, on_progress),
    };
    let (mut done, mut lost) = (Vec::new(), Vec::new());
    for (pair, outcome) in group.pairs().zip(outcomes) {
        match outcome {
            Ok(seen) => done.push((pair, seen)),
            Err(error) => lost.push((pair, error)),
        }
    }
    if done.is_empty() {
        let first = lost.into_iter().next().map(|(_, error)| error);
        return Err(first.unwrap_or_else(|| Error::Other("nothing to measure: no pair of hosts".into())));
    }
    let stalled = done.iter().find_map(|(pair, seen)| Some((pair, stall::broken(seen)?)));
    let probe = stalled.map(|(pair, broken)| stall::probe(pair, broken));
    let each = done.iter().map(|(pair, seen)| one(group, pair, what, seen));
    let mut report = each.reduce(MeasureReport::with_pair).unwrap_or_default();
    report.causes = probe.as_ref().map(stalls).unwrap_or_default();
    report.probe = probe;
    let name = |pair: &Pair<'_>| format!("{} to {}", pair.a.name, pair.b.name);
    report.lost = lost.iter().map(|(pair, error)| LostHost::new(&name(pair), error)).collect();
    report.notes.extend(group.moved());
    let ends: Vec<_> = done.iter().map(|(pair, seen)| pair.ends(seen)).collect();
    report.notes.extend(disturbances(&ends));
    if !report.streams.is_empty() {
        let cost = figures(&ends, None).bytes_per_cpu_s;
        report.bytes_per_cpu_s = (cost.0 > 0.0).then_some(cost);
    }
    Ok(report)
}

/// Returns the report of one pair. If the group has several pairs, the report names the pair's hosts.
fn one(
    group: &HostGroup,
    pair: &Pair<'_>,
    what: &MeasureOptions,
    [a, b]: &[EndpointOutcome; 2],
) -> MeasureReport {
    let mut report = empty(pair, what).with_outcomes(a, b);
    if group.pairs().len() > 1 {
        report = report.named([&pair.a.name, &pair.b.name], group.link_of(pair));
    }
    for (name, end) in group.names(pair).into_iter().zip([a, b]) {
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
        match end.details.read::<StaggeredDetails>() {
            Ok(seen) => report.probes.extend(seen.probes.iter().cloned()),
            Err(error) => report.notes.push(format!("{name}: {error}")),
        }
    }
    report
}

/// Returns the figures of a program at one end; `None` if that end did not run it.
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

/// Returns the headlines of the workload and of the transport, each with its name.
fn printing(what: &MeasureOptions) -> [(String, &'static [Headline<EndpointOutcome>]); 2] {
    let (workload, transport) = (&what.workload.name, TRANSPORT.of(&what.flow));
    let of_workload = find(&what.workload).map_or(&[][..], |runner| runner.headlines());
    let of_transport = landspeed_transport::find(transport).map_or(&[][..], |row| row.about().headlines);
    [(workload.clone(), of_workload), (transport.to_owned(), of_transport)]
}

/// Returns the observers and intervals of the measurement. If observers are requested, samples are taken within the
/// window too, because some observers need them.
fn watching(what: &MeasureOptions) -> WatchOptions {
    let time = lasts(&what.workload, what.warm_up) + what.warm_up;
    let interval = INTERVAL.max(Nanos(time.0 / MOST_SAMPLES));
    let interval = if what.watch.is_empty() && !what.over_time { Nanos(0) } else { interval };
    WatchOptions {
        observers: what.watch.clone(),
        interval,
        progress: what.interval,
        keeps_broken: true,
        ..WatchOptions::default()
    }
}

fn empty(pair: &Pair<'_>, what: &MeasureOptions) -> MeasureReport {
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
