//! The data path between two hosts of a group, and runs over it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use landspeed_agent::session::{LineSink, Reply, Request, SessionKey, ZonedAddress, is_link_local};
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

use crate::addresses::{AddressCandidate, address_candidates, check};
use crate::answers::{RunCallbacks, both};
use crate::carry::observe;
use crate::cores::cores;
use crate::meet::{ProvenFlow, listen, meet, probe};
use crate::{Error, Host};

/// The user's wishes for the data path.
#[derive(Debug, Clone, Default)]
pub struct PathOptions {
    /// Address of B to send to, instead of trying B's addresses. The zone of a link-local one is an interface of A.
    pub address: Option<ZonedAddress>,
    /// `Some(false)` for only IPv4, `Some(true)` for only IPv6.
    pub ipv6: Option<bool>,
    /// Addresses of B to try first: the one in its agent's line, those to which the user's machine resolves its name,
    /// or the one from the lab.
    pub hints: Vec<IpAddr>,
    /// Receives notices for the user while addresses are tried.
    pub notices: LineSink,
    /// Port of B for data flows; zero lets B choose.
    pub data_port: u16,
    /// Longest wait for a silent path; zero for [`landspeed_record::PATIENCE`].
    pub patience: Nanos,
}

/// One run of a workload.
#[derive(Debug, Clone)]
pub struct RunSpec {
    pub workload: Workload,
    /// Settings of the flows.
    pub flow: Settings,
    /// Start-up that is not counted.
    pub warm_up: Nanos,
    pub watching: WatchOptions,
}

impl RunSpec {
    /// Makes a run without a start-up, with the usual observers.
    pub fn new(workload: Workload, flow: &Settings) -> Self {
        RunSpec { workload, flow: flow.clone(), warm_up: Nanos(0), watching: WatchOptions::default() }
    }

    /// Returns this run with a start-up that is not counted.
    #[must_use]
    pub fn after(self, warm_up: Nanos) -> Self {
        RunSpec { warm_up, ..self }
    }

    /// Returns this run with observers beyond the usual ones, samples within the window, or other limits.
    #[must_use]
    pub fn watched(self, watching: WatchOptions) -> Self {
        RunSpec { watching, ..self }
    }
}

/// The observers, intervals and limits of a run, beyond the usual.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Names of observers in addition to the usual ones.
    pub observers: Vec<String>,
    /// Time between samples; zero for one at each end of the window.
    pub interval: Nanos,
    /// Time between two progress messages of the run; zero for none.
    pub progress: Nanos,
    /// True if a run whose path broke, or carried nothing, is an outcome and not an error.
    pub keeps_broken: bool,
    /// Longest wait for a silent path; zero for the pair's.
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

/// A proven data path between two hosts of a group, with data ports at its host B.
pub(crate) struct DataPath {
    /// Indices of A and B in the group's list of hosts.
    pub(crate) ends: [usize; 2],
    pub(crate) facts: PathFacts,
    /// Data ports of B by the transports that they serve. A port is opened when a run first needs it.
    ports: Mutex<BTreeMap<Vec<String>, u16>>,
    address: AddressCandidate,
    key: SessionKey,
    /// Port of B that the user chose; zero if B chooses.
    data_port: u16,
    /// Longest wait for a silent path.
    patience: Nanos,
    program_hosts: ProgramHosts,
}

/// The hosts that run one program, as one pair of them sees it.
#[derive(Debug, Default)]
struct ProgramHosts {
    /// Addresses of all hosts by number; the first is the pair's first host.
    hosts: Vec<IpAddr>,
    /// Number of the pair's second host.
    other: u32,
    /// A secret that all roles know.
    token: String,
    /// Name of the block, for which services keep running; empty outside blocks.
    epoch: Mutex<String>,
}

/// Number of phases of a run that may each wait for a silent path: the start of its flows, their first data, and the
/// message that the peer's window is closed.
const PATIENT_PHASES: u32 = 3;

/// First source port of the pair's flows. Both arms of a block use the same ones, so that RSS and the like treat them
/// alike. It is outside the default ephemeral range (32768 up), so that no other program gets one of them in between.
const SOURCE_PORT: u16 = 20_000;

impl DataPath {
    /// Finds the data path from A to B by proving a flow over it, and measures its idle RTT.
    pub(crate) fn prove([a, b]: [&Host; 2], ends: [usize; 2], options: &PathOptions) -> Result<Self, Error> {
        check(a, b, options)?;
        let key = SessionKey::random();
        let candidates = address_candidates(&a.facts, &b.facts, options);
        let met = meet((a, b), &candidates, options.data_port, &key, &options.notices)?;
        let ProvenFlow { candidate: address, port, source, routed: [link_a, link_b], silent } = met;
        let facts = PathFacts {
            address_a: source.to_string(),
            address_b: address.shown(&a.facts),
            link_a,
            link_b,
            silent: silent.iter().map(|candidate| candidate.shown(&a.facts)).collect(),
            ..PathFacts::default()
        };
        let mut path = DataPath {
            ends,
            facts,
            ports: Mutex::new(BTreeMap::from([(transports(&probe()), port)])),
            address,
            key,
            data_port: options.data_port,
            patience: if options.patience == Nanos(0) { PATIENCE } else { options.patience },
            program_hosts: ProgramHosts::default(),
        };
        path.observe([a, b], [source, address.ip])?;
        DataPath::share_program(std::slice::from_mut(&mut path), &SessionKey::random().hex());
        Ok(path)
    }

    /// Measures the idle RTT, and takes the interfaces that carried it as those of the path.
    fn observe(&mut self, hosts: [&Host; 2], addresses: [IpAddr; 2]) -> Result<(), Error> {
        let seen = observe(self.between(hosts), addresses)?;
        let [a, b] = seen.carriers;
        let facts = &mut self.facts;
        facts.rtt_ns = seen.rtt;
        (facts.link_a, facts.link_b) = (a.data.clone(), b.data.clone());
        (facts.carrier_a, facts.carrier_b) = (a, b);
        Ok(())
    }

    /// Returns the view of this path between its hosts.
    pub(crate) fn between<'g>(&'g self, [a, b]: [&'g Host; 2]) -> Pair<'g> {
        Pair { a, b, path: &self.facts, data: self }
    }

    /// Returns the side of a host of the group, if it is an end of this path.
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

    /// Makes the hosts of `paths`, which share their host A, run one program together.
    pub(crate) fn share_program(paths: &mut [DataPath], token: &str) {
        let own = paths.first().and_then(|first| first.facts.address_a.parse().ok());
        let hosts: Vec<IpAddr> = own.into_iter().chain(paths.iter().map(|path| path.address.ip)).collect();
        for (path, other) in paths.iter_mut().zip(2..) {
            let (hosts, token) = (hosts.clone(), token.to_owned());
            path.program_hosts = ProgramHosts { hosts, other, token, epoch: Mutex::default() };
        }
    }

    /// Sets the name of the block for which services, which outlive a trial, keep running.
    pub(crate) fn begin_epoch(&self, name: &str) {
        name.clone_into(&mut self.program_hosts.epoch.lock());
    }

    /// Returns the data port of `b` for flows of `transports`, which it opens when it is first needed.
    fn port(&self, b: &Host, transports: Vec<String>) -> Result<u16, Error> {
        let mut ports = self.ports.lock();
        if let Some(port) = ports.get(&transports) {
            return Ok(*port);
        }
        let port = listen(b, self.address, self.data_port, transports.clone(), &self.key)?;
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

    /// Returns the link of one end that carries the data.
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

    /// Returns the slower of both links' speeds, as far as the links report any: virtual ones do not.
    pub fn link_rate(&self) -> Option<BitRate> {
        let speeds = Side::BOTH.into_iter().filter_map(|side| self.link(side).speed_mbps);
        speeds.filter(|mbps| *mbps > 0).min().map(|mbps| BitRate(mbps as f64 * 1e6))
    }

    /// Calls `ask` with the facts, links and knobs of both ends.
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
            in_lab,
        })
    }

    /// Runs a workload over the path as it is set now. Returns the outcomes of A and of B.
    pub fn run(&self, run: &RunSpec) -> Result<[EndpointOutcome; 2], Error> {
        self.run_followed(run, &|_, _| {})
    }

    /// Runs a workload as [`Pair::run`] does, with progress messages as often as the run requests them.
    pub(crate) fn run_followed(
        &self,
        run: &RunSpec,
        on_progress: &dyn Fn(Side, TrialProgress),
    ) -> Result<[EndpointOutcome; 2], Error> {
        let outcomes = self.run_until(run, &RunCallbacks { stop: &|| false, on_progress })?;
        outcomes.ok_or_else(|| Error::Other("a run ended early without a request to stop".into()))
    }

    /// Runs a workload as [`Pair::run`] does, but gives it up when the callback requests it. The result is `None`
    /// then, and the hosts go on until their sessions end.
    pub(crate) fn run_until(
        &self,
        run: &RunSpec,
        callbacks: &RunCallbacks<'_>,
    ) -> Result<Option<[EndpointOutcome; 2]>, Error> {
        let RunSpec { workload, flow, warm_up, watching } = run;
        let patience = if watching.patience == Nanos(0) { self.data.patience } else { watching.patience };
        let limit = Duration::from(lasts(workload, *warm_up) + *warm_up)
            + self.a.patience().min(self.b.patience())
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

    /// Refuses a program over link-local addresses, because each host would need a different text for them.
    fn carries_program(&self, workload: &Workload) -> Result<(), Error> {
        let is_program = || find(workload).is_some_and(|runner| runner.application().is_some());
        if !is_link_local(&self.data.address.ip) || !is_program() {
            return Ok(());
        }
        let (host, what) =
            (self.b.name.clone(), "address that both hosts write alike, which a program needs".into());
        Err(Error::NoAddress { host, what, remedy: "add one beyond fe80:: to each end".into() })
    }

    /// Returns the program of a trial, for the host with this role; `None` if the workload is landspeed's own. A
    /// service does not outlive a change of the network namespace's settings, because sockets inherit them when they
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

    /// Measures the median RTT of one byte on the idle path.
    pub fn idle_rtt(&self) -> Result<Nanos, Error> {
        self.idle().map(|(rtt, _)| rtt)
    }

    /// Measures the idle RTT, and returns the outcomes of both hosts too.
    pub(crate) fn idle(&self) -> Result<(Nanos, [EndpointOutcome; 2]), Error> {
        // An RTT by satellite is longer than the usual probe. On a lossy path a byte and its repeats can be lost for
        // longer than seconds: TCP doubles its time-out with each.
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

/// Returns the flow settings of the idle probe under a cell: its transport and placement, without its bulk settings.
pub(crate) fn ping_flow(flow: &Settings) -> Settings {
    with(&[(&TRANSPORT, TRANSPORT.of(flow)), (&PLACEMENT, PLACEMENT.of(flow))])
}

/// Returns an error for a run whose path broke, or carried nothing: none of its figures is complete.
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

/// Refuses a trial whose flows were of another kind than requested: it would be shown under a wrong name.
fn is_as_asked(host: &Host, end: &EndpointOutcome) -> Result<(), Error> {
    let (host, found) = (host.name.clone(), fallback::another(end));
    found.map_or(Ok(()), |found| Err(Error::FellBack { host, line: found.line.clone() }))
}

/// Returns the reason if a figure of a known kind could not be read. No decision is made on the rest of such an
/// outcome.
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
