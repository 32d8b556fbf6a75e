//! The arguments of the command line.

mod cc;
mod compare;
mod exec;
mod grid;
mod measure;
mod run;
mod tune;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use landspeed_agent::session::{ZonedAddress, ZonedSocketAddress};
use landspeed_lab::topology::{HostSpec, TOPOLOGIES};
use landspeed_record::units::{Nanos, parse_duration};

use crate::data::RecordArg;
use crate::exit;

pub(crate) use cc::{CcAction, CcArgs, RecoveryArgs};
pub(crate) use compare::{CompareArgs, ExchangeArg, QuestionArg};
pub(crate) use exec::{ExecArgs, paths};
pub(crate) use grid::GridArgs;
pub(crate) use measure::{FanArg, FlowArgs, MeasureArgs, is_taken};
pub(crate) use run::{ExperimentsArgs, RunArgs};
pub(crate) use tune::{BaselineArg, TuneArgs};

const EXAMPLES: &str = "Examples:\n  \
    sudo landspeed tune             tune a lab on this machine\n  \
    landspeed doctor                check this host's settings\n  \
    landspeed tune HOST_A HOST_B    tune a real path by ssh";

/// Measure a network path between two hosts, find what holds it back, change one setting at a time, keep only what is proven
/// to help, and restore everything.
#[derive(Debug, Parser)]
#[command(name = "landspeed", version = landspeed_agent::session::BUILD, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit::line()))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Tune a path, keep what is proven to help, restore everything
    Tune(TuneArgs),
    /// Explain what holds a path or a flow back, and what to try
    Explain(ExplainArgs),
    /// Measure a path with one workload
    Measure(MeasureArgs),
    /// Measure an experiment that a file describes, and set it beside what was published
    Run(RunArgs),
    /// List and check applications: programs as workloads
    App(AppArgs),
    /// List the experiments that ship
    Experiments(ExperimentsArgs),
    /// Compare congestion controls over one path, or what carries a program below its sockets
    Compare(CompareArgs),
    /// Check this host's settings; changes nothing
    Doctor(DoctorArgs),
    /// List all settings with their values here
    Knobs(KnobsArgs),
    /// Load congestion controls into the kernel, unload them, and simulate what a loss costs them
    Cc(CcArgs),
    /// List the records of runs, newest first
    Records(RecordsArgs),
    /// Show a record as a report
    Show(ShowArgs),
    /// Compare the records of two tuning runs
    Diff(DiffArgs),
    /// Write the settings that a run kept as files that apply at boot
    Persist(PersistArgs),
    /// Check this host against the settings that a run kept; changes nothing
    Verify(VerifyArgs),
    /// Restore what an interrupted run left changed
    Undo(UndoArgs),
    /// List and remove labs, or make a path slow on purpose
    Lab(LabArgs),
    /// Serve one controller on this host
    Agent(AgentArgs),
    /// Write man pages, completions for bash, zsh and fish, and JSON Schemas
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// Holds the journal of an agent that turns knobs; started by the agent
    #[command(hide = true)]
    Guardian,
    /// Takes labs down when the process that made them has died; started by that process
    #[command(hide = true)]
    Keeper,
    /// Plays a program of a fault's scenario; started by `landspeed lab faults`
    #[command(hide = true)]
    Play,
    /// Run a program over another path below its sockets: landspeed exec --path local -- redis-server
    Exec(ExecArgs),
    /// Answers for a program once `exec` has gone
    #[command(hide = true)]
    KeepPath {
        /// Which path
        path: String,
    },
    /// Runs a role of an application in namespaces of its own; started by the agent
    #[command(hide = true)]
    PlayRole,
}

/// Which hosts, and how to reach them.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostArgs {
    /// Two hosts, or a lab on this machine (the default)
    ///
    /// A host is [user@]host, 'local', 'netns:NAME' or the line that `landspeed agent --listen` printed. `measure --fan` takes
    /// more than two. A lab is lab:back-to-back (the default), lab:switch:N or lab:wan:rate=1G,rtt=20ms,... `compare` uses the paper's
    /// lab:wan:rate=1G,rtt=164ms,queue=0.5bdp by default.
    #[arg(value_name = "HOST", num_args = 0..=64)]
    pub(crate) hosts: Vec<String>,
    /// Read the agent's line or its token from this file
    ///
    /// The file holds the line that `landspeed agent --listen` printed, token included. Without a file, landspeed asks for the token
    /// of a line that is given without it (landspeed://ADDRESS:PORT/#PIN).
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Path")]
    pub(crate) token_file: Option<PathBuf>,
    /// Run this landspeed on hosts reached by ssh
    ///
    /// By default, an installed one of this version runs; where there is none, landspeed sends itself.
    #[arg(long, value_name = "PATH", hide_short_help = true, help_heading = "Path")]
    pub(crate) remote_path: Option<String>,
    /// Keep what is sent to a host in its ~/.cache/landspeed, for the next run
    #[arg(long, conflicts_with = "remote_path", hide_short_help = true, help_heading = "Path")]
    pub(crate) keep_agent: bool,
    /// Pass this option to ssh as -o (may be repeated)
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true, help_heading = "Path")]
    pub(crate) ssh_option: Vec<String>,
    /// Send to this address of the second host
    ///
    /// A link-local address (fe80::1%eth0) has the interface of the first host as its zone; without one, all are tried.
    #[arg(long, value_name = "IP", help_heading = "Path")]
    pub(crate) address: Option<ZonedAddress>,
    /// Send to this port of the second host, which its firewall lets in
    ///
    /// By default the second host takes a free port. TCP takes port N; where the trials go over them, UDP takes UDP port N, UDT N+1 and
    /// QUIC N+2, and Multipath TCP takes TCP port N+1. The first host opens all connections.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=65_533), help_heading = "Path")]
    pub(crate) data_port: Option<u16>,
    /// Wait this long at most for a silent path
    ///
    /// A path counts as broken once its transport has sent again seven times in a row, or after this time. A run whose path breaks
    /// ends early, prints what it measured until then, and fails.
    #[arg(
        long, value_name = "TIME", value_parser = parse_duration, default_value = "30s", hide_short_help = true,
        help_heading = "Path"
    )]
    pub(crate) patience: Nanos,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = "Path")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long, help_heading = "Path")]
    pub ipv6: bool,
}

impl HostArgs {
    /// Returns the hosts as given, without tokens, for records.
    pub(crate) fn describe(&self) -> String {
        if self.hosts.is_empty() {
            return "lab:back-to-back".to_owned();
        }
        let shown =
            |word: &String| word.parse::<HostSpec>().map_or_else(|_| word.clone(), |host| host.to_string());
        self.hosts.iter().map(shown).collect::<Vec<_>>().join(" ")
    }
}

/// Where a report goes.
#[derive(Debug, Clone, Args)]
pub(crate) struct FormArgs {
    /// Print one JSON document instead of the report
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Write the report's tables as CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
}

/// How a list is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the table as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// Where results go.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    #[command(flatten)]
    pub(crate) form: FormArgs,
    /// Keep records in this folder
    ///
    /// By default it is $XDG_DATA_HOME/landspeed or ~/.local/share/landspeed.
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = "Output")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without --flow, --pid or --top, landspeed sends a stream between two hosts and explains it. With one of them \
             it sends nothing: it watches existing flows on the hosts given, or on this host alone. \
             Root sees most. Without root, each part that cannot run says what it lacks.\n\n\
             Examples:\n  \
             sudo landspeed explain --flow 10.0.0.2:443    why a flow is no faster\n  \
             sudo landspeed explain HOST_A HOST_B          why a path is no faster"
)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Explain the flows of this address and port; port 0 is any
    #[arg(long, value_name = "ADDR:PORT", group = "target")]
    pub(crate) flow: Option<std::net::SocketAddr>,
    /// Explain the flows of this process
    #[arg(long, value_name = "PID", group = "target")]
    pub(crate) pid: Option<u32>,
    /// Explain the flows that carry most
    #[arg(long, group = "target")]
    pub(crate) top: bool,
    /// Run this application and explain its flows
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

#[derive(Debug, Args)]
#[command(after_help = "Example: landspeed doctor eth0")]
pub(crate) struct DoctorArgs {
    /// Check this interface only
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    #[command(flatten)]
    pub(crate) form: ListArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: landspeed knobs eth0")]
pub(crate) struct KnobsArgs {
    /// Show the values on this interface; explain these settings, by landspeed's or the system's names (mtu, net.ipv4.tcp_rmem,
    /// ethtool:gro); or list those whose name contains a word
    #[arg(value_name = "INTERFACE|KNOB|WORD", value_delimiter = ',')]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) form: ListArgs,
}

/// Which folder of records.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Where records are kept (default: $XDG_DATA_HOME/landspeed or ~/.local/share/landspeed)
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "An id is when the run began: month and day, then hour, minute and second,\n\
             in UTC. Commands take it as RECORD; its beginning or its end is enough.\n\
             `last` is the newest.\n\n\
             Example: landspeed show 1123-165136")]
pub(crate) struct RecordsArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD}\n\nExample: landspeed show last --html report.html"))]
pub(crate) struct ShowArgs {
    /// Show this record
    #[arg(default_value = "last")]
    pub(crate) record: RecordArg,
    /// Print everything that the page says
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How commands name a record, for their help.
const RECORD: &str = "RECORD is `last`, an id of `landspeed records` or a part of one, or a path.";

#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD}\n\nExample: landspeed diff 1122-090512 last"))]
pub(crate) struct DiffArgs {
    /// First record
    pub(crate) a: RecordArg,
    /// Second record
    pub(crate) b: RecordArg,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// A record of `landspeed tune`, and which of its hosts.
#[derive(Debug, Args)]
pub(crate) struct KeptSettingsArgs {
    /// Record of the run
    pub(crate) record: RecordArg,
    /// Host of the run [default: the one that this host is]
    #[arg(long, value_enum)]
    pub(crate) host: Option<SideArg>,
    /// Include kept steps that the run did not confirm
    #[arg(long)]
    pub(crate) unconfirmed: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD}\n\nExample: sudo landspeed persist last --write /"))]
pub(crate) struct PersistArgs {
    #[command(flatten)]
    pub(crate) kept: KeptSettingsArgs,
    /// Take a lab's record, although its settings prove nothing about this host
    #[arg(long)]
    pub(crate) lab: bool,
    /// Make the files although the host of the run is not this one
    #[arg(long)]
    pub(crate) other_host: bool,
    /// Write the files below this folder (/ for this host) instead of showing them
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = format!("{RECORD}\n\
             Exits with 1 where a setting, or a file of `landspeed persist`, differs.\n\n\
             Example: landspeed verify last")
)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) kept: KeptSettingsArgs,
    /// Read the settings of this interface [default: the run's]
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideArg {
    A,
    B,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: sudo landspeed undo")]
pub(crate) struct UndoArgs {
    /// Restore this network namespace only, and remove no labs
    #[arg(long)]
    pub(crate) here: bool,
    /// Also restore what a write that was cut short may have changed
    ///
    /// Such a write was cut short over two minutes ago; another program may have changed the setting since.
    #[arg(long, conflicts_with = "forget")]
    pub(crate) unsure: bool,
    /// Restore nothing: show what is given up, then remove the journal
    ///
    /// Use it only when undo fails.
    #[arg(long)]
    pub(crate) forget: bool,
    /// With --forget, do not ask
    #[arg(long, requires = "forget")]
    pub(crate) yes: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = topologies())]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) action: LabAction,
}

/// Returns the list of all topologies for help.
fn topologies() -> String {
    let lines = TOPOLOGIES.iter().map(|topology| topology.about());
    let lines: String = lines.map(|about| format!("  {}\n      {}\n", about.syntax, about.line)).collect();
    format!(
        "Topologies, as commands take them:\n{lines}docs/reference/topologies.md draws them.\n\nExample: landspeed lab list"
    )
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabAction {
    /// List labs, and whether their owner still runs
    List(ListArgs),
    /// Remove a lab by its id, or every lab whose owner has died
    Down {
        /// Id of the lab [default: all labs that a crash left]
        id: Option<String>,
    },
    /// Make a path slow on purpose, to see what `explain` says
    ///
    /// Without a name, it lists the faults.
    Faults {
        /// Faults to combine on one flow, each with its own strength if one is given
        #[arg(value_name = "FAULT[=STRENGTH]")]
        names: Vec<String>,
        /// Strength of the other faults: 0 is a nuisance, 1 a disaster
        #[arg(long, default_value_t = 0.5, value_name = "0..1")]
        strength: f64,
        #[command(flatten)]
        form: ListArgs,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "ssh starts an agent by itself. Start one by hand where there is no ssh.\n\n\
             Example: sudo landspeed agent --listen 192.0.2.1:4711 --allow-tune")]
pub(crate) struct AgentArgs {
    /// Speak frames on standard input and output (what ssh starts)
    #[arg(long, conflicts_with = "listen", required_unless_present = "listen")]
    pub(crate) stdio: bool,
    /// Listen for one controller by TLS, and print the line to paste there
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<ZonedSocketAddress>,
    /// Allow the controller to change this host's settings (needs root)
    #[arg(long)]
    pub(crate) allow_tune: bool,
    /// With --listen: allow the controller to run the applications whose files this folder has
    ///
    /// A program runs as the user that its file names, `nobody` by default, where the agent is root. `landspeed app list` shows
    /// those that ship. The folder, all above it and its files must belong to root, or to the user that the agent runs as, and
    /// no other user may write them.
    #[arg(long, value_name = "DIR", conflicts_with = "stdio")]
    pub(crate) allow_run: Option<PathBuf>,
    /// With --allow-run: run programs as root, too, whose files say so
    #[arg(long, requires = "allow_run")]
    pub(crate) allow_root: bool,
    /// With --listen: let the token expire after this time
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    pub(crate) expires: Nanos,
    /// Run in this named network namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Option<String>,
    /// Started from a file without a name, on a descriptor that is in the way
    #[arg(long, hide = true)]
    pub(crate) sent: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "An application is a file that says which programs run on which hosts, and where their figures are.\n\n\
             Example: landspeed app show redis > mine.toml; landspeed app check mine.toml"
)]
pub(crate) struct AppArgs {
    #[command(subcommand)]
    pub(crate) action: AppAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AppAction {
    /// List the applications that ship
    List(ListArgs),
    /// Print the file of one that ships
    Show {
        /// Its name
        name: String,
    },
    /// Check a file: print the first mistake with its line
    Check {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Write below this folder, laid out as /usr/share is
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
