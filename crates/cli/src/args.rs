//! The command line.

mod cc;
mod compare;
mod measure;
mod tune;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use landspeed_units::{Nanos, parse_duration};

pub(crate) use cc::{CcAction, CcArgs};
pub(crate) use compare::{AskArg, CompareArgs};
pub(crate) use measure::{FanArg, FlowArgs, MeasureArgs};
pub(crate) use tune::{BaselineArg, GoalArg, TuneArgs};

/// Measures a network path between two hosts, finds what holds it back, tunes one setting at a time,
/// keeps only what is proven to help, and puts everything back.
#[derive(Debug, Parser)]
#[command(name = "landspeed", version, arg_required_else_help = true)]
#[command(
    after_help = "Start with:  sudo landspeed tune        a lab on this machine, seven minutes, nothing outside it changes\n\
             then:        landspeed doctor           what stands out in this host's settings\n\
             and:         landspeed tune HOST_A HOST_B   the real path, by ssh"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tune a path one setting at a time; keep what is proven to help; put everything back
    Tune(TuneArgs),
    /// Say what holds a path or a flow back, with the evidence, and what to try
    Explain(ExplainArgs),
    /// Measure a path with one workload
    Measure(MeasureArgs),
    /// Compare TCPs over one path under one method: the PFLDnet study, on this kernel or in the simulator
    Compare(CompareArgs),
    /// Read this host's settings and say what stands out; changes nothing
    Doctor(DoctorArgs),
    /// List the knobs, what each is set to here, and why one cannot be turned
    Knobs(KnobsArgs),
    /// Put the TCPs of the PFLDnet study into the running kernel, and take them out
    Cc(CcArgs),
    /// Show a record as a report
    Show(ShowArgs),
    /// Compare two records by the same statistics
    Diff(DiffArgs),
    /// Write a record's kept settings as files that a distribution applies at boot
    Persist(PersistArgs),
    /// Put back what an interrupted run left changed, and take down the labs that it left
    Undo(UndoArgs),
    /// List labs, take down those that a crash left behind, or make a path slow on purpose
    Lab(LabArgs),
    /// Serve one controller on this host (started for you by ssh; by hand with --listen)
    Agent(AgentArgs),
    /// Holds the journal of an agent that turns knobs; started by the agent
    #[command(hide = true)]
    Guardian,
    /// Takes labs down when the process that made them has died; started by that process
    #[command(hide = true)]
    Keeper,
    /// Plays a program of a fault's scenario; started by `landspeed lab faults`
    #[command(hide = true)]
    Play,
}

/// Which hosts, and how to reach them.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostArgs {
    /// Two hosts (more with measure --fan), each [user@]host, 'local', 'netns:NAME', or the address line of `landspeed agent --listen`; or one
    /// lab: lab:back-to-back, lab:switch:N or lab:wan:rate=1G,rtt=20ms,... None means
    /// lab:back-to-back; to compare, the paper's lab:wan:rate=1G,rtt=164ms,queue=0.5bdp
    #[arg(value_name = "HOST", num_args = 0..=64)]
    pub(crate) hosts: Vec<String>,
    /// File with the line that `landspeed agent --listen` printed, token included; else it is asked for
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Where landspeed is on hosts reached by ssh
    #[arg(long, value_name = "PATH", default_value = "landspeed")]
    pub(crate) remote_path: String,
    /// Option for ssh, as after its -o (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) ssh_option: Vec<String>,
    /// Send to this address of the second host
    #[arg(long, value_name = "IP")]
    pub(crate) address: Option<IpAddr>,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub ipv6: bool,
}

impl HostArgs {
    /// For records: the hosts as given.
    pub(crate) fn describe(&self) -> String {
        if self.hosts.is_empty() { "lab:back-to-back".to_owned() } else { self.hosts.join(" ") }
    }
}

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print one JSON document instead of the report
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Where records are kept (default: $XDG_DATA_HOME/landspeed or ~/.local/share/landspeed)
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without --flow, --pid or --top a stream is sent between two hosts and explained. With one of them\n\
             nothing is sent: flows that are there are watched, on the hosts given, or on this one alone.\n\
             Root sees most; without it each part that cannot run says what it lacks, and the rest goes on."
)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Explain the flows that have this end, 10.0.0.2:443 or [2001:db8::2]:443; sends nothing
    #[arg(long, value_name = "ADDR:PORT", group = "target")]
    pub(crate) flow: Option<std::net::SocketAddr>,
    /// Explain the flows of this process of the first host; sends nothing
    #[arg(long, value_name = "PID", group = "target")]
    pub(crate) pid: Option<u32>,
    /// Explain the flows that move most; sends nothing
    #[arg(long, group = "target")]
    pub(crate) top: bool,
    /// How long to watch
    #[arg(short, long, default_value = "10s", value_parser = parse_duration)]
    pub(crate) time: Nanos,
    #[command(flatten)]
    pub(crate) sent: FlowArgs,
    /// Do not measure what memory, copies and raw packets could do on these hosts
    #[arg(long)]
    pub(crate) no_limits: bool,
    /// Do not follow packets through the kernel
    #[arg(long)]
    pub(crate) no_trace: bool,
    /// Measure cost per packet and per byte over sizes too: two to three minutes of unpaced datagrams and
    /// writes of 32 B to 32 KB; in a lab over MTU 9000 as well
    #[arg(long)]
    pub(crate) sizes: bool,
    /// Print everything that was seen, not only what fits a screen or two
    #[arg(long)]
    pub(crate) full: bool,
    /// Print one JSON document instead of the report
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Look at this interface only
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KnobsArgs {
    /// Show what these knobs are set to on this interface
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The record; default the newest
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// One record
    pub(crate) a: PathBuf,
    /// The other
    pub(crate) b: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PersistArgs {
    /// The record whose kept settings shall last
    pub(crate) record: PathBuf,
    /// Which of its hosts this is about
    #[arg(long, value_enum, default_value = "a")]
    pub(crate) host: SideArg,
    /// Include kept steps that the rest of the run did not confirm
    #[arg(long)]
    pub(crate) unconfirmed: bool,
    /// Write the files below this folder (use / for the host itself); without it they are only shown
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideArg {
    A,
    B,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Only this network namespace, not every one that can be found; no labs
    #[arg(long)]
    pub(crate) here: bool,
    /// Also put back what a write may have changed that was cut short over two minutes ago, though somebody
    /// else may have changed it since
    #[arg(long, conflicts_with = "forget")]
    pub(crate) unsure: bool,
    /// Put nothing back: show what is given up, and remove the journal. The last resort where undo fails
    #[arg(long)]
    pub(crate) forget: bool,
    /// With --forget, do not ask
    #[arg(long, requires = "forget")]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) action: LabAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabAction {
    /// List labs, and whether their owner still runs
    List,
    /// Take down a lab by its id, or every lab whose owner has died
    Down {
        /// The lab; default: all that a crash left behind
        id: Option<String>,
    },
    /// Make a path slow on purpose, to see what `landspeed explain` says of it; without a name, list the
    /// faults that can be had
    Faults {
        /// Faults, all at once on one flow, each with a strength of its own where one is named
        #[arg(value_name = "FAULT[=STRENGTH]")]
        names: Vec<String>,
        /// How bad the others are: 0 is a nuisance, 1 a disaster
        #[arg(long, default_value_t = 0.5, value_name = "0..1")]
        strength: f64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Speak frames on standard input and output (what ssh starts)
    #[arg(long, conflicts_with = "listen", required_unless_present = "listen")]
    pub(crate) stdio: bool,
    /// Listen for one controller by TLS; prints one line to paste there
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Let the controller turn this host's knobs (needs root)
    #[arg(long)]
    pub(crate) allow_tune: bool,
    /// With --listen: how long the token is good for
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    pub(crate) expires: Nanos,
    /// Live in this named network namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Option<String>,
}
