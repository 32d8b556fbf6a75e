//! A value that somebody names and the table does not propose by itself.

use landspeed_record::{Candidate, Cell};

use super::{Filter, PathView, Planner};
use crate::table::find;
use crate::{Knob, Proposal};

/// Place in the order: behind everything that the table proposes.
const LAST: u32 = 999;

/// The change of a knob from `start` to a value that a verdict names, with what the knob needs. `None` where it is
/// nothing to try: the value is not the knob's, or stands already; the knob cannot be turned here, or was left out
/// by the user; or the table knows it better, because it proposes the value itself or says that nothing of the
/// knob can matter here.
pub fn named(
    path: &PathView,
    start: &Cell,
    filter: &Filter,
    (name, value): (&str, &str),
) -> Option<Candidate> {
    let knob = find(name).ok()?;
    let listed = |names: &[String]| names.iter().any(|listed| listed == name);
    let wanted = (filter.only.is_empty() || listed(filter.only)) && !listed(filter.skip);
    if !wanted || knob.row.domain.check(value).is_err() {
        return None;
    }
    let planner = Planner::new(path, start);
    if planner.obstacle(knob, "it").is_some() || known_better(&planner.proposals(knob), value) {
        return None;
    }
    let candidate = planner.candidate(knob, &proposal(knob, value))?;
    let source = "named by a verdict of this run".to_owned();
    candidate.skip.is_none().then_some(Candidate { source, ..candidate })
}

/// Whether the table proposes the value, or holds whatever it proposes of the knob for pointless.
fn known_better(proposals: &[Proposal], value: &str) -> bool {
    let pointless = !proposals.is_empty() && proposals.iter().all(|proposal| proposal.pointless.is_some());
    pointless || proposals.iter().any(|proposal| proposal.value == value)
}

/// What a knob needs it needs to be on; nothing has to be turned to have it off.
pub(super) fn proposal(knob: &Knob, value: &str) -> Proposal {
    let needs = if value == "off" { &[] } else { knob.row.needs };
    needs.iter().fold(Proposal::new(value, LAST), |proposal, (need, set)| proposal.with(need, *set))
}
