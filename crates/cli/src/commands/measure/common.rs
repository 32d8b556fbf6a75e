//! The options of `landspeed measure` that every workload has.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use landspeed_observer::OBSERVERS;
use landspeed_record::units::{Nanos, parse_duration};

use super::grid_args::GridArgs;
use crate::groups::{FanArg, FlowArgs, HostArgs, OutputArgs, choices};

/// Returns the parser of an option whose values are the names of observers.
fn observers() -> PossibleValuesParser {
    choices(OBSERVERS.iter().map(|row| (row.name, row.about)))
}

/// What every workload takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Do not count this start-up time [default: 200ms; none for copy and staggered]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Flow", hide_short_help = true)]
    pub(crate) warm_up: Option<Nanos>,
    #[command(flatten)]
    pub(crate) flow: FlowArgs,
    /// Print a stream's figures every so often; 0 prints none [default: 1s on a terminal, else 0]
    ///
    /// A line has goodput, retransmits, round trip and congestion window.
    #[arg(
        short, long, value_name = "TIME", value_parser = parse_duration, help_heading = "Output",
        conflicts_with_all = ["vary", "resume"]
    )]
    pub(crate) interval: Option<Nanos>,
    /// Parallel flows, as --set flows=N
    #[arg(short = 'P', long, value_name = "N", help_heading = "Flow")]
    pub(crate) flows: Option<String>,
    /// Measure many hosts at once: all others with the last one
    #[arg(long, value_enum, help_heading = "Path", hide_short_help = true, conflicts_with = "vary")]
    pub(crate) fan: Option<FanArg>,
    /// Also print what these observers saw
    #[arg(
        long, value_name = "NAME,...", value_delimiter = ',', value_parser = observers(), help_heading = "Output",
        hide_short_help = true, conflicts_with_all = ["vary", "resume"]
    )]
    pub(crate) watch: Vec<String>,
    #[command(flatten)]
    pub(crate) grid: GridArgs,
    #[command(flatten)]
    habits: IperfArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Options of iperf3 that mean the same here under another name.
#[derive(Debug, Clone, Args)]
struct IperfArgs {
    #[arg(short = 'c', value_name = "HOST", hide = true)]
    client: Option<String>,
    #[arg(short = 'u', hide = true, conflicts_with = "transport")]
    udp: bool,
    #[arg(short = 'J', hide = true)]
    document: bool,
}

impl CommonArgs {
    /// Sets landspeed's options from the given options of iperf3.
    pub(super) fn with_habits(mut self) -> CommonArgs {
        self.hosts.hosts.extend(self.habits.client.take());
        self.output.form.json |= self.habits.document;
        if self.habits.udp {
            self.flow.transport = "udp".to_owned();
        }
        self
    }
}

/// Returns true if every workload has an option of this name.
pub(crate) fn is_taken(name: &str) -> bool {
    let command = CommonArgs::augment_args(Command::new("measure"));
    command.get_arguments().any(|arg| arg.get_long() == Some(name)) || name == "help"
}
