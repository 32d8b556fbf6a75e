//! Two hosts and the data path between them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use landspeed_agent::session::{LineSink, Reply, Request, SessionKey, ZonedAddress, is_link_local};
use landspeed_analysis::fallback;
use landspeed_record::factor::PathView;
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{
    Cell, DetailError, EndpointOutcome, PATIENCE, PathFacts, PathStall, Program, RestoreOutcome, Role,
    Settings, Side, TrialSpec, Workload,
};
use landspeed_transport::settings::{PLACEMENT, TRANSPORT, with};
use landspeed_workload::{find, lasts, pingpong, transports};

use crate::addresses::{AddressCandidate, address_candidates, check};
use crate::answers::{RunCallbacks, both, graver};
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

/// Two hosts and the data path between them.
pub struct Pair {
    /// The host that opens flows. It sends unless the direction is reversed.
    pub a: Host,
    pub b: Host,
    pub path: PathFacts,
    /// Data ports of B by the transports that they serve. Each is opened when a run first requests these.
    ports: Mutex<BTreeMap<Vec<String>, u16>>,
    address: AddressCandidate,
    key: SessionKey,
    source_port: u16,
    /// Port of B that the user chose; zero if B chooses.
    data_port: u16,
    /// Longest wait for a silent path.
    patience: Nanos,
    /// The pair's place among the hosts that run a program.
    program_hosts: ProgramHosts,
}

/// The hosts that run a program, from the view of one pair of them.
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

/// Makes the pairs from one host to several others the hosts of a program. Host 1 is the first host of all pairs.
pub fn set_program_hosts(pairs: &mut [Pair]) {
    let Some(first) = pairs.first() else { return };
    let token = SessionKey::random().hex();
    let own = first.path.address_a.parse().ok();
    let others = pairs.iter().map(|pair| pair.address.ip);
    let hosts: Vec<IpAddr> = own.into_iter().chain(others).collect();
    for (pair, other) in pairs.iter_mut().zip(2..) {
        pair.program_hosts =
            ProgramHosts { hosts: hosts.clone(), other, token: token.clone(), epoch: Mutex::default() };
    }
}

/// Number of phases of a run that may each wait for a silent path: for its flows, for their first data, and for the
/// message that the peer's window is closed.
const PATIENT_PHASES: u32 = 3;

/// First source port of the pair's flows. Both arms of a block use the same ones, so that RSS and the like treat them
/// alike. It is outside the default ephemeral range (32768 up), so that no other program gets one of them in between.
const SOURCE_PORTS: u16 = 20_000;

impl Pair {
    /// Finds the data path from `a` to `b` by proving a flow over it, and probes the knobs along it.
    pub fn join(mut a: Host, mut b: Host, options: &PathOptions) -> Result<Pair, Error> {
        check(&a, &b, options)?;
        let key = SessionKey::random();
        let met = meet(
            (&a, &b),
            &address_candidates(&a.facts, &b.facts, options),
            options.data_port,
            &key,
            &options.notices,
        )?;
        let ProvenFlow { candidate: address, port, source, routed, silent } = met;
        [a.device, b.device] = routed;
        let path = PathFacts {
            address_a: source.to_string(),
            address_b: address.shown(&a.facts),
            silent: silent.iter().map(|candidate| candidate.shown(&a.facts)).collect(),
            ..PathFacts::default()
        };
        let ports = Mutex::new(BTreeMap::from([(transports(&probe()), port)]));
        let (source_port, data_port, program_hosts) =
            (SOURCE_PORTS, options.data_port, ProgramHosts::default());
        let patience = if options.patience == Nanos(0) { PATIENCE } else { options.patience };
        let mut pair =
            Pair { a, b, path, ports, address, key, source_port, data_port, patience, program_hosts };
        pair.observe([source, address.ip])?;
        pair.a.begin()?;
        pair.b.begin()?;
        set_program_hosts(std::slice::from_mut(&mut pair));
        Ok(pair)
    }

    /// Measures the idle RTT, and takes the interfaces that carried it as those of the path.
    fn observe(&mut self, addresses: [IpAddr; 2]) -> Result<(), Error> {
        let seen = observe(self, addresses)?;
        self.path.rtt_ns = seen.rtt;
        let [a, b] = seen.carriers;
        self.a.faces(&a, Side::A);
        self.b.faces(&b, Side::B);
        (self.path.link_a, self.path.link_b) = (a.data.clone(), b.data.clone());
        (self.path.carrier_a, self.path.carrier_b) = (a, b);
        Ok(())
    }

    pub fn host_mut(&mut self, side: Side) -> &mut Host {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }

    /// Returns true if the pair's addresses are of IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.address.ip.is_ipv6()
    }

    /// Returns the slower of both links' speeds, as far as the links report any: virtual ones do not.
    pub fn link_rate(&self) -> Option<BitRate> {
        let told = [self.a.link(), self.b.link()].into_iter().filter_map(|link| link.speed_mbps);
        told.filter(|mbps| *mbps > 0).min().map(|mbps| BitRate(mbps as f64 * 1e6))
    }

    /// Calls `ask` with the path as the factors' tables need it.
    pub(crate) fn view<T>(&self, in_lab: bool, ask: impl FnOnce(&PathView<'_>) -> T) -> T {
        ask(&PathView {
            sender: &self.a.facts,
            receiver: &self.b.facts,
            sender_link: &self.a.link(),
            receiver_link: &self.b.link(),
            sender_states: &self.a.states,
            receiver_states: &self.b.states,
            rtt: self.path.rtt_ns,
            ipv6: self.address.ip.is_ipv6(),
            in_lab,
        })
    }

    /// Takes the right to turn knobs on both hosts unless it has been taken. [`Pair::restore`] and the end of the
    /// session release it. So a run that cannot turn anything is refused before it measures or requests anything.
    ///
    /// # Errors
    /// Returns an error if a host may not be tuned, if another run is tuning it, or if an earlier run left changes
    /// there.
    pub fn reserve(&self) -> Result<(), Error> {
        for (host, carrier) in [(&self.a, &self.path.carrier_a), (&self.b, &self.path.carrier_b)] {
            host.knows(carrier)?;
        }
        [&self.a, &self.b].into_iter().try_for_each(Host::reserve)
    }

    /// Sets both hosts to `cell`, at the same time.
    pub fn set(&mut self, cell: &Cell) -> Result<(), Error> {
        let changes = [self.a.changes_to(&cell.a), self.b.changes_to(&cell.b)];
        self.turn(&changes)
    }

    /// Writes `changes` on A and on B, even if they change nothing.
    pub(crate) fn turn(
        &mut self,
        changes: &[Vec<landspeed_agent::session::KnobChange>; 2],
    ) -> Result<(), Error> {
        let a = self.a.turn(&changes[0]);
        let b = self.b.turn(&changes[1]);
        // Waits for both, even if one fails, so that no turn stays in flight.
        let a = a.and_then(|pending| self.a.turned(pending, &changes[0]));
        let b = b.and_then(|pending| self.b.turned(pending, &changes[1]));
        match (a, b) {
            (Err(a), Err(b)) => Err(graver(a, b)),
            (a, b) => a.and(b),
        }
    }

    /// Restores everything on both hosts, at the same time, so that a silent host does not delay the other. The notes
    /// name every difference from the start.
    pub fn restore(&mut self) -> RestoreOutcome {
        let Pair { a, b, .. } = self;
        std::thread::scope(|scope| {
            let a = scope.spawn(|| a.restore());
            let b = b.restore();
            a.join().expect("restoring does not panic").and(b)
        })
    }

    /// Runs `work`, which may set the hosts, and then restores both hosts, even if it failed.
    ///
    /// # Errors
    /// Returns an error, before `work`, if a host may not be tuned; otherwise the error of `work`, with what was not
    /// restored.
    pub(crate) fn tuned<T>(
        &mut self,
        work: impl FnOnce(&mut Pair) -> Result<T, Error>,
    ) -> Result<(T, RestoreOutcome), Error> {
        self.reserve()?;
        let result = work(self);
        let restored = self.restore();
        match result {
            Ok(done) => Ok((done, restored)),
            Err(error) => Err(error.and(&restored)),
        }
    }

    /// Runs `workload` over the path as it is set now. Returns the outcomes of A and of B.
    pub fn run(
        &self,
        workload: Workload,
        flow: &Settings,
        warm_up: Nanos,
    ) -> Result<[EndpointOutcome; 2], Error> {
        self.run_watched(workload, flow, warm_up, &WatchOptions::default())
    }

    /// Runs a workload as [`Pair::run`] does, with observers beyond the usual ones or samples within the window.
    pub fn run_watched(
        &self,
        workload: Workload,
        flow: &Settings,
        warm_up: Nanos,
        watching: &WatchOptions,
    ) -> Result<[EndpointOutcome; 2], Error> {
        let outcomes = self.run_unless((workload, warm_up), flow, watching, &|| false)?;
        outcomes.ok_or_else(|| Error::Other("a run ended early without a request to stop".into()))
    }

    /// Runs a workload as [`Pair::run_watched`] does, but gives it up when `stop` returns true. The result is `None`
    /// then, and the hosts go on until their sessions end.
    pub(crate) fn run_unless(
        &self,
        (workload, warm_up): (Workload, Nanos),
        flow: &Settings,
        watching: &WatchOptions,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<[EndpointOutcome; 2]>, Error> {
        self.run_followed((workload, warm_up), flow, watching, &RunCallbacks::unless(stop))
    }

    /// Runs a workload as [`Pair::run_unless`] does, with progress messages as often as `watching` requests them.
    pub(crate) fn run_followed(
        &self,
        (workload, warm_up): (Workload, Nanos),
        flow: &Settings,
        watching: &WatchOptions,
        callbacks: &RunCallbacks<'_>,
    ) -> Result<Option<[EndpointOutcome; 2]>, Error> {
        let patience = if watching.patience == Nanos(0) { self.patience } else { watching.patience };
        let limit = Duration::from(lasts(&workload, warm_up) + warm_up)
            + self.a.patience().min(self.b.patience())
            + PATIENT_PHASES * Duration::from(patience);
        let links = [self.a.link(), self.b.link()];
        let [client, server] =
            cores(PLACEMENT.of(flow), (&self.a.facts, &links[0]), (&self.b.facts, &links[1]));
        let spec = |cores, role| TrialSpec {
            program: self.program(&workload, role),
            workload: workload.clone(),
            flow: flow.clone(),
            cores,
            warm_up_ns: warm_up,
            interval_ns: watching.interval,
            observers: watching.observers.clone(),
            progress_ns: watching.progress,
            patience_ns: patience,
        };
        self.carries_program(&workload)?;
        let port = self.port(transports(&spec(Vec::new(), Role::Client)))?;
        let server = self.b.start(&self.request(Role::Server, port, spec(server, Role::Server)))?;
        let client = self.a.start(&self.request(Role::Client, port, spec(client, Role::Client)))?;
        let answers = both([&self.a, &self.b], [client, server], limit, callbacks)?;
        let Some([a, b]) = answers else { return Ok(None) };
        let ends = [outcome(&self.a, a)?, outcome(&self.b, b)?];
        [&self.a, &self.b].into_iter().zip(&ends).try_for_each(|(host, end)| is_as_asked(host, end))?;
        if !watching.keeps_broken {
            unbroken(&ends)?;
        }
        Ok(Some(ends))
    }

    /// Refuses a program over link-local addresses, because each host would need a different text for them.
    fn carries_program(&self, workload: &Workload) -> Result<(), Error> {
        let is_program = || find(workload).is_some_and(|runner| runner.application().is_some());
        if !is_link_local(&self.address.ip) || !is_program() {
            return Ok(());
        }
        let (host, what) =
            (self.b.name.clone(), "address that both hosts write alike, which a program needs".into());
        Err(Error::NoAddress { host, what, remedy: "add one beyond fe80:: to each end".into() })
    }

    /// Sets the name of the block for which services, which outlive a trial, keep running.
    pub(crate) fn begin_epoch(&self, name: &str) {
        name.clone_into(&mut self.program_hosts.epoch.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the program of a trial, for the host with this role; `None` if the workload is landspeed's own. A
    /// service does not outlive a change of the network namespace's settings, because sockets inherit them when they
    /// are created.
    fn program(&self, workload: &Workload, role: Role) -> Option<Program> {
        let runner = find(workload)?;
        let application = runner.application()?;
        let (name, text) = (application.file_name().to_owned(), application.text.to_string());
        let ProgramHosts { hosts, other, token, epoch } = &self.program_hosts;
        let (host, number) = match role {
            Role::Client => (&self.a, 1),
            Role::Server => (&self.b, *other),
        };
        let epoch = epoch.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = match epoch.as_str() {
            "" => String::new(),
            block => format!("{block} {:?}", host.of_namespace()),
        };
        let (hosts, token) = (hosts.clone(), token.clone());
        Some(Program { name, text, hosts, number, other: *other, epoch, token })
    }

    fn request(&self, role: Role, port: u16, spec: TrialSpec) -> Request {
        let (source_port, key) = (self.source_port, self.key.clone());
        let (at, host) = match role {
            Role::Client => (self.address.as_a_calls_it(port), &self.a),
            Role::Server => (self.address.as_b_calls_it(port), &self.b),
        };
        Request::Run { role, at, source_port, key, link: host.device.clone(), spec: Box::new(spec) }
    }

    /// Returns the data port for flows of `transports`, which B opens when it is first needed.
    fn port(&self, transports: Vec<String>) -> Result<u16, Error> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get(&transports) {
            return Ok(*port);
        }
        let port = listen(&self.b, self.address, self.data_port, transports.clone(), &self.key)?;
        ports.insert(transports, port);
        Ok(port)
    }

    /// Measures the median RTT of one byte on the idle path.
    pub fn idle_rtt(&self) -> Result<Nanos, Error> {
        self.idle().map(|(rtt, _)| rtt)
    }

    /// Measures the idle RTT, and returns the outcomes of both hosts too.
    pub(crate) fn idle(&self) -> Result<(Nanos, [EndpointOutcome; 2]), Error> {
        // An RTT by satellite is longer than the usual probe. On a lossy path a byte and its repeats can be lost for
        // longer than seconds: TCP doubles its time-out with each.
        for duration in [Nanos::millis(100), Nanos::secs(3), self.patience] {
            let ends = self.run(pingpong::one_byte(duration), &with(&[]), Nanos::millis(5))?;
            if let Some(median) = ends[0].latency.first().and_then(|h| h.percentile(0.5)) {
                return Ok((median, ends));
            }
        }
        Err(Error::Other(format!("the path answered no ping-pong within {}", self.patience)))
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

/// Returns why not all known figures could be read, if so. No decision is made on the rest of such an outcome.
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
