//! Measures a grid: one workload over every combination of some factors' values, block by block.
//!
//! `analysis::grid` decides which cells a block visits, and in which order. This module sets the hosts to these cells.
//! Each trial is recorded before the next begins. A resumed grid continues after the last block of the record.

mod cell_setup;
mod contestant;
mod gate;
mod here;
mod soft_rdma;
mod vary;

use std::collections::BTreeSet;
use std::time::Instant;

use landspeed_analysis::grid::{GridDesigner, GridVisit, blocks_a_pass};
use landspeed_record::factor::FactorPlacement;
use landspeed_record::units::Nanos;
use landspeed_record::{
    EndpointOutcome, Grid, GridSetting, GridSettingTarget, GridTrial, Header, Line, Png, ProgramMetric,
    Record, RecordKind, RestoreOutcome, Settings, Side, TrialFigures,
};
use landspeed_workload::{METRIC, lasts, program_of};

use crate::block::refused;
use crate::drive::{RunClock, drive};
use crate::trial::TrialTiming;
use crate::tune::{Baseline, sc03};
use crate::{Error, HostGroup, RecordSink};
use cell_setup::{CellSetup, cell_setup, check_base, knobs, missing, refused as refuses, turns_links};
use vary::GridFactorExt;

pub use cell_setup::{check_grid, path_of, turns_knobs};
pub(crate) use contestant::WORKLOAD;
pub use gate::{GateOutcome, gate};
pub use here::{LocalRunTimes, here, run_here};
pub(crate) use vary::lab_domain;
pub use vary::{FAN, FactorNames, bundle, factor, set, vary};

/// Provides the hosts on which a grid is measured. If the grid varies a parameter of a lab's link, each value needs
/// another lab.
pub trait GridHosts {
    /// Switches to hosts whose link has the parameters `path`. Returns true if these are other hosts than before.
    fn go(&mut self, path: &Settings) -> Result<bool, Error>;

    /// Returns the current hosts.
    fn group(&mut self) -> &mut HostGroup;

    /// Returns true if the hosts belong to a lab on this machine.
    fn in_lab(&self) -> bool;

    /// Returns the idle RTT over a link with the parameters `path`; `None` if it is not known before switching to that
    /// link.
    fn rtt(&self, path: &Settings) -> Option<Nanos>;
}

/// Time for each trial in addition to its workload: connecting, proving the flows, and the answers of both ends.
const BESIDE: Nanos = Nanos::millis(15);

/// Adapts the grid `asked` to these hosts. Sets how long trials take on their path and which factors are slow to
/// change, and moves the values that the hosts cannot have to [`Grid::missing`]. `another` is the time to switch to
/// another lab.
///
/// # Errors
/// Returns an error if the hosts cannot have any value of a factor, or a setting that all cells share.
pub fn prepare(asked: Grid, grid_hosts: &mut dyn GridHosts, another: Nanos) -> Result<Grid, Error> {
    let in_lab = grid_hosts.in_lab();
    let rtt = longest_rtt(&asked, grid_hosts)?;
    let group = &*grid_hosts.group();
    let mut grid = Grid { has_placebos: true, ..asked };
    check_base(&grid, group, in_lab)?;
    if grid.baseline == Baseline::Sc03.name() {
        grid.base = [baseline(&grid, group, in_lab)?, std::mem::take(&mut grid.base)].concat();
    }
    grid.missing = missing(&grid, group, in_lab)?;
    leave_out(&mut grid)?;
    for factor in &mut grid.factors {
        let toggle = |one: &GridSetting| toggle(one, group, in_lab, another);
        let sums = factor.sets.iter().map(|set| set.iter().map(toggle).sum::<Nanos>());
        factor.toggle_ns = sums.max().unwrap_or_default();
        *factor = std::mem::take(factor).with_slowness();
    }
    let timing = TrialTiming::for_rtt(rtt);
    let named = landspeed_workload::find(&grid.workload);
    let has_time =
        named.as_ref().is_some_and(|runner| runner.parameters().iter().any(|one| one.name == TIME));
    let is_set = grid.all_settings().any(|one| one.name == TIME && one.place == GridSettingTarget::Workload);
    if has_time && !is_set {
        grid.workload.parameters.entry(TIME.to_owned()).or_insert_with(|| timing.stream.exact());
    }
    if grid.warm_up_ns == Nanos(0) && named.is_some_and(|runner| runner.warm_up() > Nanos(0)) {
        grid.warm_up_ns = timing.warm_up;
    }
    grid.program = program(&grid)?;
    if grid.program.is_some() {
        grid.trial_ns = time_of_program(&grid, 0, grid_hosts)?;
        if blocks_a_pass(&grid) > 1 {
            grid.trial_ns = mean_with_last(&grid, grid_hosts)?;
        }
        return Ok(grid);
    }
    let times: Vec<Nanos> = (0..grid.cells())
        .filter_map(|cell| trial_time(&grid, cell, rtt).transpose())
        .collect::<Result<_, _>>()?;
    let all: Nanos = times.iter().copied().sum();
    grid.trial_ns = all.0.checked_div(times.len() as u64).map_or(BESIDE, Nanos);
    Ok(grid)
}

/// Returns the grid's program with the figure that decides; `None` if the workload is landspeed's own. Returns an error
/// if compared figures are of different kinds.
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

/// Returns the settings of the baseline, without those that these hosts cannot have or that the grid sets itself.
fn baseline(grid: &Grid, group: &HostGroup, in_lab: bool) -> Result<Vec<GridSetting>, Error> {
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
        if refuses(&one, group, in_lab)?.is_none() {
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
    Ok(planned.max(grid_hosts.group().rtt()))
}

/// Returns the approximate time to change a setting on these hosts.
fn toggle(one: &GridSetting, group: &HostGroup, in_lab: bool, another: Nanos) -> Nanos {
    match one.place {
        GridSettingTarget::Topology => another,
        GridSettingTarget::Flow | GridSettingTarget::Workload => Nanos(0),
        GridSettingTarget::A | GridSettingTarget::B | GridSettingTarget::Both => {
            let found = crate::all_factors().find(&one.name);
            found.map_or(Nanos(0), |found| group.first().view(in_lab, |path| path.toggle(found)))
        }
    }
}

/// Removes the values that the hosts cannot have from their factors. Returns an error if a factor has none left.
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

/// Runs the program of a cell once, with the hosts as they are, and returns how long it took.
fn time_of_program(grid: &Grid, cell: u32, grid_hosts: &mut dyn GridHosts) -> Result<Nanos, Error> {
    let began = Instant::now();
    grid_hosts.group().run(&cell_setup(grid, cell)?.run(grid.warm_up_ns))?;
    Ok(began.elapsed().into())
}

/// Returns the mean of the time of the first cell, which the grid has already, and of the last cell in the same lab.
/// The first cell may be the slowest. Its time alone would divide each pass into several blocks, each of which measures
/// the first cell again.
fn mean_with_last(grid: &Grid, grid_hosts: &mut dyn GridHosts) -> Result<Nanos, Error> {
    let lab = path_of(grid, 0);
    let last = (1..grid.cells()).rfind(|cell| path_of(grid, *cell) == lab);
    match last.map(|cell| time_of_program(grid, cell, grid_hosts)) {
        Some(Ok(time)) => Ok(Nanos((grid.trial_ns + time).0 / 2)),
        Some(Err(error)) if !refused(&error) => Err(error),
        _ => Ok(grid.trial_ns),
    }
}

/// Name of the workloads' parameter that sets how long they run.
const TIME: &str = "time";

/// Returns the duration of a trial of a cell; `None` for a program, whose file has only a time limit.
fn trial_time(grid: &Grid, cell: u32, rtt: Nanos) -> Result<Option<Nanos>, Error> {
    let CellSetup { workload, .. } = cell_setup(grid, cell)?;
    if program_of(&workload).is_some() {
        return Ok(None);
    }
    let round_trips = rtt.times(6);
    Ok(Some(Nanos(lasts(&workload, grid.warm_up_ns).0 + (grid.warm_up_ns + BESIDE + round_trips).0)))
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
    Ok((found.ok_or_else(|| RecordKind::GRID.missing(record, "to go on with"))?, trials))
}

/// Writes the first lines of the record: header, grid, hosts and path. `header` has the values of this kind of record,
/// and the topology.
pub fn begin_grid(
    grid: &Grid,
    header: &Header,
    group: &HostGroup,
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    begin(grid, header, sink)?;
    let pair = group.first();
    for side in Side::BOTH {
        sink.line(&Line::Host { side, facts: Box::new(pair.host(side).facts.clone()) })?;
    }
    sink.line(&Line::Path(pair.path.clone()))?;
    soft_rdma::note(grid, &Side::BOTH.map(|side| &pair.host(side).facts), sink)?;
    group.record_others(sink)
}

fn begin(grid: &Grid, header: &Header, sink: &mut dyn RecordSink) -> Result<(), Error> {
    let (seed, budget_ns) = (grid.seed, grid.budget_ns);
    sink.line(&Line::Header(Header { seed, budget_ns, ..header.clone() }))?;
    Ok(sink.line(&Line::Grid(Box::new(grid.clone())))?)
}

/// Measures blocks until a limit of the grid (blocks, precision, budget) is reached, or the user stops. Restores
/// everything at the end, even after an error. `done` are the trials of a record that is continued.
///
/// # Errors
/// Returns an error if hosts are lost, the record cannot be written, or settings are not restored.
pub fn run_grid(
    grid: &Grid,
    grid_hosts: &mut dyn GridHosts,
    done: &[GridTrial],
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    let earlier = done.iter().map(|trial| Nanos(trial.at_ns.0 + trial.took_ns.0)).max().unwrap_or_default();
    let clock = RunClock::after(earlier);
    let mut run = GridRun::new(grid, grid_hosts, clock);
    let result = drive(&mut GridDesigner::new(grid, done), clock, sink, |visit, _| {
        run.visit(visit)?;
        Ok(Some(visit.line(run.trial(visit)?)))
    });
    let restored = run.restore();
    if let Some(restored) = &restored {
        sink.line(&Line::Restored(restored.clone()))?;
    }
    match restored.filter(|restored| !restored.restored) {
        None => {
            let end = result?;
            run.grid_hosts.group().note_moved(sink)?;
            Ok(sink.line(&Line::GridEnd(end))?)
        }
        Some(restored) => Err(match result {
            Ok(_) => Error::unrestored("the grid is in its record", &restored),
            Err(error) => error.and(&restored),
        }),
    }
}

struct GridRun<'a> {
    grid: &'a Grid,
    grid_hosts: &'a mut dyn GridHosts,
    clock: RunClock,
    /// Block and plot of the previous visit.
    plot: Option<[u32; 2]>,
    /// True if knobs of the current hosts may have been set and must be restored.
    turned: bool,
    /// Cells that already have a picture in the record. Later pictures of a cell are dropped.
    pictured: BTreeSet<u32>,
}

impl<'a> GridRun<'a> {
    fn new(grid: &'a Grid, grid_hosts: &'a mut dyn GridHosts, clock: RunClock) -> Self {
        GridRun { grid, grid_hosts, clock, plot: None, turned: false, pictured: BTreeSet::new() }
    }

    /// Switches to the hosts of a visit, and begins its block. Services keep running during a block.
    fn visit(&mut self, GridVisit { block, plot, cell, .. }: GridVisit) -> Result<(), Error> {
        let last = self.plot.replace([block, plot]);
        if last == self.plot {
            return Ok(());
        }
        self.go(&path_of(self.grid, cell))?;
        self.grid_hosts.group().begin_epoch(&format!("block {block}"));
        Ok(())
    }

    /// Switches to hosts whose link has the parameters `path`. If the grid varies the lab and knobs of the previous
    /// hosts were set, restores them first.
    fn go(&mut self, path: &Settings) -> Result<(), Error> {
        if self.grid.all_settings().any(|one| one.place == GridSettingTarget::Topology) && self.turned {
            self.restored()?;
        }
        let others = self.grid_hosts.go(path)?;
        if turns_knobs(self.grid) && (others || !self.turned) {
            let group = self.grid_hosts.group();
            if turns_links(self.grid) {
                group.reserve()?
            } else {
                group.reserve_hosts()?
            }
            self.turned = true;
        }
        Ok(())
    }

    fn restore(&mut self) -> Option<RestoreOutcome> {
        let turned = std::mem::take(&mut self.turned);
        turned.then(|| self.grid_hosts.group().restore())
    }

    fn restored(&mut self) -> Result<(), Error> {
        match self.restore().filter(|restored| !restored.restored) {
            None => Ok(()),
            Some(restored) => Err(Error::unrestored("a part of the grid is in its record", &restored)),
        }
    }

    /// Makes one trial. If a host refuses it, only this trial is lost.
    fn trial(&mut self, GridVisit { block, plot, cell, is_placebo }: GridVisit) -> Result<GridTrial, Error> {
        let at_ns = self.clock.used();
        let seen = match self.measured(cell) {
            Err(error) if refused(&error) => Err(error.to_string()),
            other => Ok(other?),
        };
        let mut trial = GridTrial { block, plot, cell, at_ns, ..GridTrial::default() };
        trial.took_ns = self.clock.used().saturating_sub(at_ns);
        match seen {
            Ok((pairs, figures)) => {
                let mut pairs = pairs.into_iter();
                [trial.a, trial.b] = pairs.next().unwrap_or_default();
                (trial.others, trial.figures) = (pairs.collect(), figures);
                self.keep_first_picture(&mut trial, is_placebo);
            }
            Err(why) => trial.failed = Some(why),
        }
        Ok(trial)
    }

    /// Drops the picture of a trial unless it is its cell's first. A page shows no placebos, so theirs are dropped too.
    fn keep_first_picture(&mut self, trial: &mut GridTrial, is_placebo: bool) {
        if trial.picture().is_some() && (is_placebo || !self.pictured.insert(trial.cell)) {
            trial.ends_mut().for_each(|end| end.details.remove::<Png>());
        }
    }

    fn measured(&mut self, cell: u32) -> Result<(Vec<[EndpointOutcome; 2]>, TrialFigures), Error> {
        let cell_setup = cell_setup(self.grid, cell)?;
        let group = self.grid_hosts.group();
        if self.turned {
            let found = group.found(Settings::new());
            group.set(&knobs(self.grid, cell, &found)?)?;
        }
        let mut seen = group.run(&cell_setup.run(self.grid.warm_up_ns))?;
        if self.grid.program.is_none() {
            seen.iter_mut().flatten().for_each(contestant::in_own_terms);
        }
        let figures = group.figures(&seen, None);
        Ok((seen, figures))
    }
}
