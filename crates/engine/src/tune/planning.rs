//! Makes the plan of a tuning run before any knob is turned.

use std::time::Instant;

use landspeed_record::units::Nanos;
use landspeed_record::{Cell, Settings};
use landspeed_transport::Delivery;

use super::candidates::{candidates, placebos};
use super::plan::TunePlan;
use super::start::{overlay, overlay_all, sc03};
use super::{Baseline, TuneOptions, bound, budget, fit, look};
use crate::factors::flow;
use crate::trial::TrialTiming;
use crate::{Error, HostGroup, RunSpec, curve};

/// Time that a look takes in addition to the program's run, for attaching the observers and resolving the sampled
/// symbols.
const LOOKING: Nanos = Nanos::millis(400);

/// Makes the plan of a run. Lowers the parameter of the run's program that decides the duration of a trial, if its file
/// names one.
///
/// # Errors
/// Returns an error if no run can tune the hosts, or not in the way that `options` request. A dry run returns the same
/// error as a real one.
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
    let plan =
        TunePlan { start, baseline, candidates, placebos, against, timing, budget, look, curve, fitted };
    retimed(plan, group, options)
}

/// Returns the plan. If its budget is too short for the trials of a program, times them once more, because one run may
/// have been slow by chance.
fn retimed(plan: TunePlan, group: &HostGroup, options: &TuneOptions) -> Result<TunePlan, Error> {
    if options.program.is_none() || plan.least_budget(options).is_none_or(|least| options.budget >= least) {
        return Ok(plan);
    }
    let timing = timing(group, &plan.start, options)?;
    let look = plan.look.map(|_| timing.stream + LOOKING);
    Ok(if timing.block() < plan.timing.block() { TunePlan { timing, look, ..plan } } else { plan })
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
