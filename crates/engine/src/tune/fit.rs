//! Fits the length of a program's trials to a tuning run, which makes dozens of them.

use std::time::Instant;

use landspeed_record::Settings;
use landspeed_record::factor::Domain;
use landspeed_record::units::Nanos;

use super::{TuneOptions, TunedProgram};
use crate::factors::flow;
use crate::{Error, HostGroup, RunSpec};

/// The first run uses the default of the parameter divided by this, because all of it takes minutes on a slow path.
const FIRST: u64 = 20;
/// The largest growth from one run to the next. A program's start-up makes a short run look slower than the next.
const GROWTH: f64 = 10.0;
/// The number of runs. With [`FIRST`] and [`GROWTH`], two runs reach the default if no run reaches half of the time.
const RUNS: u32 = 4;

/// A program's parameter that was lowered so that a trial takes less time.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedParameter {
    pub name: String,
    pub value: u64,
    /// The value before it was lowered.
    pub default: u64,
    /// The duration of a trial with `value`, including everything that its programs do before the measurement.
    pub took: Nanos,
}

/// A parameter that decides the duration of a trial, as the application's file declares.
struct Length {
    name: String,
    default: u64,
    least: u64,
    fills: Nanos,
}

/// Returns the parameter that decides the duration of a trial of the program; `None` if the file names none, or if the
/// user has set it.
fn length(program: &TunedProgram) -> Option<Length> {
    let runner = landspeed_workload::find(&program.workload)?;
    let mut parameters = runner.application()?.parameters.iter();
    let length = parameters.find_map(|one| {
        let default = one.default.parse().ok()?;
        let (Domain::Int(least, _) | Domain::Bytes(least, _)) = one.domain else { return None };
        Some(Length { name: one.name.clone(), default, least, fills: one.fills? })
    })?;
    (!program.workload.parameters.contains_key(&length.name)).then_some(length)
}

/// Returns the value for a trial of duration `fills`, after a run with `value` took `took`.
fn next(length: &Length, value: u64, took: Nanos) -> u64 {
    let ratio = length.fills.0 as f64 / took.0.max(1) as f64;
    ((value as f64 * ratio.min(GROWTH)) as u64).max(length.least).min(length.default)
}

/// Returns true if a trial took about as long as `fills`: half to twice as long.
fn is_near(took: Nanos, fills: Nanos) -> bool {
    took.times(2) >= fills && took <= fills.times(2)
}

/// Lowers the parameter that decides the duration of a trial of the program, until a trial takes about as long as the
/// application's file requests. Returns `None` if nothing was lowered.
pub(super) fn fit(group: &HostGroup, options: &mut TuneOptions) -> Result<Option<FittedParameter>, Error> {
    let Some(length) = options.program.as_ref().and_then(length) else { return Ok(None) };
    let Some(program) = &mut options.program else { return Ok(None) };
    let flow = flow(options.transport, &Settings::new())?;
    group.begin_epoch("length");
    let fitted = lower(group, program, &flow, &length)?;
    group.begin_epoch("");
    if fitted.is_none() {
        program.workload.parameters.remove(&length.name);
    }
    Ok(fitted)
}

/// Runs the program with successive values of the parameter, and leaves the last one set.
fn lower(
    group: &HostGroup,
    program: &mut TunedProgram,
    flow: &Settings,
    length: &Length,
) -> Result<Option<FittedParameter>, Error> {
    let (name, default) = (&length.name, length.default);
    let mut value = default.div_ceil(FIRST);
    let mut runs = 0;
    loop {
        program.workload.parameters.insert(name.clone(), value.to_string());
        let began = Instant::now();
        group.run(&RunSpec::new(program.workload.clone(), flow))?;
        let took = began.elapsed().into();
        runs += 1;
        let better = next(length, value, took);
        if better == value || is_near(took, length.fills) || runs == RUNS {
            return Ok(Some(FittedParameter { name: name.clone(), value, default, took }));
        }
        if better == default {
            return Ok(None);
        }
        value = better;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_fitted_to_its_time_and_never_made_longer_than_the_file_asks() {
        let length = Length { name: "requests".into(), default: 20_000, least: 100, fills: Nanos::secs(2) };
        // A slow path: 1,000 requests take four seconds.
        assert_eq!(next(&length, 1000, Nanos::secs(4)), 500);
        assert_eq!(next(&length, 1000, Nanos::millis(500)), 4000);
        assert_eq!(next(&length, 1000, Nanos::millis(1)), 10_000);
        assert_eq!(next(&length, 10_000, Nanos::millis(100)), 20_000);
        assert_eq!(next(&length, 1000, Nanos::secs(1000)), 100);
    }
}
