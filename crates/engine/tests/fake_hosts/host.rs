//! Fake hosts with the facts and knobs of recorded hosts, behind real sessions in this process.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use landspeed_agent::session::{
    KnobChange, Options, Reply, Request, RequestHandler, ServeOptions, Session, serve_socket,
};
use landspeed_record::units::{Bytes, CpuNanos, Nanos};
use landspeed_record::{
    CpuUsage, EndpointOutcome, HostFacts, HostLimits, KnobChangeReport, KnobState, LINK_SPEED,
    LatencyHistogram, Line, Observations, RestoreOutcome, Role, Side, TrialSpec,
};
use landspeed_stats::Random;
use parking_lot::{Mutex, MutexGuard};

use crate::wire::FakeWire;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostFault {
    /// The request is refused.
    Refuses,
    Panics,
    NeverAnswers,
    /// The connection ends.
    EndsSession,
    /// The host sets a knob to another value than requested, and reports that value.
    DoesNotTake,
    /// Every restore reports that a setting was not restored.
    LeavesSomething,
}

pub(crate) const FAULTS: [HostFault; 6] = [
    HostFault::Refuses,
    HostFault::Panics,
    HostFault::NeverAnswers,
    HostFault::EndsSession,
    HostFault::DoesNotTake,
    HostFault::LeavesSomething,
];

impl HostFault {
    pub(crate) fn befalls(self, request: &str) -> bool {
        match self {
            HostFault::DoesNotTake => request == "turn",
            HostFault::LeavesSomething => request == "restore",
            _ => true,
        }
    }
}

type RecordedHost = (HostFacts, Vec<KnobState>);

/// The hosts of a recorded real run.
static RECORDED: LazyLock<[RecordedHost; 2]> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/records/tune.jsonl");
    let mut hosts = [RecordedHost::default(), RecordedHost::default()];
    for line in landspeed_record::read(&path).expect("it is there").lines {
        match line {
            Line::Host { side, facts } => hosts[usize::from(side == Side::B)].0 = *facts,
            Line::Knobs { side, states } => hosts[usize::from(side == Side::B)].1 = states,
            _ => {}
        }
    }
    hosts
});

pub(crate) struct FakeHost {
    pub(crate) name: &'static str,
    facts: HostFacts,
    found: Vec<KnobState>,
    knobs: Mutex<BTreeMap<String, String>>,
    noise: Mutex<Random>,
    wire: Arc<FakeWire>,
    /// The number of the request that fails, and how.
    fault: Option<(usize, HostFault)>,
    pub(crate) failed: AtomicBool,
    over: AtomicBool,
    /// True once its conditions were requested. Its link then has another speed.
    renegotiated: AtomicBool,
    socket: UnixStream,
}

impl FakeHost {
    /// Starts the host and a session with it. The other hosts send to those of side B.
    pub(crate) fn start(
        name: &'static str,
        side: Side,
        wire: &Arc<FakeWire>,
        fault: Option<(usize, HostFault)>,
    ) -> (Arc<FakeHost>, Session) {
        FakeHost::start_with(name, side, wire, fault, |_| {})
    }

    /// Starts the host and a session with it. `change` alters the recorded facts.
    pub(crate) fn start_with(
        name: &'static str,
        side: Side,
        wire: &Arc<FakeWire>,
        fault: Option<(usize, HostFault)>,
        change: impl FnOnce(&mut HostFacts),
    ) -> (Arc<FakeHost>, Session) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let (mut facts, found) = RECORDED[usize::from(side == Side::B)].clone();
        change(&mut facts);
        let host = Arc::new(FakeHost {
            name,
            facts,
            knobs: Mutex::new(values(&found)),
            found,
            noise: Mutex::new(Random::new(name.bytes().map(u64::from).sum())),
            wire: Arc::clone(wire),
            fault,
            failed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            renegotiated: AtomicBool::new(false),
            socket: theirs.try_clone().expect("a second handle"),
        });
        let handler: Arc<dyn RequestHandler> = Arc::clone(&host) as Arc<dyn RequestHandler>;
        std::thread::spawn(move || serve_socket(theirs, handler, &ServeOptions::default()));
        let silent = fault.is_some_and(|(_, fault)| fault == HostFault::NeverAnswers);
        let call = if silent { Nanos::millis(700) } else { Nanos::secs(30) };
        let options = Options { call, ..Options::default() };
        (host, Session::over_socket(name, ours, &options).expect("a session"))
    }

    /// Returns the knobs whose values differ from the start, with their current values.
    pub(crate) fn turned(&self) -> Vec<(String, String)> {
        let found = values(&self.found);
        lock(&self.knobs).clone().into_iter().filter(|(name, value)| found[name] != *value).collect()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn restore(&self) {
        *lock(&self.knobs) = values(&self.found);
    }

    /// Fails `request` in the way of `fault`; returns `None` if the fault does not apply to it.
    fn fail(&self, fault: HostFault, request: &Request) -> Option<Reply> {
        if !fault.befalls(request.name()) {
            return None;
        }
        self.failed.store(true, Ordering::Relaxed);
        match fault {
            HostFault::Refuses => return Some(Reply::Failed { why: "made to fail".to_owned() }),
            // Does not call the panic hook, which prints.
            HostFault::Panics => std::panic::resume_unwind(Box::new("made to panic")),
            HostFault::EndsSession => self.socket.shutdown(std::net::Shutdown::Both).expect("it is open"),
            HostFault::NeverAnswers => {}
            HostFault::DoesNotTake => return Some(self.turn(request, false)),
            HostFault::LeavesSomething => {
                self.restore();
                let notes = vec!["mtu was changed by another program".to_owned()];
                return Some(Reply::Restored {
                    restored: RestoreOutcome { notes, ..RestoreOutcome::default() },
                });
            }
        }
        while !self.is_over() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Reply::Failed { why: "over".to_owned() })
    }

    fn turn(&self, request: &Request, takes: bool) -> Reply {
        let Request::Turn { changes, .. } = request else { unreachable!("only turns are turned") };
        let mut knobs = lock(&self.knobs);
        let turns = changes.iter().map(|KnobChange { knob, value, .. }| {
            let before = knobs.get(knob).cloned().unwrap_or_default();
            let after = if takes { value.clone() } else { "stuck".to_owned() };
            knobs.insert(knob.clone(), after.clone());
            KnobChangeReport { knob: knob.clone(), before, after, took_ns: Nanos::micros(10) }
        });
        Reply::Turned { turns: turns.collect() }
    }

    fn states(&self) -> Vec<KnobState> {
        let knobs = lock(&self.knobs);
        let now = |state: &KnobState| KnobState { value: knobs.get(&state.knob).cloned(), ..state.clone() };
        self.found.iter().map(now).collect()
    }

    fn conditions(&self) -> Vec<KnobState> {
        let speed = if self.renegotiated.swap(true, Ordering::Relaxed) { "1 Gb/s" } else { "10 Gb/s" };
        let link = KnobState { knob: LINK_SPEED.into(), value: Some(speed.into()), ..KnobState::default() };
        [self.states(), vec![link]].concat()
    }

    fn run(&self, role: Role, port: u16, spec: &TrialSpec) -> Reply {
        let own = lock(&self.knobs)["mtu"] == "9000";
        let Some(other) = self.wire.meet((port, role), own, || self.is_over()) else {
            return Reply::Failed { why: "the other end did not come".to_owned() };
        };
        // Jumbo frames at both ends double the rate; the rest is noise of 2 %.
        let noise = 0.98 + 0.04 * (lock(&self.noise).draw() >> 11) as f64 / (1_u64 << 53) as f64;
        let bytes = Bytes((12_500_000.0 * noise * if own && other { 2.0 } else { 1.0 }) as u64);
        let window_ns = Nanos::millis(100);
        let cpu = CpuUsage { window_ns, workload_ns: CpuNanos(50_000_000), ..CpuUsage::default() };
        let mut outcome = EndpointOutcome {
            window_ns,
            observed: Observations::default().with(cpu),
            ..EndpointOutcome::default()
        };
        match role {
            Role::Client if spec.workload.name == "pingpong" => {
                outcome.latency = vec![LatencyHistogram {
                    size_bytes: Bytes(1),
                    bins: vec![((50_000.0 * noise) as u64, 100)],
                }];
            }
            Role::Client => outcome.sent_bytes = bytes,
            Role::Server => (outcome.received_bytes, outcome.flow_bytes) = (bytes, vec![bytes]),
        }
        Reply::Outcome { outcome: Box::new(outcome) }
    }
}

impl RequestHandler for FakeHost {
    fn handle(&self, request: Request) -> Reply {
        let number = self.wire.note(self.name, request.name());
        if let Some((at, fault)) = self.fault
            && (at == number || fault == HostFault::LeavesSomething)
            && let Some(reply) = self.fail(fault, &request)
        {
            return reply;
        }
        let link = &self.facts.links[0];
        match request {
            Request::Probe {} => Reply::Facts { facts: Box::new(self.facts.clone()) },
            Request::Route { to } => {
                let own = link.addresses.iter().find(|own: &&IpAddr| own.is_ipv4() == to.is_ipv4());
                Reply::Route { device: link.name.clone(), source: *own.expect("it has both"), local: false }
            }
            Request::Knobs { .. } => Reply::Knobs { states: self.states() },
            Request::Conditions { .. } => Reply::Knobs { states: self.conditions() },
            Request::Turn { .. } => self.turn(&request, true),
            Request::Restore {} => {
                self.restore();
                Reply::Restored { restored: RestoreOutcome::untouched() }
            }
            Request::Undo { .. } => {
                self.restore();
                Reply::Undone { lines: Vec::new(), is_clean: true, left: false }
            }
            Request::Listen { .. } => Reply::Listening { port: self.wire.port() },
            Request::Controls { names } => {
                let notes =
                    names.first().map(|name| format!("{name}: Linux's own control")).into_iter().collect();
                Reply::Controls { ready: names, notes }
            }
            Request::Limits { .. } => Reply::Limits { limits: Box::new(HostLimits::default()) },
            Request::Watch { .. } => Reply::Watched { device: link.name.clone(), observed: Box::default() },
            Request::Cancel {} => {
                self.wire.cancel();
                Reply::Done {}
            }
            Request::Close { .. } | Request::Observers { .. } => Reply::Done {},
            Request::Run { role, at, spec, .. } => self.run(role, at.port(), &spec),
            Request::CopyLook { .. }
            | Request::CopyNames { .. }
            | Request::CopyOut { .. }
            | Request::CopyIn { .. }
            | Request::CompareOut { .. }
            | Request::CompareIn { .. }
            | Request::CopyListed {}
            | Request::CopyProven {}
            | Request::CopyClean { .. }
            | Request::CopyState {}
            | Request::CopyWiden { .. }
            | Request::CopyOthers { .. }
            | Request::CopyLeaveOthers {}
            | Request::CopyTurn { .. }
            | Request::CopyWrites { .. }
            | Request::CopySlow { .. } => Reply::Failed { why: "this host copies nothing".to_owned() },
        }
    }

    fn gone(&self, _: &str) {
        self.restore();
        self.over.store(true, Ordering::Relaxed);
    }
}

fn values(states: &[KnobState]) -> BTreeMap<String, String> {
    states.iter().filter_map(|state| Some((state.knob.clone(), state.value.clone()?))).collect()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
