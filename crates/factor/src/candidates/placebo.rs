//! Placebos: changes to a value that is equivalent to the one that stands.

use landspeed_record::Candidate;

use super::Planner;
use crate::{Factor, Proposal, Scope};

/// A factor that a run may toggle between two equivalent values, as a candidate is toggled.
#[derive(Debug, Clone)]
pub struct Placebo {
    /// How far the factor reaches: an artefact of toggling can depend on it.
    pub scope: Scope,
    pub factor: &'static str,
    /// The change, or why there is none here.
    pub change: Result<Candidate, String>,
}

impl Planner<'_> {
    /// The placebos of the table, less those of the factors to `skip`.
    pub fn placebos(&self, skip: &[String]) -> Vec<Placebo> {
        let known = self.table.all().filter(|factor| !skip.iter().any(|skipped| skipped == factor.name));
        let placebo = |factor: &'static Factor| {
            let change = self.placebo(factor, factor.placebo?);
            Some(Placebo { scope: factor.scope, factor: factor.name, change })
        };
        known.filter_map(placebo).collect()
    }

    fn placebo(
        &self,
        factor: &Factor,
        equivalent: fn(&crate::View) -> Option<String>,
    ) -> Result<Candidate, String> {
        if let Some(why) = self.path.obstacle(factor, super::sides(factor.on), "it") {
            return Err(why);
        }
        let value = self.with_view(factor, equivalent);
        let candidate = value.and_then(|value| self.candidate(factor, &Proposal::new(value, 0)));
        let none = || format!("no value is known to be as good as {:?}", self.current(factor));
        let candidate = candidate.ok_or_else(none)?;
        match candidate.skip {
            Some(why) => Err(why),
            None => Ok(candidate),
        }
    }
}
