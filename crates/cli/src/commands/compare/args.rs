//! Arguments of `landspeed compare`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use landspeed_record::SenderPart;
use landspeed_record::units::{Nanos, parse_duration};

use crate::commands::exec::{ACCEPT_PATIENCE, paths};
use crate::data::RecordArg;
use crate::groups::{HostArgs, OutputArgs};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QuestionArg {
    /// Four flows of one protocol come and go on one path (the paper's study)
    Regions,
    /// Every pair of protocols, each with two of the four flows
    Meetings,
    /// Short flows beside a long one
    ShortFlows,
    /// Flows with different round trips (--simulate, or lab:wan with second-rtt)
    RoundTrips,
    /// Cost per bit at the sender with 1, 2, 4 ... --parallel streams, each with the best of three windows
    Streams,
}

/// A part of a TCP sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SenderPartArg {
    /// Selective acknowledgements
    Sack,
    /// Tail loss probes
    TailLossProbes,
    /// Segmentation and receive offloads; the simulator never has them
    Superpackets,
}

impl SenderPartArg {
    pub(crate) fn part(self) -> SenderPart {
        match self {
            SenderPartArg::Sack => SenderPart::Sack,
            SenderPartArg::TailLossProbes => SenderPart::TailLossProbes,
            SenderPartArg::Superpackets => SenderPart::Superpackets,
        }
    }
}

/// landspeed's own exchanges through the sockets interface: applications `sockets-*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExchangeArg {
    /// One byte there and back, one at a time
    Pingpong,
    /// Bytes as fast as they go
    Stream,
    /// One connection after the other
    Connect,
}

impl ExchangeArg {
    /// Returns the name of the application that does this exchange.
    pub(crate) fn application(self) -> &'static str {
        match self {
            ExchangeArg::Pingpong => "sockets-pingpong",
            ExchangeArg::Stream => "sockets-stream",
            ExchangeArg::Connect => "sockets-connect",
        }
    }
}

/// Compare congestion controls over one path, or what carries a program below its sockets
#[derive(Debug, Args)]
#[command(
    after_help = "Four flows enter one region apart, and the last to enter is the first to leave. There are seven regions; the \
             middle one is twice as long. landspeed samples each flow and probes the round trip meanwhile (Cottrell et \
             al., section III.A). The paper's regions last 120 s, so --scale 1 takes 16 minutes a run. Only figures of \
             that scale are shown beside the paper's. Each run is recorded when it ends; use --resume to continue.\n\n\
             Examples:\n  \
             landspeed compare --simulate                     at the paper's full size, no root\n  \
             landspeed compare --simulate --scene 2004        with the senders and the traffic of the paper's time\n  \
             sudo landspeed compare -p cubic,bbr --repeats 5  on sockets, over an emulated path\n  \
             landspeed compare HOST_A HOST_B -p cubic,htcp    between real hosts\n  \
             sudo landspeed compare --ask round-trips lab:wan:rtt=40ms,second-rtt=160ms\n\n\
             With --paths, it compares what carries a program's connections below its sockets. Runs over all paths are interleaved, and \
             a run whose connections stayed on TCP fails (docs: paths):\n  \
             sudo landspeed compare --paths kernel,local --app redis\n  \
             sudo landspeed compare --paths kernel,local --workload pingpong\n  \
             landspeed compare --paths kernel,local -- ./my-benchmark"
)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Congestion controls, udt or quic [default: the study's nine, cubic and bbr]
    ///
    /// `landspeed cc list` has the controls' names. Each takes settings of the flow, as in cubic+pacing-rate=1G or
    /// default+transport=NAME. udt and quic are transports with controls of their own.
    #[arg(short, long, value_name = "NAME[+SETTING=VALUE],...", value_delimiter = ',')]
    pub(crate) protocols: Vec<String>,
    /// Questions to answer
    #[arg(long, value_enum, value_name = "QUESTION,...", value_delimiter = ',', default_value = "regions")]
    pub(crate) ask: Vec<QuestionArg>,
    /// Length of regions over the paper's 120 s [default: 0.1, simulated 1]
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<f64>,
    /// Runs of each protocol, for intervals
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeats: u32,
    /// Make at most this many runs now; --resume makes the others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// With --ask streams: largest number of parallel streams
    ///
    /// The paper's best was 16 streams of 2 MB.
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) parallel: u16,
    /// Flows of a run
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    pub(crate) flows: u16,
    /// Simulate every packet: needs no root and sends nothing
    ///
    /// The simulator runs the C sources that the kernel gets.
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Simulate the senders, windows, losses and other traffic of this year on the paper's path
    ///
    /// 2004: the sender of Linux 2.4, windows of 16 MB, and a path of 622 Mb/s from a family of such paths (docs/results/scene-2004.md).
    #[arg(long, value_name = "YEAR", value_parser = ["2004"], requires = "simulate", conflicts_with = "hosts")]
    pub(crate) scene: Option<String>,
    /// Leave these parts out of TCP's senders, on sockets as in the simulator
    ///
    /// On sockets it sets tcp_sack, tcp_early_retrans, and the offloads tso, gso and gro of both hosts, and restores
    /// them.
    #[arg(
        long,
        hide_short_help = true,
        value_enum,
        value_name = "PART,...",
        value_delimiter = ',',
        conflicts_with = "scene"
    )]
    pub(crate) without: Vec<SenderPartArg>,
    /// Compare these paths below a program's sockets instead; the first is the reference
    ///
    /// `landspeed exec --help` has their names.
    #[arg(long, value_name = "PATH,...", value_delimiter = ',', value_parser = paths(), help_heading = "Paths",
        conflicts_with_all = ["protocols", "ask", "scale", "repeats", "runs", "parallel", "flows", "simulate", "scene", "without", "resume"])]
    pub(crate) paths: Vec<String>,
    /// With --paths: run this application of `landspeed app list`, or of a file, between two hosts
    #[arg(long, value_name = "NAME|FILE", help_heading = "Paths", requires = "paths", conflicts_with_all = ["workload", "program"])]
    pub(crate) app: Option<String>,
    /// With --paths: run landspeed's own exchange between two hosts
    #[arg(long, value_enum, help_heading = "Paths", requires = "paths", conflicts_with = "program")]
    pub(crate) workload: Option<ExchangeArg>,
    /// With --app or --workload: set parameters, such as size=64K
    #[arg(
        long,
        value_name = "NAME=VALUE,...",
        help_heading = "Paths",
        requires = "paths",
        conflicts_with = "program"
    )]
    pub(crate) with: Option<String>,
    /// With --app: predict each path's ratio from what the program does with its sockets, and from what each path costs
    ///
    /// It measures the three workloads over every path first. The page has the papers' interconnects too, by the same model,
    /// where it is off by no more than a factor of 1.5 over these paths.
    #[arg(long, help_heading = "Paths", requires = "app")]
    pub(crate) predict: bool,
    /// With --paths: run over each path this many times
    #[arg(long, value_name = "N", help_heading = "Paths", requires = "paths", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) blocks: u32,
    /// With a program behind -- and the path local: wait this long at most until the other program has accepted
    ///
    /// It is the --patience of `landspeed exec`. A connection that is accepted later stays on TCP, and its run fails. Programs on a
    /// busy or slow host accept late. Between two hosts, clients wait a second.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = ACCEPT_PATIENCE, help_heading = "Paths",
        requires = "program", conflicts_with_all = ["app", "workload"])]
    pub(crate) accept_patience: Nanos,
    /// With --paths: run this program on this host; both ends of its connections are in it
    #[arg(last = true, value_name = "PROGRAM", requires = "paths", help_heading = "Paths")]
    pub(crate) program: Vec<OsString>,
    /// Continue the study of this record with its own options
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["protocols", "ask", "scale", "flows", "simulate", "scene", "without", "seed", "hosts"])]
    pub(crate) resume: Option<RecordArg>,
    /// Seed of the order of runs and of all random choices
    #[arg(long, hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// Use real hosts without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
