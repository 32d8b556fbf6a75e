//! The candidates of a tuning run, and its placebos.

use landspeed_record::factor::{CandidatePlanner, KnobSelection};
use landspeed_record::{Candidate, Cell, Finding, Side};

use super::TuneOptions;
use crate::factors::{affects, all_factors, factors};
use crate::{Error, HostGroup, Pair};

/// The placebos of a run: changes between two equivalent values.
#[derive(Debug, Clone, Default)]
pub struct Placebos {
    /// The early placebo, then the late one, which is of another scope. There are fewer if the hosts lack them.
    pub changes: Vec<Candidate>,
    /// Knobs that would have been placebos and cannot be toggled, each with the reason.
    pub missing: Vec<String>,
}

impl Placebos {
    /// Returns a note for the reader if a placebo cannot be toggled; otherwise `None`.
    pub(super) fn lacking(&self) -> Option<String> {
        let scopes = match self.changes.len() {
            0 => "this run has no placebo",
            1 => "this run has one placebo, the early one",
            _ => "the placebos of this run are of the other scopes",
        };
        (!self.missing.is_empty()).then(|| format!("{scopes}: {}", self.missing.join("; ")))
    }
}

/// Returns the candidates for changes of `cell`: the table's proposals, then other values that the remedies of
/// `findings` name. A candidate that may not be tried has the reason.
pub(super) fn candidates(
    group: &HostGroup,
    cell: &Cell,
    options: &TuneOptions,
    findings: &[Finding],
) -> Result<Vec<Candidate>, Error> {
    let skip = options.untouched();
    let filter = KnobSelection { only: &options.only, skip: &skip };
    planned(group, cell, options, |planner| {
        let mut candidates = planner.candidates(&filter)?;
        let remedies = findings.iter().flat_map(|finding| &finding.remedies);
        candidates.extend(remedies.filter_map(|remedy| planner.named(&filter, &remedy.knob, &remedy.value)));
        candidates.retain(|candidate| applies(&candidate.knob, options));
        for candidate in candidates.iter_mut().filter(|candidate| candidate.skip.is_none()) {
            candidate.skip = refused_elsewhere(group, cell, candidate, options);
        }
        Ok(candidates)
    })
}

/// Returns the reason why a host beyond the first pair cannot have a candidate that the first pair can have; `None` if
/// all can.
fn refused_elsewhere(
    group: &HostGroup,
    cell: &Cell,
    candidate: &Candidate,
    options: &TuneOptions,
) -> Option<String> {
    if group.pairs().len() == 1 {
        return None;
    }
    for side in Side::BOTH {
        for (name, value) in candidate.change.host(side) {
            if !cell.host(side).contains_key(name) {
                return Some(format!("{name} has no common value on the hosts of side {side}"));
            }
            let factor = all_factors().find(name).ok()?;
            let refuses = |pair: Pair<'_>| {
                let why = pair.view(options.in_lab, |path| path.refuses(factor, &[side], value))?;
                Some(format!("{}: {why}", pair.host(side).name))
            };
            if let Some(why) = group.pairs().skip(1).find_map(refuses) {
                return Some(why);
            }
        }
    }
    None
}

/// Returns true if a setting can affect the workload.
fn applies(name: &str, options: &TuneOptions) -> bool {
    let workload = options.program.as_ref().map(|program| &program.workload);
    affects(name, workload, options.transport)
}

/// Returns the placebos of a run for `cell`. They are of two of the scopes device, network namespace and flow, which
/// the run's seed selects among those that the hosts have.
pub fn placebos(group: &HostGroup, cell: &Cell, options: &TuneOptions) -> Placebos {
    let mut known = planned(group, cell, options, |planner| planner.placebos(&options.untouched()));
    let turned = (options.seed % known.len().max(1) as u64) as usize;
    known.rotate_left(turned);
    let mut chosen = Placebos::default();
    for placebo in known.into_iter().filter(|placebo| applies(placebo.factor, options)) {
        let everywhere = placebo
            .change
            .and_then(|change| refused_elsewhere(group, cell, &change, options).map_or(Ok(change), Err));
        match everywhere {
            Ok(change) if chosen.changes.len() < 2 => chosen.changes.push(change),
            Ok(_) => {}
            Err(why) => chosen.missing.push(format!("{} ({}): {why}", placebo.factor, placebo.scope)),
        }
    }
    chosen
}

/// Calls `ask` with a planner for the run's transport and the first pair's path, and returns its result.
fn planned<T>(
    group: &HostGroup,
    cell: &Cell,
    options: &TuneOptions,
    ask: impl FnOnce(&CandidatePlanner<'_>) -> T,
) -> T {
    group
        .first()
        .view(options.in_lab, |path| ask(&CandidatePlanner::new(&factors(options.transport), path, cell)))
}
