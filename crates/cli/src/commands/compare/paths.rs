//! `landspeed compare --paths`: runs one program over several paths below its sockets, interleaved.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use landspeed_engine::{FactorNames, LocalRunTimes, check_grid, here, run_here, vary};
use landspeed_record::units::{BitRate, EscapedText, Nanos};
use landspeed_record::{Grid, GridCell, Header, PATIENCE, PathCost, RecordKind, RecordWriter, Workload};
use landspeed_report::live::print_if_room;
use landspeed_report::quoted;

use super::args::{CompareArgs, ExchangeArg};
use crate::command_line::command_line;
use crate::commands::app;
use crate::commands::exec::ExecReport;
use crate::commands::measure::grid::{GridJob, GridOptions, present, recorder};
use crate::data::{self, RecordArg};
use crate::output::usage;
use crate::stop::StopRequest;

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    if args.paths.len() < 2 {
        return Err(usage(
            "--paths takes at least two paths: the first is what the others are compared with",
        ));
    }
    let application = args.app.as_deref().or(args.workload.map(ExchangeArg::application));
    match application {
        _ if !args.program.is_empty() => on_this_host(args, &stop),
        Some(name) => of_application(args, app::asked(name, args.with.as_deref())?, &stop),
        None => Err(usage(
            "--paths needs a program: --app NAME, --workload pingpong, stream or connect, or -- PROGRAM",
        )),
    }
}

/// Runs `workload` between the hosts of `args` over each data path (for example the kernel's TCP), and compares the
/// results. With `--predict`, the cost of each path is measured first.
fn of_application(args: &CompareArgs, workload: Workload, stop: &StopRequest) -> Result<ExitCode> {
    stop.at_once("nothing was changed");
    let options = GridOptions { yes: args.yes, ..GridOptions::of(&args.hosts, &args.output) };
    let costs = if args.predict { costs(args, &options, stop)? } else { Vec::new() };
    job(args, workload, &options)?.with_costs(costs).finish(&options, stop)
}

/// Measures the costs of each path with landspeed's own exchanges.
fn costs(args: &CompareArgs, options: &GridOptions<'_>, stop: &StopRequest) -> Result<Vec<PathCost>> {
    let means = |exchange: ExchangeArg| -> Result<Vec<f64>> {
        print_if_room(&format!("{}:\n", exchange.application()));
        let file = job(args, app::asked(exchange.application(), None)?, options)?.measure(options, stop)?;
        anyhow::ensure!(!stop.asked(), "ended before the paths' costs were known");
        let record = landspeed_record::read(&file)?;
        let report = landspeed_analysis::grid::report(&record, &file.display().to_string())?;
        let cells = report.figures.first().map_or(&[][..], |curves| &curves.cells);
        let mean = |cell: &GridCell| {
            cell.mean.with_context(|| {
                format!("no figure of {}: {}", cell.values.join(" "), report.notes.join("; "))
            })
        };
        cells.iter().map(mean).collect()
    };
    let (connect, message, rate) =
        (means(ExchangeArg::Connect)?, means(ExchangeArg::Pingpong)?, means(ExchangeArg::Stream)?);
    let nanos = |us: f64| Nanos((us * 1e3) as u64);
    let each = args.paths.iter().zip(connect).zip(message.into_iter().zip(rate));
    let cost = |((path, connect), (round_trip, gbps)): ((&String, f64), (f64, f64))| PathCost {
        path: path.clone(),
        connect_ns: nanos(connect),
        message_ns: nanos(round_trip / 2.0),
        rate_bps: BitRate(gbps * 1e9),
    };
    Ok(each.map(cost).collect())
}

/// Returns the job of a grid that runs the application over each of the compared paths. The paths are the values of the
/// application's parameter `path`.
fn job(args: &CompareArgs, workload: Workload, options: &GridOptions<'_>) -> Result<GridJob> {
    let runner = landspeed_workload::find(&workload).context("it was read before")?;
    let names = FactorNames { runner: runner.as_ref(), words: &args.hosts.hosts };
    let grid = Grid {
        factors: vec![vary(&format!("path={}", args.paths.join(",")), names)?],
        figure: runner.figure(),
        blocks: Some(args.blocks),
        seed: args.seed.unwrap_or(1),
        workload,
        ..Grid::default()
    };
    check_grid(&grid)?;
    GridJob::of(grid, args.hosts.hosts.clone(), options)
}

/// Compares the paths of a program on this host. The first run over each path does not count.
fn on_this_host(args: &CompareArgs, stop: &StopRequest) -> Result<ExitCode> {
    if !args.hosts.hosts.is_empty() {
        return Err(usage("a program behind -- runs on this host: leave the hosts out"));
    }
    if args.hosts.reach.patience != PATIENCE {
        return Err(usage("--patience is for hosts: a program behind -- has --accept-patience"));
    }
    stop.at_once("nothing was changed");
    let words: Vec<String> = args.program.iter().map(|word| quoted(&word.to_string_lossy())).collect();
    let mut grid = here(&words.join(" "), &args.paths, (args.blocks, args.seed.unwrap_or(1)));
    let mut longest = Nanos(0);
    for path in &args.paths {
        let ran = once(path, args).map_err(|why| anyhow::anyhow!("over {path}: {why}"))?;
        longest = longest.max(ran.took);
    }
    grid.trial_ns = longest;
    let data_dir = args.output.data_dir.as_deref();
    let header = RecordKind::GRID.header(&command_line(), &data::now());
    let head = Header { topology: "this host".into(), ..header };
    let file = data::fresh(&data::folder(data_dir)?, RecordKind::GRID, &head.started);
    stop.in_order("ending: what was measured is kept and shown. Ctrl-C again ends at once");
    let mut recorder = recorder(RecordWriter::create(&file)?, stop, &grid, 0);
    let facts = landspeed_observer::host::probe();
    run_here(&grid, (&head, facts), &mut |path| once(path, args), &mut recorder)?;
    drop(recorder);
    let record = landspeed_record::read(&file)?;
    let named = RecordArg::Last.again(data_dir, &file);
    present(&record, &file, &named, &args.output.form, landspeed_report::DetailLevel::Brief)
}

/// Runs the program over a path. Fails if the program does, or if a connection stayed on TCP.
fn once(path: &str, args: &CompareArgs) -> Result<LocalRunTimes, String> {
    let failed = |error: std::io::Error| format!("cannot run it: {error}");
    let said = tempfile::tempfile().map_err(failed)?;
    let mut command = Command::new("/proc/self/exe");
    let patience = args.accept_patience.exact();
    command.args(["exec", "--json", "--path", path, "--patience", &patience, "--"]).args(&args.program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone().map_err(failed)?);
    let status = command.status().map_err(failed)?;
    let said = all(said).map_err(failed)?;
    let (before, last) = said.trim_end().rsplit_once('\n').unwrap_or(("", said.trim_end()));
    if !status.success() {
        let words = if last.starts_with('{') { before } else { last };
        let words = words.lines().last().unwrap_or("it said nothing");
        return Err(format!("the program failed ({status}): {}", EscapedText::from(words)));
    }
    let report: ExecReport = landspeed_record::decode(last.as_bytes())
        .map_err(|error| format!("exec reported no counts: {error}"))?;
    match report.why_not() {
        Some(why) => Err(why),
        None => Ok(LocalRunTimes { took: report.took_ns, cpu: report.cpu_ns }),
    }
}

fn all(mut file: File) -> std::io::Result<String> {
    /// Largest number of bytes that are returned, from the end of the file.
    const MOST: u64 = 64 << 10;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
