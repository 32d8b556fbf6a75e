//! Candidates for values that a verdict names and the table does not propose.

use crate::Candidate;

use super::{CandidatePlanner, KnobSelection};
use crate::factor::{Factor, Proposal};

/// Rank in the order of trials, after all proposals of the table.
const LAST: u32 = 999;

impl CandidatePlanner<'_> {
    /// Returns a candidate for the value that a verdict names, with the other settings that the factor requires.
    /// Returns `None` if the factor does not accept the value, has it already or cannot be changed here, or if the
    /// user left the factor out. Also returns `None` if the table proposes the value itself, or says that the factor
    /// cannot matter here.
    pub fn named(&self, filter: &KnobSelection, name: &str, value: &str) -> Option<Candidate> {
        let factor = self.table.find(name).ok()?;
        let listed = |names: &[String]| names.iter().any(|listed| listed == name);
        let wanted = (filter.only.is_empty() || listed(filter.only)) && !listed(filter.skip);
        if !wanted || factor.domain.check(value).is_err() {
            return None;
        }
        if self.path.obstacle(factor, super::sides(factor.on), "it").is_some()
            || known_better(&self.proposals(factor), value)
        {
            return None;
        }
        let candidate = self.candidate(factor, &proposal(factor, value))?;
        let source = "named by a verdict of this run".to_owned();
        candidate.skip.is_none().then_some(Candidate { source, ..candidate })
    }
}

/// Returns true if the table proposes the value, or if all its proposals for the knob are pointless.
fn known_better(proposals: &[Proposal], value: &str) -> bool {
    let pointless = !proposals.is_empty() && proposals.iter().all(|proposal| proposal.pointless.is_some());
    pointless || proposals.iter().any(|proposal| proposal.value == value)
}

/// Creates the proposal of a value, with the values of other knobs that it requires. The value "off" requires none.
fn proposal(factor: &Factor, value: &str) -> Proposal {
    let needs = if value == "off" { &[] } else { factor.needs };
    needs.iter().fold(Proposal::new(value, LAST), |proposal, (need, set)| proposal.with(need, *set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_value_brings_what_its_factor_needs() {
        let needs = &[("tx-checksum", "on"), ("scatter-gather", "on")];
        let tso = Factor { name: "tso", needs, ..Factor::KNOB };
        assert_eq!(proposal(&tso, "on").with.len(), 2);
        assert!(proposal(&tso, "off").with.is_empty());
    }
}
