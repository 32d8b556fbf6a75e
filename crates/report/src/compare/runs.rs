//! The runs behind the figures, prepared for charts.

use std::collections::BTreeMap;

use landspeed_analysis::compare::Timeline;
use landspeed_record::units::Nanos;
use landspeed_record::{CompareReport, ContestQuestion, Line, Record, StudyRun, WanCarrier, WanStats};

use super::words;
use crate::safe;

const DRAWN: usize = 24;
/// Largest number of points of a line, because a drawing is not much wider in pixels.
const POINTS: usize = 300;
/// Least number of samples in a mean, except in short runs, as in the paper's figures (cottrell-2005 section IV.A).
const SMOOTHED: usize = 5;

/// Least time in nanoseconds that a mean covers, because data that waited behind a lost segment arrives in one burst.
const LEAST_NS: u64 = 1_000_000_000;

/// The points of a line, as (seconds, value).
pub(super) type Points = Vec<(f64, f64)>;

#[derive(Debug)]
pub(super) struct ProtocolCourse {
    pub(super) name: String,
    /// The number of the repeat that is drawn, from 1.
    pub(super) repeat: u64,
    /// The number of valid repeats.
    pub(super) repeats: usize,
    /// Goodput of each flow in bit/s, smoothed.
    pub(super) flows: Vec<Points>,
    pub(super) others: Vec<Points>,
    pub(super) rtt: Points,
    /// The queue in bytes; empty if the link does not report it.
    pub(super) queue: Points,
}

/// Returns, for each protocol, the repeat whose mean goodput is the median, and the aggregates of the other repeats.
pub(super) fn courses(report: &CompareReport, record: &Record) -> Vec<ProtocolCourse> {
    let study = &report.study;
    let asked = study.contests.iter().filter(|contest| matches!(contest.question, ContestQuestion::Regions));
    asked
        .take(DRAWN)
        .filter_map(|contest| {
            let mut runs: Vec<(f64, &StudyRun, Timeline)> = counted(record, &contest.name)
                .into_iter()
                .map(|run| (run, Timeline::of(study, run)))
                .filter(|(_, timeline)| timeline.slots.len() > 1)
                .map(|(run, timeline)| (mean(&timeline), run, timeline))
                .collect();
            runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let middle = runs.len().checked_sub(1)? / 2;
            let others = runs.iter().enumerate().filter(|(place, _)| *place != middle);
            let others = others.map(|(_, (_, _, timeline))| together(timeline)).collect();
            let (_, run, timeline) = &runs[middle];
            let name = words::name(study, contest.contestants.first().map_or("", String::as_str));
            Some(ProtocolCourse { others, repeats: runs.len(), ..course(name, run, timeline) })
        })
        .collect()
}

fn course(name: String, run: &StudyRun, timeline: &Timeline) -> ProtocolCourse {
    let rates = |lane: &landspeed_analysis::compare::FlowRates| {
        lane.rates.iter().map(|rate| rate.0).collect::<Vec<_>>()
    };
    ProtocolCourse {
        name,
        repeat: u64::from(run.repeat) + 1,
        repeats: 1,
        flows: timeline.lanes.iter().map(|lane| smoothed(timeline, &rates(lane))).collect(),
        others: Vec::new(),
        rtt: ordered(run.probes.iter().map(|p| (p.at_ns, p.rtt_ns.as_secs_f64()))),
        queue: ordered(run.queue.iter().map(|q| (q.at_ns, q.waiting_bytes.0 as f64))),
    }
}

/// Returns the valid runs of a contest. Of a repeat that was run several times, only the last run can count.
fn counted<'a>(record: &'a Record, contest: &str) -> Vec<&'a StudyRun> {
    let mut runs: BTreeMap<u32, &StudyRun> = BTreeMap::new();
    for line in &record.lines {
        match line {
            Line::Run(run) if run.contest == contest => _ = runs.insert(run.repeat, run),
            _ => {}
        }
    }
    runs.into_values().filter(|run| run.invalid.is_empty()).collect()
}

fn mean(timeline: &Timeline) -> f64 {
    let rates = timeline.aggregate(0..timeline.slots.len());
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

fn together(timeline: &Timeline) -> Points {
    smoothed(timeline, &timeline.aggregate(0..timeline.slots.len()))
}

/// Returns moving means of `rates`, each at the middle of its window, thinned to [`POINTS`] or fewer.
fn smoothed(timeline: &Timeline, rates: &[f64]) -> Points {
    let stride = rates.len().div_ceil(POINTS).max(1);
    let point = |(first, window): (usize, &[f64])| {
        let (start, end) = (timeline.slots[first].start_ns, timeline.slots[first + window.len() - 1].end_ns);
        let at = (start.as_secs_f64() + end.as_secs_f64()) / 2.0;
        (at, window.iter().sum::<f64>() / window.len() as f64)
    };
    rates.windows(window(timeline)).enumerate().step_by(stride).map(point).collect()
}

/// Returns the number of samples in a mean: five, or those of a second if they are more, but at most an eighth of all.
fn window(timeline: &Timeline) -> usize {
    let all = timeline.slots.len();
    let whole = timeline.slots.last().map_or(0, |last| last.end_ns.0);
    let each = (whole / all.max(1) as u64).max(1);
    let samples = usize::try_from(LEAST_NS.div_ceil(each)).unwrap_or(SMOOTHED).max(SMOOTHED);
    samples.clamp(1, (all / 8).max(1))
}

/// Returns points in order of time. If there are too many, only the greatest of each group is kept, because readers
/// look for peaks.
fn ordered(values: impl Iterator<Item = (Nanos, f64)>) -> Points {
    let mut points: Points = values.map(|(at, value)| (at.as_secs_f64(), value)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let stride = points.len().div_ceil(POINTS).max(1);
    points
        .chunks(stride)
        .filter_map(|chunk| chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)))
        .collect()
}

pub(super) fn invalid(record: &Record) -> Vec<(String, Vec<String>)> {
    let runs = lines_of!(record, Line::Run(run) if !run.invalid.is_empty() => run);
    let label = |run: &StudyRun| {
        let which = format!("{}, repeat {}", safe(&run.contest), u64::from(run.repeat) + 1);
        (which, run.invalid.iter().map(|why| safe(why)).collect())
    };
    runs.map(|run| label(run)).collect()
}

/// Returns the number of landspeed's own links in valid runs, the greatest 99th percentile of their lateness, and the
/// lateness of their worst frame. Returns `None` if no lateness is known, as with the kernel's emulator, which reports
/// none.
pub(super) fn lateness(record: &Record) -> Option<(usize, Nanos, Nanos)> {
    let links = lines_of!(record, Line::Run(run) if run.invalid.is_empty() => run.link.as_ref());
    let links: Vec<&WanStats> = links.flatten().filter(|link| link.carrier == WanCarrier::Threads).collect();
    let both = || links.iter().flat_map(|link| [&link.a_to_b, &link.b_to_a]);
    let (p99, worst) =
        (both().filter_map(|d| d.late_p99_ns).max()?, both().filter_map(|d| d.late_max_ns).max()?);
    Some((links.len(), p99, worst))
}

/// Returns the sentence on the congestion controls that the flows used, as their sockets reported; `None` for a
/// simulated study and for older records.
pub(super) fn controls(record: &Record) -> Option<String> {
    let named = record.controls().iter().map(|name| safe(name)).collect::<Vec<_>>().join(", ");
    (!named.is_empty()).then(|| format!("Congestion control of the flows, read from their sockets: {named}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_thinned_to_what_can_be_drawn_and_keep_their_peaks() {
        let values = (0..10_000_u64).map(|n| (Nanos(n), if n == 7_777 { 9.0 } else { 1.0 }));
        let points = ordered(values);
        assert!(points.len() <= POINTS && points.iter().any(|p| p.1 == 9.0));
    }
}
