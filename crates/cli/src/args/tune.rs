//! Arguments of `landspeed tune`.

use clap::{Args, ValueEnum};
use landspeed_units::{BitRate, Nanos, parse_duration};

use super::measure::transports;
use super::{HostArgs, OutputArgs};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoalArg {
    /// Goodput
    Rate,
    /// Idle round-trip time
    Latency,
    /// Bytes per second of processor time
    Cpu,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BaselineArg {
    /// The hosts as they are (default for real hosts)
    Found,
    /// As the SC'03 paper started: MTU 1500, offloads off, 64 KB windows, Reno (default for the lab)
    Sc03,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Knobs are listed by `landspeed knobs`. Every trial goes into a record under the data\n\
             directory; `landspeed show` prints it again, `landspeed persist` makes its result last."
)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// What shall get better; the other figures must not get worse by over 10 %
    #[arg(long = "for", value_enum, default_value = "rate", value_name = "GOAL")]
    pub(crate) goal: GoalArg,
    /// What carries the data
    #[arg(long, value_parser = transports(), default_value = "tcp", conflicts_with = "record_run")]
    pub(crate) transport: String,
    /// Where to start from
    #[arg(long, value_enum)]
    pub(crate) baseline: Option<BaselineArg>,
    /// Time for the whole run; at least a quarter is kept for the final check
    #[arg(long, default_value = "7m", value_parser = parse_duration)]
    pub(crate) budget: Nanos,
    /// Try only this knob (may be repeated)
    #[arg(long, value_name = "KNOB")]
    pub(crate) only: Vec<String>,
    /// Do not try this knob (may be repeated)
    #[arg(long, value_name = "KNOB")]
    pub(crate) skip: Vec<String>,
    /// Try knobs in the literature's order alone. Else a stream is watched for 2 s at the start and after each kept
    /// step, and what would relieve the bottleneck comes first (not --for latency)
    #[arg(long)]
    pub(crate) no_explain: bool,
    /// Compare the result with these settings at the end: mtu=9000,tso=on,...
    #[arg(long, value_name = "KNOB=VALUE,...")]
    pub(crate) against: Option<String>,
    /// Go on after the run for so long with blocks of final against start, at growing distances, and say whether the gain
    /// lasts. Ctrl-C ends it with what is there
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "record_run")]
    pub(crate) confirm_for: Option<Nanos>,
    /// Say what would be tried; turn nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// No ladder: the Land Speed Record's run (SC'03 section 4). One stream with jumbo frames and its window capped at
    /// what the path holds, then one without the cap. Try lab:wan:rate=2.5G,rtt=180ms
    #[arg(long)]
    pub(crate) record_run: bool,
    /// With --record-run: how long each of the two streams counts
    #[arg(long, default_value = "60s", value_parser = parse_duration, requires = "record_run")]
    pub(crate) time: Nanos,
    /// With --record-run: how far the data goes, for bit-metres per second (Sunnyvale to Geneva: 10037)
    #[arg(long, value_name = "KM", requires = "record_run")]
    pub(crate) distance: Option<f64>,
    /// With --record-run: the path's rate, where the hosts' links do not tell it
    #[arg(long, value_name = "RATE", requires = "record_run")]
    pub(crate) rate: Option<BitRate>,
    /// With --record-run on lab:wan: lose one segment on purpose afterwards, and see how long the window takes to grow
    /// back (about rate x RTT^2 / 16 MSS: ten minutes at 2.5 Gb/s and 180 ms)
    #[arg(long, requires = "record_run")]
    pub(crate) recovery: bool,
    /// Touch real hosts without asking first
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Seed of the orders of trials
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
