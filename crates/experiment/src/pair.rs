//! Two hosts and the data path between them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use landspeed_analysis::fallback;
use landspeed_factor::PathView;
use landspeed_record::{
    Broken, Cell, EndpointOutcome, Misshapen, PATIENCE, PathFacts, Program, Restored, Role, Settings, Side,
    TrialSpec, Workload,
};
use landspeed_session::{LineSink, Reply, Request, SessionKey, Zoned, is_link_local};
use landspeed_transport::settings::{PLACEMENT, TRANSPORT, with};
use landspeed_units::{BitRate, Nanos};
use landspeed_workload::{lasts, pingpong, text_of, transports};

use crate::answers::{Follow, both, graver};
use crate::carry::observe;
use crate::cores::cores;
use crate::meet::{Met, listen, meet, probe};
use crate::ways::{Way, check, ways};
use crate::{Error, Host};

/// What the user wants of the data path.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Address of B to send to, instead of trying those that B has; the zone of a link-local one is an interface of A.
    pub address: Option<Zoned>,
    /// Only IPv4 or only IPv6.
    pub ipv6: Option<bool>,
    /// Addresses of B to try first: what its agent's line holds, how the user's own machine resolves its name, or what the
    /// lab gave it.
    pub hints: Vec<IpAddr>,
    /// Takes what the user should know while addresses are tried.
    pub notices: LineSink,
    /// Port of B that data flows go to; zero lets B choose.
    pub data_port: u16,
    /// How long a silent path is waited for at most; zero for [`landspeed_record::PATIENCE`].
    pub patience: Nanos,
}

/// What is watched while a workload runs, beyond the usual.
#[derive(Debug, Clone, Default)]
pub struct Watching {
    /// Observers beside the usual ones, by name.
    pub observers: Vec<String>,
    /// Time between samples; zero takes one at each end of the window.
    pub interval: Nanos,
    /// Time between two words of how far the run has come; zero for none.
    pub progress: Nanos,
    /// Whether a run whose path broke, or carried nothing, is an outcome rather than an error.
    pub keeps_broken: bool,
    /// How long a silent path is waited for at most; zero for as long as the pair waits.
    pub patience: Nanos,
}

pub struct Pair {
    /// The host that opens flows; sends unless the direction is reversed.
    pub a: Host,
    pub b: Host,
    pub path: PathFacts,
    /// Data ports of B by their transports: each is opened when a run first asks for these.
    ports: Mutex<BTreeMap<Vec<String>, u16>>,
    way: Way,
    key: SessionKey,
    source_port: u16,
    /// Port of B that the user chose; zero where B chooses.
    data_port: u16,
    /// How long a silent path is waited for at most.
    patience: Nanos,
    /// Where it is among the hosts that run a program.
    stage: Stage,
}

/// The hosts that run a program, as a pair of them sees it.
#[derive(Debug, Default)]
struct Stage {
    /// Addresses of all hosts by number; the pair's first host is the first.
    hosts: Vec<IpAddr>,
    /// Number of the pair's second host.
    other: u32,
    /// What all roles know.
    token: String,
    /// What services live through.
    epoch: Mutex<String>,
}

/// Makes the pairs from one host to several others the stage of a program: host 1 is the first host of all of them.
pub fn set_stage(pairs: &mut [Pair]) {
    let Some(first) = pairs.first() else { return };
    let token = SessionKey::random().hex();
    let own = first.path.address_a.parse().ok();
    let others = pairs.iter().map(|pair| pair.way.ip);
    let hosts: Vec<IpAddr> = own.into_iter().chain(others).collect();
    for (pair, other) in pairs.iter_mut().zip(2..) {
        pair.stage = Stage { hosts: hosts.clone(), other, token: token.clone(), epoch: Mutex::default() };
    }
}

/// A run waits as long as a silent path is waited for at most three times: for its flows, for their first data, and for the word
/// that the peer's window is closed.
const PATIENT_PHASES: u32 = 3;

/// First source port of the pair's flows: both arms of a block use the same ones, so that RSS and
/// the like treat them alike. Outside the default ephemeral range (32768 up), so that no other
/// program is given one of them meanwhile.
const SOURCE_PORTS: u16 = 20_000;

impl Pair {
    /// Finds the data path from `a` to `b` by proving a flow over it, and probes the knobs along it.
    pub fn join(mut a: Host, mut b: Host, wishes: &Wishes) -> Result<Pair, Error> {
        check(&a, &b, wishes)?;
        let key = SessionKey::random();
        let met = meet((&a, &b), &ways(&a.facts, &b.facts, wishes), wishes.data_port, &key, &wishes.notices)?;
        let Met { way, port, source, routed, silent } = met;
        [a.device, b.device] = routed;
        let path = PathFacts {
            address_a: source.to_string(),
            address_b: way.shown(&a.facts),
            silent: silent.iter().map(|way| way.shown(&a.facts)).collect(),
            ..PathFacts::default()
        };
        let ports = Mutex::new(BTreeMap::from([(transports(&probe()), port)]));
        let (source_port, data_port, stage) = (SOURCE_PORTS, wishes.data_port, Stage::default());
        let patience = if wishes.patience == Nanos(0) { PATIENCE } else { wishes.patience };
        let mut pair = Pair { a, b, path, ports, way, key, source_port, data_port, patience, stage };
        pair.observe([source, way.ip])?;
        pair.a.begin()?;
        pair.b.begin()?;
        set_stage(std::slice::from_mut(&mut pair));
        Ok(pair)
    }

    /// Measures the idle round trip, and goes by the interfaces that carried it from then on.
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

    /// Whether its addresses are of IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        self.way.ip.is_ipv6()
    }

    /// The slower of both links' speeds, as far as they tell any: virtual ones do not.
    pub fn link_rate(&self) -> Option<BitRate> {
        let told = [self.a.link(), self.b.link()].into_iter().filter_map(|link| link.speed_mbps);
        told.filter(|mbps| *mbps > 0).min().map(|mbps| BitRate(mbps as f64 * 1e6))
    }

    /// The path as the factors' tables are asked about it.
    pub(crate) fn view<T>(&self, in_lab: bool, ask: impl FnOnce(&PathView<'_>) -> T) -> T {
        ask(&PathView {
            sender: &self.a.facts,
            receiver: &self.b.facts,
            sender_link: &self.a.link(),
            receiver_link: &self.b.link(),
            sender_states: &self.a.states,
            receiver_states: &self.b.states,
            rtt: self.path.rtt_ns,
            ipv6: self.way.ip.is_ipv6(),
            in_lab,
        })
    }

    /// Takes the right to turn knobs on both hosts, where it is not taken yet; it goes with [`Pair::restore`] and with the
    /// session. So a run that cannot turn anything is refused before it measures or asks anything.
    ///
    /// # Errors
    /// A host that may not be tuned, that another run is tuning, or where an earlier run left changes.
    pub fn reserve(&self) -> Result<(), Error> {
        for (host, carrier) in [(&self.a, &self.path.carrier_a), (&self.b, &self.path.carrier_b)] {
            host.knows(carrier)?;
        }
        [&self.a, &self.b].into_iter().try_for_each(Host::reserve)
    }

    /// Sets both hosts to `cell`, both at once.
    pub fn set(&mut self, cell: &Cell) -> Result<(), Error> {
        let changes = [self.a.changes_to(&cell.a), self.b.changes_to(&cell.b)];
        self.turn(&changes)
    }

    /// Writes `changes` on A and on B, whether or not they change anything.
    pub(crate) fn turn(&mut self, changes: &[Vec<landspeed_session::Change>; 2]) -> Result<(), Error> {
        let a = self.a.turn(&changes[0]);
        let b = self.b.turn(&changes[1]);
        // Both are waited for, whatever either says: no turn is left in flight.
        let a = a.and_then(|pending| self.a.turned(pending, &changes[0]));
        let b = b.and_then(|pending| self.b.turned(pending, &changes[1]));
        match (a, b) {
            (Err(a), Err(b)) => Err(graver(a, b)),
            (a, b) => a.and(b),
        }
    }

    /// Has both hosts put everything back, at the same time: one that is silent holds up no other. What differs from the start is in
    /// the notes.
    pub fn restore(&mut self) -> Restored {
        let Pair { a, b, .. } = self;
        std::thread::scope(|scope| {
            let a = scope.spawn(|| a.restore());
            let b = b.restore();
            a.join().expect("restoring does not panic").and(b)
        })
    }

    /// Does `work`, which may set the hosts, and has both put everything back, whatever became of it.
    ///
    /// # Errors
    /// A host that may not be tuned, before anything is done; what `work` says, with what was not put back after it.
    pub(crate) fn tuned<T>(
        &mut self,
        work: impl FnOnce(&mut Pair) -> Result<T, Error>,
    ) -> Result<(T, Restored), Error> {
        self.reserve()?;
        let result = work(self);
        let restored = self.restore();
        match result {
            Ok(done) => Ok((done, restored)),
            Err(error) => Err(error.and(&restored)),
        }
    }

    /// Runs `workload` over the path as it is set now; what A saw and what B saw.
    pub fn run(
        &self,
        workload: Workload,
        flow: &Settings,
        warm_up: Nanos,
    ) -> Result<[EndpointOutcome; 2], Error> {
        self.run_watched(workload, flow, warm_up, &Watching::default())
    }

    /// The same with more observers than the usual ones, or with samples within the window.
    pub fn run_watched(
        &self,
        workload: Workload,
        flow: &Settings,
        warm_up: Nanos,
        watching: &Watching,
    ) -> Result<[EndpointOutcome; 2], Error> {
        let outcomes = self.run_unless((workload, warm_up), flow, watching, &|| false)?;
        outcomes.ok_or_else(|| Error::Other("a run ended early without a request to stop".into()))
    }

    /// The same, given up where `stop` says so: `None` then, and the hosts go on until their sessions end.
    pub(crate) fn run_unless(
        &self,
        (workload, warm_up): (Workload, Nanos),
        flow: &Settings,
        watching: &Watching,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<[EndpointOutcome; 2]>, Error> {
        self.run_followed((workload, warm_up), flow, watching, &Follow::unless(stop))
    }

    /// The same, with word of how far it has come as often as `watching` asks for it.
    pub(crate) fn run_followed(
        &self,
        (workload, warm_up): (Workload, Nanos),
        flow: &Settings,
        watching: &Watching,
        follow: &Follow<'_>,
    ) -> Result<Option<[EndpointOutcome; 2]>, Error> {
        let patience = if watching.patience == Nanos(0) { self.patience } else { watching.patience };
        let limit = Duration::from(lasts(&workload, warm_up) + warm_up)
            + self.a.patience().min(self.b.patience())
            + PATIENT_PHASES * Duration::from(patience);
        let links = [self.a.link(), self.b.link()];
        let [client, server] =
            cores(PLACEMENT.of(flow), (&self.a.facts, &links[0]), (&self.b.facts, &links[1]));
        let spec = |cores, role| TrialSpec {
            program: self.program(&workload.name, role),
            workload: workload.clone(),
            flow: flow.clone(),
            cores,
            warm_up_ns: warm_up,
            interval_ns: watching.interval,
            observers: watching.observers.clone(),
            progress_ns: watching.progress,
            patience_ns: patience,
        };
        self.carries_program(&workload.name)?;
        let port = self.port(transports(&spec(Vec::new(), Role::Client)))?;
        let server = self.b.start(&self.request(Role::Server, port, spec(server, Role::Server)))?;
        let client = self.a.start(&self.request(Role::Client, port, spec(client, Role::Client)))?;
        let answers = both([&self.a, &self.b], [client, server], limit, follow)?;
        let Some([a, b]) = answers else { return Ok(None) };
        let ends = [outcome(&self.a, a)?, outcome(&self.b, b)?];
        [&self.a, &self.b].into_iter().zip(&ends).try_for_each(|(host, end)| is_as_asked(host, end))?;
        if !watching.keeps_broken {
            unbroken(&ends)?;
        }
        Ok(Some(ends))
    }

    /// Refuses a program over link-local addresses: each host would need another text for them.
    fn carries_program(&self, workload: &str) -> Result<(), Error> {
        if !is_link_local(&self.way.ip) || text_of(workload).is_none() {
            return Ok(());
        }
        let (host, what) =
            (self.b.name.clone(), "address that both hosts write alike, which a program needs".into());
        Err(Error::NoAddress { host, what, remedy: "add one beyond fe80:: to each end".into() })
    }

    /// What services that outlive a trial live through from now on: a block.
    pub(crate) fn begin_epoch(&self, name: &str) {
        name.clone_into(&mut self.stage.epoch.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The program of a trial, for the host that has this role; `None` where the workload is landspeed's own. A service does not
    /// outlive a change of what sockets take over when they are made: the settings of its network namespace.
    fn program(&self, workload: &str, role: Role) -> Option<Program> {
        let (name, text) = text_of(workload)?;
        let Stage { hosts, other, token, epoch } = &self.stage;
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
            Role::Client => (self.way.as_a_calls_it(port), &self.a),
            Role::Server => (self.way.as_b_calls_it(port), &self.b),
        };
        Request::Run { role, at, source_port, key, link: host.device.clone(), spec: Box::new(spec) }
    }

    /// Where flows of `transports` go: a data port that B opens for them.
    fn port(&self, transports: Vec<String>) -> Result<u16, Error> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get(&transports) {
            return Ok(*port);
        }
        let port = listen(&self.b, self.way, self.data_port, transports.clone(), &self.key)?;
        ports.insert(transports, port);
        Ok(port)
    }

    /// Median round trip of one byte on the idle path.
    pub fn idle_rtt(&self) -> Result<Nanos, Error> {
        self.idle().map(|(rtt, _)| rtt)
    }

    /// The same with what both hosts saw meanwhile.
    pub(crate) fn idle(&self) -> Result<(Nanos, [EndpointOutcome; 2]), Error> {
        // A round trip by satellite takes longer than the usual probe lasts.
        for duration in [Nanos::millis(100), Nanos::secs(3)] {
            let ends = self.run(pingpong::one_byte(duration), &with(&[]), Nanos::millis(5))?;
            if let Some(median) = ends[0].latency.first().and_then(|h| h.percentile(0.5)) {
                return Ok((median, ends));
            }
        }
        Err(Error::Other("the path answered no ping-pong within 3 s".into()))
    }
}

/// Flow settings for the idle probe under a cell: its transport and placement, and nothing of its bulk settings.
pub(crate) fn ping_flow(flow: &Settings) -> Settings {
    with(&[(&TRANSPORT, TRANSPORT.of(flow)), (&PLACEMENT, PLACEMENT.of(flow))])
}

/// Refuses a run whose path broke, or carried nothing: no figure of it is whole.
fn unbroken(ends: &[EndpointOutcome; 2]) -> Result<(), Error> {
    let broken = ends.iter().map(|end| end.get::<Broken>()).find(|broken| broken.is_so());
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

/// Refuses a trial whose flows were something else than asked: it would be shown under a name that is not theirs.
fn is_as_asked(host: &Host, end: &EndpointOutcome) -> Result<(), Error> {
    let (host, found) = (host.name.clone(), fallback::another(end));
    found.map_or(Ok(()), |found| Err(Error::FellBack { host, line: found.line.clone() }))
}

/// Why not all figures that landspeed knows could be read. Nothing is decided on what is left of such an outcome.
fn misread(outcome: &EndpointOutcome) -> Option<&String> {
    outcome.observed.unseen.iter().find(|line| Misshapen::is_told_by(line))
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
