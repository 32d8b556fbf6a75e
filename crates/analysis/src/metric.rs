//! The three figures of a trial as statistics: the one that decides and those that guard.

use std::fmt;
use std::str::FromStr;

use landspeed_record::units::Nanos;
use landspeed_record::{Estimate, TrialFigures};
use landspeed_stats::ArmTotals;
use serde::{Deserialize, Serialize};

/// The goal of a tuning run, which decides its primary statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TuningGoal {
    #[default]
    Rate,
    /// The idle round trip.
    Latency,
    /// The payload per processor time.
    Cpu,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no goal: choose rate, latency or cpu")]
pub struct UnknownGoal(String);

impl TuningGoal {
    pub fn primary(self) -> Metric {
        match self {
            TuningGoal::Rate => Metric::Rate,
            TuningGoal::Latency => Metric::Latency,
            TuningGoal::Cpu => Metric::Cost,
        }
    }

    /// Returns the statistics that must not get worse.
    pub fn guards(self) -> [Metric; 2] {
        match self {
            TuningGoal::Rate => [Metric::Cost, Metric::Latency],
            TuningGoal::Latency => [Metric::Cost, Metric::Rate],
            TuningGoal::Cpu => [Metric::Rate, Metric::Latency],
        }
    }
}

impl fmt::Display for TuningGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TuningGoal::Rate => "rate",
            TuningGoal::Latency => "latency",
            TuningGoal::Cpu => "cpu",
        })
    }
}

impl FromStr for TuningGoal {
    type Err = UnknownGoal;

    fn from_str(s: &str) -> Result<Self, UnknownGoal> {
        [TuningGoal::Rate, TuningGoal::Latency, TuningGoal::Cpu]
            .into_iter()
            .find(|goal| goal.to_string() == s)
            .ok_or_else(|| UnknownGoal(s.to_owned()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    Rate,
    /// Bytes per CPU-second.
    Cost,
    /// The idle round trip, as a median.
    Latency,
}

/// Returns the work of a trial per second, in the unit in which its cost counts work. A run of a program counts as 1
/// if less of its figure is better.
fn work(trial: &TrialFigures) -> f64 {
    match &trial.program {
        None => trial.rate_bps.0,
        Some(work) if work.less_is_better => 1.0,
        Some(work) => work.value,
    }
}

impl Metric {
    pub const ALL: [Metric; 3] = [Metric::Rate, Metric::Cost, Metric::Latency];

    pub fn name(self) -> &'static str {
        match self {
            Metric::Rate => "rate",
            Metric::Cost => "bytes per CPU-second",
            Metric::Latency => "idle round trip",
        }
    }

    /// Returns +1 where more is better, -1 where less is.
    pub(crate) fn sign(self) -> f64 {
        if self == Metric::Latency { -1.0 } else { 1.0 }
    }

    /// Returns an estimate in which "above one" is better as the plain ratio of the figure.
    pub(crate) fn as_measured(self, better: Estimate) -> Estimate {
        if self.sign() > 0.0 {
            return better;
        }
        Estimate { ratio: 1.0 / better.ratio, low: 1.0 / better.high, high: 1.0 / better.low }
    }

    /// Returns the figure's value; `None` where it was not measured.
    pub(crate) fn of(self, figures: &TrialFigures) -> Option<f64> {
        let measured = |x: f64| (x > 0.0 && x.is_finite()).then_some(x);
        match (self, &figures.program) {
            (Metric::Rate, Some(work)) => return measured(work.better()),
            (Metric::Cost, Some(work)) => return measured(work.per_cpu_s),
            _ => {}
        }
        match self {
            // No goodput is a measurement too: the path was cut.
            Metric::Rate => Some(figures.rate_bps.0.max(0.0)),
            Metric::Cost => measured(figures.bytes_per_cpu_s.0),
            Metric::Latency => measured(figures.latency_ns.0 as f64),
        }
    }

    /// Returns the log ratio of two arms' trials, each arm by its geometric mean. A factor beyond a thousand is taken
    /// as a thousand, because zero has no logarithm, and one broken trial must not weigh more.
    pub(crate) fn ln_ratio(self, candidate: &[TrialFigures], incumbent: &[TrialFigures]) -> Option<f64> {
        const FARTHEST: f64 = 6.907_755;
        let (candidate, incumbent) = (self.mean_ln(candidate)?, self.mean_ln(incumbent)?);
        if candidate == incumbent {
            return Some(0.0);
        }
        Some((candidate - incumbent).clamp(-FARTHEST, FARTHEST))
    }

    /// Returns what an arm's trials gained and what they spent for it; `None` where that was not measured. For bytes
    /// per CPU-second these are the bytes and the seconds, for the others the trials' sum and their number.
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

    /// Returns ln of a trial's figure, with above zero better; `None` where it was not measured.
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
