//! Fits the length of a program's trials to a tuning run, which makes dozens of them.

use std::time::Instant;

use landspeed_record::Settings;
use landspeed_record::factor::Domain;
use landspeed_record::units::Nanos;

use super::{TuneOptions, TunedProgram};
use crate::factors::flow;
use crate::{Error, HostGroup, RunSpec};

/// The share of a parameter's default that the first run has: a slow path takes minutes for all of it.
const FIRST: u64 = 20;
/// The largest growth from one run to the next. The start of a program makes a short run look slower than the next.
const GROWTH: f64 = 10.0;
/// The number of runs. [`FIRST`] and [`GROWTH`] reach the default in two, where no run reaches half of the time.
const RUNS: usize = 4;

/// The parameter of a program that was lowered, so that a trial takes less time.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedParameter {
    pub name: String,
    pub value: u64,
    /// The value without the fitting.
    pub default: u64,
    /// How long a trial with `value` took, with everything that its programs do before it.
    pub took: Nanos,
}

/// A parameter that decides how long a trial takes, as the application's file says.
struct Length {
    name: String,
    default: u64,
    least: u64,
    fills: Nanos,
}

/// Returns the parameter that decides how long a trial of the program takes; `None` if the file names none, or the user
/// has set it.
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

/// Returns the value for a trial of the time `fills`, after a run with `value` took `took`.
fn next(length: &Length, value: u64, took: Nanos) -> u64 {
    let ratio = length.fills.0 as f64 / took.0.max(1) as f64;
    ((value as f64 * ratio.min(GROWTH)) as u64).max(length.least).min(length.default)
}

/// Lowers the parameter that decides how long a trial of the program takes, until a trial takes as long as the file of
/// the application asks. Returns `None` if nothing was lowered.
pub(super) fn fit(group: &HostGroup, options: &mut TuneOptions) -> Result<Option<FittedParameter>, Error> {
    let Some(length) = options.program.as_ref().and_then(length) else { return Ok(None) };
    let Some(program) = &mut options.program else { return Ok(None) };
    let flow = flow(options.transport, &Settings::new())?;
    let mut value = length.default.div_ceil(FIRST);
    let mut took = Nanos(0);
    group.begin_epoch("length");
    for _ in 0..RUNS {
        program.workload.parameters.insert(length.name.clone(), value.to_string());
        let began = Instant::now();
        group.run(&RunSpec::new(program.workload.clone(), &flow))?;
        took = began.elapsed().into();
        let better = next(&length, value, took);
        // A trial within half and twice the time is as good as any.
        if better == value || (took.times(2) >= length.fills && took <= length.fills.times(2)) {
            break;
        }
        value = better;
        if value == length.default {
            break;
        }
    }
    group.begin_epoch("");
    if value == length.default {
        program.workload.parameters.remove(&length.name);
        return Ok(None);
    }
    program.workload.parameters.insert(length.name.clone(), value.to_string());
    Ok(Some(FittedParameter { name: length.name, value, default: length.default, took }))
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
