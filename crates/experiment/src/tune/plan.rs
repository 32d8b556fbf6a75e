//! What a run would do, before anything is turned.

use landspeed_analysis::{Forecast, Rules};
use std::time::Instant;

use landspeed_factor::{Filter, On, Planner, Scope};
use landspeed_record::{Candidate, Cell, Finding, Settings};
use landspeed_transport::settings::PLACEMENT;
use landspeed_units::Nanos;

use super::{Baseline, TuneOptions, bound, budget, look};
use crate::factors::{all_factors, factors, flow};
use crate::trial::Timing;
use crate::{Error, Pair, curve};

/// What a look takes beside the program's run: attaching the observers, naming the symbols that they saw.
const LOOKING: Nanos = Nanos::millis(400);

/// What a run would do: shown before real hosts are touched, and by `--dry-run`.
#[derive(Debug, Clone)]
pub struct TunePlan {
    pub start: Cell,
    /// What the baseline changes against what was found, as "side: knob: from -> to".
    pub baseline: Vec<String>,
    /// Candidates in order, those that are skipped with their reason among them.
    pub candidates: Vec<Candidate>,
    /// What is toggled early and late though it cannot matter.
    pub placebos: Placebos,
    pub against: Option<Cell>,
    pub timing: Timing,
    /// The budget, longer on long paths.
    pub budget: Nanos,
    /// About how long a look at what holds the path back takes; `None` where the run does not look.
    look: Option<Nanos>,
    /// About how long the first curves take, and the search of a transport without a window.
    curve: Nanos,
}

impl TunePlan {
    pub(super) fn rules(&self, options: &TuneOptions) -> Rules {
        Rules {
            goal: options.goal,
            budget: self.budget,
            block_time: self.timing.block(),
            fine: self.timing.fine,
            seed: options.seed,
            placebos: self.placebos.changes.clone(),
            against: self.against.clone(),
            watch_time: self.look,
            preface_time: self.curve,
            ..Rules::default()
        }
    }

    /// What the budget has room for.
    pub fn forecast(&self, options: &TuneOptions) -> Forecast {
        Forecast::new(&self.rules(options), &self.candidates)
    }

    /// The least `--budget` in which the plan comes to an answer; `None` where there is nothing to try.
    pub fn least_budget(&self, options: &TuneOptions) -> Option<Nanos> {
        let scale = self.budget.0 as f64 / options.budget.0.max(1) as f64;
        let least = self.forecast(options).least?;
        Some(Nanos((least.0 as f64 / scale.max(f64::MIN_POSITIVE)) as u64))
    }
}

pub fn plan(pair: &Pair, options: &TuneOptions) -> Result<TunePlan, Error> {
    let flow = flow(options.transport, &Settings::new())?;
    let found = Cell { a: pair.a.found(), b: pair.b.found(), flow };
    let (start, baseline) = match options.baseline {
        Baseline::Found => (found, Vec::new()),
        Baseline::Sc03 => overlay(&found, sc03())?,
    };
    let start = overlay_all(&start, &options.held)?;
    let candidates = candidates(pair, &start, options, &[])?;
    let against = match &options.against {
        Some(settings) => Some(overlay_all(&start, settings)?),
        None => None,
    };
    let placebos = placebos(pair, &start, options);
    let timing = timing(pair, &start, options)?;
    let usual = Timing { fine: false, ..Timing::for_rtt(Nanos(0)) }.block().0;
    // Who tunes a program says how long it may take.
    let scale =
        if timing.fine || options.program.is_some() { 1.0 } else { timing.block().0 as f64 / usual as f64 };
    let budget = Nanos((options.budget.0 as f64 * scale) as u64);
    let look = options.looks().then(|| match &options.program {
        None => look::time(pair.path.rtt_ns),
        Some(_) => timing.stream + LOOKING,
    });
    let curve = match &options.program {
        None => curve::time(timing, pair.link_rate()) + bound::time(options) + budget::time(options),
        Some(_) => Nanos(0),
    };
    Ok(TunePlan { start, baseline, candidates, placebos, against, timing, budget, look, curve })
}

/// How long trials take: those of a program are as long as the program, which runs once to tell.
fn timing(pair: &Pair, start: &Cell, options: &TuneOptions) -> Result<Timing, Error> {
    let rtt = pair.path.rtt_ns;
    let Some(program) = &options.program else { return Ok(Timing::for_rtt(rtt)) };
    let began = Instant::now();
    pair.run(program.workload.clone(), &start.flow, Nanos(0))?;
    Ok(Timing::of_program(rtt, began.elapsed().into()))
}

/// Everything that may be tried from `cell`, or why not: what the table proposes, and behind it values of their own
/// that the remedies of `findings` name.
pub(super) fn candidates(
    pair: &Pair,
    cell: &Cell,
    options: &TuneOptions,
    findings: &[Finding],
) -> Result<Vec<Candidate>, Error> {
    let skip = options.untouched();
    let filter = Filter { only: &options.only, skip: &skip };
    planned(pair, cell, options, |planner| {
        let mut candidates = planner.candidates(&filter)?;
        let remedies = findings.iter().flat_map(|finding| &finding.remedies);
        candidates
            .extend(remedies.filter_map(|remedy| planner.named(&filter, (&remedy.knob, &remedy.value))));
        candidates.retain(|candidate| applies(&candidate.knob, options));
        Ok(candidates)
    })
}

/// Whether a setting changes anything for what runs: a program makes its flows itself. Which processors it gets is not its own.
fn applies(name: &str, options: &TuneOptions) -> bool {
    let of_flow = || all_factors().find(name).is_ok_and(|factor| factor.scope == Scope::Flow);
    options.program.is_none() || name == PLACEMENT.name || !of_flow()
}

/// What a run toggles between two equivalent values.
#[derive(Debug, Clone, Default)]
pub struct Placebos {
    /// Two where the hosts have them: the early one, and the late one, of another scope.
    pub changes: Vec<Candidate>,
    /// Knobs that would have been toggled and cannot be, each with the reason.
    pub missing: Vec<String>,
}

impl Placebos {
    /// For a reader, where something is missing.
    pub(super) fn lacking(&self) -> Option<String> {
        let scopes = match self.changes.len() {
            0 => "this run has no placebo",
            1 => "this run has one placebo, the early one",
            _ => "the placebos of this run are of the other scopes",
        };
        (!self.missing.is_empty()).then(|| format!("{scopes}: {}", self.missing.join("; ")))
    }
}

/// The placebos of a run against what stands in `cell`: two scopes of a device, a network namespace and a flow, drawn by
/// the run's seed from those that the hosts have.
pub fn placebos(pair: &Pair, cell: &Cell, options: &TuneOptions) -> Placebos {
    let mut known = planned(pair, cell, options, |planner| planner.placebos(&options.untouched()));
    let turned = (options.seed % known.len().max(1) as u64) as usize;
    known.rotate_left(turned);
    let mut chosen = Placebos::default();
    for placebo in known.into_iter().filter(|placebo| applies(placebo.factor, options)) {
        match placebo.change {
            Ok(change) if chosen.changes.len() < 2 => chosen.changes.push(change),
            Ok(_) => {}
            Err(why) => chosen.missing.push(format!("{} ({}): {why}", placebo.factor, placebo.scope)),
        }
    }
    chosen
}

/// Asks the factors of the run's transport about the path of `pair`.
fn planned<T>(pair: &Pair, cell: &Cell, options: &TuneOptions, ask: impl FnOnce(&Planner<'_>) -> T) -> T {
    pair.view(options.in_lab, |path| ask(&Planner::new(&factors(options.transport), path, cell)))
}

/// Lays settings over a cell, each where its knob belongs. A knob that no host has is left out. The second value says
/// what changes.
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

/// As [`overlay`] for what a user named: a knob that no host has is an error.
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

/// The maps of `cell` that the knob `name` lives in.
fn places<'a>(cell: &'a mut Cell, name: &str) -> Result<Vec<(&'a mut Settings, &'static str)>, Error> {
    Ok(match all_factors().find(name)?.on {
        On::Flow => vec![(&mut cell.flow, "flow")],
        On::Sender => vec![(&mut cell.a, "A")],
        On::Receiver => vec![(&mut cell.b, "B")],
        On::Both => vec![(&mut cell.a, "A"), (&mut cell.b, "B")],
    })
}

/// As SC'03 started (feng-2003 3.3.1, the stock configuration): MTU 1500, no offloads, 64 KB windows, Reno,
/// 8 KB writes, sender and receiver on different processors. Coalescing stays as it is: at its default.
///
/// Each knob goes to the hosts that its row's [`crate::Factor::on`] names; what a host lacks is left out. A
/// receive buffer of 128 KB makes a window of 64 KB: the other half is for what packets cost beyond their
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
