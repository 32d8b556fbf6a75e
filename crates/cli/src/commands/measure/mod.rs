//! `landspeed measure`: measures a path with one workload.

mod args;
pub(crate) mod common;
pub(crate) mod grid;
mod grid_args;
pub(crate) mod series;
mod vary;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use landspeed_engine::{HostGroup, MeasureOptions, Pair, Pairing, measure};
use landspeed_record::MeasureReport;
use landspeed_record::units::Nanos;
use landspeed_report::live::IntervalLines;
use landspeed_report::{DetailLevel, OutputCapabilities, quoted};
use landspeed_transport::settings::FLOWS;
use parking_lot::Mutex;

use crate::command_line::command_line;
use crate::data;
use crate::exit::Exit;
use crate::failure::because;
use crate::hosts::{NamedHosts, flow_of};
use crate::output::{ActivityLine, present, usage};
use crate::stop::StopRequest;

pub(crate) use args::{MeasureArgs, with_workloads};
use common::CommonArgs;

pub(crate) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    if !args.common.grid.vary.is_empty() || args.common.grid.resume.is_some() {
        return vary::run(args);
    }
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    let what = measurement(args)?;
    let args = &args.common;
    let named = NamedHosts::parse(&args.hosts, false)?;
    let mut joined = named.join_for(Some(&what.workload), args.fan, Pairing::Topology)?;
    let names = names(&joined.group);
    let intervals = Arc::new(Mutex::new(IntervalLines::of(names)));
    let seen = Arc::clone(&intervals);
    stop.at_once_saying(move || seen.lock().unfinished());
    let doing = ActivityLine::new();
    doing.begin(&format!("measuring {}", what.workload.name));
    let report = measure(&joined.group, &what, &|pair, side, so_far| {
        intervals.lock().take(pair, side, so_far).iter().for_each(|line| doing.say(line));
    })?;
    drop(doing);
    let next = next(args, &report);
    let lost = [std::mem::take(&mut joined.lost), report.lost].concat();
    let report = MeasureReport { wan: joined.wan(), lost, next, ..report };
    drop(joined);
    let document = landspeed_report::measure(&report);
    present(&document, || landspeed_report::json(&report), &args.output.form, DetailLevel::Brief)?;
    Ok(unfinished(&report).map_or(Exit::Done.into(), |why| because(Exit::Failed, &why)))
}

/// Returns the names of the hosts of each pair, with the link where two hosts have several.
fn names(group: &HostGroup) -> Vec<[String; 2]> {
    let name = |pair: Pair<'_>| {
        let over = group.link_of(&pair).map_or_else(String::new, |link| format!(" over {link}"));
        [pair.a.name.clone(), format!("{}{over}", pair.b.name)]
    };
    group.pairs().map(name).collect()
}

/// Returns why the figures do not cover the whole run or all hosts, or `None` if they do.
fn unfinished(report: &MeasureReport) -> Option<String> {
    let lost = report.lost.first().map(|lost| format!("{} was lost: {}", lost.name, lost.why));
    report.partial.as_ref().map(|why| format!("the run did not come to its end: {why}")).or(lost)
}

/// Returns the command to run next over the same path: it explains what holds the data back or, for a round trip, looks
/// for settings that shorten it.
fn next(args: &CommonArgs, report: &MeasureReport) -> String {
    let is_program =
        landspeed_workload::find(&report.workload).is_some_and(|runner| runner.hosts().is_some());
    let path = args.hosts.again();
    let words = match (is_program, report.streams.is_empty() && !report.latency.is_empty()) {
        (true, _) => [vec!["explain".into(), "--app".into(), quoted(&report.workload.name)], path],
        (false, true) => [vec!["tune".into(), "--for".into(), "latency".into()], path],
        (false, false) => [vec!["explain".into()], [path, args.flow.again()].concat()],
    };
    format!("landspeed {}", words.concat().join(" "))
}

/// Time between two lines of figures on a terminal, if no option sets another.
const USUAL: Nanos = Nanos::secs(1);

fn measurement(args: &MeasureArgs) -> Result<MeasureOptions> {
    let common = &args.common;
    let runner = landspeed_workload::find(&args.workload).context("clap takes the names of the table")?;
    let (transport, mut flow) = flow_of(&common.flow, runner.flow())?;
    if let Some(flows) = &common.flows {
        flow.insert(FLOWS.name.to_owned(), FLOWS.parse(flows).map_err(usage)?);
    }
    Ok(MeasureOptions {
        workload: landspeed_workload::with_defaults(&args.workload, transport),
        flow,
        warm_up: common.warm_up.unwrap_or_else(|| runner.warm_up()),
        watch: common.watch.clone(),
        interval: common
            .interval
            .unwrap_or_else(|| if OutputCapabilities::stderr().terminal { USUAL } else { Nanos(0) }),
        over_time: common.interval.is_some() || common.output.form.html.is_some(),
        topology: common.hosts.describe(),
        command: command_line(),
        started: data::now(),
    })
}
