//! `landspeed measure WORKLOAD --vary`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use landspeed_experiment::{
    Error, GridHead, Ground, Pair, Sink, begin_grid, check_grid, planned_blocks, prepare, resume_grid,
    run_grid, vary,
};
use landspeed_record::{Grid, GridPlace, GridTrial, Line, Record, Settings, WriteError, Writer};
use landspeed_report::live::GridProgress;
use landspeed_report::{Detail, Output, json};
use landspeed_transport::settings::FLOWS;
use landspeed_units::Nanos;

use crate::args::{FormArgs, HostArgs, MeasureArgs};
use crate::data;
use crate::data::RecordArg;
use crate::hosts::{Joined, NamedHosts, set_of};
use crate::output::{agree, usage};
use crate::stop::Stop;

pub(crate) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot take signals over")?;
    let common = &args.common;
    let job = match &common.grid.resume {
        Some(named) => Job::resumed(&data::find(named, common.output.data_dir.as_deref())?, args)?,
        None => Job::fresh(args)?,
    };
    stop.at_once("nothing was changed");
    let file = job.measure(args, &stop)?;
    let record = landspeed_record::read(&file)?;
    let named = RecordArg::Last.again(common.output.data_dir.as_deref(), &file);
    present(&record, &file, &named, &common.output.form, Detail::Brief)
}

/// Shows the grid of a record; the exit code says whether its figures may be used.
pub(crate) fn present(
    record: &Record,
    path: &Path,
    named: &str,
    form: &FormArgs,
    detail: Detail,
) -> Result<ExitCode> {
    let report = landspeed_analysis::grid::report(record, &path.display().to_string())?;
    let document = landspeed_report::grid(&report, record, named);
    crate::output::present(&document, || json(&report), form, detail)?;
    Ok(if report.void.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A grid that is to be measured, or to go on.
struct Job {
    grid: Grid,
    words: Vec<String>,
    file: PathBuf,
    done: Vec<GridTrial>,
    /// Of a record that goes on: taken before it was read, so that no other run adds to it meanwhile.
    writer: Option<Writer>,
}

impl Job {
    fn fresh(args: &MeasureArgs) -> Result<Job> {
        let grid = asked(args).map_err(usage)?;
        let file = data::fresh(&data::folder(args.common.output.data_dir.as_deref())?, "grid", &data::now());
        Ok(Job { grid, words: args.common.hosts.hosts.clone(), file, done: Vec::new(), writer: None })
    }

    /// Goes on with a record: under the options of the command that began it, but for when it ends.
    fn resumed(file: &Path, args: &MeasureArgs) -> Result<Job> {
        let writer = Writer::append(file)?;
        let record = landspeed_record::read(file)?;
        let (mut grid, done) = resume_grid(&record)?;
        if grid.workload.name != args.workload.name {
            let (of, asked) = (&grid.workload.name, &args.workload.name);
            return Err(usage(format!("the record is of {of}, not of {asked}: measure {of} --resume ...")));
        }
        let more = &args.common.grid;
        if more.blocks.is_some() || more.precision.is_some() || more.budget.is_some() {
            (grid.blocks, grid.precision) = (more.blocks, more.precision);
            grid.budget_ns = more.budget.unwrap_or_default();
        }
        let words = record.header.topology.split(' ').map(str::to_owned).collect();
        Ok(Job { grid, words, file: file.to_owned(), done, writer: Some(writer) })
    }

    /// Measures it, and says where the record is.
    fn measure(self, args: &MeasureArgs, stop: &Stop) -> Result<PathBuf> {
        let hosts = HostArgs { hosts: self.words.clone(), ..args.common.hosts.clone() };
        let turns = self.grid.factors.iter().any(|factor| is_knob(factor.place));
        let named = NamedHosts::parse(&hosts, turns)?.until(stop);
        let mut ground = Place { named: &named, words: self.words.clone(), at: None };
        let first = path_of(&self.grid, 0);
        let began = Instant::now();
        ground.go(&first)?;
        let joining = Nanos::from(began.elapsed());
        let is_new = self.writer.is_none();
        let mut grid = self.grid;
        if is_new {
            for factor in grid.factors.iter_mut().filter(|factor| factor.place == GridPlace::Topology) {
                factor.toggle_ns = joining;
            }
            grid = prepare(grid, &mut ground)?;
            check_budget(&grid)?;
        }
        if turns && !named.in_lab() && !args.common.grid.yes {
            agree(&question(&grid))?;
        }
        let writer = self.writer.map_or_else(|| Writer::create(&self.file), Ok)?;
        stop.in_order(
            "ending: what was measured is kept and shown; --resume continues. Ctrl-C again ends at once",
        );
        let mut recorder = Recorder::new(writer, stop.clone(), &grid, self.done.len());
        if is_new {
            let (topology, command) = (hosts.describe(), data::command_line());
            let head = GridHead { topology, command, started: data::now() };
            begin_grid(&grid, &head, ground.pair(), &mut recorder)?;
        }
        let result = run_grid(&grid, &mut ground, &self.done, &mut recorder);
        drop(recorder);
        result?;
        Ok(self.file)
    }
}

fn is_knob(place: GridPlace) -> bool {
    matches!(place, GridPlace::A | GridPlace::B | GridPlace::Both)
}

fn question(grid: &Grid) -> String {
    let knobs = grid.factors.iter().filter(|factor| is_knob(factor.place));
    let names: Vec<&str> = knobs.map(|factor| factor.name.as_str()).collect();
    format!(
        "{} change for seconds at a time and are restored. Other traffic\nwill notice.  Continue? [y/N] ",
        names.join(", ")
    )
}

/// The parameters of the lab's link in a cell.
fn path_of(grid: &Grid, cell: u32) -> Settings {
    let values = grid.factors.iter().zip(grid.values_of(cell));
    let of_lab = values.filter(|(factor, _)| factor.place == GridPlace::Topology);
    of_lab.map(|(factor, value)| (factor.name.clone(), value.to_owned())).collect()
}

/// What the command line asks for; wrong values are refused before any host is reached.
fn asked(args: &MeasureArgs) -> Result<Grid> {
    let (common, asked) = (&args.common, &args.common.grid);
    let runner =
        landspeed_workload::find(&args.workload.name).context("clap takes the names of the table")?;
    let words = &common.hosts.hosts;
    let factors = asked.vary.iter().map(|text| vary(text, runner, words)).collect::<Result<Vec<_>, _>>()?;
    let by = match &asked.by {
        Some(name) => {
            let place = factors.iter().position(|factor| factor.name == *name);
            Some(
                place
                    .with_context(|| format!("--by {name}: it is not varied; vary it, or name one that is"))?
                    as u32,
            )
        }
        None => usual_by(&factors),
    };
    let mut flow = set_of(&common.flow)?;
    if let Some(flows) = &common.flows {
        flow.insert(FLOWS.name.to_owned(), FLOWS.parse(flows)?);
    }
    let grid = Grid {
        workload: args.workload.clone(),
        flow,
        warm_up_ns: common.warm_up.unwrap_or_default(),
        by,
        figure: asked.figure.unwrap_or_else(|| runner.figure()),
        is_factorial: asked.factorial,
        blocks: asked.blocks,
        precision: asked.precision,
        budget_ns: asked.budget.unwrap_or_default(),
        seed: asked.seed.unwrap_or(1),
        factors,
        ..Grid::default()
    };
    if let Some(many) = grid.factors.iter().find(|factor| asked.factorial && factor.levels.len() != 2) {
        anyhow::bail!("--factorial takes factors of two values, and {} has {}", many.name, many.levels.len());
    }
    check_grid(&grid)?;
    Ok(grid)
}

/// With several factors, a curve for each value of the one with the fewest.
fn usual_by(factors: &[landspeed_record::GridFactor]) -> Option<u32> {
    let fewest = factors.iter().enumerate().min_by_key(|(_, factor)| factor.levels.len())?;
    (factors.len() > 1).then_some(fewest.0 as u32)
}

/// Refuses a budget in which the grid has no answer.
fn check_budget(grid: &Grid) -> Result<()> {
    let least = landspeed_analysis::grid::least_time(grid);
    let budget = grid.budget_ns;
    if budget == Nanos(0) || budget >= least {
        return Ok(());
    }
    let seconds = least.0.div_ceil(5_000_000_000) * 5;
    let budget = budget.as_secs_f64();
    Err(usage(format!(
        "--budget {budget}s is too short for intervals over {} cells: try --budget {seconds}s",
        grid.cells()
    )))
}

/// Where the grid is measured: the hosts that were named, or one lab after the other.
struct Place<'a> {
    named: &'a NamedHosts,
    words: Vec<String>,
    at: Option<(Settings, Joined)>,
}

impl Place<'_> {
    fn joined(&mut self) -> &mut Joined {
        &mut self.at.as_mut().expect("a grid goes somewhere before it measures").1
    }
}

impl Ground for Place<'_> {
    fn go(&mut self, path: &Settings) -> Result<bool, Error> {
        if self.at.as_ref().is_some_and(|(at, _)| at == path) {
            return Ok(false);
        }
        // The lab before goes first: its addresses are the next one's.
        self.at = None;
        let words = landspeed_topology::with_parameters(&self.words, path);
        let joined = self.named.join_others(&words).map_err(|error| Error::Other(format!("{error:#}")))?;
        self.at = Some((path.clone(), joined));
        Ok(true)
    }

    fn pair(&mut self) -> &mut Pair {
        self.joined().pairs.first_mut().expect("two hosts make a pair")
    }

    fn in_lab(&self) -> bool {
        self.named.in_lab()
    }

    fn rtt(&self, path: &Settings) -> Option<Nanos> {
        let words = landspeed_topology::with_parameters(&self.words, path);
        Some(landspeed_topology::path(&words).ok()??.rtt())
    }
}

/// The record's file first, then the person who watches.
struct Recorder {
    writer: Writer,
    stop: Stop,
    progress: GridProgress,
}

impl Recorder {
    /// Says what the grid is about to do.
    fn new(writer: Writer, stop: Stop, grid: &Grid, done: usize) -> Recorder {
        let progress = GridProgress::new(Output::stderr(), grid, planned_blocks(grid), done);
        Recorder { writer, stop, progress }
    }
}

impl Sink for Recorder {
    fn line(&mut self, line: &Line) -> Result<(), WriteError> {
        self.writer.write(line)?;
        if let Line::GridTrial(trial) = line {
            self.progress.take(trial);
        }
        Ok(())
    }

    fn stop(&self) -> bool {
        self.stop.asked()
    }
}
