//! Proves a flow from one host to another. The addresses of the second host are tried at short intervals, as in RFC
//! 8305 (Happy Eyeballs).

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use landspeed_agent::session::{LineSink, PendingReply, Reply, Request, SessionKey};
use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, Role, TrialSpec};
use landspeed_transport::settings::with;
use landspeed_workload::{pingpong, transports};

use crate::addresses::AddressCandidate;
use crate::answers::graver;
use crate::pace::limit_of;
use crate::pair::outcome;
use crate::port_choice::PortChoice;
use crate::{Error, Host};

/// How long the two ends of a flow that is being proven usually wait for each other.
const PATIENCE: Duration = Duration::from_secs(10);
/// The usual time limit for the ends to report why they gave up.
const REPORT: Duration = Duration::from_secs(2);
/// Time from one attempt to the next ("Connection Attempt Delay", RFC 8305 section 5), unless the first attempt fails
/// earlier.
const STAGGER: Duration = Duration::from_millis(250);
/// Time from an attempt at a given address to the next attempt. It is longer than [`STAGGER`], because the user means
/// this address even if it answers more slowly. The hosts also wait this long before they change places.
const STAGGER_AFTER_GIVEN: Duration = Duration::from_secs(2);
/// How long a client may usually take to notice that its server has failed, before its proof is given up.
const NOTICE: Duration = Duration::from_secs(1);
/// Interval at which a wait checks whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// Time until the user is notified of addresses that have not answered. Further notices follow every [`NEXT_WORD`].
const WORD: Duration = Duration::from_secs(1);
const NEXT_WORD: Duration = Duration::from_secs(3);

/// A proven flow.
pub(crate) struct ProvenFlow {
    pub(crate) candidate: AddressCandidate,
    /// B's data port.
    pub(crate) port: u16,
    /// A's source address for flows to B.
    pub(crate) source: IpAddr,
    /// Each host's interface on its route to the other host.
    pub(crate) routed: [String; 2],
    /// Other addresses that were tried and had not proven a flow when this one did.
    pub(crate) silent: Vec<AddressCandidate>,
    /// The outcomes of the ping-pong by which it was proven, at A and at B.
    pub(crate) seen: [EndpointOutcome; 2],
}

/// The parameters that all attempts share.
#[derive(Clone, Copy)]
struct ProofContext<'a> {
    a: &'a Host,
    b: &'a Host,
    key: &'a SessionKey,
    choice: PortChoice,
    /// Set to true once a flow to some address is proven, which ends the other attempts.
    over: &'a AtomicBool,
    limits: ProofLimits,
}

/// The time limits of a proof.
#[derive(Clone, Copy)]
struct ProofLimits {
    /// How long the two ends of the flow wait for each other.
    ends: Duration,
    /// The longest time for the proof. It exceeds `ends`, so that the ends can report why they gave up.
    all: Duration,
    /// How long a client may take to notice that its server has failed.
    notice: Duration,
}

impl ProofLimits {
    fn of(hosts: [&Host; 2]) -> Self {
        let ends = limit_of(hosts, PATIENCE);
        ProofLimits { ends, all: ends + limit_of(hosts, REPORT), notice: limit_of(hosts, NOTICE) }
    }
}

type AttemptResult = (usize, Result<ProvenFlow, Error>);

/// Returns the flow to the first of `candidates` that proves one.
///
/// # Errors
/// Returns [`Error::NoPath`] with the error of each candidate if no flow can be proven.
pub(crate) fn meet(
    (a, b): (&Host, &Host),
    candidates: &[AddressCandidate],
    choice: PortChoice,
    key: &SessionKey,
    notices: &LineSink,
) -> Result<ProvenFlow, Error> {
    let over = AtomicBool::new(false);
    let limits = ProofLimits::of([a, b]);
    let context = ProofContext { a, b, key, choice, over: &over, limits };
    let mut race =
        AddressRace { candidates, most: choice.most(), begun: 0, failed: Vec::new(), next: Instant::now() };
    let wait_notices = WaitNotices { context, notices, begun: Instant::now() };
    let met = std::thread::scope(|scope| {
        let (sender, results) = channel::<AttemptResult>();
        let mut next_word = wait_notices.begun + WORD;
        loop {
            if let Some((number, candidate)) = race.due() {
                let sender = sender.clone();
                scope.spawn(move || context.attempt(number, candidate, &sender));
            }
            match results.recv_timeout(race.wait(next_word)) {
                Ok((number, Ok(met))) => {
                    over.store(true, Ordering::Relaxed);
                    return Some(ProvenFlow { silent: race.silent_but(number), ..met });
                }
                Ok((number, Err(error))) => race.fail(number, error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            if race.is_lost() {
                return None;
            }
            if Instant::now() >= next_word {
                wait_notices.say(&race);
                next_word += NEXT_WORD;
            }
        }
    });
    // Servers of the other candidates still wait for a client.
    match &met {
        Some(_) if race.begun > 1 => drop([a, b].map(|host| host.call(&Request::Cancel {}))),
        Some(_) => {}
        None => [a, b].iter().for_each(|host| cancel(host, limits.notice)),
    }
    met.ok_or_else(|| {
        let tried = race
            .failed
            .iter()
            .map(|(number, error)| format!("{}: {error}", context.shown(&candidates[*number])));
        let tried = tried.collect::<Vec<_>>().join("; ");
        Error::NoPath { a: a.name.clone(), b: b.name.clone(), tried }
    })
}

/// The attempts that have begun, and those that have failed.
struct AddressRace<'a> {
    candidates: &'a [AddressCandidate],
    /// The largest number of simultaneous attempts. Each has its own data port.
    most: usize,
    begun: usize,
    failed: Vec<(usize, Error)>,
    /// When the next attempt begins.
    next: Instant,
}

impl AddressRace<'_> {
    /// Returns the candidate whose attempt must begin now, if any, with its number.
    fn due(&mut self) -> Option<(usize, AddressCandidate)> {
        let next = self.candidates.get(self.begun);
        let candidate = *next.filter(|_| self.has_port() && Instant::now() >= self.next)?;
        self.begun += 1;
        let turns = self.candidates.get(self.begun).is_some_and(|next| next.is_turned != candidate.is_turned);
        let is_meant = candidate.given && !candidate.is_turned;
        let stagger = if is_meant || turns { STAGGER_AFTER_GIVEN } else { STAGGER };
        self.next = Instant::now() + stagger;
        Some((self.begun - 1, candidate))
    }

    /// Returns true if there is a free data port for another attempt.
    fn has_port(&self) -> bool {
        self.begun - self.failed.len() < self.most
    }

    fn wait(&self, next_word: Instant) -> Duration {
        let may_begin = self.begun < self.candidates.len() && self.has_port();
        let until = if may_begin { self.next.min(next_word) } else { next_word };
        until.saturating_duration_since(Instant::now())
    }

    fn fail(&mut self, number: usize, error: Error) {
        self.failed.push((number, error));
        self.failed.sort_by_key(|(number, _)| *number);
        self.next = Instant::now();
    }

    fn is_lost(&self) -> bool {
        self.failed.len() == self.candidates.len()
    }

    /// Returns the candidates whose attempts have begun, except the candidate `number`.
    fn silent_but(&self, number: usize) -> Vec<AddressCandidate> {
        (0..self.begun).filter(|other| *other != number).map(|other| self.candidates[other]).collect()
    }
}

/// Notifies the user of the addresses that have not answered.
struct WaitNotices<'a> {
    context: ProofContext<'a>,
    notices: &'a LineSink,
    begun: Instant,
}

impl WaitNotices<'_> {
    fn say(&self, race: &AddressRace<'_>) {
        let open = (0..race.begun).filter(|number| !race.failed.iter().any(|(failed, _)| failed == number));
        let open: Vec<String> = open.map(|number| self.context.shown(&race.candidates[number])).collect();
        let (b, s) = (&self.context.b.name, self.begun.elapsed().as_secs());
        self.notices.say(&format!("{b}: no answer for {s} s at {}", open.join(", ")));
    }
}

impl ProofContext<'_> {
    fn attempt(self, number: usize, candidate: AddressCandidate, sender: &Sender<AttemptResult>) {
        // An error means that another address was faster and the receiver is gone.
        let _ = sender.send((number, self.towards(&candidate).prove(candidate)));
    }

    /// Returns the parameters of attempts at an address. If the address is one of A, the hosts change places.
    fn towards(self, candidate: &AddressCandidate) -> Self {
        if candidate.is_turned { ProofContext { a: self.b, b: self.a, ..self } } else { self }
    }

    /// Formats an address for the user. If the hosts change places, adds the host's name.
    fn shown(self, candidate: &AddressCandidate) -> String {
        let ProofContext { a, b, .. } = self.towards(candidate);
        let address = candidate.shown(&a.facts);
        if candidate.is_turned { format!("{address} of {}", b.name) } else { address }
    }

    /// Opens a data port on an address of B and proves one flow to it.
    fn prove(self, candidate: AddressCandidate) -> Result<ProvenFlow, Error> {
        let ProofContext { a, b, key, choice, .. } = self;
        let (device, source) = route(a, Request::Route { to: candidate.as_a_calls_it(0) })?;
        let spec = TrialSpec { patience_ns: self.limits.ends.into(), ..probe() };
        let port = listen(b, candidate, choice, choice.transports(transports(&spec)), key)?;
        let seen = self.flow(candidate, port, &spec).inspect_err(|_| {
            let _ = b.call(&Request::Close { port });
        })?;
        let back = route(b, Request::Route { to: candidate.back(source) })?.0;
        Ok(ProvenFlow { candidate, port, source, routed: [device, back], silent: Vec::new(), seen })
    }

    /// Exchanges messages over one flow, and returns the outcomes of A and of B.
    fn flow(
        self,
        candidate: AddressCandidate,
        port: u16,
        spec: &TrialSpec,
    ) -> Result<[EndpointOutcome; 2], Error> {
        let ProofContext { a, b, key, limits, .. } = self;
        let run = |role, at| Request::Run {
            role,
            at,
            source_port: 0,
            key: key.clone(),
            link: String::new(),
            spec: Box::new(spec.clone()),
        };
        let server = b.start(&run(Role::Server, candidate.as_b_calls_it(port)))?;
        let client = a.start(&run(Role::Client, candidate.as_a_calls_it(port)))?;
        let begun = Instant::now();
        let mut end = begun + limits.all;
        let (mut of_client, mut of_server) = (None, None);
        loop {
            of_client = of_client.or_else(|| answer(a, &client, LOOK));
            // A client that failed reports why. Its server may report a better reason soon, or only that no client
            // came.
            let wait = if of_client.is_some() { LOOK } else { Duration::ZERO };
            of_server = of_server.or_else(|| answer(b, &server, wait));
            match (of_client.take(), of_server.take()) {
                (Some(Ok(client)), Some(Ok(server))) => return Ok([client, server]),
                (Some(Err(error)), Some(Err(other))) => return Err(graver(error, other)),
                (Some(Err(error)), _) => return Err(error),
                (client, server) => (of_client, of_server) = (client, server),
            }
            if matches!(of_server, Some(Err(_))) {
                end = end.min(Instant::now() + limits.notice);
            }
            if Instant::now() >= end {
                let late = if of_client.is_some() { b } else { a };
                let silent = || late.silent("run", begun.elapsed());
                return Err(of_server.and_then(Result::err).unwrap_or_else(silent));
            }
            if self.over.load(Ordering::Relaxed) {
                return Err(Error::Other("another address answered first".into()));
            }
        }
    }
}

/// Cancels the running request of a host. Waits for it, at most `limit`, because the cancellation must not hit the next
/// request.
fn cancel(host: &Host, limit: Duration) {
    // A host that does not answer has failed. Its next request reports this.
    drop(host.start(&Request::Cancel {}).and_then(|pending| host.wait(pending, limit)));
}

fn answer(host: &Host, pending: &PendingReply, wait: Duration) -> Option<Result<EndpointOutcome, Error>> {
    host.poll(pending, wait).map(|(_, answer)| answer.and_then(|reply| outcome(host, reply)))
}

/// Returns the trial that proves a flow.
pub(crate) fn probe() -> TrialSpec {
    TrialSpec { workload: pingpong::one_byte(Nanos::millis(20)), flow: with(&[]), ..TrialSpec::default() }
}

/// Makes B open a data port at one of its addresses for flows of `transports`. Returns the port's number.
pub(crate) fn listen(
    b: &Host,
    candidate: AddressCandidate,
    choice: PortChoice,
    transports: Vec<String>,
    key: &SessionKey,
) -> Result<u16, Error> {
    let (at, within, key) = (candidate.as_b_calls_it(choice.number), choice.within(), key.clone());
    match b.call(&Request::Listen { at, within, transports, key })? {
        Reply::Listening { port } => Ok(port),
        _ => Err(b.unexpected("listen")),
    }
}

/// Returns a host's interface on the route to the requested address, and the source address that the host would use.
fn route(host: &Host, asked: Request) -> Result<(String, IpAddr), Error> {
    match host.call(&asked)? {
        Reply::Route { device, source, .. } => Ok((device, source)),
        _ => Err(host.unexpected("route")),
    }
}
