//! The three figures of a trial that tuning compares. One of them is the goal of a run, which decides whether a step is
//! kept. The other two are guards, which a kept step must not make worse.

use landspeed_record::units::Nanos;
use landspeed_record::{Estimate, FigureUnit, Gain, StepSummary, TrialFigures};
use landspeed_stats::ArmTotals;

/// A figure of a trial that tuning compares. The goal of a run is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metric {
    #[default]
    Rate,
    /// Bytes per CPU-second.
    Cost,
    /// The idle round trip, as a median.
    Latency,
}

/// The names of a metric, one for each place where it is printed, and its unit.
#[derive(Debug)]
pub struct MetricRow {
    /// The goal's name on the command line and in records.
    pub goal: &'static str,
    /// The description of the goal in help texts.
    pub about: &'static str,
    /// The name in a sentence, such as after "12× the".
    pub name: &'static str,
    /// The short name that is printed during a run.
    pub short: &'static str,
    /// The name on a chart's axis, before the unit.
    pub axis: &'static str,
    pub heading: &'static str,
    pub card: &'static str,
    /// The name at the start of a table row of its figures.
    pub row: &'static str,
    pub unit: FigureUnit,
    pub less_is_better: bool,
}

/// One row for each metric, in the order of [`Metric::ALL`].
static METRICS: [MetricRow; Metric::ALL.len()] = [
    MetricRow {
        goal: "rate",
        about: "Goodput",
        name: "rate",
        short: "rate",
        axis: "rate",
        heading: "Rate",
        card: "Rate (goodput)",
        row: "rate",
        unit: FigureUnit::BitRate,
        less_is_better: false,
    },
    MetricRow {
        goal: "cpu",
        about: "Bytes per second of processor time",
        name: "bytes per CPU-second",
        short: "cost",
        axis: "payload for processor time",
        heading: "Bytes per CPU-s",
        card: "Payload for processor time",
        row: "bytes/CPU-sec",
        unit: FigureUnit::BytesPerCpuSecond,
        less_is_better: false,
    },
    MetricRow {
        goal: "latency",
        about: "Idle round-trip time",
        name: "idle round trip",
        short: "rtt",
        axis: "idle round trip",
        heading: "Round trip",
        card: "Idle round trip",
        row: "idle RTT",
        unit: FigureUnit::Time,
        less_is_better: true,
    },
];

/// Returns the numerator of a trial's cost: its rate or its program's figure. The numerator is 1, for one run, if a
/// lower figure of the program is better.
fn work(trial: &TrialFigures) -> f64 {
    match &trial.program {
        None => trial.rate_bps.0,
        Some(work) if work.less_is_better => 1.0,
        Some(work) => work.value,
    }
}

fn measured(value: f64) -> Option<f64> {
    Some(value).filter(|value| *value > 0.0 && value.is_finite())
}

impl Metric {
    pub const ALL: [Metric; 3] = [Metric::Rate, Metric::Cost, Metric::Latency];

    /// Returns the names and the unit of the metric.
    pub fn row(self) -> &'static MetricRow {
        &METRICS[self as usize]
    }

    /// Returns the metric whose goal name is `goal`, or [`Metric::Rate`] if there is none.
    pub fn of_goal(goal: &str) -> Metric {
        Metric::ALL.into_iter().find(|metric| metric.row().goal == goal).unwrap_or_default()
    }

    /// Returns this metric as the goal, then the other two, which must not get worse.
    pub fn order(self) -> [Metric; 3] {
        match self {
            Metric::Rate => Metric::ALL,
            Metric::Cost => [Metric::Cost, Metric::Rate, Metric::Latency],
            Metric::Latency => [Metric::Latency, Metric::Rate, Metric::Cost],
        }
    }

    /// Returns the two metrics that must not get worse if this one is the goal.
    pub(crate) fn guards(self) -> [Metric; 2] {
        let [_, guards @ ..] = self.order();
        guards
    }

    /// Returns +1 if more of the figure is better, -1 if less is.
    pub(crate) fn sign(self) -> f64 {
        if self.row().less_is_better { -1.0 } else { 1.0 }
    }

    /// Inverts an estimate of the figure's ratio if less of the figure is better, so that above one is always better. A
    /// second call restores the plain ratio.
    #[must_use]
    pub fn oriented(self, e: Estimate) -> Estimate {
        if self.row().less_is_better { e.inverse() } else { e }
    }

    /// Returns this metric's estimate in a step; `None` if it was not measured or is not a plausible ratio.
    pub fn of_step(self, step: &StepSummary) -> Option<Estimate> {
        [step.rate, step.cost, step.latency][self as usize].filter(Estimate::is_plausible)
    }

    /// Returns this metric's estimate in a gain; `None` if it was not measured or is not a plausible ratio.
    pub fn of_gain(self, gain: &Gain) -> Option<Estimate> {
        [gain.rate, gain.cost, gain.latency][self as usize].filter(Estimate::is_plausible)
    }

    /// Returns the metric's value in `figures` in bit/s, bytes per CPU-second or ns, or in the program's own unit for a
    /// program's figure. `None` if it was not measured.
    pub fn of_figures(self, figures: &TrialFigures) -> Option<f64> {
        let value = match self {
            Metric::Rate => figures.program.map_or(figures.rate_bps.0, |work| work.value),
            Metric::Cost => figures.program.map_or(figures.bytes_per_cpu_s.0, |work| work.per_cpu_s),
            Metric::Latency => figures.latency_ns.0 as f64,
        };
        measured(value)
    }

    /// Returns the metric's value in `figures`; `None` if it was not measured. A program's figure of which less is
    /// better is converted to one of which more is better.
    pub(crate) fn of(self, figures: &TrialFigures) -> Option<f64> {
        match (self, &figures.program) {
            // A goodput of zero is a measurement too: the path carried nothing.
            (Metric::Rate, None) => Some(figures.rate_bps.0.max(0.0)),
            (Metric::Rate, Some(work)) => measured(work.better()),
            _ => self.of_figures(figures),
        }
    }

    /// Returns ln(candidate / incumbent) of the arms' geometric means; `None` if a trial lacks the figure. A ratio
    /// beyond a factor of 1,000 counts as 1,000, because zero has no logarithm, and one broken trial must not weigh
    /// more.
    pub(crate) fn ln_ratio(self, candidate: &[TrialFigures], incumbent: &[TrialFigures]) -> Option<f64> {
        const FARTHEST: f64 = 6.907_755;
        let (candidate, incumbent) = (self.mean_ln(candidate)?, self.mean_ln(incumbent)?);
        if candidate == incumbent {
            return Some(0.0);
        }
        Some((candidate - incumbent).clamp(-FARTHEST, FARTHEST))
    }

    /// Returns an arm's totals of gain and expense; `None` if a trial lacks the figure. For the rate these are the
    /// sum of the rates and the number of trials, for the cost the work and the processor time, and for the latency
    /// the number of trials and the sum of the round trips.
    pub(crate) fn sums(self, arm: &[TrialFigures]) -> Option<ArmTotals> {
        let count = arm.len() as f64;
        let sum = |of: fn(&TrialFigures) -> f64| arm.iter().map(of).sum::<f64>();
        let all: f64 = arm.iter().map(|trial| self.of(trial)).sum::<Option<f64>>()?;
        let sums = match self {
            Metric::Rate => ArmTotals { gained: all, spent: count },
            // Trials of a block are equally long, so the rate can replace the bytes.
            Metric::Cost => ArmTotals {
                gained: sum(work),
                spent: arm.iter().map(|trial| Some(work(trial) / self.of(trial)?)).sum::<Option<f64>>()?,
            },
            Metric::Latency => ArmTotals { gained: count, spent: all },
        };
        Some(sums)
    }

    /// Returns ln of a trial's figure, negated if less of the figure is better; `None` if it was not measured.
    pub(crate) fn better_ln(self, trial: &TrialFigures) -> Option<f64> {
        Some(self.of(trial)?.ln() * self.sign())
    }

    /// Returns the trial with its figure improved by the factor whose logarithm is `ln`.
    pub(crate) fn bettered(self, trial: &TrialFigures, ln: f64) -> TrialFigures {
        let (factor, mut trial) = (ln.exp(), *trial);
        match (self, &mut trial.program) {
            (Metric::Rate, Some(work)) => *work = work.with_better(work.better() * factor),
            (Metric::Cost, Some(work)) => work.per_cpu_s *= factor,
            (Metric::Rate, None) => trial.rate_bps.0 *= factor,
            (Metric::Cost, None) => trial.bytes_per_cpu_s.0 *= factor,
            (Metric::Latency, _) => trial.latency_ns = Nanos((trial.latency_ns.0 as f64 / factor) as u64),
        }
        trial
    }

    fn mean_ln(self, trials: &[TrialFigures]) -> Option<f64> {
        let lns = trials.iter().map(|trial| Some(self.of(trial)?.ln()));
        Some(lns.sum::<Option<f64>>()? / trials.len() as f64)
    }
}
