//! Arguments of `landspeed tune`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use landspeed_analysis::Metric;
use landspeed_record::units::{BitRate, Nanos, parse_duration};

use crate::groups::{FanArg, HostArgs, OutputArgs, transports};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BaselineArg {
    /// The hosts as they are (default for real hosts)
    Found,
    /// As the SC'03 paper started: MTU 1500, offloads off, 64 KB windows, Reno (default for the lab)
    Sc03,
}

/// Tune a path, keep what is proven to help, restore everything
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "`landspeed knobs` lists all settings. Every trial goes into a record in the data directory: \
             `landspeed show` prints it again, and `landspeed persist` writes its result as files.\n\n\
             Example: sudo landspeed tune HOST_A HOST_B --budget 5m"
)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Improve this figure; the others get worse by 10 % at most
    #[arg(long = "for", value_parser = goals(), default_value = "rate", value_name = "GOAL")]
    pub(crate) goal: Metric,
    /// Tune many hosts at once: streams of all others with the last one
    #[arg(long, value_enum, help_heading = "Path", hide_short_help = true, conflicts_with_all = ["app", "record_run"])]
    pub(crate) fan: Option<FanArg>,
    /// Tune for this program: an application of `landspeed app list`, or a file; or for `copy`
    ///
    /// It runs in place of landspeed's own stream, and its figure decides. The settings that are tried are the hosts'. `copy` copies
    /// files as `landspeed copy` does, over TLS; goodput decides, and settings of its flows are tried too.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Program", conflicts_with_all = ["record_run", "transport", "server"])]
    pub(crate) app: Option<String>,
    /// Set the application's parameters, such as size=4K,metric=p99
    ///
    /// `metric` is the figure that decides: the first that its file names by default. `copy` takes what `measure copy` takes,
    /// such as bytes=64M.
    #[arg(long, value_name = "NAME=VALUE,...", help_heading = "Program", requires = "app")]
    pub(crate) with: Option<String>,
    /// Run this command on the second host as a server: it is ready once port {port} of {address} is open
    #[arg(
        long,
        value_name = "COMMAND",
        help_heading = "Program",
        hide_short_help = true,
        requires = "client",
        conflicts_with = "record_run"
    )]
    pub(crate) server: Option<String>,
    /// Run this command on the first host; it connects to port {port} of {server} and prints the figure
    #[arg(long, value_name = "COMMAND", help_heading = "Program", hide_short_help = true, requires_all = ["server", "metric"])]
    pub(crate) client: Option<String>,
    /// Find the figure in the client's output by this regular expression, with one group around the number
    #[arg(long, value_name = "REGEX", help_heading = "Program", hide_short_help = true, requires = "client")]
    pub(crate) metric: Option<String>,
    /// With --metric: less of it is better
    #[arg(long, help_heading = "Program", hide_short_help = true, requires = "metric")]
    pub(crate) less_is_better: bool,
    /// Carry the data by this transport
    #[arg(long, value_parser = transports(), default_value = "tcp", conflicts_with = "record_run")]
    pub(crate) transport: String,
    /// Start from these settings
    #[arg(long, value_enum)]
    pub(crate) baseline: Option<BaselineArg>,
    /// Hold these settings, laid over the baseline: what your program is bound to, such as write-size=1472
    #[arg(long, value_name = "KNOB=VALUE,...", hide_short_help = true, conflicts_with = "record_run")]
    pub(crate) set: Vec<String>,
    /// Time for the whole run; at least a quarter is the final check
    #[arg(long, value_name = "TIME", default_value = "7m", value_parser = parse_duration)]
    pub(crate) budget: Nanos,
    /// Try only these settings, by landspeed's or the system's names
    #[arg(long, value_name = "KNOB,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Do not try these settings
    #[arg(long, value_name = "KNOB,...", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// Try settings in the order of the literature
    ///
    /// By default, landspeed watches a stream for 2 s at the start and after each kept step, and tries first what relieves the
    /// bottleneck (except --for latency).
    #[arg(long, hide_short_help = true)]
    pub(crate) no_explain: bool,
    /// Compare the result with these settings, such as mtu=9000,tso=on
    #[arg(long, value_name = "KNOB=VALUE,...", hide_short_help = true)]
    pub(crate) against: Option<String>,
    /// After the run, compare the result with the start for this long
    ///
    /// It compares at growing distances and says whether the gain lasts. Ctrl-C ends it early.
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = parse_duration, conflicts_with = "record_run")]
    pub(crate) confirm_for: Option<Nanos>,
    /// Show what would be tried, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// List all settings before the run, and print the full report after it
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    /// Repeat the Land Speed Record of SC'03 instead
    ///
    /// Section 4 of the paper: one stream with jumbo frames and its window capped at what the path holds, then one without the
    /// cap. Try lab:wan:rate=2.5G,rtt=180ms.
    #[arg(long, hide_short_help = true, help_heading = "Land Speed Record")]
    pub(crate) record_run: bool,
    /// With --record-run: measure each of the two streams for this long
    #[arg(long, hide_short_help = true, help_heading = "Land Speed Record", default_value = "60s", value_parser = parse_duration, requires = "record_run")]
    pub(crate) time: Nanos,
    /// With --record-run: distance for bit-metres per second
    ///
    /// From Sunnyvale to Geneva it is 10037.
    #[arg(
        long,
        hide_short_help = true,
        help_heading = "Land Speed Record",
        value_name = "KM",
        requires = "record_run"
    )]
    pub(crate) distance: Option<f64>,
    /// With --record-run: rate of the path, if the links do not state it
    #[arg(
        long,
        hide_short_help = true,
        help_heading = "Land Speed Record",
        value_name = "RATE",
        requires = "record_run"
    )]
    pub(crate) rate: Option<BitRate>,
    /// With --record-run on lab:wan: drop a segment and time the recovery
    ///
    /// The window takes about rate x RTT^2 / 16 MSS to recover: ten minutes at 2.5 Gb/s and 180 ms.
    #[arg(long, hide_short_help = true, help_heading = "Land Speed Record", requires = "record_run")]
    pub(crate) recovery: bool,
    /// Change real hosts without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// End with 4 where no gain is proven
    #[arg(long, conflicts_with = "record_run")]
    pub(crate) exit_code: bool,
    /// Seed of the random order of trials
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn goals() -> impl TypedValueParser<Value = Metric> {
    let name = |metric: Metric| PossibleValue::new(metric.row().goal).help(metric.row().about);
    PossibleValuesParser::new(Metric::ALL.map(name)).map(|goal| Metric::of_goal(&goal))
}
