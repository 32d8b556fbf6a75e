//! The plan of a tuning run.

use landspeed_analysis::{Forecast, LadderRules};
use landspeed_record::units::Nanos;
use landspeed_record::{Candidate, Cell};

use super::candidates::Placebos;
use super::{FittedParameter, TuneOptions};
use crate::trial::TrialTiming;

/// The plan of a tuning run. `--dry-run` shows it, and other runs show it before real hosts are changed.
#[derive(Debug, Clone)]
pub struct TunePlan {
    pub start: Cell,
    /// The changes that the baseline makes to the hosts' settings, as "side: knob: from -> to".
    pub baseline: Vec<String>,
    /// The candidates in the order in which to try them, including skipped ones with their reasons.
    pub candidates: Vec<Candidate>,
    /// Changes without an effect, which are toggled early and late in the run.
    pub placebos: Placebos,
    pub against: Option<Cell>,
    pub timing: TrialTiming,
    /// The time budget. On long paths it is longer than the user's.
    pub budget: Nanos,
    /// The approximate duration of a look at what limits the path; `None` if the run makes no looks.
    pub(super) look: Option<Nanos>,
    /// The approximate duration of the measurements before the first step: curves, budget, and the search for the
    /// path's rate.
    pub(super) curve: Nanos,
    /// The parameter of the program that was lowered; `None` if none was.
    pub fitted: Option<FittedParameter>,
}

impl TunePlan {
    pub(super) fn rules(&self, options: &TuneOptions) -> LadderRules {
        LadderRules {
            goal: options.goal,
            budget: self.budget,
            block_time: self.timing.block(),
            fine: self.timing.fine,
            seed: options.seed,
            placebos: self.placebos.changes.clone(),
            against: self.against.clone(),
            watch_time: self.look,
            preface_time: self.curve,
            ..LadderRules::default()
        }
    }

    /// Returns a forecast of the steps that fit into the budget.
    pub fn forecast(&self, options: &TuneOptions) -> Forecast {
        Forecast::new(&self.rules(options), &self.candidates)
    }

    /// Returns the smallest `--budget` with which the plan reaches an answer; `None` if there is nothing to try.
    pub fn least_budget(&self, options: &TuneOptions) -> Option<Nanos> {
        let scale = self.budget.0 as f64 / options.budget.0.max(1) as f64;
        let least = self.forecast(options).least?;
        Some(Nanos((least.0 as f64 / scale.max(f64::MIN_POSITIVE)) as u64))
    }
}
