//! The figures of one run, by the formulas of cottrell-2005 section IV.A.

use std::ops::Range;

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{ContestQuestion, RegionFigures, Study, StudyRegion, StudyRun};
use landspeed_stats::{jain, mean_and_deviation};

use super::convergence;
use super::timeline::Timeline;

/// The headers of IPv4 and of TCP with timestamps: the bytes of a full packet that are not payload (RFC 791, 9293,
/// 7323).
const HEADERS: u16 = 20 + 20 + 12;

/// The least time over which rates are taken for their deviation: the reporting interval of iperf in the paper.
const REPORTED: Nanos = Nanos::secs(1);
/// The least number of rates in a region. In a region shorter than 8 s, rates are therefore taken over less than
/// [`REPORTED`].
const LEAST_RATES: u64 = 8;

/// The figures of one run of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFigures {
    /// The mean aggregate goodput over the whole run.
    pub mean_bps: BitRate,
    /// The standard deviation of the aggregate goodput, over stretches of one second (of an eighth of a region, if
    /// that is shorter).
    pub sd_bps: BitRate,
    /// `sd / mean`; `None` where nothing arrived.
    pub stability: Option<f64>,
    /// The figures of each region; those without two samples are left out.
    pub regions: Vec<RegionFigures>,
    /// The least of Jain's index over the regions with several flows.
    pub fairness_min: Option<f64>,
    pub fairness_max: Option<f64>,
    /// The processor time of the sender divided by elapsed time.
    pub cpu: Option<f64>,
    /// The processor cycles of the sender per bit of payload.
    pub cycles_per_bit: Option<f64>,
    /// The mean of the probe's round trips.
    pub rtt_mean_s: Option<f64>,
    pub rtt_sd_s: Option<f64>,
    /// Retransmitted segments divided by segments delivered.
    pub resent_share: Option<f64>,
    /// For each flow that enters a path in use, the seconds until it reached its fair share; `None` if it did not.
    pub convergence_s: Vec<Option<f64>>,
    /// The time of the first retransmission, in seconds since the start of the run.
    pub first_resent_s: Option<f64>,
    /// Percentiles 5, 50 and 95 of the probe's round trips while more than two flows ran.
    pub rtt_of_many_s: Option<[f64; 3]>,
    /// The ratio of two mean aggregate rates: that of the first 5 samples with only one flow left, divided by that of
    /// the 10 samples before.
    pub last_leaving: Option<f64>,
}

impl RunFigures {
    /// Returns the figures of a run; `None` if it has fewer than two samples.
    pub fn of(study: &Study, run: &StudyRun) -> Option<Self> {
        let timeline = Timeline::of(study, run);
        // The last sample of real hosts is taken a little after the end.
        let whole = timeline.within(Nanos(0), study.duration() + Nanos(study.sample_ns.0 / 2));
        let (mean, sd) = carried(study, &timeline, whole)?;
        let regions = regions(study, run, &timeline);
        let shared = || regions.iter().filter(|r| r.flows > 1).filter_map(|r| r.fairness);
        Some(RunFigures {
            mean_bps: BitRate(mean),
            sd_bps: BitRate(sd),
            stability: (mean > 0.0).then(|| sd / mean),
            fairness_min: shared().reduce(f64::min),
            fairness_max: shared().reduce(f64::max),
            regions,
            cpu: cpu_s(run).map(|cpu| cpu / study.duration().as_secs_f64()).filter(|x| x.is_finite()),
            cycles_per_bit: cycles_per_bit(run),
            rtt_mean_s: rtt(run).map(|(mean, _)| mean),
            rtt_sd_s: rtt(run).map(|(_, sd)| sd),
            resent_share: resent_share(study, run),
            convergence_s: convergence::times(study, &timeline),
            first_resent_s: first_resent(run),
            rtt_of_many_s: rtt_of_many(study, run),
            last_leaving: last_leaving(study, &timeline),
        })
    }

    /// Returns the mean aggregate goodput in the middle region, in which all flows run.
    pub fn middle_bps(&self) -> Option<BitRate> {
        self.regions.iter().max_by_key(|region| region.flows).map(|region| region.mean_bps)
    }

    /// Returns the median time, in seconds, that a flow needs to reach its fair share, over all flows that entered
    /// while others ran; `None` if fewer than half of them reached it.
    pub(crate) fn median_convergence_s(&self) -> Option<f64> {
        convergence::median(&self.convergence_s)
    }

    /// Returns the ratio of two aggregate goodputs: the one while flows leave, divided by the one while flows enter. It
    /// is 1 if the remaining flows took up what the leaving flows freed.
    pub fn recovery(&self) -> Option<f64> {
        let middle = self.regions.iter().max_by_key(|region| region.flows)?.region;
        let sum = |of: &dyn Fn(&&RegionFigures) -> bool| -> f64 {
            self.regions.iter().filter(of).map(|region| region.mean_bps.0).sum()
        };
        let (before, after) = (sum(&|r| r.region < middle), sum(&|r| r.region > middle));
        (before > 0.0 && after > 0.0).then(|| after / before)
    }

    /// Returns the figures of region `number`, counted from 1; `None` if the run has no figures of it.
    pub fn region(&self, number: u16) -> Option<&RegionFigures> {
        self.regions.iter().find(|region| region.region == number)
    }
}

/// Returns the mean of the aggregate goodput in bit/s, and its standard deviation over stretches of a second, or of an
/// eighth of a region if that is shorter. A stretch has at least one sample. `None` for fewer than two stretches.
fn carried(study: &Study, timeline: &Timeline, range: Range<usize>) -> Option<(f64, f64)> {
    let least = REPORTED.min(Nanos(study.region_ns.0 / LEAST_RATES));
    let (_, sd) = spread(&timeline.stretches(range.clone(), least))?;
    let rates = timeline.aggregate(range);
    Some((rates.iter().sum::<f64>() / rates.len() as f64, sd))
}

/// Returns the mean and the standard deviation; `None` for fewer than two values.
fn spread(values: &[f64]) -> Option<(f64, f64)> {
    (values.len() > 1).then(|| mean_and_deviation(values))
}

fn regions(study: &Study, run: &StudyRun, timeline: &Timeline) -> Vec<RegionFigures> {
    // Only flows that come and go make regions.
    let staggered = study.contests.iter().any(|contest| {
        contest.name == run.contest
            && matches!(contest.question, ContestQuestion::Regions | ContestQuestion::Meeting)
    });
    let bounds = if staggered { study.regions() } else { Vec::new() };
    (1..).zip(bounds).filter_map(|(number, bounds)| region(study, timeline, number, &bounds)).collect()
}

fn region(study: &Study, timeline: &Timeline, number: u16, bounds: &StudyRegion) -> Option<RegionFigures> {
    let &StudyRegion { start, end, flows } = bounds;
    let range = timeline.within(start, end);
    let (mean, sd) = carried(study, timeline, range.clone())?;
    let here = timeline.lanes.iter().filter(|lane| lane.spans(start, end));
    let shares: Vec<f64> = here.map(|lane| lane.mean(range.clone())).collect();
    Some(RegionFigures {
        region: number,
        flows,
        mean_bps: BitRate(mean),
        sd_bps: BitRate(sd),
        stability: (mean > 0.0).then(|| sd / mean),
        fairness: jain(&shares),
    })
}

fn cpu_s(run: &StudyRun) -> Option<f64> {
    run.sender_cpu_ns.map(|cpu| cpu.as_secs_f64())
}

/// Returns the sender's processor cycles per bit of payload, which are the paper's MHz per Mb/s (`utilisation * clock /
/// throughput`).
fn cycles_per_bit(run: &StudyRun) -> Option<f64> {
    let cycles = cpu_s(run)? * run.sender_clock_hz?;
    Some(cycles / (payload(run).0 as f64 * 8.0)).filter(|cost| cost.is_finite() && *cost > 0.0)
}

/// Returns all payload that arrived, including that of completed short flows.
fn payload(run: &StudyRun) -> Bytes {
    let sampled = run.flows.iter().flat_map(|flow| &flow.samples).map(|sample| sample.goodput_bytes);
    let short =
        run.flows.iter().filter(|flow| flow.took_ns.is_some()).filter_map(|flow| flow.plan.data_bytes);
    sampled.chain(short).sum()
}

/// Returns the mean and the standard deviation of the probe's round trips in seconds.
fn rtt(run: &StudyRun) -> Option<(f64, f64)> {
    spread(&run.probes.iter().map(|probe| probe.rtt_ns.as_secs_f64()).collect::<Vec<_>>())
}

fn resent_share(study: &Study, run: &StudyRun) -> Option<f64> {
    let segment = f64::from(study.path.mtu_bytes.checked_sub(HEADERS).filter(|size| *size > 0)?);
    let last = run.flows.iter().filter_map(|flow| flow.samples.last());
    let resent: f64 = last.map(|sample| sample.retransmits as f64).sum();
    let delivered = payload(run).0 as f64 / segment;
    (delivered > 0.0).then(|| resent / delivered)
}

fn first_resent(run: &StudyRun) -> Option<f64> {
    let samples = run.flows.iter().flat_map(|flow| &flow.samples);
    samples.filter(|sample| sample.retransmits > 0).map(|sample| sample.at_ns).min().map(Nanos::as_secs_f64)
}

fn rtt_of_many(study: &Study, run: &StudyRun) -> Option<[f64; 3]> {
    let many: Vec<_> = study.regions().into_iter().filter(|region| region.flows > 2).collect();
    let (start, end) = (many.iter().map(|r| r.start).min()?, many.iter().map(|r| r.end).max()?);
    let within = run.probes.iter().filter(|probe| probe.at_ns >= start && probe.at_ns < end);
    let mut round_trips: Vec<f64> = within.map(|probe| probe.rtt_ns.as_secs_f64()).collect();
    round_trips.sort_by(f64::total_cmp);
    let at = |share: f64| round_trips[((round_trips.len() - 1) as f64 * share).round() as usize];
    (round_trips.len() > 1).then(|| [0.05, 0.5, 0.95].map(at))
}

fn last_leaving(study: &Study, timeline: &Timeline) -> Option<f64> {
    const AFTER: usize = 5;
    const BEFORE: usize = 10;
    let border = study.regions().last()?.start;
    let first = timeline.within(border, Nanos(u64::MAX)).start;
    // The slot before `first` may straddle the border; then it belongs to neither mean.
    let end = timeline.within(Nanos(0), border).end;
    let mean = |range| -> Option<f64> {
        let rates = timeline.aggregate(range);
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    };
    let after = mean(first..(first + AFTER).min(timeline.slots.len()))?;
    let before = mean(end.saturating_sub(BEFORE)..end)?;
    (before > 0.0 && study.flows > 1).then(|| after / before)
}
