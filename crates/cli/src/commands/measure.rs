//! `landspeed measure`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use landspeed_experiment::{Measurement, measure};
use landspeed_record::{
    DatagramReceive, DatagramSend, Direction, FlowSettings, MeasureReport, Receiver, Workload,
};
use landspeed_report::Output;
use landspeed_units::Bytes;

use crate::args::{FanArg, MeasureArgs, ReceiverArg, TransportArg, UdpPathArg, WorkloadArg};
use crate::data;
use crate::ends::{Ends, flow_of};
use crate::stop::Leave;

/// Runs the command.
pub(crate) fn run(args: MeasureArgs) -> Result<ExitCode> {
    Leave::on_signals().context("cannot take signals over")?;
    let ends = Ends::parse(&args.hosts, false)?;
    let what = measurement(&args)?;
    let joined = match args.fan {
        Some(FanArg::In) => ends.join_fan(true)?,
        Some(FanArg::Out) => ends.join_fan(false)?,
        None => ends.join_pairs()?,
    };
    let report = measure(&joined.pairs, &what)?;
    let report = MeasureReport { wan: joined.wan(), ..report };
    drop(joined);
    if args.json {
        println!("{}", landspeed_report::measure::json(&report));
    } else {
        let output = Output::stdout();
        print!("{}", landspeed_report::measure::text(&report, output.width, output.color));
    }
    Ok(ExitCode::SUCCESS)
}

fn measurement(args: &MeasureArgs) -> Result<Measurement> {
    Ok(Measurement {
        workload: workload(args)?,
        flow: flow(args)?,
        warm_up: args.warm_up,
        topology: args.hosts.describe(),
        command: data::command_line(),
        started: data::now(),
    })
}

fn flow(args: &MeasureArgs) -> Result<FlowSettings> {
    let mut flow = flow_of(args.set.as_deref(), "measure")?;
    if args.flows != 1 {
        flow.flows = args.flows;
    }
    match args.transport {
        TransportArg::Tcp => Ok(flow),
        TransportArg::Udp => Ok(datagrams(args.udp_path, flow)),
    }
}

/// The payload of a UDP datagram that fills an Ethernet packet over IPv4.
const DATAGRAM: Bytes = Bytes(1472);

/// `flow` over UDP. A write size that nobody chose is that of a stream.
fn datagrams(path: UdpPathArg, flow: FlowSettings) -> FlowSettings {
    let (datagram_send, datagram_receive) = match path {
        UdpPathArg::Plain => (DatagramSend::Plain, DatagramReceive::Plain),
        UdpPathArg::Batch => (DatagramSend::Batch, DatagramReceive::Batch),
        UdpPathArg::Gso => (DatagramSend::Gso, DatagramReceive::Plain),
        UdpPathArg::GsoGro => (DatagramSend::Gso, DatagramReceive::Gro),
    };
    let chosen = flow.write_bytes != FlowSettings::default().write_bytes;
    let write_bytes = if chosen { flow.write_bytes } else { DATAGRAM };
    FlowSettings { transport: "udp".to_owned(), write_bytes, datagram_send, datagram_receive, ..flow }
}

fn workload(args: &MeasureArgs) -> Result<Workload> {
    let direction = match (args.reverse, args.bidir) {
        (true, _) => Direction::Reverse,
        (_, true) => Direction::Both,
        _ => Direction::Forward,
    };
    if direction != Direction::Forward && args.workload != WorkloadArg::Stream {
        bail!("--reverse and --bidir are for stream: swap the hosts instead");
    }
    Ok(match args.workload {
        WorkloadArg::Stream => Workload::Stream { duration_ns: args.time, direction },
        WorkloadArg::Sweep => Workload::Sweep { count: args.count, sizes_bytes: sweep_sizes(args) },
        WorkloadArg::Pingpong => Workload::PingPong {
            sizes_bytes: or(&args.sizes, message_sizes(args.transport)),
            duration_ns: args.time,
            receiver: match args.receiver {
                ReceiverArg::Blocking => Receiver::Blocking,
                ReceiverArg::BusyPoll => Receiver::BusyPoll,
                ReceiverArg::Spinning => Receiver::Spinning,
            },
        },
        WorkloadArg::Connect => Workload::Connect { duration_ns: args.time },
    })
}

/// Powers of two over the papers' ranges (feng-2003, jin-yoo-2007), with the payload of one Ethernet
/// packet among them.
fn sweep_sizes(args: &MeasureArgs) -> Vec<Bytes> {
    let usual: &[u64] = match args.transport {
        TransportArg::Tcp => &[128, 256, 512, 1024, 1448, 2048, 4096, 8192, 16_384],
        TransportArg::Udp => &[32, 64, 128, 256, 512, 1024, 1472, 2048, 4096, 8192, 16_384, 32_768],
    };
    or(&args.sizes, usual)
}

/// The smallest that there is first: a datagram has a header of 16 bytes that numbers it.
fn message_sizes(transport: TransportArg) -> &'static [u64] {
    match transport {
        TransportArg::Tcp => &[1, 64, 256, 1024],
        TransportArg::Udp => &[16, 64, 256, 1024],
    }
}

fn or(given: &[Bytes], usual: &[u64]) -> Vec<Bytes> {
    if given.is_empty() { usual.iter().copied().map(Bytes).collect() } else { given.to_vec() }
}
