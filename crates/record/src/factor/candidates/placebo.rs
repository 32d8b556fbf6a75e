//! Placebos: changes to a value that is equivalent to the current one.

use crate::Candidate;

use super::CandidatePlanner;
use crate::factor::{Factor, FactorScope, Proposal};

/// A factor that a run may toggle between two equivalent values, in the same way as a candidate.
#[derive(Debug, Clone)]
pub struct Placebo {
    /// What a change of the factor affects. Artefacts of toggling can depend on it.
    pub scope: FactorScope,
    pub factor: &'static str,
    /// The change to the equivalent value, or the reason why there is none here.
    pub change: Result<Candidate, String>,
}

impl CandidatePlanner<'_> {
    /// Returns the placebos of the table, except those of the factors in `skip`.
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
        equivalent: fn(&crate::factor::FactorView) -> Option<String>,
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
