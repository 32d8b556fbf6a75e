//! `landspeed explain`: explains what holds a path or a flow back.

mod top;

use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_engine::{
    ExplainOptions, Pairing, SizesEffort, SizesOptions, UserListener, explain, explain_live, explain_sizes,
    explain_time,
};
use landspeed_record::units::{Nanos, parse_duration};
use landspeed_record::{ExplainReport, Settings, WatchTarget};
use landspeed_report::{DetailLevel, OutputCapabilities, json};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{encrypted, find};

use super::app;
use crate::command_line::command_line;
use crate::data;
use crate::groups::{FanArg, FlowArgs, FormArgs, HostArgs};
use crate::hosts::{NamedHosts, flow_of};
use crate::output::{ActivityLine, present as present_report, usage};
use crate::stop::StopRequest;

/// Explain what limits a path or a flow, and what to try
#[derive(Debug, Args)]
#[command(
    after_help = "Without --flow, --pid or --top, landspeed sends a stream between two hosts and explains it. With one of them \
             it sends nothing and measures nothing else: it watches existing flows on the hosts given, or on this host alone. \
             Root sees most. Without root, each part that cannot run says what it lacks.\n\n\
             Examples:\n  \
             sudo landspeed explain --flow 10.0.0.2:443    why a flow is no faster\n  \
             sudo landspeed explain --pid nginx            why a program's flows are no faster\n  \
             sudo landspeed explain HOST_A HOST_B          why a path is no faster"
)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Explain the flows of this address and port; without a port, of any
    #[arg(long, value_name = "ADDR[:PORT]", group = "target", value_parser = flow_address)]
    pub(crate) flow: Option<SocketAddr>,
    /// Explain the flows of this process, or of all processes with this name, and of their children
    #[arg(long, value_name = "PID|NAME", group = "target", value_parser = process)]
    pub(crate) pid: Option<WatchTarget>,
    /// Explain the flows that carry most
    #[arg(long, group = "target")]
    pub(crate) top: bool,
    /// Run this application, or `copy`, and explain its flows
    ///
    /// `copy` copies files as `landspeed copy` does, over --transport and encrypted.
    #[arg(long, value_name = "NAME|FILE", group = "target", conflicts_with = "sizes")]
    pub(crate) app: Option<String>,
    /// Explain streams between many hosts: of all others with the last one
    #[arg(long, value_enum, hide_short_help = true, conflicts_with_all = ["target", "sizes"])]
    pub(crate) fan: Option<FanArg>,
    /// Set the application's parameters, such as size=4K
    #[arg(long, value_name = "NAME=VALUE,...", requires = "app", hide_short_help = true)]
    pub(crate) with: Option<String>,
    /// Watch for this long
    #[arg(short, long, default_value = "10s", value_parser = parse_duration)]
    pub(crate) time: Nanos,
    #[command(flatten)]
    pub(crate) sent: FlowArgs,
    /// Do not measure what memory, copies and raw packets can do
    #[arg(long, hide_short_help = true)]
    pub(crate) no_limits: bool,
    /// Measure what memory, copies and raw packets can do for existing flows too
    #[arg(long, hide_short_help = true, conflicts_with = "no_limits")]
    pub(crate) limits: bool,
    /// Also send datagrams, to find the rate that the path carries
    ///
    /// Other programs on the path get less for up to 10 s. The verdict then knows whether the path is the limit, and
    /// whether a token bucket lets bursts through.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["target", "fan"])]
    pub(crate) capacity: bool,
    /// Do not follow packets through the kernel
    #[arg(long, hide_short_help = true)]
    pub(crate) no_trace: bool,
    /// Also measure the cost per packet and per byte over message sizes
    ///
    /// It takes two to three minutes of unpaced datagrams and writes of 32 B to 32 KB, in a lab also at MTU 9000.
    #[arg(long, hide_short_help = true)]
    pub(crate) sizes: bool,
    /// Print everything that was seen
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// Parses an address with or without a port, which is 0 if there is none.
fn flow_address(text: &str) -> Result<SocketAddr, String> {
    let bare = || text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    text.parse()
        .or_else(|_| bare().map(|ip| SocketAddr::new(ip, 0)))
        .map_err(|_| "expected an address, such as 10.0.0.2 or 10.0.0.2:443".to_owned())
}

pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    if args.top && is_watched(args) {
        return top::run(args, &stop);
    }
    let options = options(args)?;
    let doing = ActivityLine::new();
    let (report, sizes) = match options.target {
        WatchTarget::Workload => own(args, &options, &stop, &doing)?,
        _ if args.sizes => {
            return Err(usage(
                "--sizes sends messages of its own: it cannot go with --flow, --pid or --top, which send nothing",
            ));
        }
        _ => {
            let mut hosts = NamedHosts::apart(&args.hosts, false).each()?;
            (explain_live(&mut hosts, &options, &mut |what| doing.begin(what))?, Ok(()))
        }
    };
    drop(doing);
    present(&report, args)?;
    sizes.map(|()| ExitCode::SUCCESS)
}

/// Explains a stream that landspeed sends, and measures costs by message size if requested. Returns the explanation
/// even if the measurement of costs failed.
fn own(
    args: &ExplainArgs,
    options: &ExplainOptions,
    stop: &StopRequest,
    doing: &ActivityLine,
) -> Result<(ExplainReport, Result<()>)> {
    let may_turn = args.sizes && back_to_back(args);
    let named = NamedHosts::parse(&args.hosts, may_turn)?;
    let mut joined = named.join_for(options.program.as_ref(), args.fan, Pairing::FirstTwo)?;
    doing.say(&about(args, options, joined.group.rtt()));
    let report = explain(&joined.group, options, &mut |what| doing.begin(what))?;
    let mut report = ExplainReport { wan: joined.wan(), ..report };
    report.notes.extend(joined.lost.iter().map(|lost| format!("lost {}: {}", lost.name, lost.why)));
    if !args.sizes {
        return Ok((report, Ok(())));
    }
    // Settings change from here on, so a request to stop ends the run in order.
    stop.in_order("ending: settings are restored, then what was measured is shown");
    let sizes = SizesOptions {
        flow: options.flow.clone(),
        may_turn,
        seed: u64::from(std::process::id()),
        effort: SizesEffort::default(),
    };
    let mut listener = UserListener { progress: &mut |what| doing.begin(what), stop: &|| stop.asked() };
    let result = explain_sizes(&mut joined.group, &sizes, &mut listener, &mut report);
    Ok((report, result.map_err(Into::into)))
}

/// Returns a description of what will happen, and of how long it takes.
fn about(args: &ExplainArgs, options: &ExplainOptions, rtt: Nanos) -> String {
    if let Some(program) = &options.program {
        return format!("{} runs once and is watched from both ends", program.name);
    }
    let limits = if options.limits { landspeed_agent::LIMITS_TIME } else { Nanos(0) };
    let time = explain_time(options, rtt) + limits;
    let sizes = if args.sizes { ", then two to three minutes of messages" } else { "" };
    format!("a stream is sent and watched from both ends: {} in all{sizes}", landspeed_report::about(time))
}

/// Returns true for a lab whose hosts are joined directly, so that no link between them can have another MTU.
fn back_to_back(args: &ExplainArgs) -> bool {
    args.hosts.hosts.iter().all(|word| matches!(word.as_str(), "lab" | "lab:back-to-back"))
}

/// Returns true if standard input and output are a terminal, and no other form of output was requested.
fn is_watched(args: &ExplainArgs) -> bool {
    let form = &args.form;
    let asks = args.full || args.sizes || form.json || form.md || form.html.is_some() || form.csv.is_some();
    !asks && OutputCapabilities::stdout().terminal && std::io::stdin().is_terminal()
}

fn options(args: &ExplainArgs) -> Result<ExplainOptions> {
    let target = match (args.flow, args.pid, args.top) {
        (Some(at), _, _) => WatchTarget::Flow { at },
        (_, Some(processes), _) => processes,
        (_, _, true) => WatchTarget::Top,
        _ => WatchTarget::Workload,
    };
    let live = target != WatchTarget::Workload;
    let topology = match (live, args.hosts.hosts.is_empty()) {
        (true, true) => "local".to_owned(),
        (true, false) => args.hosts.as_given(),
        (false, _) => args.hosts.describe(),
    };
    let workload = args.app.as_deref().map(app::in_place_of_stream).transpose()?;
    let program = workload.map(|workload| app::set_on(workload, args.with.as_deref())).transpose()?;
    Ok(ExplainOptions {
        target,
        program,
        time: args.time,
        flow: flow(args)?,
        // Beside flows of other programs, the limits are measured only on request.
        limits: if live { args.limits } else { !args.no_limits },
        capacity: args.capacity,
        trace: !args.no_trace,
        topology,
        command: command_line(),
        started: data::now(),
    })
}

/// Returns the settings of the flows that landspeed opens: those of a stream, or of a workload with its own settings.
fn flow(args: &ExplainArgs) -> Result<Settings> {
    let own = args.app.as_deref().and_then(app::own).map(|runner| runner.flow()).unwrap_or_default();
    let usual = own.iter().find(|(name, _)| *name == TRANSPORT.name).and_then(|(_, usual)| find(usual));
    // If a workload encrypts its flows, it does so over each stream transport.
    let is_encrypted = usual.is_some_and(|usual| usual.encrypts().is_some());
    let carried = encrypted(&args.sent.transport).filter(|_| is_encrypted);
    let transport = carried.map_or(args.sent.transport.as_str(), |carried| carried.name()).to_owned();
    Ok(flow_of(&FlowArgs { transport, set: args.sent.set.clone() }, own)?.1)
}

/// Parses the id or the name of a process.
fn process(text: &str) -> Result<WatchTarget, String> {
    match text.parse() {
        Ok(pid) => Ok(WatchTarget::Pid { pid }),
        Err(_) if text.is_empty() => Err("a process has an id or a name".to_owned()),
        Err(_) => Ok(WatchTarget::Name { name: text.into() }),
    }
}

fn present(report: &ExplainReport, args: &ExplainArgs) -> Result<()> {
    let detail = if args.full { DetailLevel::Full } else { DetailLevel::Brief };
    present_report(&landspeed_report::explain(report), || json(report), &args.form, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_alone_means_any_port() {
        let read = |text| flow_address(text).map(|at| at.to_string());
        assert_eq!(read("10.0.0.1").as_deref(), Ok("10.0.0.1:0"));
        assert_eq!(read("10.0.0.1:443").as_deref(), Ok("10.0.0.1:443"));
        assert_eq!(read("2001:db8::1").as_deref(), Ok("[2001:db8::1]:0"));
        assert_eq!(read("[2001:db8::1]").as_deref(), Ok("[2001:db8::1]:0"));
        assert!(read("dtn1:443").is_err_and(|why| why.contains("10.0.0.2:443")));
    }
}
