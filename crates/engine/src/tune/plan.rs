//! Makes the plan of a tuning run before any knob is turned.

use landspeed_analysis::{Forecast, LadderRules};
use std::time::Instant;

use landspeed_record::factor::{CandidatePlanner, FactorPlacement, KnobSelection};
use landspeed_record::units::Nanos;
use landspeed_record::{Candidate, Cell, Finding, Settings, Side};
use landspeed_transport::Delivery;

use super::{Baseline, FittedParameter, TuneOptions, bound, budget, fit, look};
use crate::factors::{affects, all_factors, factors, flow};
use crate::trial::TrialTiming;
use crate::{Error, HostGroup, Pair, RunSpec, curve};

/// Time that a look takes in addition to the program's run, for attaching the observers and resolving the sampled
/// symbols.
const LOOKING: Nanos = Nanos::millis(400);

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
    look: Option<Nanos>,
    /// The approximate duration of the measurements before the first step: curves, budget, and the search for the
    /// path's rate.
    curve: Nanos,
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

/// Makes the plan of a run. Lowers the parameter of the run's program that decides how long a trial takes, if its file
/// names one.
///
/// # Errors
/// Returns an error if the hosts can be tuned by no run, or not as `options` ask. A dry run then has the answer of a real
/// one.
pub fn plan(group: &HostGroup, options: &mut TuneOptions) -> Result<TunePlan, Error> {
    group.can_be_tuned()?;
    if let Some(program) = &options.program {
        group.suits(&program.workload)?;
    }
    let is_fan = group.pairs().len() > 1 && options.program.is_none();
    if is_fan && options.transport.about().delivery == Delivery::Datagrams {
        let name = options.transport.name();
        return Err(Error::Other(format!("{name} is tuned between two hosts: name two, or take tcp")));
    }
    let fitted = fit::fit(group, options)?;
    let options = &*options;
    let found = group.found(flow(options.transport, &Settings::new())?);
    let (start, baseline) = match options.baseline {
        Baseline::Found => (found, Vec::new()),
        Baseline::Sc03 => overlay(&found, sc03())?,
    };
    let start = overlay_all(&start, &options.held)?;
    let candidates = candidates(group, &start, options, &[])?;
    let against = match &options.against {
        Some(settings) => Some(overlay_all(&start, settings)?),
        None => None,
    };
    let placebos = placebos(group, &start, options);
    let timing = timing(group, &start, options)?;
    let usual = TrialTiming { fine: false, ..TrialTiming::for_rtt(Nanos(0)) }.block().0;
    // A user who tunes a program chooses the budget, so it is not scaled.
    let scale =
        if timing.fine || options.program.is_some() { 1.0 } else { timing.block().0 as f64 / usual as f64 };
    let budget = Nanos((options.budget.0 as f64 * scale) as u64);
    let look = options.looks().then(|| match &options.program {
        None => look::time(group.rtt()),
        Some(_) => timing.stream + LOOKING,
    });
    let curve = match &options.program {
        None => curve::time(timing, group.first().link_rate()) + bound::time(options) + budget::time(options),
        Some(_) => Nanos(0),
    };
    Ok(TunePlan { start, baseline, candidates, placebos, against, timing, budget, look, curve, fitted })
}

/// Returns the timing of trials. A trial of a program lasts as long as the program, which is run once to measure it. If
/// services keep running through a block, the first run also starts them, so a second run shows the duration of the
/// other trials.
fn timing(group: &HostGroup, start: &Cell, options: &TuneOptions) -> Result<TrialTiming, Error> {
    let rtt = group.rtt();
    let Some(program) = &options.program else { return Ok(TrialTiming::for_rtt(rtt)) };
    let run = RunSpec::new(program.workload.clone(), &start.flow);
    let time = || -> Result<Nanos, Error> {
        let began = Instant::now();
        group.run(&run)?;
        Ok(began.elapsed().into())
    };
    let keeps_services = landspeed_workload::find(&program.workload)
        .is_some_and(|runner| runner.application().is_some_and(|app| app.keeps_services()));
    group.begin_epoch("timing");
    let first = time()?;
    let usual = if keeps_services { time()?.min(first) } else { first };
    // The next trial starts services of its own.
    group.begin_epoch("");
    Ok(TrialTiming { set_up: first.saturating_sub(usual), ..TrialTiming::of_program(rtt, usual) })
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

/// Overrides settings of a cell. A knob that no host has is left out. Returns the cell, and its changes as texts.
fn overlay<'a>(
    found: &Cell,
    settings: impl IntoIterator<Item = (&'a str, String)>,
) -> Result<(Cell, Vec<String>), Error> {
    let mut cell = found.clone();
    let mut changes = Vec::new();
    for (name, value) in settings {
        for (place, side) in places(&mut cell, name)? {
            if let Some(now) = place.get_mut(name).filter(|now| **now != value) {
                changes.push(format!("{side}: {name}: {now} -> {value}"));
                now.clone_from(&value);
            }
        }
    }
    Ok((cell, changes))
}

/// Overrides settings of a cell with those that a user named. Returns an error for a knob that no host has.
fn overlay_all(found: &Cell, settings: &Settings) -> Result<Cell, Error> {
    let mut cell = found.clone();
    for (name, value) in settings {
        all_factors().check(name, value)?;
        if places(&mut cell, name)?.iter().all(|(place, _)| !place.contains_key(name)) {
            return Err(Error::Other(format!("{name} cannot be turned here: see `landspeed knobs`")));
        }
    }
    let all = settings.iter().map(|(name, value)| (name.as_str(), value.clone()));
    Ok(overlay(found, all)?.0)
}

/// Returns the parts of `cell` to which the knob `name` belongs, each with its name for the user.
fn places<'a>(cell: &'a mut Cell, name: &str) -> Result<Vec<(&'a mut Settings, &'static str)>, Error> {
    Ok(match all_factors().find(name)?.on {
        FactorPlacement::Flow => vec![(&mut cell.flow, "flow")],
        FactorPlacement::Sender => vec![(&mut cell.a, "A")],
        FactorPlacement::Receiver => vec![(&mut cell.b, "B")],
        FactorPlacement::Both => vec![(&mut cell.a, "A"), (&mut cell.b, "B")],
    })
}

/// Returns the settings with which SC'03 started (feng-2003 3.3.1, the stock configuration): MTU 1500, no offloads, 64
/// KB windows, Reno, 8 KB writes, sender and receiver on different processors. Coalescing keeps its default.
///
/// Each knob applies to the hosts that its row's [`crate::Factor::on`] names; a knob that a host lacks is left out. A
/// receive buffer of 128 KB makes a window of 64 KB: the other half is for the overhead of packets beyond their
/// payload.
pub(crate) fn sc03() -> Vec<(&'static str, String)> {
    const START: &[(&str, &str)] = &[
        ("placement", "neighbours"),
        ("write-size", "8192"),
        ("tcp-rmem", "4096 131072 131072"),
        ("tcp-wmem", "4096 131072 131072"),
        ("congestion-control", "reno"),
        ("mtu", "1500"),
        ("tx-checksum", "off"),
        ("scatter-gather", "off"),
        ("tso", "off"),
        ("gso", "off"),
        ("rx-checksum", "off"),
        ("gro", "off"),
        ("lro", "off"),
        ("hw-gro", "off"),
    ];
    START.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_lies_in_the_table() {
        for (name, value) in sc03() {
            crate::all_factors().check(name, &value).unwrap();
        }
    }
}
