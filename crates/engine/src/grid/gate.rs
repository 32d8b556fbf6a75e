//! Measures, before a grid, how much trials of its reference spread.

use landspeed_analysis::grid::{GateForecast, GridVisit, asks, forecast};
use landspeed_record::units::Nanos;
use landspeed_record::{Grid, GridTrial};

use super::{GridHosts, GridRun};
use crate::Error;
use crate::drive::{RunClock, StopCheck};

/// The most trials of a gate.
const TRIALS: usize = 10;
/// The trials of a gate that has taken [`LONGEST`].
const FEWEST: usize = 4;
const LONGEST: Nanos = Nanos::secs(10);

/// What a gate measured.
#[derive(Debug, Clone)]
pub struct GateOutcome {
    /// What the trials say of the grid's intervals.
    pub forecast: GateForecast,
    /// The name of the cell that was measured: "mtu=1500".
    pub cell: String,
    /// The mean share of processor time that the hypervisor took during the trials, 0 to 1.
    pub stolen: f64,
}

/// Measures ten trials of the grid's reference, or fewer if they are long, and forecasts the grid's intervals. Nothing is
/// recorded, and settings are restored. Returns `None` if the grid asks for no precision, if too few trials gave a
/// figure, or if the user stopped.
///
/// # Errors
/// Returns an error if hosts are lost or settings are not restored.
pub fn gate(
    grid: &Grid,
    grid_hosts: &mut dyn GridHosts,
    stop: StopCheck<'_>,
) -> Result<Option<GateOutcome>, Error> {
    if !asks(grid) {
        return Ok(None);
    }
    let clock = RunClock::after(Nanos(0));
    let mut run = GridRun::new(grid, grid_hosts, clock);
    let trials = trials(&mut run, stop);
    match (trials, run.restored()) {
        (Ok(trials), Ok(_)) => Ok(judged(grid, &trials)),
        (Err(first), Err(second)) => Err(Error::Both { first: Box::new(first), second: second.to_string() }),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

fn trials(run: &mut GridRun<'_>, stop: StopCheck<'_>) -> Result<Vec<GridTrial>, Error> {
    let reference = GridVisit { block: 0, plot: 0, cell: 0, is_placebo: false };
    let mut trials = Vec::new();
    let is_over = |made: usize, used: Nanos| made == TRIALS || (made >= FEWEST && used >= LONGEST);
    while !is_over(trials.len(), run.clock.used()) && !stop() {
        run.visit(reference)?;
        trials.push(run.trial(reference)?);
    }
    Ok(trials)
}

fn judged(grid: &Grid, trials: &[GridTrial]) -> Option<GateOutcome> {
    let logs: Vec<f64> = trials.iter().filter_map(|trial| Some(trial.figure(grid.figure)?.ln())).collect();
    let stolen: f64 = trials.iter().map(|trial| trial.figures.steal).sum();
    Some(GateOutcome {
        forecast: forecast(grid, &logs)?,
        cell: grid.name_of(0),
        stolen: stolen / trials.len() as f64,
    })
}
