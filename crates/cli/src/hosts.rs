//! Connects to the hosts that a command line names, and joins them.

use std::net::IpAddr;
use std::process::Command;

use anyhow::{Context, Result, bail};
use landspeed_agent::session::{LineSink, Options};
use landspeed_analysis::wan::judged;
use landspeed_engine::all_factors;
use landspeed_engine::{Host, Pair, PathOptions, ReachOptions, set_program_hosts};
use landspeed_lab::topology::{self as topology, HostSet, PathLink};
use landspeed_record::factor::FactorTable;
use landspeed_record::units::Nanos;
use landspeed_record::{Settings, WanReport};
use landspeed_transport::Transport;
use landspeed_transport::settings::{TRANSPORT, table};

use crate::groups::{FlowArgs, HostArgs};
use crate::labs;
use crate::output::usage;
use crate::stop::StopRequest;

pub(crate) struct NamedHosts {
    words: Vec<String>,
    reaching: ReachOptions,
    wishes: PathOptions,
}

/// Joined pairs. The hosts that were created for them are removed on drop, after the sessions.
pub(crate) struct JoinedHosts {
    /// The pairs: one, except for fans, programs and labs with several pairs.
    pub(crate) pairs: Vec<Pair>,
    hosts: Box<dyn HostSet>,
}

impl JoinedHosts {
    pub(crate) fn first(&mut self) -> Result<(&mut Pair, &dyn HostSet)> {
        let pair = self.pairs.first_mut().context("no pair of hosts")?;
        Ok((pair, &*self.hosts))
    }

    /// Returns the statistics of an emulated wide-area link between the hosts, and whether they are valid; `None`
    /// without such a link.
    pub(crate) fn wan(&self) -> Option<WanReport> {
        self.hosts.link().map(PathLink::stats).map(judged)
    }
}

impl NamedHosts {
    /// Parses the arguments. Wrong ones are refused before any host is contacted.
    pub(crate) fn parse(args: &HostArgs, tune: bool) -> Result<NamedHosts> {
        topology::find(&args.hosts).map_err(usage)?;
        Ok(Self::apart(args, tune))
    }

    /// Parses the arguments for hosts that need not be two and are not joined.
    pub(crate) fn apart(args: &HostArgs, tune: bool) -> NamedHosts {
        let ipv6 = match (args.ipv4, args.ipv6) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        };
        let reaching = ReachOptions {
            tune,
            remote_path: args.remote_path.clone(),
            keep_agent: args.keep_agent,
            ssh_options: args.ssh_option.clone(),
            tokens: args.token_file.clone(),
            options: options(args.patience, tune),
            ..ReachOptions::default()
        };
        let notices = reaching.options.notices.clone();
        let (data_port, patience) = (args.data_port.unwrap_or(0), args.patience);
        let wishes = PathOptions {
            address: args.address.clone(),
            ipv6,
            hints: Vec::new(),
            notices,
            data_port,
            patience,
        };
        NamedHosts { words: args.hosts.clone(), reaching, wishes }
    }

    /// Makes sessions stop waiting for an answer once the user has requested to stop.
    pub(crate) fn until(mut self, stop: &StopRequest) -> NamedHosts {
        self.reaching.options.stop = stop.flag();
        self
    }

    /// Returns true if landspeed creates the hosts itself.
    pub(crate) fn in_lab(&self) -> bool {
        labs::is_lab(&self.words)
    }

    pub(crate) fn join(&self) -> Result<JoinedHosts> {
        self.join_others(&self.words)
    }

    /// Joins the hosts that `words` name.
    pub(crate) fn join_others(&self, words: &[String]) -> Result<JoinedHosts> {
        let hosts = labs::open(words)?;
        self.only_two(&*hosts)?;
        let [a, b, ..] = hosts.hosts() else { bail!("{} has fewer than two hosts", hosts.label()) };
        let pairs = vec![self.pair(a, b)?];
        Ok(JoinedHosts { pairs, hosts })
    }

    /// Joins the first host with each other one, as programs need it. If none are named
    /// and it needs more than two, a lab of `least` hosts is created.
    pub(crate) fn join_star(&self, [least, _]: [usize; 2]) -> Result<JoinedHosts> {
        let words = if self.words.is_empty() && least > 2 {
            vec![format!("lab:switch:{least}")]
        } else {
            self.words.clone()
        };
        self.join_star_of(&words)
    }

    /// Joins the first host that `words` name with each other one, for grids.
    pub(crate) fn join_star_of(&self, words: &[String]) -> Result<JoinedHosts> {
        let hosts = labs::open(words)?;
        let (first, others) = hosts.hosts().split_first().context("no hosts")?;
        let center = self.host(first)?;
        let pairs = others.iter().map(|other| self.pair_of(center.shared(), self.host(other)?, other));
        let mut pairs: Vec<Pair> = pairs.collect::<Result<_>>()?;
        set_program_hosts(&mut pairs);
        Ok(JoinedHosts { pairs, hosts })
    }

    /// Joins the pairs that the topology defines: one, except for `lab:wan:pairs=N`.
    pub(crate) fn join_pairs(&self) -> Result<JoinedHosts> {
        let hosts = labs::open(&self.words)?;
        self.only_two(&*hosts)?;
        let pairs = hosts.pairs().into_iter().map(|[a, b]| self.pair(a, b)).collect::<Result<Vec<_>>>()?;
        Ok(JoinedHosts { pairs, hosts })
    }

    /// Returns an error for more than two hosts: none of them may be left out silently.
    fn only_two(&self, hosts: &dyn HostSet) -> Result<()> {
        if !hosts.is_lab() && hosts.hosts().len() > 2 {
            bail!(
                "{} hosts are named, and this is for two; `landspeed measure WORKLOAD --fan in` takes more",
                hosts.hosts().len()
            );
        }
        Ok(())
    }

    /// Connects to each named host without joining them; this machine if none is named.
    pub(crate) fn each(&self) -> Result<Vec<Host>> {
        let words = if self.words.is_empty() { vec!["local".to_owned()] } else { self.words.clone() };
        let places =
            words.iter().map(|word| Ok(topology::TopologyHost::from(word.parse::<topology::HostSpec>()?)));
        let places = places.collect::<Result<Vec<_>, topology::Error>>()?;
        places.iter().map(|place| Ok(Host::probe(self.reaching.session(place)?)?)).collect()
    }

    /// Joins the last host with each other one: all others send to it if `inwards`, otherwise it sends to all others.
    /// Each host has one session, however many pairs it is in.
    pub(crate) fn join_fan(&self, inwards: bool) -> Result<JoinedHosts> {
        let hosts = labs::open(&self.words)?;
        if hosts.hosts().len() < 3 {
            bail!("a fan takes three hosts or more: name them, or try lab:switch:4");
        }
        self.fan(hosts, inwards)
    }

    /// Joins a fan of the hosts that `words` name, for grids, in which a fan may have a single client.
    pub(crate) fn join_fan_of(&self, words: &[String], inwards: bool) -> Result<JoinedHosts> {
        self.fan(labs::open(words)?, inwards)
    }

    fn fan(&self, hosts: Box<dyn HostSet>, inwards: bool) -> Result<JoinedHosts> {
        if inwards && self.wishes.data_port > 0 {
            bail!(
                "--data-port is one port for one pair of hosts, and --fan in has several at one host: leave it out"
            );
        }
        let (hub, others) = hosts.hosts().split_last().context("no hosts")?;
        let center = self.host(hub)?;
        let pair = |other| match inwards {
            true => self.pair_of(self.host(other)?, center.shared(), hub),
            false => self.pair_of(center.shared(), self.host(other)?, other),
        };
        let pairs = others.iter().map(pair).collect::<Result<_>>()?;
        Ok(JoinedHosts { pairs, hosts })
    }

    fn pair(&self, a: &topology::TopologyHost, b: &topology::TopologyHost) -> Result<Pair> {
        self.pair_of(self.host(a)?, self.host(b)?, b)
    }

    fn host(&self, place: &topology::TopologyHost) -> Result<Host> {
        Ok(Host::probe(self.reaching.session(place)?)?)
    }

    fn pair_of(&self, a: Host, b: Host, at: &topology::TopologyHost) -> Result<Pair> {
        let one_machine = !a.facts.boot_id.is_empty() && a.facts.boot_id == b.facts.boot_id;
        if one_machine && a.facts.netns_cookie == b.facts.netns_cookie {
            return Err(topology::Error::OneHost { a: a.name, b: b.name }.into());
        }
        let wishes = PathOptions { hints: hints(at, &b), ..self.wishes.clone() };
        Ok(Pair::join(a, b, &wishes)?)
    }
}

/// Returns the options of sessions. A session may use the measured path, so it should survive a silence of that path.
/// If settings change, the lease stays short, because a silent controller's settings must be restored soon.
fn options(patience: Nanos, tune: bool) -> Options {
    let usual = Options::default();
    let lease = if tune { usual.lease } else { usual.lease.max(patience + usual.lease).min(LONGEST_LEASE) };
    Options { notices: LineSink::stderr(), lease, ..usual }
}

/// The longest lease that agents accept.
const LONGEST_LEASE: Nanos = Nanos::secs(120);

/// Returns addresses of a host to try first: those that the topology knows; then the one in its agent's line, or the
/// one that ssh reached and those that its name resolves to here.
fn hints(host: &topology::TopologyHost, b: &Host) -> Vec<IpAddr> {
    let known = host.v4.map(IpAddr::from).into_iter().chain(host.v6.map(IpAddr::from));
    let named = match &host.reach {
        topology::ReachMethod::Ssh(destination) => {
            let name = destination.rsplit('@').next().unwrap_or_default();
            b.facts.reached_at.into_iter().chain(addresses(name)).collect()
        }
        topology::ReachMethod::Invite(line) => line.address().into_iter().collect(),
        _ => Vec::new(),
    };
    known.chain(named).collect()
}

/// Resolves a name with `getent`. A static binary cannot do it, because its getaddrinfo(3) loads the host's NSS
/// modules, which need another libc, and crashes (docs/decisions/0030).
fn addresses(name: &str) -> Vec<IpAddr> {
    let said = Command::new("getent").args(["ahosts", name]).output().map(|output| output.stdout);
    let said = said.unwrap_or_default();
    let words = String::from_utf8_lossy(&said);
    let streams = words.lines().filter(|line| line.contains("STREAM"));
    // The zone of a link-local address is valid only on this machine.
    streams.filter_map(|line| line.split([' ', '%']).next()?.parse().ok()).collect()
}

pub(crate) fn flow_of(args: &FlowArgs, usual: FlowDefaults) -> Result<(&'static dyn Transport, Settings)> {
    let (transport, set) = set_of(args, usual)?;
    Ok((transport, landspeed_engine::flow(transport, &set)?))
}

/// Settings of the flow that a workload uses by default, as (name, value).
type FlowDefaults = &'static [(&'static str, &'static str)];

/// Returns the transport and the settings of the flow that are set by name.
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

fn parse<'a>(texts: impl IntoIterator<Item = &'a String>, table: &FactorTable) -> Result<Settings> {
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
