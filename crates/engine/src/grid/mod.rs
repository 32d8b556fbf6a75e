//! A grid: one workload over every combination of some factors' values, block by block.
//!
//! `analysis::grid` decides which cells a block visits, and in which order; this module takes the hosts there. Every
//! trial is in the record before the next begins, so that an interrupted grid continues where it stopped.

mod cell_setup;
mod here;
mod run;
mod vary;

use std::collections::BTreeSet;
use std::time::Instant;

use landspeed_analysis::grid::{self as order, Precision};
use landspeed_analysis::{figures, together};
use landspeed_record::factor::FactorPlacement;
use landspeed_record::units::Nanos;
use landspeed_record::{
    Cell, EndpointOutcome, Grid, GridEndReason, GridSetting, GridSettingTarget, GridTrial, Header, Line, Png,
    ProgramMetric, RECORD_FORMAT, Record, RestoreOutcome, Settings, Side, TrialFigures,
};
use landspeed_workload::{METRIC, lasts, program_of};

use crate::block::refused;
use crate::trial::TrialTiming;
use crate::tune::{Baseline, sc03};
use crate::{Error, Pair, RecordSink};
use cell_setup::{CellSetup, cell_setup, check_base, knobs, missing, refused as refuses};
use run::run_at_once;
use vary::GridFactorExt;

pub use cell_setup::{check_grid, path_of, turns_knobs};
pub use here::{LocalRunTimes, here, run_here};
pub use vary::{FAN, FactorNames, bundle, factor, set, vary};

/// The hosts on which a grid is measured. Varying a parameter of a lab's link means another lab.
pub trait GridHosts {
    /// Goes to hosts whose link has these parameters. Returns true if these are other hosts than before.
    ///
    /// # Errors
    /// Returns an error if the hosts cannot be reached or made.
    fn go(&mut self, path: &Settings) -> Result<bool, Error>;

    /// Returns the current hosts; of a fan, its first pair.
    fn pair(&mut self) -> &mut Pair;

    /// Returns all pairs that run at the same time: one, except for a fan.
    fn pairs(&mut self) -> &[Pair];

    /// Returns true if landspeed made the hosts on this machine.
    fn in_lab(&self) -> bool;

    /// Returns the idle RTT over a link with these parameters, if it is known before going there.
    fn rtt(&self, path: &Settings) -> Option<Nanos>;
}

/// The grid's data for the first line of the record.
#[derive(Debug, Clone)]
pub struct GridHead {
    /// "lab:back-to-back", or the hosts.
    pub topology: String,
    pub command: String,
    /// The start: RFC 3339 UTC.
    pub started: String,
}

/// Passes over all cells if neither blocks, nor precision, nor a budget ends the grid.
const PASSES: u32 = 8;
/// Most passes if a precision is not reached.
const MOST_PASSES: u32 = 100;
/// Time for each trial beside its workload: connecting, proving the flows, and the answers of both ends.
const BESIDE: Nanos = Nanos::millis(15);

/// Adapts `asked` to these hosts: sets how long trials take on their path and which factors are slow to change there,
/// and removes the values that the hosts cannot have, which are listed in [`Grid::missing`]. `another` is the time for
/// another lab.
///
/// # Errors
/// Returns an error if the hosts cannot have any value of a factor, or a setting of all cells.
pub fn prepare(asked: Grid, grid_hosts: &mut dyn GridHosts, another: Nanos) -> Result<Grid, Error> {
    let in_lab = grid_hosts.in_lab();
    let rtt = longest_rtt(&asked, grid_hosts)?;
    let pair = grid_hosts.pair();
    let mut grid = asked;
    check_base(&grid, pair, in_lab)?;
    if grid.baseline == Baseline::Sc03.name() {
        grid.base = [baseline(&grid, pair, in_lab)?, std::mem::take(&mut grid.base)].concat();
    }
    grid.missing = missing(&grid, pair, in_lab)?;
    leave_out(&mut grid)?;
    for factor in &mut grid.factors {
        let toggle = |one: &GridSetting| toggle(one, pair, in_lab, another);
        let sums = factor.sets.iter().map(|set| set.iter().map(toggle).sum::<Nanos>());
        factor.toggle_ns = sums.max().unwrap_or_default();
        *factor = std::mem::take(factor).with_slowness();
    }
    let timing = TrialTiming::for_rtt(rtt);
    let named = landspeed_workload::find(&grid.workload.name);
    let has_time = named.is_some_and(|runner| runner.parameters().iter().any(|one| one.name == TIME));
    let is_set = grid.all_settings().any(|one| one.name == TIME && one.place == GridSettingTarget::Workload);
    if has_time && !is_set {
        grid.workload.parameters.entry(TIME.to_owned()).or_insert_with(|| timing.stream.exact());
    }
    if grid.warm_up_ns == Nanos(0) && named.is_some_and(|runner| runner.warm_up() > Nanos(0)) {
        grid.warm_up_ns = timing.warm_up;
    }
    grid.program = program(&grid)?;
    if grid.program.is_some() && turns_knobs(&grid) && grid_hosts.pairs().len() > 1 {
        let why = "settings of hosts are of two hosts alone: vary the program's parameters and the lab, or name two hosts";
        return Err(Error::Other(why.to_owned()));
    }
    if grid.program.is_some() {
        grid.trial_ns = time_of_program(&grid, grid_hosts)?;
        return Ok(grid);
    }
    let times: Vec<Nanos> =
        (0..grid.cells()).map(|cell| trial_time(&grid, cell, rtt)).collect::<Result<_, _>>()?;
    let all: Nanos = times.iter().copied().sum();
    grid.trial_ns = all.0.checked_div(times.len() as u64).map_or(BESIDE, Nanos);
    Ok(grid)
}

/// Returns the grid's program and the figure that decides. Figures that are compared must be of one kind.
fn program(grid: &Grid) -> Result<Option<ProgramMetric>, Error> {
    let Some(program) = program_of(&grid.workload) else { return Ok(None) };
    let Some(figures) = grid.factors.iter().find(|factor| factor.name == METRIC) else {
        return Ok(Some(program));
    };
    let of = |figure: &String| {
        let mut workload = grid.workload.clone();
        workload.parameters.insert(METRIC.to_owned(), figure.clone());
        program_of(&workload)
    };
    let kind = |one: &ProgramMetric| (one.unit.clone(), one.less_is_better);
    let each: Vec<ProgramMetric> = figures.levels.iter().filter_map(of).collect();
    if each.iter().any(|one| kind(one) != kind(&each[0])) {
        let units: Vec<_> = each.iter().map(|one| format!("{} ({})", one.figure, one.unit)).collect();
        return Err(Error::Other(format!(
            "figures of several kinds cannot be compared: {}",
            units.join(", ")
        )));
    }
    let first = each.into_iter().next().unwrap_or(program);
    Ok(Some(ProgramMetric { figure: "figure".to_owned(), ..first }))
}

/// Returns the baseline's settings, without those that these hosts lack or the grid sets itself.
fn baseline(grid: &Grid, pair: &Pair, in_lab: bool) -> Result<Vec<GridSetting>, Error> {
    let mut found = Vec::new();
    for (name, value) in sc03() {
        let factor = crate::all_factors().find(name)?;
        let place = match factor.on {
            FactorPlacement::Flow => GridSettingTarget::Flow,
            FactorPlacement::Sender => GridSettingTarget::A,
            FactorPlacement::Receiver => GridSettingTarget::B,
            FactorPlacement::Both => GridSettingTarget::Both,
        };
        let one = GridSetting { name: name.to_owned(), place, value };
        if refuses(&one, pair, in_lab)?.is_none() {
            found.push(one);
        }
    }
    found.retain(|one| !grid.base.iter().any(|own| own.name == one.name));
    Ok(found)
}

/// Returns the longest idle RTT of any lab that the grid visits, or of the current hosts.
fn longest_rtt(grid: &Grid, grid_hosts: &mut dyn GridHosts) -> Result<Nanos, Error> {
    let paths: BTreeSet<Settings> = (0..grid.cells()).map(|cell| path_of(grid, cell)).collect();
    let planned = paths.iter().filter_map(|path| grid_hosts.rtt(path)).max().unwrap_or_default();
    Ok(planned.max(grid_hosts.pair().path.rtt_ns))
}

/// Returns about how long a setting takes to change here.
fn toggle(one: &GridSetting, pair: &Pair, in_lab: bool, another: Nanos) -> Nanos {
    match one.place {
        GridSettingTarget::Topology => another,
        GridSettingTarget::Flow | GridSettingTarget::Workload => Nanos(0),
        GridSettingTarget::A | GridSettingTarget::B | GridSettingTarget::Both => {
            let found = crate::all_factors().find(&one.name);
            found.map_or(Nanos(0), |found| pair.view(in_lab, |path| path.toggle(found)))
        }
    }
}

/// Removes the values that the hosts cannot have from their factors.
fn leave_out(grid: &mut Grid) -> Result<(), Error> {
    for factor in &mut grid.factors {
        let gone =
            |level: &str| grid.missing.iter().find(|one| one.factor == factor.name && one.level == level);
        let kept: Vec<usize> =
            (0..factor.levels.len()).filter(|n| gone(&factor.levels[*n]).is_none()).collect();
        if kept.is_empty() {
            let why = gone(&factor.levels[0]).map_or("", |missing| missing.why.as_str());
            return Err(Error::Other(format!("{} cannot be varied here: {why}", factor.name)));
        }
        factor.keep(&kept);
    }
    Ok(())
}

/// Returns how long the first cell's program takes, without settings of hosts. Runs it once to measure it.
fn time_of_program(grid: &Grid, grid_hosts: &mut dyn GridHosts) -> Result<Nanos, Error> {
    let began = Instant::now();
    run_at_once(grid_hosts.pairs(), cell_setup(grid, 0)?, grid.warm_up_ns)?;
    Ok(began.elapsed().into())
}

/// Name of the parameter of workloads that run for a set time.
const TIME: &str = "time";

fn trial_time(grid: &Grid, cell: u32, rtt: Nanos) -> Result<Nanos, Error> {
    let CellSetup { workload, .. } = cell_setup(grid, cell)?;
    let round_trips = rtt.times(6);
    Ok(Nanos(lasts(&workload, grid.warm_up_ns).0 + (grid.warm_up_ns + BESIDE + round_trips).0))
}

/// Returns the largest number of blocks of the grid.
pub fn planned_blocks(grid: &Grid) -> u32 {
    let ends_itself = grid.precision.is_some() || grid.budget_ns > Nanos(0);
    let passes = grid.blocks.unwrap_or(if ends_itself { MOST_PASSES } else { PASSES });
    passes.saturating_mul(order::blocks_a_pass(grid))
}

/// Returns the grid of an interrupted record, and the trials that it has already.
///
/// # Errors
/// Returns an error if the record is not of a grid.
pub fn resume_grid(record: &Record) -> Result<(Grid, Vec<GridTrial>), Error> {
    let mut found = None;
    let mut trials = Vec::new();
    for line in &record.lines {
        match line {
            Line::Grid(grid) => found = Some((**grid).clone()),
            Line::GridTrial(trial) => trials.push((**trial).clone()),
            _ => {}
        }
    }
    let kind = &record.header.kind;
    let none = || Error::Other(format!("the record is one of {kind}, not of a grid: nothing to go on with"));
    Ok((found.ok_or_else(none)?, trials))
}

/// Writes the first lines of the record.
pub fn begin_grid(grid: &Grid, head: &GridHead, pair: &Pair, sink: &mut dyn RecordSink) -> Result<(), Error> {
    begin(grid, head, sink)?;
    for (side, host) in [(Side::A, &pair.a), (Side::B, &pair.b)] {
        sink.line(&Line::Host { side, facts: Box::new(host.facts.clone()) })?;
    }
    Ok(sink.line(&Line::Path(pair.path.clone()))?)
}

fn begin(grid: &Grid, head: &GridHead, sink: &mut dyn RecordSink) -> Result<(), Error> {
    sink.line(&Line::Header(Header {
        format: RECORD_FORMAT,
        landspeed: env!("CARGO_PKG_VERSION").to_owned(),
        kind: "grid".to_owned(),
        started: head.started.clone(),
        command: head.command.clone(),
        topology: head.topology.clone(),
        seed: grid.seed,
        budget_ns: grid.budget_ns,
        ..Header::default()
    }))?;
    Ok(sink.line(&Line::Grid(Box::new(grid.clone())))?)
}

/// Measures blocks until the grid's rule ends it, or the user does. Restores everything at the end, even after an
/// error. `done` are the trials of a record that is continued.
///
/// # Errors
/// Returns an error if hosts are lost, the record cannot be written, or settings are not restored.
pub fn run_grid(
    grid: &Grid,
    grid_hosts: &mut dyn GridHosts,
    done: &[GridTrial],
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    let first = done.iter().map(|trial| trial.block + 1).max().unwrap_or(0);
    let earlier = done.iter().map(|trial| Nanos(trial.at_ns.0 + trial.took_ns.0)).max().unwrap_or_default();
    let precision = Precision::of(grid, done);
    let mut run = GridRun {
        grid,
        grid_hosts,
        sink,
        began: Instant::now(),
        earlier,
        precision,
        turned: false,
        pictured: BTreeSet::new(),
    };
    let result = run.blocks(first);
    let restored = run.restore();
    if let Some(restored) = &restored {
        run.sink.line(&Line::Restored(restored.clone()))?;
    }
    match restored.filter(|restored| !restored.restored) {
        None => Ok(run.sink.line(&Line::GridEnd(result?))?),
        Some(restored) => Err(match result {
            Ok(_) => Error::unrestored("the grid is in its record", &restored),
            Err(error) => error.and(&restored),
        }),
    }
}

struct GridRun<'a> {
    grid: &'a Grid,
    grid_hosts: &'a mut dyn GridHosts,
    sink: &'a mut dyn RecordSink,
    began: Instant,
    /// Time that an interrupted grid had used.
    earlier: Nanos,
    precision: Precision,
    /// True if the current hosts are reserved and must be restored.
    turned: bool,
    /// Cells with a picture in the record, because one each is enough.
    pictured: BTreeSet<u32>,
}

impl GridRun<'_> {
    fn used(&self) -> Nanos {
        self.earlier + Nanos::from(self.began.elapsed())
    }

    fn blocks(&mut self, first: u32) -> Result<GridEndReason, Error> {
        let mut longest = order::block_time(self.grid);
        for number in first..planned_blocks(self.grid) {
            let budget = self.grid.budget_ns;
            if self.precision.is_reached() {
                return Ok(GridEndReason::Precision);
            }
            if budget > Nanos(0) && self.used() + longest > budget {
                return Ok(GridEndReason::Budget);
            }
            let began = Instant::now();
            if self.sink.stop() || !self.block(number)? {
                return Ok(GridEndReason::Stopped);
            }
            longest = longest.max(began.elapsed().into());
        }
        Ok(GridEndReason::Blocks)
    }

    /// Measures a block. Returns true if it came to its end.
    fn block(&mut self, number: u32) -> Result<bool, Error> {
        self.grid_hosts.pairs().iter().for_each(|pair| pair.begin_epoch(&format!("block {number}")));
        for plot in order::block(self.grid, number) {
            self.go(&path_of(self.grid, plot.cells[0]))?;
            for cell in plot.cells {
                if self.sink.stop() {
                    return Ok(false);
                }
                self.trial(number, plot.number, cell)?;
            }
        }
        self.precision.end_block();
        Ok(true)
    }

    /// Goes to hosts over this path. Restores the earlier hosts first if they were turned.
    fn go(&mut self, path: &Settings) -> Result<(), Error> {
        if self.grid.all_settings().any(|one| one.place == GridSettingTarget::Topology) && self.turned {
            self.restored()?;
        }
        let others = self.grid_hosts.go(path)?;
        if turns_knobs(self.grid) && (others || !self.turned) {
            self.grid_hosts.pair().reserve()?;
            self.turned = true;
        }
        Ok(())
    }

    fn restore(&mut self) -> Option<RestoreOutcome> {
        let turned = std::mem::take(&mut self.turned);
        turned.then(|| self.grid_hosts.pair().restore())
    }

    fn restored(&mut self) -> Result<(), Error> {
        match self.restore().filter(|restored| !restored.restored) {
            None => Ok(()),
            Some(restored) => Err(Error::unrestored("a part of the grid is in its record", &restored)),
        }
    }

    /// Runs and records one trial. If a host refuses it, only this trial is lost.
    fn trial(&mut self, block: u32, plot: u32, cell: u32) -> Result<(), Error> {
        let at_ns = self.used();
        let seen = match self.measured(cell) {
            Err(error) if refused(&error) => Err(error.to_string()),
            other => Ok(other?),
        };
        let mut trial = GridTrial { block, plot, cell, at_ns, ..GridTrial::default() };
        trial.took_ns = self.used().saturating_sub(at_ns);
        match seen {
            Ok((pairs, figures)) => {
                let mut pairs = pairs.into_iter();
                [trial.a, trial.b] = pairs.next().unwrap_or_default();
                (trial.others, trial.figures) = (pairs.collect(), figures);
                self.keep_first_picture(&mut trial);
            }
            Err(why) => trial.failed = Some(why),
        }
        self.precision.take(&trial);
        Ok(self.sink.line(&Line::GridTrial(Box::new(trial)))?)
    }

    fn keep_first_picture(&mut self, trial: &mut GridTrial) {
        if trial.picture().is_some() && !self.pictured.insert(trial.cell) {
            trial.ends_mut().for_each(|end| end.details.remove::<Png>());
        }
    }

    fn measured(&mut self, cell: u32) -> Result<(Vec<[EndpointOutcome; 2]>, TrialFigures), Error> {
        let cell_setup = cell_setup(self.grid, cell)?;
        let pair = self.grid_hosts.pair();
        if self.turned {
            let found = Cell { a: pair.a.found(), b: pair.b.found(), ..Cell::default() };
            pair.set(&knobs(self.grid, cell, &found)?)?;
        }
        let pairs = self.grid_hosts.pairs();
        let seen = run_at_once(pairs, cell_setup, self.grid.warm_up_ns)?;
        let all = pairs.iter().zip(&seen);
        let each = all.map(|(pair, [a, b])| figures(a, b, (&pair.a.facts, &pair.b.facts), None));
        let figures = together(&each.collect::<Vec<_>>());
        Ok((seen, figures))
    }
}
