//! The agent: one host's end of a session. It answers the controller's requests by calling the plug-ins
//! (knobs, workloads, observers) on the host it runs on, and holds what must end with the session:
//! data ports, running trials, turned knobs, loaded congestion controls.
//!
//! It decides nothing: what to try, what to keep and when to stop is the controller's business.

mod controls;
mod knobs;
mod live;
mod ports;
mod programs;
mod watch;

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use landspeed_knob::{self as knob, journal};
use landspeed_netlink as netlink;
use landspeed_observer::leave_out_this_thread;
use landspeed_record::{HostFacts, Role, TrialSpec};
use landspeed_session::{Handler, Reply, Request, SessionKey, Tell};
use landspeed_units::Nanos;
use landspeed_workload::{Cancel, ClientPlan, run_client, run_server};

use crate::controls::Controls;
use crate::knobs::Knobs;
use crate::ports::Ports;
pub use crate::programs::MayRun;
use crate::watch::TrialWatch;

/// About how long [`Request::Limits`] takes.
pub const LIMITS_TIME: Nanos = Nanos(landspeed_capacity::TIME.as_nanos() as u64);

/// One host's end of a session.
pub struct Agent {
    may_tune: Result<(), String>,
    may_run: MayRun,
    knobs: Knobs,
    controls: Controls,
    ports: Ports,
    /// Ends what is under way; replaced where only that is given up, and left raised at the session's end.
    cancel: Mutex<Cancel>,
}

impl Agent {
    /// An agent for the network namespace that this process is in; `allow_tune` is the leave to turn
    /// knobs, given by whoever started it.
    pub fn new(allow_tune: bool) -> Arc<Self> {
        Self::with_journal(allow_tune, journal::Options::default())
    }

    /// As [`Agent::new`], with the permission to run programs.
    pub fn that_may_run(may_run: MayRun, allow_tune: bool) -> Arc<Self> {
        Self::of(may_run, allow_tune, journal::Options::default())
    }

    /// As [`Agent::new`], with another journal, guardian or knob table.
    pub fn with_journal(allow_tune: bool, options: journal::Options) -> Arc<Self> {
        Self::of(MayRun::Nothing, allow_tune, options)
    }

    fn of(may_run: MayRun, allow_tune: bool, options: journal::Options) -> Arc<Self> {
        let may_tune = knobs::may_tune(allow_tune);
        // It goes on to talk to the controller.
        leave_out_this_thread();
        Arc::new(Agent {
            may_tune,
            may_run,
            knobs: Knobs::new(options),
            controls: Controls::default(),
            ports: Ports::default(),
            cancel: Mutex::default(),
        })
    }

    fn answer(&self, request: Request, tell: &Tell<'_>) -> Result<Reply, String> {
        match request {
            Request::Probe {} => Ok(Reply::Facts { facts: Box::new(self.facts()) }),
            Request::Route { to } => route(to),
            Request::Knobs { device } => Ok(Reply::Knobs { states: knob::probe(&self.knobs.place(&device)) }),
            Request::Turn { device, changes, short_lease_ns } => {
                self.may_tune.clone()?;
                let turned = self.knobs.turn(&device, &changes, short_lease_ns);
                match (turned, self.knobs.lost()) {
                    (Err(why), true) => Ok(Reply::Lost { why }),
                    (turned, _) => Ok(Reply::Turned { turns: turned? }),
                }
            }
            Request::Restore {} => Ok(Reply::Restored { restored: self.knobs.restore() }),
            Request::Listen { address, transports, key } => {
                Ok(Reply::Listening { port: self.ports.open(address, &transports, *key.as_bytes())? })
            }
            Request::Cancel {} => {
                let mut cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
                if !cancel.is_cancelled() {
                    std::mem::take(&mut *cancel).cancel();
                }
                Ok(Reply::Done {})
            }
            Request::Close { port } => self.ports.close(port).map(|()| Reply::Done {}),
            Request::Observers { names } => watch::can_run(&names).map(|()| Reply::Done {}),
            Request::Watch { target, observers, alone, duration_ns, interval_ns } => {
                let rows = live::observers(&observers, alone)?;
                live::watch(target, &rows, (duration_ns, interval_ns), &self.cancel())
            }
            Request::Limits { device } => self.limits(&device),
            Request::Controls { names } => {
                Ok(Reply::Controls { ready: self.controls.make_ready(&names, &self.may_tune)? })
            }
            Request::Run { role, at, source_port, key, spec } => {
                spec.program.as_ref().map_or(Ok(()), |program| self.may_run.check(program))?;
                match role {
                    Role::Client => self.client((at, source_port), &key, &spec, tell),
                    Role::Server => self.server(at, &spec, tell),
                }
            }
        }
    }

    /// What ends a request that begins now.
    fn cancel(&self) -> Cancel {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn facts(&self) -> HostFacts {
        let mut facts = landspeed_observer::host::probe();
        facts.landspeed = env!("CARGO_PKG_VERSION").to_owned();
        facts.may_tune = self.may_tune.is_ok();
        facts.may_not_tune_because = self.may_tune.clone().err().unwrap_or_default();
        facts
    }

    fn limits(&self, device: &str) -> Result<Reply, String> {
        let cancel = self.cancel();
        let limits = landspeed_capacity::measure(device, &|| cancel.is_cancelled());
        Ok(Reply::Limits { limits: Box::new(limits) })
    }

    fn client(
        &self,
        (at, source_port): (SocketAddr, u16),
        key: &SessionKey,
        spec: &TrialSpec,
        tell: &Tell<'_>,
    ) -> Result<Reply, String> {
        let mut watch = TrialWatch::towards(at.ip(), spec, tell)?;
        let kept = forget_path(at.ip());
        let plan = ClientPlan { server: at, source_port, key: *key.as_bytes() };
        let mut outcome = run_client(spec, &plan, &mut watch, &self.cancel()).map_err(|e| e.to_string())?;
        outcome.observed.unseen.extend(kept);
        Ok(Reply::Outcome { outcome: Box::new(outcome) })
    }

    fn server(&self, at: SocketAddr, spec: &TrialSpec, tell: &Tell<'_>) -> Result<Reply, String> {
        let port = self.ports.get(at.port())?;
        let mut watch = TrialWatch::at(at.ip(), spec, tell)?;
        let outcome = run_server(spec, &port, &mut watch, &self.cancel()).map_err(|e| e.to_string())?;
        Ok(Reply::Outcome { outcome: Box::new(outcome) })
    }
}

impl Handler for Agent {
    fn handle(&self, request: Request) -> Reply {
        self.handle_telling(request, &|_| {})
    }

    fn handle_telling(&self, request: Request, tell: &Tell<'_>) -> Reply {
        leave_out_this_thread();
        self.answer(request, tell).unwrap_or_else(|why| Reply::Failed { why })
    }

    fn heartbeat(&self) {
        leave_out_this_thread();
        self.knobs.heartbeat();
    }

    fn gone(&self, why: &str) {
        self.cancel().cancel();
        self.controls.release();
        let restored = self.knobs.restore();
        // Whoever read our standard error may be gone with the controller: that must not stop anything.
        for note in restored.notes {
            let _ = writeln!(std::io::stderr(), "landspeed agent: {why}: {note}");
        }
    }
}

fn route(to: IpAddr) -> Result<Reply, String> {
    let route = netlink::Rtnl::open().and_then(|rtnl| rtnl.route_get(to)).map_err(|e| e.to_string())?;
    let source = route.source.ok_or_else(|| format!("the kernel names no source address towards {to}"))?;
    Ok(Reply::Route { device: route.device, source, local: route.local })
}

/// Both arms of a pair start alike: what the kernel remembers of the peer (ssthresh, RTT) from the
/// last trial is dropped (RFC 9040 section 5; net/ipv4/tcp_metrics.c). Without leave to, it stays, which
/// is said among what the trial could not see to.
fn forget_path(peer: IpAddr) -> Option<String> {
    let forgotten = netlink::TcpMetrics::open().and_then(|metrics| metrics.delete(peer));
    forgotten.err().map(|error| format!("what TCP remembers of {peer} was kept: {error}"))
}
