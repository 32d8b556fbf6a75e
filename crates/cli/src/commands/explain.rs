//! `landspeed explain`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_experiment::{ExplainOptions, explain, explain_live};
use landspeed_record::{ExplainReport, WatchTarget};
use landspeed_report::Output;
use landspeed_report::{Detail, explain_html, explain_json, explain_text};

use crate::args::ExplainArgs;
use crate::commands::show::out;
use crate::data;
use crate::ends::{Ends, flow_of};

/// Runs the command.
pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let options = options(args)?;
    let report = match options.target {
        WatchTarget::Workload => {
            let joined = Ends::parse(&args.hosts, false)?.join()?;
            let report = explain(&joined.pairs[0], &options, &mut say)?;
            ExplainReport { wan: joined.wan(), ..report }
        }
        _ => {
            let mut hosts = Ends::apart(&args.hosts, false).each()?;
            explain_live(&mut hosts, &options, &mut say)?
        }
    };
    present(&report, args)?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &ExplainArgs) -> Result<ExplainOptions> {
    let target = match (args.flow, args.pid, args.top) {
        (Some(at), _, _) => WatchTarget::Flow { at },
        (_, Some(pid), _) => WatchTarget::Pid { pid },
        (_, _, true) => WatchTarget::Top,
        _ => WatchTarget::Workload,
    };
    let live = target != WatchTarget::Workload;
    let topology = match (live, args.hosts.hosts.is_empty()) {
        (true, true) => "local".to_owned(),
        _ => args.hosts.describe(),
    };
    Ok(ExplainOptions {
        target,
        time: args.time,
        flow: flow_of(args.set.as_deref(), "explain")?,
        limits: !args.no_limits,
        trace: !args.no_trace,
        topology,
        command: data::command_line(),
        started: data::now(),
    })
}

/// Says on a terminal what is being done; a pipe gets nothing but the result.
fn say(what: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = writeln!(err, "{what} ...");
    }
}

fn present(report: &ExplainReport, args: &ExplainArgs) -> Result<()> {
    if let Some(file) = &args.html {
        std::fs::write(file, explain_html(report))
            .with_context(|| format!("cannot write the page {}", file.display()))?;
    }
    if args.json {
        return out(&explain_json(report));
    }
    let detail = if args.full { Detail::Full } else { Detail::Brief };
    out(&explain_text(report, Output::stdout(), detail))
}
