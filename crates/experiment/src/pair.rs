//! Two hosts and the data path between them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use landspeed_factor::PathView;
use landspeed_record::{
    Cell, EndpointOutcome, Misshapen, PathFacts, Program, Restored, Role, Settings, Side, TrialSpec, Workload,
};
use landspeed_session::{Reply, Request, SessionKey};
use landspeed_transport::settings::{PLACEMENT, TRANSPORT, with};
use landspeed_units::{BitRate, Nanos};
use landspeed_workload::{lasts, pingpong, text_of, transports};

use crate::answers::{Follow, both, graver};
use crate::cores::cores;
use crate::{Error, Host};

/// What the user wants of the data path.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Address of B to send to, instead of trying those that B has.
    pub address: Option<IpAddr>,
    /// Only IPv4 or only IPv6.
    pub ipv6: Option<bool>,
    /// Addresses of B worth trying first: how the user's own machine resolves its name, or what the
    /// lab gave it.
    pub hints: Vec<IpAddr>,
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
}

pub struct Pair {
    /// The host that opens flows; sends unless the direction is reversed.
    pub a: Host,
    pub b: Host,
    pub path: PathFacts,
    /// Data ports of B by their transports: each is opened when a run first asks for these.
    ports: Mutex<BTreeMap<Vec<String>, u16>>,
    address: IpAddr,
    key: SessionKey,
    source_port: u16,
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
    let others = pairs.iter().map(|pair| pair.address);
    let hosts: Vec<IpAddr> = own.into_iter().chain(others).collect();
    for (pair, other) in pairs.iter_mut().zip(2..) {
        pair.stage = Stage { hosts: hosts.clone(), other, token: token.clone(), epoch: Mutex::default() };
    }
}

/// First source port of the pair's flows: both arms of a block use the same ones, so that RSS and
/// the like treat them alike. Outside the default ephemeral range (32768 up), so that no other
/// program is given one of them meanwhile.
const SOURCE_PORTS: u16 = 20_000;

impl Pair {
    /// Finds the data path from `a` to `b` by proving a flow over it, and probes the knobs along it.
    pub fn join(mut a: Host, mut b: Host, wishes: &Wishes) -> Result<Pair, Error> {
        has_addresses(&a, &b, wishes)?;
        let key = SessionKey::random();
        let mut tried = Vec::new();
        for address in addresses(&b, wishes) {
            match open(&mut a, &mut b, address, &key) {
                Ok((port, source)) => {
                    a.begin()?;
                    b.begin()?;
                    let path = PathFacts {
                        link_a: a.device.clone(),
                        link_b: b.device.clone(),
                        address_a: source.to_string(),
                        address_b: address.to_string(),
                        ..PathFacts::default()
                    };
                    let ports = Mutex::new(BTreeMap::from([(transports(&probe()), port)]));
                    let source_port = SOURCE_PORTS;
                    let stage = Stage::default();
                    let mut pair = Pair { a, b, path, ports, address, key, source_port, stage };
                    pair.path.rtt_ns = pair.idle_rtt()?;
                    set_stage(std::slice::from_mut(&mut pair));
                    return Ok(pair);
                }
                Err(error) => tried.push(format!("{address}: {error}")),
            }
        }
        Err(Error::NoPath { a: a.name, b: b.name, tried: tried.join("; ") })
    }

    pub fn host_mut(&mut self, side: Side) -> &mut Host {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
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
            ipv6: self.address.is_ipv6(),
            in_lab,
        })
    }

    /// Takes the right to turn knobs on both hosts, where it is not taken yet; it goes with [`Pair::restore`] and with the
    /// session. So a run that cannot turn anything is refused before it measures or asks anything.
    ///
    /// # Errors
    /// A host that may not be tuned, that another run is tuning, or where an earlier run left changes.
    pub fn reserve(&self) -> Result<(), Error> {
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
        let limit =
            Duration::from(lasts(&workload, warm_up) + warm_up) + self.a.patience().min(self.b.patience());
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
        };
        let at = self.at(transports(&spec(Vec::new(), Role::Client)))?;
        let server = self.b.start(&self.request(Role::Server, at, spec(server, Role::Server)))?;
        let client = self.a.start(&self.request(Role::Client, at, spec(client, Role::Client)))?;
        let answers = both([&self.a, &self.b], [client, server], limit, follow)?;
        let Some([a, b]) = answers else { return Ok(None) };
        Ok(Some([outcome(&self.a, a)?, outcome(&self.b, b)?]))
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

    fn request(&self, role: Role, at: SocketAddr, spec: TrialSpec) -> Request {
        let (source_port, key) = (self.source_port, self.key.clone());
        Request::Run { role, at, source_port, key, spec: Box::new(spec) }
    }

    /// Where flows of `transports` go, at a data port that B opens for them.
    fn at(&self, transports: Vec<String>) -> Result<SocketAddr, Error> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let port = match ports.get(&transports) {
            Some(port) => *port,
            None => {
                let port = listen(&self.b, self.address, transports.clone(), &self.key)?;
                ports.insert(transports, port);
                port
            }
        };
        Ok(SocketAddr::new(self.address, port))
    }

    /// Median round trip of one byte on the idle path.
    pub fn idle_rtt(&self) -> Result<Nanos, Error> {
        // A round trip by satellite takes longer than the usual probe lasts.
        for duration in [Nanos::millis(100), Nanos::secs(3)] {
            let [a, _] = self.run(pingpong::one_byte(duration), &with(&[]), Nanos::millis(5))?;
            if let Some(median) = a.latency.first().and_then(|h| h.percentile(0.5)) {
                return Ok(median);
            }
        }
        Err(Error::Other("the path answered no ping-pong within 3 s".into()))
    }
}

/// Flow settings for the idle probe under a cell: its transport and placement, and nothing of its bulk settings.
pub(crate) fn ping_flow(flow: &Settings) -> Settings {
    with(&[(&TRANSPORT, TRANSPORT.of(flow)), (&PLACEMENT, PLACEMENT.of(flow))])
}

/// How long a flow's proof may take.
const MEET: Duration = Duration::from_secs(10);

fn outcome(host: &Host, reply: Reply) -> Result<EndpointOutcome, Error> {
    match reply {
        Reply::Outcome { outcome } => match misread(&outcome) {
            Some(why) => Err(host.misshapen(why)),
            None => Ok(*outcome),
        },
        _ => Err(host.unexpected("run")),
    }
}

/// Why not all figures that landspeed knows could be read. Nothing is decided on what is left of such an outcome.
fn misread(outcome: &EndpointOutcome) -> Option<&String> {
    outcome.observed.unseen.iter().find(|line| Misshapen::is_told_by(line))
}

fn addresses(b: &Host, wishes: &Wishes) -> Vec<IpAddr> {
    if let Some(address) = wishes.address {
        return vec![address];
    }
    let mut found: Vec<IpAddr> = Vec::new();
    for address in wishes.hints.iter().copied().chain(own_addresses(b)) {
        if fits(&address, wishes) && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// Addresses of links that are up.
fn own_addresses(host: &Host) -> impl Iterator<Item = IpAddr> + '_ {
    host.facts.links.iter().filter(|link| link.up).flat_map(|link| link.addresses.iter().copied())
}

/// Whether an address is of the family that the user wants; one that means nothing beyond its link is of none.
fn fits(address: &IpAddr, wishes: &Wishes) -> bool {
    let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    !link_local && wishes.ipv6.is_none_or(|ipv6| address.is_ipv6() == ipv6)
}

/// Refuses a family that a host has no address of, and an address that is not B's.
fn has_addresses(a: &Host, b: &Host, wishes: &Wishes) -> Result<(), Error> {
    let family = match wishes.ipv6 {
        None => "IP",
        Some(true) => "IPv6",
        Some(false) => "IPv4",
    };
    let remedy = wishes.ipv6.map_or("add one there", |_| "add one there, or leave out -4 and -6");
    let lacks = |host: &Host| Error::NoAddress {
        host: host.name.clone(),
        what: format!("{family} address on a link that is up"),
        remedy: remedy.to_owned(),
    };
    match wishes.address {
        Some(address) => has_address(b, address, wishes),
        None if addresses(b, wishes).is_empty() => Err(lacks(b)),
        None if wishes.ipv6.is_some() && !own_addresses(a).any(|own| fits(&own, wishes)) => Err(lacks(a)),
        None => Ok(()),
    }
}

/// Loopback links are not among a host's facts: of their addresses the kernel there decides.
fn has_address(b: &Host, address: IpAddr, wishes: &Wishes) -> Result<(), Error> {
    let all: Vec<String> =
        own_addresses(b).filter(|own| fits(own, wishes)).map(|own| own.to_string()).collect();
    let known = address.is_loopback() || own_addresses(b).any(|own| own == address);
    if known && wishes.ipv6.is_none_or(|ipv6| address.is_ipv6() == ipv6) {
        return Ok(());
    }
    let (host, what) = (b.name.clone(), format!("address {address} to send to"));
    let remedy = match all.as_slice() {
        [] => "it has none that is up".to_owned(),
        all => format!("--address takes one of {}", all.join(", ")),
    };
    Err(Error::NoAddress { host, what, remedy })
}

fn probe() -> TrialSpec {
    TrialSpec { workload: pingpong::one_byte(Nanos::millis(20)), flow: with(&[]), ..TrialSpec::default() }
}

/// Has B open a data port on `address` for flows of `transports`.
fn listen(b: &Host, address: IpAddr, transports: Vec<String>, key: &SessionKey) -> Result<u16, Error> {
    match b.call(&Request::Listen { address, transports, key: key.clone() })? {
        Reply::Listening { port } => Ok(port),
        _ => Err(b.unexpected("listen")),
    }
}

/// Opens a data port on `address` of B and proves one flow to it; the port, and A's address towards it.
fn open(a: &mut Host, b: &mut Host, address: IpAddr, key: &SessionKey) -> Result<(u16, IpAddr), Error> {
    let source;
    (a.device, source) = route(a, address)?;
    let spec = probe();
    let port = listen(b, address, transports(&spec), key)?;
    let at = SocketAddr::new(address, port);
    let run =
        |role| Request::Run { role, at, source_port: 0, key: key.clone(), spec: Box::new(spec.clone()) };
    let server = b.start(&run(Role::Server))?;
    let limit = MEET.min(a.patience()).min(b.patience());
    let proven = a
        .start(&run(Role::Client))
        .and_then(|client| both([a, b], [client, server], limit, &Follow::unless(&|| false)));
    if let Err(error) = proven {
        let _ = b.call(&Request::Close { port });
        return Err(error);
    }
    b.device = route(b, source)?.0;
    Ok((port, source))
}

/// The link that leads from `host` to `to`, and the source address that it would use.
fn route(host: &Host, to: IpAddr) -> Result<(String, IpAddr), Error> {
    match host.call(&Request::Route { to })? {
        Reply::Route { device, source, .. } => Ok((device, source)),
        _ => Err(host.unexpected("route")),
    }
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
