//! Connects to the hosts that a command line names, and opens the paths between them.

use anyhow::{Context, Result, bail};
use landspeed_agent::session::Options;
use landspeed_engine::{
    Host, JoinedHosts, Meeting, OpenControls, Pairing, PathOptions, PortRange, ReachOptions, all_factors,
};
use landspeed_lab::topology::{self, HostSet, TopologyHost};
use landspeed_record::factor::FactorTable;
use landspeed_record::units::Nanos;
use landspeed_record::{Settings, Workload};
use landspeed_transport::Transport;
use landspeed_transport::settings::{TRANSPORT, table};

use crate::failure::{note, notices};
use crate::groups::{FanArg, FlowArgs, HostArgs, ReachArgs};
use crate::labs;
use crate::output::usage;
use crate::stop::StopRequest;

pub(crate) struct NamedHosts {
    words: Vec<String>,
    reaching: ReachOptions,
    wishes: PathOptions,
}

impl NamedHosts {
    /// Parses and checks the arguments, without contacting a host. `tune` is true if settings of the hosts will change.
    pub(crate) fn parse(args: &HostArgs, tune: bool) -> Result<NamedHosts> {
        topology::find(&args.hosts).map_err(usage)?;
        Ok(Self::apart(args, tune))
    }

    /// Parses the arguments for any number of hosts, between which no paths are opened. `tune` is true if their
    /// settings will change.
    pub(crate) fn apart(args: &HostArgs, tune: bool) -> NamedHosts {
        let ipv6 = match (args.ipv4, args.ipv6) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        };
        let reaching = reaching(&args.reach, tune);
        let notices = reaching.options.notices.clone();
        let (data_port, patience) = (args.data_port.unwrap_or(0), args.reach.patience);
        let wishes = PathOptions {
            address: args.address.clone(),
            ipv6,
            notices,
            data_port,
            patience,
            ..PathOptions::default()
        };
        NamedHosts { words: args.hosts.clone(), reaching, wishes }
    }

    /// Makes sessions stop waiting for an answer once the user has requested to stop.
    pub(crate) fn until(mut self, stop: &StopRequest) -> NamedHosts {
        self.reaching.options.stop = stop.flag();
        self
    }

    /// Returns true if the hosts are those of a lab, which landspeed creates itself.
    pub(crate) fn in_lab(&self) -> bool {
        labs::is_lab(&self.words)
    }

    /// Returns true if the hosts are those of a lab, and share the kernel of this machine.
    pub(crate) fn share_kernel(&self) -> bool {
        labs::shares_kernel(&self.words)
    }

    /// Connects to the hosts, and opens paths between the pairs that `pairing` forms. A fan needs at least three hosts.
    pub(crate) fn join(&self, pairing: Pairing) -> Result<JoinedHosts> {
        let hosts = labs::open(&self.words)?;
        if matches!(pairing, Pairing::FanIn | Pairing::FanOut) && hosts.hosts().len() < 3 {
            return Err(usage("a fan takes three hosts or more: name them, or try lab:switch:4"));
        }
        self.open(hosts, pairing)
    }

    /// Connects to the hosts, and opens the paths that a workload needs: from the first host to each other one for an
    /// application, in a fan if one is requested, otherwise as `usual`. If no hosts are named and an application needs
    /// more than two, a lab is created.
    pub(crate) fn join_for(
        &self,
        workload: Option<&Workload>,
        fan: Option<FanArg>,
        usual: Pairing,
    ) -> Result<JoinedHosts> {
        let of_program = workload.and_then(landspeed_workload::find).and_then(|runner| runner.hosts());
        match (of_program, fan) {
            (Some([least, _]), _) if self.words.is_empty() && least > 2 => {
                self.join_others(&[format!("lab:switch:{least}")], Pairing::Star)
            }
            (Some(_), _) => self.join(Pairing::Star),
            (None, Some(FanArg::In)) => self.join(Pairing::FanIn),
            (None, Some(FanArg::Out)) => self.join(Pairing::FanOut),
            (None, None) => self.join(usual),
        }
    }

    /// Connects to the hosts that `words` name, and opens paths between the pairs that `pairing` forms. Unlike
    /// [`Self::join`], accepts a fan (many hosts to one, or one to many) of only two hosts.
    pub(crate) fn join_others(&self, words: &[String], pairing: Pairing) -> Result<JoinedHosts> {
        self.open(labs::open(words)?, pairing)
    }

    fn open(&self, hosts: Box<dyn HostSet>, pairing: Pairing) -> Result<JoinedHosts> {
        let count = hosts.hosts().len();
        if matches!(pairing, Pairing::FirstTwo | Pairing::Topology) && !hosts.is_lab() && count > 2 {
            // None of them may be left out silently.
            return Err(usage(format!("{count} hosts are named, and this is for two; --fan in takes more")));
        }
        if pairing == Pairing::FanIn && self.wishes.data_port > 0 {
            return Err(usage(
                "--data-port is one port for one pair of hosts, and --fan in has several at one host: leave it out",
            ));
        }
        let joined = JoinedHosts::open(hosts, pairing, &self.reaching, &self.wishes)?;
        warn_of_load(joined.group.hosts());
        Ok(joined)
    }

    /// Connects to each named host, or to this machine if none is named, without opening paths between them.
    pub(crate) fn each(&self) -> Result<Vec<Host>> {
        let words = if self.words.is_empty() { vec!["local".to_owned()] } else { self.words.clone() };
        let hosts: Vec<Host> = self.reaching.hosts(&places(&words)?).into_iter().collect::<Result<_, _>>()?;
        warn_of_load(&hosts);
        Ok(hosts)
    }
}

/// The knob with the default congestion control of a host.
pub(crate) const CONTROL: &str = "congestion-control";

/// Permits this machine's labs to use all of its congestion controls, unless they may already. Hosts that are joined
/// later may use each one as their default.
pub(crate) fn open_controls(args: &HostArgs) -> Result<Option<OpenControls>> {
    let words = ["local".to_owned()];
    let machine = apart(&words, &args.reach, true)?.remove(0)?;
    let opened = OpenControls::on(machine)?;
    if opened.is_some() {
        note(
            "every network namespace of this machine may use all loaded congestion controls until this run ends",
        );
    }
    Ok(opened)
}

/// Restores the list that [`open_controls`] changed.
pub(crate) fn close_controls(opened: Option<OpenControls>) -> Result<()> {
    match opened.and_then(|opened| opened.restore().complaint()) {
        Some(complaint) => bail!(complaint),
        None => Ok(()),
    }
}

fn places(words: &[String]) -> Result<Vec<TopologyHost>> {
    let place = |word: &String| Ok(TopologyHost::from(word.parse::<topology::HostSpec>().map_err(usage)?));
    words.iter().map(place).collect()
}

/// Connects to each of these hosts without opening paths between them. A host that cannot be reached has an error as
/// its result, and does not affect the others.
pub(crate) fn apart(words: &[String], args: &ReachArgs, tune: bool) -> Result<Vec<Result<Host>>> {
    let reached = reaching(args, tune).hosts(&places(words)?);
    Ok(reached.into_iter().map(|host| Ok(host?)).collect())
}

/// Connects to this machine and to the host `word`, and opens the path between them, for commands that change no
/// settings.
pub(crate) fn joined_to(word: &str, args: &ReachArgs, pairing: Pairing) -> Result<JoinedHosts> {
    let (reaching, wishes) = unchanging(args);
    let hosts = open(&["local".to_owned(), word.to_owned()])?;
    Ok(JoinedHosts::open(hosts, pairing, &reaching, &wishes)?)
}

/// Connects to two hosts, which may be one, and opens the path between them for a copy, over one of these ports if some
/// are given. Reads no knob of the hosts yet, unless their settings will change. The sessions outlast a silence of at
/// least `outlasted`, up to an hour. With `None`, settings of the hosts will change, and the sessions have the short
/// lease of a tuning run.
pub(crate) fn joined_for_copy(
    words: &[String; 2],
    args: &ReachArgs,
    outlasted: Option<Nanos>,
    meeting: Meeting,
    ports: Option<PortRange>,
) -> Result<JoinedHosts> {
    let mut reaching = ReachOptions { as_login: true, ..reaching(args, outlasted.is_none()) };
    let lease = outlasted.map(|silence| silence.min(LONGEST_OUTLASTED)).unwrap_or_default();
    reaching.options.lease = reaching.options.lease.max(lease);
    let wishes = PathOptions {
        may_be_one_host: true,
        is_for_copy: outlasted.is_some(),
        meeting,
        ports,
        ..wishes(args, &reaching)
    };
    let [from, to] = words;
    let hosts = if from == to { topology::within(from).map_err(usage)? } else { open(words)? };
    Ok(JoinedHosts::open(hosts, Pairing::FirstTwo, &reaching, &wishes)?)
}

fn open(words: &[String; 2]) -> Result<Box<dyn HostSet>> {
    topology::find(words).map_err(usage)?;
    labs::open(words)
}

/// Returns how hosts are reached and joined for a command that changes no settings.
fn unchanging(args: &ReachArgs) -> (ReachOptions, PathOptions) {
    let reaching = reaching(args, false);
    let wishes = wishes(args, &reaching);
    (reaching, wishes)
}

fn wishes(args: &ReachArgs, reaching: &ReachOptions) -> PathOptions {
    let notices = reaching.options.notices.clone();
    PathOptions { notices, patience: args.patience, ..PathOptions::default() }
}

fn reaching(args: &ReachArgs, tune: bool) -> ReachOptions {
    ReachOptions {
        tune,
        remote_path: args.remote_path.clone(),
        keep_agent: args.keep_agent,
        ssh_options: args.ssh_option.clone(),
        tokens: args.token_file.clone(),
        options: options(args.patience, tune),
        ..ReachOptions::default()
    }
}

/// Prints which of the hosts' machines are busy with other work, one line for each machine.
fn warn_of_load(hosts: &[Host]) {
    let mut seen = Vec::new();
    for host in hosts.iter().filter(|host| !host.facts.boot_id.is_empty()) {
        if !seen.contains(&&host.facts.boot_id) {
            if let Some(line) = landspeed_analysis::busy(&host.name, &host.facts) {
                note(&line);
            }
            seen.push(&host.facts.boot_id);
        }
    }
}

/// Returns the options of sessions. Their limits are the usual ones with the usual patience, and longer with a longer
/// one. A session may use the measured path, so its lease is longer than a silence of that path. If settings change, the
/// lease is short, so that the other hosts are restored soon after one is lost.
fn options(patience: Nanos, tune: bool) -> Options {
    let usual = Options::default();
    // The usual lease is a sixth of the usual patience.
    let lease = if tune { Nanos(patience.0 / 6) } else { patience + usual.lease };
    Options {
        lease: lease.clamp(usual.lease, LONGEST_LEASE),
        handshake: usual.handshake.max(patience),
        call: usual.call.max(patience),
        notices: notices(),
        ..usual
    }
}

/// The longest lease that follows from the patience alone.
const LONGEST_LEASE: Nanos = Nanos::secs(120);
/// The longest lease that agents accept.
const LONGEST_OUTLASTED: Nanos = Nanos::secs(3_600);

pub(crate) fn flow_of(args: &FlowArgs, usual: FlowDefaults) -> Result<(&'static dyn Transport, Settings)> {
    let (transport, set) = set_of(args, usual)?;
    Ok((transport, landspeed_engine::flow(transport, &set)?))
}

/// The settings of the flow that a workload uses by default, as (name, value).
type FlowDefaults = &'static [(&'static str, &'static str)];

/// Returns the transport and the settings of the flow: those of the options, and the workload's defaults `usual` for
/// others.
pub(crate) fn set_of(args: &FlowArgs, usual: FlowDefaults) -> Result<(&'static dyn Transport, Settings)> {
    let transport =
        landspeed_transport::find(&args.transport).context("clap takes the names of the table")?;
    let table = table(transport);
    let usual = usual.iter().filter(|(name, _)| table.named(name).is_ok());
    let mut set: Settings = usual.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let asked = parse(&args.set, &table)?;
    if let Some(other) = asked.get(TRANSPORT.name).filter(|other| **other != args.transport) {
        return Err(usage(format!("--set transport={other}: a transport is chosen by --transport {other}")));
    }
    set.extend(asked);
    set.insert(TRANSPORT.name.to_owned(), args.transport.clone());
    Ok((transport, set))
}

/// Parses settings such as "mtu=9000,tso=on". Each is checked against its domain, and none may occur twice.
pub(crate) fn parse_settings<'a>(texts: impl IntoIterator<Item = &'a String>) -> Result<Settings> {
    parse(texts, all_factors())
}

/// Parses settings of `table`, as [`parse_settings`] does.
pub(crate) fn parse<'a>(
    texts: impl IntoIterator<Item = &'a String>,
    table: &FactorTable,
) -> Result<Settings> {
    let mut settings = Settings::new();
    for part in texts.into_iter().flat_map(|text| text.split(',')) {
        let (name, value) =
            part.split_once('=').ok_or_else(|| usage(format!("'{part}': expected NAME=VALUE")))?;
        if table.named(name).is_err() && all_factors().named(name).is_ok() {
            let why = "is not a setting of this flow: --set takes those of the flow and of its transport alone, which --transport chooses";
            return Err(usage(format!("{name} {why}")));
        }
        let (name, value) = table.parse(name, value.trim()).map_err(usage)?;
        if let Some(other) = settings.insert(name.clone(), value.clone()) {
            return Err(usage(format!("{name} is set twice, to {other} and to {value}")));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_patience_lengthens_every_limit_and_a_shorter_one_no_limit_of_a_host() {
        for tune in [false, true] {
            let limits = |seconds| {
                let Options { lease, handshake, call, .. } = options(Nanos::secs(seconds), tune);
                [lease, handshake, call]
            };
            let [short, usual, long] = [1, 30, 60].map(limits);
            assert!(usual.iter().zip(&long).all(|(usual, long)| usual < long), "{usual:?} {long:?}");
            assert_eq!(short[1..], usual[1..]);
        }
        assert_eq!(options(landspeed_record::PATIENCE, true).lease, Options::default().lease);
    }
}
