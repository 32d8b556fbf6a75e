//! `landspeed tune --record-run`: repeats the Land Speed Record of SC'03.

use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_engine::{Pairing, RecordRunOptions, RecoveryLosses, record_run, recover};
use landspeed_lab::topology::{self as topology, PlannedPath};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{LabRecovery, LossRecovery, RecordRunReport};
use landspeed_report::{DetailLevel, json};
use landspeed_simulator::{FullPath, full_window, recovery_time, simulated_recovery};

use super::TuneArgs;
use crate::command_line::command_line;
use crate::data;
use crate::exit::Exit;
use crate::failure::because;
use crate::hosts::NamedHosts;
use crate::output::{ActivityLine, agree, present};
use crate::stop::StopRequest;

pub(crate) fn run(args: &TuneArgs) -> Result<ExitCode> {
    StopRequest::on_signals().context("cannot take signals over")?;
    let named = NamedHosts::parse(&args.hosts, true)?;
    let losing = args.recovery.then(|| path(&args.hosts.hosts)).transpose()?;
    let mut joined = named.join(Pairing::FirstTwo)?;
    let (group, hosts) = (&mut joined.group, &*joined.hosts);
    if !named.in_lab() && !args.yes {
        let pair = group.first();
        agree(&format!(
            "{} sends to {} as fast as the path carries, two streams of {} each.\n\
             MTU, tcp_wmem and tcp_rmem are set for it and restored at the end. Other traffic\n\
             will notice.  Continue? [y/N] ",
            pair.a.name, pair.b.name, args.time
        ))?;
    }
    let options = RecordRunOptions {
        time: args.time,
        distance_m: args.distance.map(|km| km * 1000.0),
        rate_bps: args.rate,
        topology: args.hosts.describe(),
        command: command_line(),
        started: data::now(),
    };
    let doing = ActivityLine::new();
    let mut run = record_run(group, hosts, &options, &mut |what| doing.begin(what))?;
    drop(doing);
    drop(joined);
    run.recovery = recovery(&run);
    if let Some(path) = losing {
        run.recovery.lab = Some(in_lab(&named, &*path, &run)?);
    }
    present(&landspeed_report::record_run(&run), || json(&run), &args.output.form, DetailLevel::Brief)?;
    let unfit = unfit(&run);
    let complaint = run.restore_outcome().complaint().unwrap_or_default();
    Ok(match unfit {
        _ if !run.restored && !run.left => because(Exit::NotRestored, &complaint),
        Some(why) => because(Exit::Failed, &format!("the figures do not count: {why}")),
        None if run.left => because(Exit::Left, &complaint),
        None => Exit::Done.into(),
    })
}

/// Returns why the capped run, or the recovery after its loss, does not count, or `None` if both count.
fn unfit(run: &RecordRunReport) -> Option<String> {
    let recovery = run.recovery.lab.iter().flat_map(|lab| &lab.unfit);
    run.capped.unfit.iter().chain(recovery).next().cloned()
}

/// Returns the emulated path of a lab, which can drop a segment on request, or an error for other hosts.
fn path(words: &[String]) -> Result<Box<dyn PlannedPath>> {
    topology::path(words)?.context(
        "--recovery loses a segment on purpose, which only a link of landspeed's own does: name one, such as \
         lab:wan:rate=2.5G,rtt=180ms",
    )
}

/// Measures the cost of one loss on real sockets, over the same link with no other losses.
fn in_lab(named: &NamedHosts, planned: &dyn PlannedPath, run: &RecordRunReport) -> Result<LabRecovery> {
    let rtt = run.path.rtt_ns;
    let path = full_window(run.path_rate_bps, rtt, run.recovery.segment_bytes) as u64;
    let queue = planned.queue().map_or(0, |queue| queue.0 / u64::from(run.mtu_bytes.max(1)));
    let losses = RecoveryLosses::on(path, queue, rtt);
    let mut joined = named.join_others(&planned.losing_only(&losses.packets), Pairing::FirstTwo)?;
    let (group, hosts) = (&mut joined.group, &*joined.hosts);
    let doing = ActivityLine::new();
    doing.begin(&format!("one stream for {}, which loses a segment on purpose", losses.time));
    Ok(recover(group, hosts, &losses)?)
}

/// Bytes of the IPv4 and TCP headers, which the paper's formula subtracts.
const HEADERS: u32 = 40;

/// Longest recovery that is simulated to its end.
const WORTH_SIMULATING: Nanos = Nanos::secs(3600);

/// Returns the cost of one loss on this path by the paper's formula and by simulation.
fn recovery(run: &RecordRunReport) -> LossRecovery {
    let (rate, rtt) = (run.path_rate_bps, run.path.rtt_ns);
    let segment_bytes = Bytes(run.mtu_bytes.saturating_sub(HEADERS).into());
    let formula = recovery_time(rate, rtt, segment_bytes);
    let mtu_bytes = u16::try_from(run.mtu_bytes).unwrap_or(u16::MAX);
    let path = FullPath { rate_bps: rate, rtt_ns: rtt, mtu_bytes };
    // The formula's time doubled is an upper limit.
    let within = Nanos(formula.0 * 2).min(WORTH_SIMULATING);
    let doing = ActivityLine::new();
    let on_time = doing.simulating("Reno after one loss", within);
    let simulated = simulated_recovery("reno", path, within, on_time).ok().flatten();
    LossRecovery {
        formula_s: formula.as_secs_f64(),
        simulated_s: simulated.map(|time| time.as_secs_f64()),
        segment_bytes,
        lab: None,
    }
}
