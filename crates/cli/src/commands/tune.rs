//! `landspeed tune`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_analysis::Goal;
use landspeed_experiment::{Baseline, Pair, Sink, TuneOptions, TunePlan, factors, plan, tune};
use landspeed_record::{Line, Settings, TuneSummary, WriteError, Writer};
use landspeed_report::{Output, gain_is_proven, live::Live};
use landspeed_transport::{Transport, find};

use crate::args::{BaselineArg, FormArgs, GoalArg, TuneArgs};
use crate::exit::Exit;
use crate::hosts::{NamedHosts, parse_settings};
use crate::output::{agree, usage};
use crate::stop::Stop;
use crate::{commands, data};

pub(crate) fn run(args: TuneArgs) -> Result<ExitCode> {
    if args.record_run {
        return commands::record_run::run(&args);
    }
    check_names(&args)?;
    let folder = data::folder(args.output.data_dir.as_deref())?;
    let stop = Stop::on_signals().context("cannot take signals over")?;
    let named = NamedHosts::parse(&args.hosts, !args.dry_run)?.until(&stop);
    let mut options = options(&args, &named)?;
    let path = data::fresh(&folder, "tune", &options.started);
    options.record = path.display().to_string();
    // A record that cannot be written is known before any host is touched.
    let writer = if args.dry_run { None } else { Some(Writer::create(&path)?) };
    let result = with_pair(&args, &named, &options, stop, writer);
    if result.is_err() {
        remove_if_empty(&path);
    }
    let Some(summary) = result? else { return Ok(ExitCode::SUCCESS) };
    present(&summary, &path, &args.output.form)?;
    Ok(exit(&summary, args.exit_code).into())
}

fn with_pair(
    args: &TuneArgs,
    named: &NamedHosts,
    options: &TuneOptions,
    stop: Stop,
    writer: Option<Writer>,
) -> Result<Option<TuneSummary>> {
    let mut joined = named.join()?;
    let pair = joined.pairs.first_mut().context("no pair of hosts")?;
    let plan = plan(pair, options)?;
    let Some(writer) = writer else {
        print!("{}", plan_text(pair, &plan, options, Output::stdout().width));
        return Ok(None);
    };
    if !options.in_lab && !args.yes {
        confirm(pair, &plan, options)?;
    }
    let mut sink = Recorder { writer, live: Live::new(Output::stderr()), stop };
    let summary = tune(pair, plan, options, &mut sink)?;
    sink.live.finish();
    Ok(Some(summary))
}

/// The record's file first, then the person who watches.
struct Recorder {
    writer: Writer,
    live: Live,
    stop: Stop,
}

impl Sink for Recorder {
    fn line(&mut self, line: &Line) -> Result<(), WriteError> {
        self.writer.write(line)?;
        self.live.line(line);
        Ok(())
    }

    fn stop(&self) -> bool {
        self.stop.asked()
    }
}

/// Wrong names are refused before any host is reached.
fn check_names(args: &TuneArgs) -> Result<()> {
    let factors = factors(transport(args)?);
    args.only.iter().chain(&args.skip).try_for_each(|name| factors.find(name).map(drop).map_err(usage))
}

fn options(args: &TuneArgs, named: &NamedHosts) -> Result<TuneOptions> {
    let baseline =
        args.baseline.unwrap_or(if named.in_lab() { BaselineArg::Sc03 } else { BaselineArg::Found });
    let against: Option<Settings> = args.against.as_deref().map(parse_settings).transpose()?;
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()) ^ seconds());
    let command = match args.seed {
        Some(_) => data::command_line(),
        None => format!("{} --seed {seed}", data::command_line()),
    };
    Ok(TuneOptions {
        transport: transport(args)?,
        goal: match args.goal {
            GoalArg::Rate => Goal::Rate,
            GoalArg::Latency => Goal::Latency,
            GoalArg::Cpu => Goal::Cpu,
        },
        baseline: match baseline {
            BaselineArg::Found => Baseline::Found,
            BaselineArg::Sc03 => Baseline::Sc03,
        },
        budget: args.budget,
        only: args.only.clone(),
        skip: args.skip.clone(),
        explain: !args.no_explain,
        against,
        confirm_for: args.confirm_for,
        in_lab: named.in_lab(),
        seed,
        topology: args.hosts.describe(),
        command,
        started: data::now(),
        record: String::new(),
    })
}

fn transport(args: &TuneArgs) -> Result<&'static dyn Transport> {
    find(&args.transport).context("clap takes the names of the table")
}

fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn plan_text(pair: &Pair, plan: &TunePlan, options: &TuneOptions, width: u16) -> String {
    let hosts =
        [&pair.a, &pair.b].map(|host| format!("{} ({}, {})", host.name, host.facts.hostname, host.device));
    let mut text = format!("{} -> {}, idle round trip {}\n", hosts[0], hosts[1], pair.path.rtt_ns);
    for line in &plan.baseline {
        text.push_str(&format!("start: {line}\n"));
    }
    let rows: Vec<Vec<String>> = plan
        .candidates
        .iter()
        .map(|c| {
            let with = if c.with.is_empty() { String::new() } else { format!("with {}", c.with.join(", ")) };
            vec![c.knob.clone(), c.from.clone(), c.value.clone(), c.skip.clone().unwrap_or(with)]
        })
        .collect();
    text.push_str(&landspeed_report::table(&["knob", "now", "try", ""], &rows, width));
    text.push('\n');
    if options.looks() {
        text.push_str(
            "In this order, but first what would relieve the bottleneck that a watched stream shows.\n",
        );
    }
    text
}

/// Real hosts are touched only after a yes on a terminal.
fn confirm(pair: &Pair, plan: &TunePlan, options: &TuneOptions) -> Result<()> {
    let text = plan_text(pair, plan, options, Output::stderr().width);
    agree(&format!(
        "{text}Each of these is tried on {} and {} for seconds at a time, read back, and put back at the end,\n\
         whatever happens. Other traffic on the path will feel it. Go on? [y/N] ",
        pair.a.name, pair.b.name
    ))
}

fn present(summary: &TuneSummary, path: &Path, form: &FormArgs) -> Result<()> {
    let record = landspeed_record::read(path)?;
    commands::show::present_tune(summary, &record, form, landspeed_report::Detail::Brief)
}

fn exit(summary: &TuneSummary, ask_for_proof: bool) -> Exit {
    match summary.void {
        _ if !summary.restored => Exit::NotRestored,
        Some(_) => Exit::Failed,
        None if ask_for_proof && !gain_is_proven(summary) => Exit::NothingProven,
        None => Exit::Done,
    }
}

/// A run that failed before its first line leaves no empty record behind.
fn remove_if_empty(path: &Path) {
    if path.metadata().is_ok_and(|m| m.len() == 0) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::Estimate;

    use super::*;

    #[test]
    fn the_exit_status_tells_what_is_left_what_is_void_and_what_is_not_proven() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/records/tune.jsonl");
        let record = landspeed_record::read(&path).unwrap();
        let proven = landspeed_analysis::summary(&record, "").unwrap();
        let changed = |change: &dyn Fn(&mut TuneSummary)| {
            let mut summary = proven.clone();
            change(&mut summary);
            [false, true].map(|ask_for_proof| exit(&summary, ask_for_proof))
        };
        assert_eq!(changed(&|_| {}), [Exit::Done, Exit::Done]);
        let unsure = Estimate { ratio: 1.9, low: 0.9, high: 4.0 };
        assert_eq!(changed(&|summary| summary.gain.rate = Some(unsure)), [Exit::Done, Exit::NothingProven]);
        assert_eq!(changed(&|summary| summary.void = Some(String::new())), [Exit::Failed; 2]);
        assert_eq!(changed(&|summary| summary.restored = false), [Exit::NotRestored; 2]);
    }
}
