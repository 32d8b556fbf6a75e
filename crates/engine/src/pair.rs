//! Proves the data path between two hosts of a group, and runs workloads over it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use landspeed_agent::session::{
    LineSink, RelayBridge, Reply, Request, SessionKey, ZonedAddress, is_link_local,
};
use landspeed_analysis::fit::BothEnds;
use landspeed_analysis::{fallback, figures};
use landspeed_record::factor::PathView;
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{
    Carrier, DetailError, EndpointOutcome, LinkFacts, PATIENCE, PathFacts, PathStall, Program, Role,
    Settings, Side, TrialFigures, TrialProgress, TrialSpec, Workload,
};
use landspeed_transport::settings::{PLACEMENT, TRANSPORT, with};
use landspeed_workload::{find, lasts, pingpong, transports};
use parking_lot::Mutex;

use crate::addresses::AddressCandidate;
use crate::answers::{RunCallbacks, both};
use crate::carry::observe;
use crate::cores::cores;
use crate::meet::{ProvenFlow, listen, meet, probe};
use crate::meeting::{Meeting, candidates};
use crate::pace::limit_of;
use crate::port_choice::{PortChoice, PortRange};
use crate::{Error, Host};

/// The user's wishes for the data path.
#[derive(Debug, Clone, Default)]
pub struct PathOptions {
    /// Address of B to send to; if `None`, B's addresses are tried. The zone of a link-local address is an interface of
    /// A.
    pub address: Option<ZonedAddress>,
    /// `Some(false)` for only IPv4, `Some(true)` for only IPv6, `None` for both.
    pub ipv6: Option<bool>,
    /// Addresses of B to try first: the one in its agent's line, those to which its name resolves on the user's
    /// machine, or the one from the lab.
    pub hints: Vec<IpAddr>,
    /// Receives notices for the user while addresses are tried.
    pub notices: LineSink,
    /// Port of B for data flows; zero lets B choose.
    pub data_port: u16,
    /// The port numbers from which the host that accepts the flows chooses; `None` for any.
    pub ports: Option<PortRange>,
    /// The longest wait for a path that carries nothing; zero for [`landspeed_record::PATIENCE`].
    pub patience: Nanos,
    /// True if both ends may be one host, between whose processes data take loopback.
    pub may_be_one_host: bool,
    /// What may be done where A does not reach B.
    pub meeting: Meeting,
    /// Addresses of A to try first where B opens the flows, as `hints` are of B.
    pub hints_of_a: Vec<IpAddr>,
}

/// One run of a workload over a pair: its flows, its start-up and its observers.
#[derive(Debug, Clone)]
pub struct RunSpec {
    pub workload: Workload,
    /// Settings of the flows.
    pub flow: Settings,
    /// Duration of the start-up, which is not counted.
    pub warm_up: Nanos,
    pub watching: WatchOptions,
}

impl RunSpec {
    /// Creates a run without a start-up, with the usual observers.
    pub fn new(workload: Workload, flow: &Settings) -> Self {
        RunSpec { workload, flow: flow.clone(), warm_up: Nanos(0), watching: WatchOptions::default() }
    }

    /// Returns this run with a start-up that is not counted.
    #[must_use]
    pub fn after(self, warm_up: Nanos) -> Self {
        RunSpec { warm_up, ..self }
    }

    /// Returns this run with these observers, intervals and limits.
    #[must_use]
    pub fn watched(self, watching: WatchOptions) -> Self {
        RunSpec { watching, ..self }
    }
}

/// The observers, intervals and limits of a run. The default is the usual observers, and no progress messages.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Names of observers in addition to the usual ones.
    pub observers: Vec<String>,
    /// Time between samples; zero for only one at the start and one at the end of the window.
    pub interval: Nanos,
    /// Time between two progress messages of the run; zero for none.
    pub progress: Nanos,
    /// True if a run whose path broke or carried nothing returns an outcome. Otherwise it returns an error.
    pub keeps_broken: bool,
    /// The longest wait for a path that carries nothing; zero for the limit of the pair.
    pub patience: Nanos,
}

/// A view of two hosts of a group, and of the data path between them.
#[derive(Clone, Copy)]
pub struct Pair<'g> {
    /// The host that opens flows. It sends unless the direction is reversed.
    pub a: &'g Host,
    pub b: &'g Host,
    pub path: &'g PathFacts,
    data: &'g DataPath,
}

/// The addresses and the key of data flows between the hosts of a pair.
#[derive(Debug, Clone)]
pub(crate) struct DataEnds {
    /// The address of B's data port as A calls it, and as B does.
    pub(crate) at: [SocketAddr; 2],
    pub(crate) key: SessionKey,
    /// The longest wait for a path that carries nothing.
    pub(crate) patience: Nanos,
    /// True if the flows are relayed through this machine.
    pub(crate) is_relayed: bool,
}

/// A proven data path between two hosts of a group, with data ports at its host B.
pub(crate) struct DataPath {
    /// Indices of A and B in the group's list of hosts.
    pub(crate) ends: [usize; 2],
    pub(crate) facts: PathFacts,
    /// Data ports of B by the transports that they serve. A port is opened when a run first needs it.
    ports: Mutex<BTreeMap<Vec<String>, u16>>,
    address: AddressCandidate,
    key: SessionKey,
    /// Port of B that the user chose, or that the proof took of those that may be taken; zero if B chooses.
    data_port: u16,
    /// The longest wait for a path that carries nothing.
    patience: Nanos,
    program_hosts: ProgramHosts,
    /// Relays flows to the data ports; `None` where A reaches B.
    relay: Option<RelayBridge>,
}

/// The hosts that run one program together, as described to one of their pairs.
#[derive(Debug, Default)]
struct ProgramHosts {
    /// Addresses of all hosts that run the program. The first one is that of the pair's host A.
    hosts: Vec<IpAddr>,
    /// Number of the pair's host B among these hosts, from 1.
    other: u32,
    /// A secret that all roles know.
    token: String,
    /// Name of the current block, during which services keep running; empty outside blocks.
    epoch: Mutex<String>,
}

/// How long to wait for the answers of both ends of a run, in addition to the time of the run itself.
const ANSWER: Duration = Duration::from_secs(30);
/// The number of phases of a run that may each wait for a silent path: the opening of its flows, their first data, and
/// the message that the peer's window is closed.
const PATIENT_PHASES: u32 = 3;

/// First source port of the pair's flows. Both arms of a block use the same ports, so that mechanisms such as RSS treat
/// them alike. It is below the default ephemeral range (32768 and up), so that no other program gets one of the ports
/// between two trials.
const SOURCE_PORT: u16 = 20_000;

impl DataPath {
    /// Finds the data path from A to B by proving a flow over it, and measures its idle RTT and its links. Where B opens the
    /// flows, the path is the one from B to A.
    pub(crate) fn prove([a, b]: [&Host; 2], ends: [usize; 2], options: &PathOptions) -> Result<Self, Error> {
        let key = SessionKey::random();
        let candidates = candidates([a, b], options)?;
        let met = meet((a, b), &candidates, PortChoice::of(options), &key, &options.notices)?;
        let ProvenFlow { candidate: address, port, source, routed: [link_a, link_b], silent } = met;
        let ([a, b], ends) = if address.is_turned { ([b, a], [ends[1], ends[0]]) } else { ([a, b], ends) };
        let facts = PathFacts {
            address_a: source.to_string(),
            address_b: address.shown(&a.facts),
            link_a,
            link_b,
            silent: silent.iter().map(|candidate| candidate.shown(&a.facts)).collect(),
            ..PathFacts::default()
        };
        let mut path = DataPath { facts, ..DataPath::new(ends, address, key, options) };
        path.ports.get_mut().insert(transports(&probe()), port);
        if options.ports.is_some() {
            path.data_port = port;
        }
        path.observe([a, b], [source, address.ip])?;
        DataPath::share_program(std::slice::from_mut(&mut path), &SessionKey::random().hex());
        Ok(path)
    }

    /// Returns a path without facts and ports.
    fn new(ends: [usize; 2], address: AddressCandidate, key: SessionKey, options: &PathOptions) -> Self {
        DataPath {
            ends,
            facts: PathFacts::default(),
            ports: Mutex::default(),
            address,
            key,
            data_port: options.data_port,
            patience: if options.patience == Nanos(0) { PATIENCE } else { options.patience },
            program_hosts: ProgramHosts::default(),
            relay: None,
        }
    }

    /// Returns the path through this machine, over the sessions of both hosts. Only a copy takes it.
    pub(crate) fn relayed([a, b]: [&Host; 2], ends: [usize; 2], options: &PathOptions) -> Self {
        let path = DataPath::new(ends, AddressCandidate::loopback(), SessionKey::random(), options);
        DataPath { relay: Some(a.relay_to(b)), ..path }
    }

    pub(crate) fn is_relayed(&self) -> bool {
        self.relay.is_some()
    }

    /// Measures the idle RTT. The interfaces that carried the measurement become those of the path.
    fn observe(&mut self, hosts: [&Host; 2], addresses: [IpAddr; 2]) -> Result<(), Error> {
        let seen = observe(self.between(hosts), addresses)?;
        let [a, b] = seen.carriers;
        let facts = &mut self.facts;
        facts.rtt_ns = seen.rtt;
        (facts.link_a, facts.link_b) = (a.data.clone(), b.data.clone());
        (facts.carrier_a, facts.carrier_b) = (a, b);
        Ok(())
    }

    /// Returns this path with its hosts A and B.
    pub(crate) fn between<'g>(&'g self, [a, b]: [&'g Host; 2]) -> Pair<'g> {
        Pair { a, b, path: &self.facts, data: self }
    }

    /// Returns the side of the host with this index in the group; `None` if it is not an end of this path.
    pub(crate) fn side_of(&self, host: usize) -> Option<Side> {
        Side::BOTH.into_iter().find(|side| self.ends[*side as usize] == host)
    }

    /// Returns the interfaces that carried the path at one end.
    pub(crate) fn carrier(&self, side: Side) -> &Carrier {
        match side {
            Side::A => &self.facts.carrier_a,
            Side::B => &self.facts.carrier_b,
        }
    }

    /// Makes the hosts of `paths` run one program together. The paths must have the same host A.
    pub(crate) fn share_program(paths: &mut [DataPath], token: &str) {
        let own = paths.first().and_then(|first| first.facts.address_a.parse().ok());
        let hosts: Vec<IpAddr> = own.into_iter().chain(paths.iter().map(|path| path.address.ip)).collect();
        for (path, other) in paths.iter_mut().zip(2..) {
            let (hosts, token) = (hosts.clone(), token.to_owned());
            path.program_hosts = ProgramHosts { hosts, other, token, epoch: Mutex::default() };
        }
    }

    /// Begins a block with this name. Services keep running from trial to trial within a block.
    pub(crate) fn begin_epoch(&self, name: &str) {
        name.clone_into(&mut self.program_hosts.epoch.lock());
    }

    /// Returns the data port of `b` for flows of `transports`, which it opens when it is first needed.
    fn port(&self, b: &Host, transports: Vec<String>) -> Result<u16, Error> {
        let mut ports = self.ports.lock();
        if let Some(port) = ports.get(&transports) {
            return Ok(*port);
        }
        let choice = PortChoice { number: self.data_port, range: None };
        let port = listen(b, self.address, choice, transports.clone(), &self.key)?;
        ports.insert(transports, port);
        Ok(port)
    }
}

impl<'g> Pair<'g> {
    pub fn host(&self, side: Side) -> &'g Host {
        match side {
            Side::A => self.a,
            Side::B => self.b,
        }
    }

    /// Returns true if both ends are known to be one host.
    pub(crate) fn is_one_host(&self) -> bool {
        self.a.name == self.b.name || self.a.is_same_as(self.b)
    }

    /// Returns true if both ends are known to run on one kernel, for which a device has one number.
    pub(crate) fn is_one_kernel(&self) -> bool {
        let [one, other] = [self.a, self.b].map(|host| &host.facts.boot_id);
        !one.is_empty() && one == other
    }

    /// Returns the side of one of the two hosts that were named, the first of which is `Side::A`. They have changed places
    /// where the second one opens the flows.
    pub fn side_of_named(&self, named: Side) -> Side {
        self.data.side_of(named as usize).unwrap_or(named)
    }

    /// Returns true if the data pass through this machine.
    pub fn is_relayed(&self) -> bool {
        self.data.is_relayed()
    }

    /// Returns what passes the data through this machine, with the entry at side A; `None` where the hosts reach each other.
    pub(crate) fn relay(&self) -> Option<&RelayBridge> {
        self.data.relay.as_ref()
    }

    /// Returns the facts of the link that carries the data at one end.
    pub fn link(&self, side: Side) -> LinkFacts {
        self.host(side).link_named(self.path.link(side))
    }

    /// Returns the outcomes of both ends with the facts of their hosts.
    pub(crate) fn ends(&self, [a, b]: &'g [EndpointOutcome; 2]) -> BothEnds<'g> {
        BothEnds { seen: [a, b], hosts: [&self.a.facts, &self.b.facts] }
    }

    /// Returns the figures of a run over this pair, without an idle RTT.
    pub(crate) fn figures(&self, seen: &'g [EndpointOutcome; 2]) -> TrialFigures {
        figures(&[self.ends(seen)], None)
    }

    /// Returns true if the pair's addresses are of IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.data.address.ip.is_ipv6()
    }

    /// Returns the speed of the slower link. Returns `None` if neither reports its speed, as virtual links do.
    pub fn link_rate(&self) -> Option<BitRate> {
        let speeds = Side::BOTH.into_iter().filter_map(|side| self.link(side).speed_mbps);
        speeds.filter(|mbps| *mbps > 0).min().map(|mbps| BitRate(mbps as f64 * 1e6))
    }

    /// Calls `ask` with the facts, links and knobs of both ends, and returns its result. `in_lab` is true if landspeed
    /// made the hosts.
    pub(crate) fn view<T>(&self, in_lab: bool, ask: impl FnOnce(&PathView<'_>) -> T) -> T {
        ask(&PathView {
            sender: &self.a.facts,
            receiver: &self.b.facts,
            sender_link: &self.link(Side::A),
            receiver_link: &self.link(Side::B),
            sender_states: &self.a.states,
            receiver_states: &self.b.states,
            rtt: self.path.rtt_ns,
            ipv6: self.data.address.ip.is_ipv6(),
            // Virtual machines have a boot each, and share no machine.
            in_lab: in_lab && self.a.facts.boot_id == self.b.facts.boot_id,
        })
    }

    /// Runs a workload over the path with the current settings. Returns the outcomes of A and of B.
    pub fn run(&self, run: &RunSpec) -> Result<[EndpointOutcome; 2], Error> {
        self.run_followed(run, &|_, _| {})
    }

    /// Runs a workload over the path, and passes progress messages of both sides to `on_progress` at the interval of
    /// the run.
    pub(crate) fn run_followed(
        &self,
        run: &RunSpec,
        on_progress: &dyn Fn(Side, TrialProgress),
    ) -> Result<[EndpointOutcome; 2], Error> {
        let outcomes = self.run_until(run, &RunCallbacks { stop: &|| false, on_progress })?;
        outcomes.ok_or_else(|| Error::Other("a run ended early without a request to stop".into()))
    }

    /// Runs a workload over the path until it ends or the callback `stop` returns true. In that case it returns `None`,
    /// and the hosts continue until their sessions end.
    pub(crate) fn run_until(
        &self,
        run: &RunSpec,
        callbacks: &RunCallbacks<'_>,
    ) -> Result<Option<[EndpointOutcome; 2]>, Error> {
        let RunSpec { workload, flow, warm_up, watching } = run;
        let patience = if watching.patience == Nanos(0) { self.data.patience } else { watching.patience };
        let limit = Duration::from(lasts(workload, *warm_up) + *warm_up)
            + limit_of([self.a, self.b], ANSWER)
            + PATIENT_PHASES * Duration::from(patience);
        let links = Side::BOTH.map(|side| self.link(side));
        let [client, server] =
            cores(PLACEMENT.of(flow), (&self.a.facts, &links[0]), (&self.b.facts, &links[1]));
        let spec = |cores, role| TrialSpec {
            program: self.program(workload, role),
            workload: workload.clone(),
            flow: flow.clone(),
            cores,
            warm_up_ns: *warm_up,
            interval_ns: watching.interval,
            observers: watching.observers.clone(),
            progress_ns: watching.progress,
            patience_ns: patience,
        };
        self.carries_program(workload)?;
        let port = self.data.port(self.b, transports(&spec(Vec::new(), Role::Client)))?;
        let server = self.b.start(&self.request(Role::Server, port, spec(server, Role::Server)))?;
        let client = self.a.start(&self.request(Role::Client, port, spec(client, Role::Client)))?;
        let answers = both([self.a, self.b], [client, server], limit, callbacks)?;
        let Some([a, b]) = answers else { return Ok(None) };
        let ends = [outcome(self.a, a)?, outcome(self.b, b)?];
        [self.a, self.b].into_iter().zip(&ends).try_for_each(|(host, end)| is_as_asked(host, end))?;
        if !watching.keeps_broken {
            unbroken(&ends)?;
        }
        Ok(Some(ends))
    }

    /// Opens B's data port for flows with these settings, and returns the ends of the flows.
    pub(crate) fn data_ends(&self, flow: &Settings) -> Result<DataEnds, Error> {
        let port = self.data.port(self.b, vec![TRANSPORT.of(flow).to_owned()])?;
        let address = self.data.address;
        Ok(DataEnds {
            at: [address.as_a_calls_it(port), address.as_b_calls_it(port)],
            key: self.data.key.clone(),
            patience: self.data.patience,
            is_relayed: self.data.is_relayed(),
        })
    }

    /// Returns an error for a program over link-local addresses, because each host would have to write them
    /// differently.
    fn carries_program(&self, workload: &Workload) -> Result<(), Error> {
        let is_program = || find(workload).is_some_and(|runner| runner.application().is_some());
        if !is_link_local(&self.data.address.ip) || !is_program() {
            return Ok(());
        }
        let (host, what) =
            (self.b.name.clone(), "address that both hosts write alike, which a program needs".into());
        Err(Error::NoAddress { host, what, remedy: "add one beyond fe80:: to each end".into() })
    }

    /// Returns the program that the host with this role runs in a trial; `None` if the workload is landspeed's own. A
    /// service ends when a setting of the network namespace changes, because sockets inherit these settings when they
    /// are created.
    fn program(&self, workload: &Workload, role: Role) -> Option<Program> {
        let runner = find(workload)?;
        let application = runner.application()?;
        let (name, text) = (application.file_name().to_owned(), application.text.to_string());
        let ProgramHosts { hosts, other, token, epoch } = &self.data.program_hosts;
        let (host, number) = match role {
            Role::Client => (self.a, 1),
            Role::Server => (self.b, *other),
        };
        let epoch = epoch.lock();
        let epoch = match epoch.as_str() {
            "" => String::new(),
            block => format!("{block} {:?}", host.of_namespace()),
        };
        let (hosts, token) = (hosts.clone(), token.clone());
        Some(Program { name, text, hosts, number, other: *other, epoch, token })
    }

    fn request(&self, role: Role, port: u16, spec: TrialSpec) -> Request {
        let (at, side) = match role {
            Role::Client => (self.data.address.as_a_calls_it(port), Side::A),
            Role::Server => (self.data.address.as_b_calls_it(port), Side::B),
        };
        let (key, link) = (self.data.key.clone(), self.path.link(side).to_owned());
        Request::Run { role, at, source_port: SOURCE_PORT, key, link, spec: Box::new(spec) }
    }

    /// Measures the idle RTT of the path, the median RTT of messages of one byte, and returns the outcomes of both hosts too.
    pub(crate) fn idle(&self) -> Result<(Nanos, [EndpointOutcome; 2]), Error> {
        // An RTT over satellite is longer than the first duration. On a lossy path a byte and its retransmissions can
        // be lost for many seconds, because TCP doubles its timeout with each retransmission.
        for duration in [Nanos::millis(100), Nanos::secs(3), self.data.patience] {
            let ping = RunSpec::new(pingpong::one_byte(duration), &with(&[])).after(Nanos::millis(5));
            let ends = self.run(&ping)?;
            if let Some(median) = ends[0].latency.first().and_then(|h| h.percentile(0.5)) {
                return Ok((median, ends));
            }
        }
        Err(Error::Other(format!("the path answered no ping-pong within {}", self.data.patience)))
    }
}

/// Returns the flow settings with which the idle RTT of a cell is probed: its transport and placement, without its
/// other settings.
pub(crate) fn ping_flow(flow: &Settings) -> Settings {
    with(&[(&TRANSPORT, TRANSPORT.of(flow)), (&PLACEMENT, PLACEMENT.of(flow))])
}

/// Returns an error if the path of a run broke or carried nothing, because none of its figures is complete.
fn unbroken(ends: &[EndpointOutcome; 2]) -> Result<(), Error> {
    let broken = ends.iter().map(|end| end.get::<PathStall>()).find(|broken| broken.ended_run());
    broken.map_or(Ok(()), |broken| Err(Error::Silent { waited: broken.waited_ns }))
}

fn outcome(host: &Host, reply: Reply) -> Result<EndpointOutcome, Error> {
    match reply {
        Reply::Outcome { outcome } => match misread(&outcome) {
            Some(why) => Err(host.misshapen(why)),
            None => Ok(*outcome),
        },
        _ => Err(host.unexpected("run")),
    }
}

/// Returns an error if the flows of a trial were of another kind than requested, because its results would have a wrong
/// name.
fn is_as_asked(host: &Host, end: &EndpointOutcome) -> Result<(), Error> {
    let (host, found) = (host.name.clone(), fallback::another(end));
    found.map_or(Ok(()), |found| Err(Error::FellBack { host, line: found.line.clone() }))
}

/// Returns the reason if a figure of a known kind could not be read; otherwise `None`. Such an outcome is not used for
/// any decision.
fn misread(outcome: &EndpointOutcome) -> Option<&String> {
    outcome.observed.unseen.iter().find(|line| DetailError::is_told_by(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_with_a_figure_that_cannot_be_read_is_noticed() {
        let sent = |outcome: &str| match landspeed_record::decode(outcome.as_bytes()) {
            Ok(outcome) => misread(&outcome).cloned(),
            Err(error) => panic!("{error}"),
        };
        let odd = r#"{"observed":{"cpu":{"workload_ns":7},"hologram":[],"unseen":["cost: not allowed"]},"mptcp":[]}"#;
        assert_eq!(sent(odd), None);
        let cpu = sent(r#"{"observed":{"cpu":{"workload_ns":"\u001b[2J"}}}"#).expect("a line");
        assert!(cpu.starts_with("cpu: ") && !cpu.contains('\u{1b}'), "{cpu}");
        assert!(sent(r#"{"sweep":{}}"#).expect("a line").starts_with("sweep: "));
    }
}
