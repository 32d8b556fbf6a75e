//! Groups of arguments that several commands share.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use landspeed_agent::session::ZonedAddress;
use landspeed_lab::topology::HostSpec;
use landspeed_record::PATIENCE;
use landspeed_record::units::{Nanos, parse_duration};
use landspeed_report::quoted;
use landspeed_transport::TRANSPORTS;

use crate::command_line::typed_again;
use crate::labs;
use crate::place::{check_replaceable, folder};

fn data_port_help() -> String {
    format!(
        "Send to this port of the second host, which its firewall lets in\n\n\
         By default the second host takes a free port. TCP takes port N in every run. Where trials go over other transports, \
         each takes its own: {}. The first host opens all connections.",
        landspeed_transport::ports()
    )
}

/// The options that select the hosts.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostArgs {
    /// Two hosts, one to measure it from here, or a lab on this machine (the default)
    ///
    /// One host alone means 'local HOST'. A host is [user@]host, 'local', 'netns:NAME' or the line that `landspeed agent --listen`
    /// printed. --fan, where a command has it, takes more than two. A lab is lab:back-to-back (the default), lab:switch:N,
    /// lab:wan:rate=1G,rtt=20ms,... or two virtual machines with kernels that `make vm-images` prepared, lab:vm:6.1,6.12:
    /// settings hold there, speeds do not. `compare` uses the paper's lab:wan:rate=1G,rtt=164ms,queue=0.5bdp by default.
    #[arg(value_name = "HOST", num_args = 0..=64)]
    pub(crate) hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// Send to this address of the second host
    ///
    /// A link-local address (fe80::1%eth0) has the interface of the first host as its zone; without one, all are tried.
    #[arg(long, value_name = "IP", help_heading = "Path")]
    pub(crate) address: Option<ZonedAddress>,
    /// Send to this port of the second host, which its firewall must leave open
    #[arg(
        long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Path",
        long_help = data_port_help()
    )]
    pub(crate) data_port: Option<u16>,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = "Path")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long, help_heading = "Path")]
    pub ipv6: bool,
}

/// The options for reaching hosts.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReachArgs {
    /// Read the agent's line or its token from this file
    ///
    /// The file holds the line that `landspeed agent --listen` printed, token included. Without a file, landspeed asks for the token
    /// of a line that is given without it (landspeed://ADDRESS:PORT/#PIN).
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Path")]
    pub(crate) token_file: Option<PathBuf>,
    /// Run this landspeed on hosts reached by ssh
    ///
    /// By default, an installed landspeed of this version runs. If there is none, landspeed sends itself.
    #[arg(long, value_name = "PATH", hide_short_help = true, help_heading = "Path")]
    pub(crate) remote_path: Option<String>,
    /// Keep the program that was sent to a host in its ~/.cache/landspeed, for the next run
    #[arg(long, conflicts_with = "remote_path", hide_short_help = true, help_heading = "Path")]
    pub(crate) keep_agent: bool,
    /// Pass this option to ssh as -o (may be repeated)
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true, help_heading = "Path")]
    pub(crate) ssh_option: Vec<String>,
    /// Wait at most this long for a silent path or host
    ///
    /// A path counts as broken after seven consecutive retransmission timeouts, or after this time. A run whose path
    /// breaks ends early, prints what it measured until then, and fails. A host may take this long to answer, and this
    /// long without progress in a login. Other limits grow in proportion, and all limits are longer for a host that has
    /// been slow so far. A host whose settings change restores them once it has not heard from landspeed for 5 seconds,
    /// whatever the patience.
    #[arg(
        long, value_name = "TIME", value_parser = parse_duration, default_value = "30s", hide_short_help = true,
        help_heading = "Path"
    )]
    pub(crate) patience: Nanos,
}

impl HostArgs {
    /// Returns the hosts in full: one host alone is preceded by "local".
    pub(crate) fn in_full(&self) -> Vec<String> {
        let is_alone = self.hosts.len() == 1 && !labs::is_lab(&self.hosts);
        let local = is_alone.then(|| "local".to_owned());
        local.into_iter().chain(self.hosts.iter().cloned()).collect()
    }

    /// Returns the hosts in full, without tokens, for records, or the default lab if none is named.
    pub(crate) fn describe(&self) -> String {
        match self.hosts.as_slice() {
            [] => "lab:back-to-back".to_owned(),
            _ => without_tokens(&self.in_full()),
        }
    }

    /// Returns the hosts as given, without tokens.
    pub(crate) fn as_given(&self) -> String {
        without_tokens(&self.hosts)
    }

    /// Returns the arguments, quoted for a shell, that reach the same hosts over the same path again.
    pub(crate) fn again(&self) -> Vec<String> {
        let named =
            |name: &str, value: Option<String>| value.map(|value| format!("--{name} {}", quoted(&value)));
        let text = |path: &PathBuf| path.display().to_string();
        let flag = |name: &str, given: bool| given.then(|| format!("--{name}"));
        let options = [
            named("token-file", self.reach.token_file.as_ref().map(text)),
            named("remote-path", self.reach.remote_path.clone()),
            flag("keep-agent", self.reach.keep_agent),
            named("address", self.address.as_ref().map(ToString::to_string)),
            named("data-port", self.data_port.map(|port| port.to_string())),
            named("patience", (self.reach.patience != PATIENCE).then(|| self.reach.patience.exact())),
            flag("ipv4", self.ipv4),
            flag("ipv6", self.ipv6),
        ];
        let hosts = self.hosts.iter().map(|word| typed_again(word));
        let ssh = self.reach.ssh_option.iter();
        let ssh = ssh.filter_map(|option| named("ssh-option", Some(option.clone())));
        hosts.chain(options.into_iter().flatten()).chain(ssh).collect()
    }
}

/// Returns the words that name hosts, without the tokens of agents' lines, joined by spaces.
pub(crate) fn without_tokens(words: &[String]) -> String {
    let shown =
        |word: &String| word.parse::<HostSpec>().map_or_else(|_| word.clone(), |host| host.to_string());
    words.iter().map(shown).collect::<Vec<_>>().join(" ")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FanArg {
    /// Every other host connects to the last one
    In,
    /// The last host connects to every other one
    Out,
}

/// The flow that is sent.
#[derive(Debug, Clone, Args)]
pub(crate) struct FlowArgs {
    /// Carry the data by this transport
    #[arg(long, value_parser = transports(), default_value = "tcp", help_heading = "Flow")]
    pub(crate) transport: String,
    /// Set the flow, such as write-size=64K
    ///
    /// `landspeed knobs` lists the settings. What a flow used is read back from its socket.
    #[arg(long, value_name = "NAME=VALUE,...", help_heading = "Flow")]
    pub(crate) set: Vec<String>,
}

impl FlowArgs {
    /// Returns the arguments, quoted for a shell, that set the same flow again.
    pub(crate) fn again(&self) -> Vec<String> {
        let transport = (self.transport != "tcp").then(|| format!("--transport {}", self.transport));
        let set = self.set.iter().map(|set| format!("--set {}", quoted(set)));
        transport.into_iter().chain(set).collect()
    }
}

/// Returns the parser of an option whose values are the names of transports.
pub(crate) fn transports() -> PossibleValuesParser {
    choices(TRANSPORTS.iter().map(|transport| (transport.name(), transport.about().line)))
}

/// Returns the parser of an option whose values are these names, each with its help.
pub(crate) fn choices(of: impl Iterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    of.map(|(name, help)| PossibleValue::new(name).help(help)).collect::<Vec<_>>().into()
}

/// Returns the path of a file to write. Returns an error if it cannot be written, so that nothing is measured for it in
/// vain.
fn writable(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    if file.is_dir() {
        return Err("it is a folder".to_owned());
    }
    let place = if file.exists() { file.as_path() } else { folder(&file) };
    rustix::fs::access(place, rustix::fs::Access::WRITE_OK)
        .map_err(|error| format!("cannot write {}: {error}", place.display()))?;
    Ok(file)
}

/// Returns the path of a file to replace as a whole. Returns an error if it cannot be written, or is no file.
fn replaceable(text: &str) -> Result<PathBuf, String> {
    let file = writable(text)?;
    check_replaceable(&file).map_err(|error| error.to_string())?;
    Ok(file)
}

/// The options for the form of a report.
#[derive(Debug, Clone, Args)]
pub(crate) struct FormArgs {
    /// Print one JSON document instead of the report
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the report as Markdown
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) md: bool,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE", value_parser = writable, help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Write the report's tables as CSV, one file per table
    ///
    /// The first table goes into FILE, the others beside it: figures.csv, figures-cores-used.csv. Headers name the
    /// units.
    #[arg(long, value_name = "FILE", value_parser = writable, help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
}

/// The options for a monitoring system.
#[derive(Debug, Clone, Args)]
pub(crate) struct MetricsArgs {
    /// Write the figures in OpenMetrics' format, for Prometheus
    ///
    /// The file is replaced as a whole. For node_exporter, name a file in its textfile folder that ends with .prom.
    #[arg(long, value_name = "FILE", value_parser = replaceable, hide_short_help = true, help_heading = "Output")]
    pub(crate) openmetrics: Option<PathBuf>,
}

/// The options for the form of a list.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the table as Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) md: bool,
    /// Write the table as CSV
    #[arg(long, value_name = "FILE", value_parser = writable)]
    pub(crate) csv: Option<PathBuf>,
}

impl ListArgs {
    /// Returns true if the list is printed as text, for people to read.
    pub(crate) fn is_for_people(&self) -> bool {
        !self.json && !self.md && self.csv.is_none()
    }
}

/// The options for results.
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

/// The argument that names the folder of records.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Where records are kept (default: $XDG_DATA_HOME/landspeed or ~/.local/share/landspeed)
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// The line of help on how commands name a record.
pub(crate) const RECORD: &str = "RECORD is `last`, an id of `landspeed records` or a part of one, or a path.";

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    #[test]
    fn a_patience_that_was_given_is_given_again() {
        let again = |words: &[&str]| {
            let command = HostArgs::augment_args(Command::new("landspeed").no_binary_name(true));
            HostArgs::from_arg_matches(&command.get_matches_from(words)).expect("arguments").again()
        };
        assert_eq!(again(&["a", "b", "--patience", "2m"]), ["a", "b", "--patience 120s"]);
        assert_eq!(again(&["a", "b"]), ["a", "b"]);
    }
}
