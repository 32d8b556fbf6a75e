//! `landspeed tune`: tunes a path, keeps what is proven to help, and restores everything.

mod args;
mod land_speed_record;
mod shown;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use landspeed_engine::{
    Baseline, FittedParameter, HostGroup, Pairing, TuneOptions, TunePlan, TunedProgram, factors, plan, tune,
};
use landspeed_record::units::Nanos;
use landspeed_record::{RecordKind, RecordWriter, Side, TuneSummary};
use landspeed_report::live::{TuneProgress, print_if_room};
use landspeed_report::{DetailLevel, OutputCapabilities, duration, gain_is_proven, safe};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{Transport, find};

use super::app;
use crate::command_line::command_line;
use crate::data::{self, RecordArg};
use crate::exit::Exit;
use crate::failure::because;
use crate::hosts::{CONTROL, NamedHosts, close_controls, open_controls, parse_settings};
use crate::output::{agree, can_agree, usage};
use crate::recorder::Recorder;
use crate::stop::StopRequest;

use args::BaselineArg;
pub(crate) use args::TuneArgs;
use shown::present_summary;
pub(crate) use shown::show;

pub(crate) fn run(args: &TuneArgs) -> Result<ExitCode> {
    if args.record_run {
        return land_speed_record::run(args);
    }
    let args = with_own_names(args)?;
    let program = program(&args)?;
    let folder = data::folder(args.output.data_dir.as_deref())?;
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    stop.at_once("nothing was changed");
    let named = NamedHosts::parse(&args.hosts, !args.dry_run)?.until(&stop);
    if !args.dry_run {
        data::room(&folder)?;
        if !named.in_lab() && !args.yes {
            can_agree()?;
        }
    }
    let mut options = options(&args, &named)?;
    options.program = program;
    let path = data::fresh(&folder, RecordKind::TUNE, &options.started);
    options.record = path.display().to_string();
    let Some(summary) = with_pair(&args, &named, &mut options, &stop)? else { return Ok(ExitCode::SUCCESS) };
    present(&summary, &path, &args)?;
    Ok(match exit(&summary, args.exit_code) {
        Exit::Done => Exit::Done.into(),
        other => because(other, &why(&summary, other)),
    })
}

/// Returns why a run ends with this status.
fn why(summary: &TuneSummary, exit: Exit) -> String {
    match exit {
        Exit::NotRestored | Exit::Left => summary.restore_outcome().complaint().unwrap_or_default(),
        Exit::Failed => format!("the result does not count: {}", summary.void.as_deref().unwrap_or_default()),
        _ => "the final check does not prove a gain".to_owned(),
    }
}

fn with_pair(
    args: &TuneArgs,
    named: &NamedHosts,
    options: &mut TuneOptions,
    stop: &StopRequest,
) -> Result<Option<TuneSummary>> {
    // Without being named, a setting of the whole machine stays as it is.
    let may_change = named.share_kernel() && !args.dry_run;
    let opened = match may_change && options.only.iter().any(|name| name == CONTROL) {
        true => open_controls(&args.hosts)?,
        false => None,
    };
    let tuned = with_joined(args, named, options, stop);
    close_controls(opened)?;
    tuned
}

fn with_joined(
    args: &TuneArgs,
    named: &NamedHosts,
    options: &mut TuneOptions,
    stop: &StopRequest,
) -> Result<Option<TuneSummary>> {
    let workload = options.program.as_ref().map(|program| program.workload.clone());
    let mut joined = named.join_for(workload.as_ref(), args.fan, Pairing::FirstTwo)?;
    if let Some(lost) = joined.lost.first() {
        bail!("{}: {}; a proof needs all hosts: leave it out, or mend it", lost.name, lost.why);
    }
    let group = &mut joined.group;
    let plan = plan(group, options)?;
    let options = &*options;
    if args.dry_run {
        print!(
            "{}\n{}",
            head(group, &plan, options),
            plan_text(&plan, options, OutputCapabilities::stdout())
        );
        return Ok(None);
    }
    check_answerable(&plan, options)?;
    // The reservation comes before the question: hosts that another run tunes are not available, whatever the answer.
    group.reserve()?;
    introduce(group, &plan, options, args)?;
    // An error in creating the record must occur before any host is changed.
    let record = Path::new(&options.record);
    let writer = RecordWriter::create(record)?;
    stop.in_order(
        "ending: everything is restored, then what was measured is shown. Ctrl-C again ends at once",
    );
    let mut progress = TuneProgress::new(OutputCapabilities::stderr(), detail(args));
    let mut sink = Recorder::new(writer, stop, move |line| progress.line(line));
    let result = tune(group, plan, options, &mut sink);
    if result.is_err() {
        remove_if_empty(record);
    }
    Ok(Some(result?))
}

/// Prints the introduction, and asks for consent if the hosts are real.
fn introduce(group: &HostGroup, plan: &TunePlan, options: &TuneOptions, args: &TuneArgs) -> Result<()> {
    let mut text = format!("{}\n", head(group, plan, options));
    if args.full {
        text += &plan_text(plan, options, OutputCapabilities::stderr());
    }
    if options.in_lab || args.yes {
        for line in OutputCapabilities::stderr().spell(&text).split_inclusive('\n') {
            print_if_room(line);
        }
        return Ok(());
    }
    agree(&format!(
        "{text}Settings change for seconds at a time and are restored. Other traffic\nwill notice.  Continue? [y/N] "
    ))
}

/// Returns the lines on the hosts, the path between them, the number of settings, and the number of tries for which the
/// budget has time.
fn head(group: &HostGroup, plan: &TunePlan, options: &TuneOptions) -> String {
    let pair = group.first();
    let [a, b] = Side::BOTH.map(|side| {
        let hosts = group.on(side).map(|host| format!("{} ({})", host.name, host.device));
        hosts.collect::<Vec<_>>().join(", ")
    });
    let link = pair.link_rate().map(|rate| format!("{rate} link  ")).unwrap_or_default();
    // The version alone, without a distribution's suffix.
    let version = |kernel: &str| kernel.split('-').next().unwrap_or_default().to_owned();
    let kernels = match [&pair.a.facts.kernel, &pair.b.facts.kernel].map(|kernel| version(kernel)) {
        [a, b] if a == b => a,
        [a, b] => format!("{a} and {b}"),
    };
    let names = |open: bool| {
        let chosen = plan.candidates.iter().filter(|c| !open || c.skip.is_none());
        chosen.map(|c| c.knob.as_str()).collect::<BTreeSet<_>>().len()
    };
    let (tries, time) = (plan.forecast(options).tries, duration(plan.budget));
    let (open, all, time) = (names(true), names(false), time.trim_end_matches(" 0 s"));
    let head = format!("{a} -> {b}  {link}RTT {}  Linux {kernels}", group.rtt());
    let room = format!("time for about {tries} in {time}");
    let remarks = landspeed_analysis::remarks(pair.path);
    let head = remarks.iter().fold(safe(&head), |head, remark| head + "\n" + &safe(remark));
    let head = head + &plan.fitted.as_ref().map(fitted).unwrap_or_default();
    head + &format!("\n{open} of {all} settings can matter; {room} (--full lists all)")
}

/// Returns the line on a parameter that was lowered so that trials take less time.
fn fitted(fitted: &FittedParameter) -> String {
    let FittedParameter { name, value, default, took } = fitted;
    format!("\n{name}={value}: a trial takes {}; --with {name}={default} takes longer", duration(*took))
}

/// Returns an error before the run if it would end without an answer.
fn check_answerable(plan: &TunePlan, options: &TuneOptions) -> Result<()> {
    let asked = match options.only.as_slice() {
        [] => "any setting".to_owned(),
        names => names.join(", "),
    };
    let Some(least) = plan.least_budget(options) else {
        let why = plan.candidates.iter().find_map(|c| Some(format!("{}: {}", c.knob, c.skip.as_ref()?)));
        bail!(
            "nothing can be tried of {asked}: {}",
            why.unwrap_or_else(|| "there is no such setting here".into())
        );
    };
    if options.budget >= least {
        return Ok(());
    }
    let seconds = least.0.div_ceil(5_000_000_000) * 5;
    let (budget, least) = (options.budget.as_secs_f64(), duration(Nanos::secs(seconds)));
    Err(usage(format!(
        "--budget {budget}s is too short to answer about {asked}: it needs at least {least}; try --budget {seconds}s"
    )))
}

fn detail(args: &TuneArgs) -> DetailLevel {
    if args.full { DetailLevel::Full } else { DetailLevel::Brief }
}

/// Replaces the system's names of settings by landspeed's. Wrong names are refused before any host is contacted.
fn with_own_names(args: &TuneArgs) -> Result<TuneArgs> {
    let factors = factors(transport(args)?);
    let own = |names: &[String]| -> Result<Vec<String>> {
        names.iter().map(|name| Ok(factors.named(name).map_err(usage)?.name.to_owned())).collect()
    };
    Ok(TuneArgs { only: own(&args.only)?, skip: own(&args.skip)?, ..args.clone() })
}

fn options(args: &TuneArgs, named: &NamedHosts) -> Result<TuneOptions> {
    let baseline =
        args.baseline.unwrap_or(if named.share_kernel() { BaselineArg::Sc03 } else { BaselineArg::Found });
    let held = parse_settings(&args.set)?;
    let against = args.against.as_ref().map(|text| parse_settings([text])).transpose()?;
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()) ^ seconds());
    let command = match args.seed {
        Some(_) => command_line(),
        None => format!("{} --seed {seed}", command_line()),
    };
    Ok(TuneOptions {
        program: None,
        transport: transport(args)?,
        goal: args.goal,
        baseline: match baseline {
            BaselineArg::Found => Baseline::Found,
            BaselineArg::Sc03 => Baseline::Sc03,
        },
        budget: args.budget,
        held,
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

/// Returns the program to tune for, if one is named.
fn program(args: &TuneArgs) -> Result<Option<TunedProgram>> {
    let workload = match (&args.app, &args.server, &args.client, &args.metric) {
        (Some(app), ..) => app::in_place_of_stream(app)?,
        (None, Some(server), Some(client), Some(metric)) => {
            let text =
                landspeed_workload::app::quick(server, client, metric, args.less_is_better).map_err(usage)?;
            let file = Path::new("command-line.toml");
            app::of_file(&landspeed_workload::app::read(file, &text).map_err(usage)?)
        }
        _ => return Ok(None),
    };
    let workload = app::set_on(workload, args.with.as_deref())?;
    let of = landspeed_workload::program_of(&workload);
    if of.is_none() && !landspeed_workload::has_own_flows(&workload) {
        bail!("an application has a figure");
    }
    Ok(Some(TunedProgram { workload, of }))
}

/// Returns the transport of the flows: that of the options, or that of landspeed's other workload.
fn transport(args: &TuneArgs) -> Result<&'static dyn Transport> {
    let own = args.app.as_deref().and_then(app::own).map(|runner| runner.flow()).unwrap_or_default();
    let usual = own.iter().find(|(name, _)| *name == TRANSPORT.name).map(|(_, usual)| *usual);
    find(usual.unwrap_or(&args.transport)).context("clap takes the names of the table")
}

fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

fn plan_text(plan: &TunePlan, options: &TuneOptions, output: OutputCapabilities) -> String {
    let mut text = String::new();
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
    text.push_str(&landspeed_report::table(&["knob", "now", "try", ""], &rows, output));
    text.push('\n');
    if options.looks() {
        text.push_str(
            "Tried in this order; what a short watched stream shows to be the bottleneck comes first.\n",
        );
    }
    text
}

fn present(summary: &TuneSummary, path: &Path, args: &TuneArgs) -> Result<()> {
    let record = landspeed_record::read(path)?;
    let named = RecordArg::Last.again(args.output.data_dir.as_deref(), path);
    present_summary(summary, &record, &named, &args.output.form, detail(args))
}

fn exit(summary: &TuneSummary, ask_for_proof: bool) -> Exit {
    match summary.void {
        _ if !summary.restored && !summary.left => Exit::NotRestored,
        Some(_) => Exit::Failed,
        None if !summary.restored => Exit::Left,
        None if ask_for_proof && !gain_is_proven(summary) => Exit::NothingProven,
        None => Exit::Done,
    }
}

/// Removes the empty record of a run that failed before its first line.
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
    fn the_exit_status_shows_left_settings_void_runs_and_unproven_gains() {
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
        let left = |summary: &mut TuneSummary| (summary.restored, summary.left) = (false, true);
        assert_eq!(changed(&left), [Exit::Left; 2]);
    }
}
