//! Placebos: changes to a value that is equivalent to the one that stands.

use landspeed_record::{Candidate, Cell};

use super::{PathView, Planner};
use crate::table::all;
use crate::{Knob, Proposal, Scope};

/// A knob that a run may toggle between two equivalent values, as a candidate is toggled.
#[derive(Debug, Clone)]
pub struct Placebo {
    /// How far the knob reaches: an artefact of toggling can depend on it.
    pub scope: Scope,
    /// The knob.
    pub knob: &'static str,
    /// The change, or why there is none here.
    pub change: Result<Candidate, String>,
}

/// The placebos of the table against what stands in `cell`, less those of the knobs to `skip`.
pub fn placebos(path: &PathView, cell: &Cell, skip: &[String]) -> Vec<Placebo> {
    let planner = Planner::new(path, cell);
    let known = all().filter(|knob| !skip.iter().any(|skipped| skipped == knob.row.name));
    let placebo = |knob: &'static Knob| {
        let equivalent = knob.row.placebo?;
        let change = planner.placebo(knob, equivalent);
        Some(Placebo { scope: knob.row.scope, knob: knob.row.name, change })
    };
    known.filter_map(placebo).collect()
}

impl Planner<'_> {
    fn placebo(
        &self,
        knob: &Knob,
        equivalent: fn(&crate::View) -> Option<String>,
    ) -> Result<Candidate, String> {
        if let Some(why) = self.obstacle(knob, "it") {
            return Err(why);
        }
        let value = self.with_view(knob, equivalent);
        let candidate = value.and_then(|value| self.candidate(knob, &Proposal::new(value, 0)));
        let none = || format!("no value is known to be as good as {:?}", self.current(knob));
        let candidate = candidate.ok_or_else(none)?;
        match candidate.skip {
            Some(why) => Err(why),
            None => Ok(candidate),
        }
    }
}
