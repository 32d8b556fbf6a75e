//! Measures a grid, and shows the result.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use landspeed_analysis::grid::planned_blocks;
use landspeed_engine::{
    Error, FAN, GateOutcome, GridHosts, HostGroup, JoinedHosts, Pairing, RecordSink, begin_grid, gate,
    path_of, prepare, resume_grid, run_grid, turns_knobs,
};
use landspeed_record::units::Nanos;
use landspeed_record::{
    Grid, GridSettingTarget, GridTrial, Header, Line, PathCost, Record, RecordKind, RecordWriter, Settings,
};
use landspeed_report::live::GridProgress;
use landspeed_report::{DetailLevel, OutputCapabilities, json};

use super::MeasureArgs;
use crate::command_line::command_line;
use crate::data::{self, RecordArg};
use crate::exit::Exit;
use crate::failure::{StatusError, in_one_line, note, void};
use crate::groups::{FormArgs, HostArgs, OutputArgs};
use crate::hosts::{CONTROL, NamedHosts, close_controls, open_controls};
use crate::output::{agree, can_agree, usage};
use crate::place::folder;
use crate::recorder::Recorder;
use crate::stop::StopRequest;

/// How a grid is measured and shown.
pub(crate) struct GridOptions<'a> {
    /// Options for reaching the hosts.
    pub(crate) hosts: &'a HostArgs,
    /// True if settings of real hosts may change without a question.
    pub(crate) yes: bool,
    /// True if values that the hosts do not support are left out and reported, instead of being an error.
    pub(crate) report_missing: bool,
    pub(crate) output: &'a OutputArgs,
    pub(crate) full: bool,
    /// True to test the noise of the machine first, and to refuse if it hides every answer of the grid.
    pub(crate) gate: bool,
}

impl<'a> GridOptions<'a> {
    /// Returns options for `hosts` and `output`, with all flags false.
    pub(crate) fn of(hosts: &'a HostArgs, output: &'a OutputArgs) -> GridOptions<'a> {
        GridOptions { hosts, yes: false, report_missing: false, output, full: false, gate: false }
    }
}

/// Shows the grid of a record. The exit code reports whether its figures are valid.
pub(crate) fn present(
    record: &Record,
    path: &Path,
    named: &str,
    form: &FormArgs,
    detail: DetailLevel,
) -> Result<ExitCode> {
    let report = landspeed_analysis::grid::report(record, &path.display().to_string())?;
    let document = landspeed_report::grid(&report, record, named);
    crate::output::present(&document, || json(&report), form, detail)?;
    Ok(void(report.void.as_deref()))
}

/// A grid to measure or to resume.
pub(crate) struct GridJob {
    grid: Grid,
    words: Vec<String>,
    file: PathBuf,
    done: Vec<GridTrial>,
    /// The costs of the compared paths, if known.
    costs: Vec<PathCost>,
    /// The writer of a resumed record, opened before reading so that no other run can append in between.
    writer: Option<RecordWriter>,
}

impl GridJob {
    pub(crate) fn of(grid: Grid, words: Vec<String>, options: &GridOptions<'_>) -> Result<GridJob> {
        let file =
            data::fresh(&data::folder(options.output.data_dir.as_deref())?, RecordKind::GRID, &data::now());
        Ok(GridJob { grid, words, file, done: Vec::new(), costs: Vec::new(), writer: None })
    }

    /// Returns the job with the costs of the compared paths.
    pub(crate) fn with_costs(self, costs: Vec<PathCost>) -> GridJob {
        GridJob { costs, ..self }
    }

    /// Measures the grid and shows the result.
    pub(crate) fn finish(self, options: &GridOptions<'_>, stop: &StopRequest) -> Result<ExitCode> {
        stop.at_once("nothing was changed");
        let file = self.measure(options, stop)?;
        let record = landspeed_record::read(&file)?;
        let named = RecordArg::Last.again(options.output.data_dir.as_deref(), &file);
        let detail = if options.full { DetailLevel::Full } else { DetailLevel::Brief };
        present(&record, &file, &named, &options.output.form, detail)
    }

    /// Resumes a record, with the options of its original command except those that end the grid.
    pub(super) fn resumed(file: &Path, args: &MeasureArgs) -> Result<GridJob> {
        let (writer, record) = data::go_on(file)?;
        let (mut grid, done) = resume_grid(&record)?;
        if grid.workload.name != args.workload.name {
            let (of, asked) = (&grid.workload.name, &args.workload.name);
            return Err(usage(format!("the record is of {of}, not of {asked}: measure {of} --resume ...")));
        }
        grid.workload.file.clone_from(&args.workload.file);
        let more = &args.common.grid;
        if more.blocks.is_some() || more.precision.is_some() || more.budget.is_some() {
            (grid.blocks, grid.precision) = (more.blocks, more.precision);
            grid.budget_ns = more.budget.unwrap_or_default();
        }
        let words = record.header.topology.split(' ').map(str::to_owned).collect();
        Ok(GridJob { grid, words, file: file.to_owned(), done, costs: Vec::new(), writer: Some(writer) })
    }

    /// Measures the grid and returns the file of the record.
    pub(crate) fn measure(self, options: &GridOptions<'_>, stop: &StopRequest) -> Result<PathBuf> {
        let hosts = HostArgs { hosts: self.words.clone(), ..options.hosts.clone() };
        let turns = turns_knobs(&self.grid);
        let named = NamedHosts::parse(&hosts, turns)?.until(stop);
        data::room(folder(&self.file))?;
        if self.needs_consent(&named, options) {
            can_agree()?;
        }
        let of_program = landspeed_workload::find(&self.grid.workload).and_then(|runner| runner.hosts());
        let mut words = self.words.clone();
        if let Some([least, _]) = of_program
            && words.is_empty()
            && least > 2
        {
            words = vec![format!("lab:switch:{least}")];
        }
        let mut ground = GridTestbed { named: &named, words, is_star: of_program.is_some(), at: None };
        let opened = match named.share_kernel() && names_control(&self.grid) {
            true => open_controls(&hosts)?,
            false => None,
        };
        if opened.is_some() {
            stop.at_once("nothing else was changed: this machine restores its list of congestion controls");
        }
        let measured = self.measure_at(&mut ground, &hosts, options, stop);
        // The lab goes first: its hosts may have a control as their default that the restored list does not allow.
        drop(ground);
        close_controls(opened)?;
        measured
    }

    /// Returns true if the user must agree to the settings that the grid changes on these hosts.
    fn needs_consent(&self, named: &NamedHosts, options: &GridOptions<'_>) -> bool {
        turns_knobs(&self.grid) && !named.in_lab() && !options.yes
    }

    /// Measures the grid at a place and returns the file of the record.
    fn measure_at(
        self,
        ground: &mut GridTestbed<'_>,
        hosts: &HostArgs,
        options: &GridOptions<'_>,
        stop: &StopRequest,
    ) -> Result<PathBuf> {
        let asks = self.needs_consent(ground.named, options);
        let first = path_of(&self.grid, 0);
        let began = Instant::now();
        ground.go(&first)?;
        let joining = Nanos::from(began.elapsed());
        let is_new = self.writer.is_none();
        let mut grid = self.grid;
        if is_new {
            grid = prepare(grid, ground, joining)?;
            if !options.report_missing {
                // The hosts cannot have a value from the command line.
                if let Some(missing) = grid.missing.first() {
                    bail!("it cannot be measured here: {}", missing.why);
                }
            }
            check_budget(&grid)?;
        }
        if asks {
            agree(&question(&grid))?;
        }
        if options.gate && is_new {
            look(&grid, ground, stop)?;
        }
        let writer = self.writer.map_or_else(|| RecordWriter::create(&self.file), Ok)?;
        stop.in_order(
            "ending: what was measured is kept and shown; --resume continues. Ctrl-C again ends at once",
        );
        let mut recorder = recorder(writer, stop, &grid, self.done.len());
        if is_new {
            let header = RecordKind::GRID.header(&command_line(), &data::now());
            let head = Header { topology: hosts.describe(), ..header };
            begin_grid(&grid, &head, ground.group(), &mut recorder)?;
            if !self.costs.is_empty() {
                recorder.line(&Line::PathCosts { costs: self.costs })?;
            }
        }
        run_grid(&grid, ground, &self.done, &mut recorder)?;
        Ok(self.file)
    }
}

/// Returns true if the grid sets the default congestion control of a host.
fn names_control(grid: &Grid) -> bool {
    let of_host = |place| !matches!(place, GridSettingTarget::Flow | GridSettingTarget::Workload);
    grid.all_settings().any(|one| one.name == CONTROL && of_host(one.place))
}

/// Tests the noise of the machine before a grid: reports what the grid can decide, or refuses to measure.
fn look(grid: &Grid, ground: &mut GridTestbed<'_>, stop: &StopRequest) -> Result<()> {
    stop.in_order("ending: nothing was measured yet");
    let looked = gate(grid, ground, &|| stop.asked())?;
    // If the user has cut off the trials, there are too few to refuse a file.
    let Some(GateOutcome { forecast, cell, stolen }) = looked.filter(|_| !stop.asked()) else {
        return Ok(());
    };
    let said = landspeed_report::gate(&forecast, &cell, stolen);
    if !forecast.can_decide() {
        let why = format!("{said}; --anyway measures without a look at the machine");
        return Err(StatusError::new(Exit::TooNoisy, why).into());
    }
    note(&said);
    Ok(())
}

fn question(grid: &Grid) -> String {
    let is_knob =
        |place| matches!(place, GridSettingTarget::A | GridSettingTarget::B | GridSettingTarget::Both);
    let knobs = grid.all_settings().filter(|one| is_knob(one.place)).map(|one| one.name.as_str());
    let names: BTreeSet<&str> = knobs.collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    format!(
        "Settings change for seconds at a time and are restored: {names}.\nOther traffic will notice.  Continue? [y/N] "
    )
}

/// Returns a usage error if the budget is too short for an answer.
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

/// The place of measurement: the named hosts, or a sequence of labs.
struct GridTestbed<'a> {
    named: &'a NamedHosts,
    words: Vec<String>,
    /// True if the first host has a path to each other host, as programs need.
    is_star: bool,
    at: Option<(Settings, JoinedHosts)>,
}

/// Returns the words of the command line for the lab with the parameters `path`. The parameter "topology" replaces the
/// lab itself. "fan" is left out, because it is not a parameter of a lab.
fn words_of(words: &[String], path: &Settings) -> Vec<String> {
    let mut parameters = path.clone();
    let lab = parameters.remove("topology").map(|word| vec![word]);
    parameters.remove(FAN.name);
    landspeed_lab::topology::with_parameters(&lab.unwrap_or_else(|| words.to_vec()), &parameters)
}

impl GridHosts for GridTestbed<'_> {
    fn go(&mut self, path: &Settings) -> Result<bool, Error> {
        if self.at.as_ref().is_some_and(|(at, _)| at == path) {
            return Ok(false);
        }
        // The previous lab is removed first, because the next one uses the same addresses.
        self.at = None;
        let words = words_of(&self.words, path);
        let pairing = match path.get(FAN.name) {
            Some(way) if way == "in" => Pairing::FanIn,
            Some(_) => Pairing::FanOut,
            None if self.is_star => Pairing::Star,
            None => Pairing::Topology,
        };
        let joined = self.named.join_others(&words, pairing);
        let joined = joined.map_err(|error| Error::Other(in_one_line(&error)))?;
        self.at = Some((path.clone(), joined));
        Ok(true)
    }

    fn group(&mut self) -> &mut HostGroup {
        &mut self.at.as_mut().expect("a grid goes somewhere before it measures").1.group
    }

    fn in_lab(&self) -> bool {
        self.named.in_lab()
    }

    fn rtt(&self, path: &Settings) -> Option<Nanos> {
        let words = words_of(&self.words, path);
        Some(landspeed_lab::topology::path(&words).ok()??.rtt())
    }
}

/// Returns the recorder of a grid, of which `done` trials are already recorded. Prints the size of the grid and starts
/// the progress line.
pub(crate) fn recorder(writer: RecordWriter, stop: &StopRequest, grid: &Grid, done: usize) -> Recorder {
    let mut progress = GridProgress::new(OutputCapabilities::stderr(), grid, planned_blocks(grid), done);
    Recorder::new(writer, stop, move |line| {
        if let Line::GridTrial(trial) | Line::GridPlacebo(trial) = line {
            progress.take(trial);
        }
    })
}
