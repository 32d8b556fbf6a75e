//! The agent: one host's end of a session. It answers the controller's requests by calling the plug-ins (knobs,
//! workloads, observers) on its host. It owns what must end with the session: data ports, running trials, changed
//! knobs, loaded congestion controls.
//!
//! The agent decides nothing: the controller decides what to try, what to keep and when to stop.

mod controls;
mod copies;
mod copy_permission;
mod knobs;
mod links;
mod live;
mod ports;
mod programs;
pub mod session;
mod trusted;
mod watch;

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::session::{KnobChange, OnProgress, PathUse, RelayEnd, Reply, Request, RequestHandler, SessionKey};
use landspeed_kernel::netlink;
use landspeed_knob::{self as knob, KnobTarget, journal};
use landspeed_observer::leave_out_this_thread;
use landspeed_record::units::Nanos;
use landspeed_record::{HostFacts, KnobState, RestoreOutcome, Role, TrialSpec};
use landspeed_workload::{CancelFlag, ClientPlan, run_client, run_server};
use parking_lot::Mutex;

use crate::controls::LoadedControls;
use crate::copies::Copies;
pub use crate::copies::check_ignore_rules;
pub use crate::copy_permission::{CopyFolders, CopyPermission};
use crate::knobs::Knobs;
use crate::links::InterfaceNames;
use crate::ports::DataPorts;
pub use crate::programs::{AllowedFolder, RunPermission};
use crate::watch::TrialWatch;

/// Time limit of the measurement that a [`Request::Limits`] requests.
pub const LIMITS_TIME: Nanos = Nanos(landspeed_observer::capacity::TIME.as_nanos() as u64);

/// What a controller may have this host do. The person or program that starts the agent decides it.
#[derive(Debug, Default)]
pub struct Permissions {
    /// The programs that may run.
    pub run: RunPermission,
    /// The files that may be copied.
    pub copy: CopyPermission,
    /// True if knobs may be turned, if the agent is root.
    pub tune: bool,
}

/// One host's end of a session.
pub struct Agent {
    may_tune: Result<(), String>,
    may_run: RunPermission,
    may_copy: CopyPermission,
    knobs: Knobs,
    links: InterfaceNames,
    controls: LoadedControls,
    ports: DataPorts,
    copies: Copies,
    /// The flag that ends the runs under way. A [`Request::Cancel`] sets it and replaces it by a new one; the end of
    /// the session sets it for good.
    cancel: Mutex<CancelFlag>,
}

impl Agent {
    /// Returns an agent for this process's network namespace that runs no programs and copies no files. It turns knobs only if
    /// `allow_tune` is true, and only as root.
    pub fn new(allow_tune: bool) -> Arc<Self> {
        Self::with_journal(allow_tune, journal::TurnerOptions::default())
    }

    /// Returns an agent with these permissions.
    pub fn permitting(permissions: Permissions) -> Arc<Self> {
        Self::of(permissions, journal::TurnerOptions::default())
    }

    /// Returns an agent with `options` for its journal, guardian and knob table. It runs no programs, copies no files, and turns
    /// knobs only if `allow_tune` is true, and only as root.
    pub fn with_journal(allow_tune: bool, options: journal::TurnerOptions) -> Arc<Self> {
        Self::of(Permissions { tune: allow_tune, ..Permissions::default() }, options)
    }

    fn of(permissions: Permissions, options: journal::TurnerOptions) -> Arc<Self> {
        let Permissions { run: may_run, copy: may_copy, tune } = permissions;
        let may_tune = knobs::may_tune(tune);
        // This thread communicates with the controller from now on, so its run time is no cost of a trial.
        leave_out_this_thread();
        Arc::new(Agent {
            may_tune,
            may_run,
            may_copy,
            knobs: Knobs::new(options),
            links: InterfaceNames::default(),
            controls: LoadedControls::default(),
            ports: DataPorts::default(),
            copies: Copies::default(),
            cancel: Mutex::default(),
        })
    }

    fn answer(&self, request: Request, on_progress: &OnProgress<'_>) -> Result<Reply, String> {
        match request {
            Request::Probe {} => Ok(Reply::Facts { facts: Box::new(self.facts()) }),
            Request::Route { to } => route(to),
            Request::Knobs { device } => Ok(self.states(&device, knob::probe)),
            Request::Conditions { device } => Ok(self.states(&device, knob::conditions)),
            Request::Turn { device, changes, short_lease_ns } => {
                self.may_tune.clone()?;
                let turned = self.knobs.turn(&self.on_links(&device, changes), short_lease_ns);
                match (turned, self.knobs.lost()) {
                    (Err(why), true) => Ok(Reply::Lost { why }),
                    (turned, _) => Ok(Reply::Turned { turns: turned? }),
                }
            }
            Request::Restore {} => Ok(Reply::Restored { restored: self.restore() }),
            Request::Undo { here, unsure, dry_run } => {
                self.may_tune.clone()?;
                knobs::undo(&journal::Undo { all: !here, unsure, ..journal::Undo::default() }, dry_run)
            }
            Request::Listen { at, within, transports, key } => {
                Ok(Reply::Listening { port: self.ports.open(at, within, &transports, *key.as_bytes())? })
            }
            Request::Cancel {} => {
                let mut cancel = self.cancel.lock();
                if !cancel.is_cancelled() {
                    std::mem::take(&mut *cancel).cancel();
                }
                Ok(Reply::Done {})
            }
            Request::Close { port } => self.ports.close(port).map(|()| Reply::Done {}),
            Request::Observers { names } => watch::can_run(&names).map(|()| Reply::Done {}),
            Request::Watch { target, observers, alone, duration_ns, interval_ns } => {
                let rows = live::observers(&observers, alone)?;
                live::watch(target, &rows, duration_ns, interval_ns, &self.cancel())
            }
            Request::Limits { device } => self.limits(&self.links.current(&device)),
            Request::Controls { names } if names.is_empty() => {
                self.controls.unload_all();
                Ok(Reply::Controls { ready: Vec::new(), notes: Vec::new() })
            }
            Request::Controls { names } => {
                let ready = self.controls.make_ready(&names, &self.may_tune)?;
                Ok(Reply::Controls { ready: ready.names, notes: ready.notes })
            }
            Request::CopyLook { paths_hex, to } => {
                let paths = paths_hex.into_iter().map(|path| self.may_copy.path(path, to));
                let found = copies::look(&paths.collect::<Result<Vec<_>, _>>()?)?;
                Ok(Reply::Paths { found })
            }
            Request::CopyOut { flows, roots, keeping, rules } => {
                let source = self.copies.source(&self.may_copy, roots, keeping, &rules)?;
                self.copies.send(&self.ports, &flows, &source, &self.cancel())
            }
            Request::CopyIn { flows, folder_hex, names_hex, is_synced, keeping, rules } => {
                let folder = self.may_copy.path(folder_hex, PathUse::Write)?;
                let target = copies::target(folder, &names_hex, is_synced, keeping, &rules)?;
                self.copies.receive(&self.ports, &flows, &target, &self.cancel())
            }
            Request::CompareOut { flows, roots, check, keeping, rules } => {
                let source = self.copies.source(&self.may_copy, roots, keeping, &rules)?;
                self.copies.compare(&self.ports, &flows, &source, check, &self.cancel())
            }
            Request::CompareIn { flows, folder_hex, names_hex, check, keeping, rules } => {
                let to = if check.verifies() { PathUse::Compare } else { PathUse::Write };
                let folder = self.may_copy.path(folder_hex, to)?;
                let target = copies::target(folder, &names_hex, false, keeping, &rules)?;
                self.copies.show(&self.ports, &flows, &target, check, &self.cancel())
            }
            Request::CopyNames { names_hex, is_first } => self.copies()?.name(names_hex, is_first),
            Request::CopyProven {} => Ok(Reply::CopyProven { entries: self.copies()?.proven() }),
            Request::CopyListed {} => Ok(Reply::CopyListed { entries: self.copies()?.listed() }),
            Request::CopyClean { folder_hex, only_list } => {
                copies::clean(&self.may_copy.path(folder_hex, PathUse::Write)?, only_list)
            }
            Request::CopyState {} => Ok(self.copies()?.state()),
            Request::CopyWiden { flows } => self.copies()?.widen(flows),
            Request::CopyOthers { settings, flows } => {
                self.copies()?.add_others(&self.ports, settings, flows)
            }
            Request::CopyLeaveOthers {} => Ok(self.copies()?.leave_others()),
            Request::CopyTurn { arm, settle_ns, count_ns } => {
                self.copies()?.turn(&arm, [settle_ns, count_ns], &self.cancel())
            }
            Request::CopyWrites { direct } => self.copies()?.write_direct(direct),
            Request::CopySlow { for_ns } => self.copies()?.slow(for_ns),
            Request::Run { role, at, source_port, key, link, spec } => {
                spec.program.as_ref().map_or(Ok(()), |program| self.may_run.check(program))?;
                if landspeed_workload::writes_files(&spec) {
                    self.may_copy.check_trial()?;
                }
                let watch = TrialWatch::of(role, at, &self.current(&link), &spec, on_progress)?;
                match role {
                    Role::Client => self.client(at, source_port, &key, &spec, watch),
                    Role::Server => self.server(at, &spec, watch),
                }
            }
        }
    }

    /// Returns `changes` with the current name of each one's interface. A change that names no interface gets `device`.
    fn on_links(&self, device: &str, mut changes: Vec<KnobChange>) -> Vec<KnobChange> {
        for change in &mut changes {
            let named = if change.device.is_empty() { device } else { &change.device };
            change.device = self.current(named);
        }
        changes
    }

    /// Returns the current name of the interface that a request calls `link`, or an empty text if `link` is empty.
    fn current(&self, link: &str) -> String {
        if link.is_empty() { String::new() } else { self.links.current(link) }
    }

    /// Restores all turned knobs, and adds a note for each interface that was renamed during the session.
    fn restore(&self) -> RestoreOutcome {
        let mut restored = self.knobs.restore();
        let renamed = self.links.renamed().into_iter();
        restored
            .notes
            .extend(renamed.map(|(then, now)| format!("{then} was renamed and is called {now} now")));
        restored
    }

    /// Returns the copies, if files may be copied here at all.
    fn copies(&self) -> Result<&Copies, String> {
        self.may_copy.check().map(|()| &self.copies)
    }

    /// Returns the flag that cancels a request that begins now.
    fn cancel(&self) -> CancelFlag {
        self.cancel.lock().clone()
    }

    /// Returns the knobs that `read` reads, and what changes of the link `device` without a setting.
    fn states(&self, device: &str, read: fn(&KnobTarget) -> Vec<KnobState>) -> Reply {
        let device = self.links.current(device);
        let of_link = landspeed_observer::host::link_states(&device);
        let mut states = read(&KnobTarget { device });
        states.extend(of_link);
        Reply::Knobs { states }
    }

    fn facts(&self) -> HostFacts {
        let mut facts = landspeed_observer::host::probe();
        facts.landspeed = env!("CARGO_PKG_VERSION").to_owned();
        facts.reached_at = reached_at();
        facts.may_tune = self.may_tune.is_ok();
        facts.may_not_tune_because = self.may_tune.clone().err().unwrap_or_default();
        facts
    }

    fn limits(&self, device: &str) -> Result<Reply, String> {
        let cancel = self.cancel();
        let limits = landspeed_observer::capacity::measure(device, &|| cancel.is_cancelled());
        Ok(Reply::Limits { limits: Box::new(limits) })
    }

    fn client(
        &self,
        at: SocketAddr,
        source_port: u16,
        key: &SessionKey,
        spec: &TrialSpec,
        mut watch: TrialWatch<'_>,
    ) -> Result<Reply, String> {
        let kept = forget_path(at.ip());
        let plan = ClientPlan { server: at, source_port, key: *key.as_bytes() };
        let mut outcome = run_client(spec, &plan, &mut watch, &self.cancel()).map_err(|e| e.to_string())?;
        outcome.observed.unseen.extend(kept);
        Ok(Reply::Outcome { outcome: Box::new(outcome) })
    }

    fn server(&self, at: SocketAddr, spec: &TrialSpec, mut watch: TrialWatch<'_>) -> Result<Reply, String> {
        let port = self.ports.get(at.port())?;
        let outcome = run_server(spec, &port, &mut watch, &self.cancel()).map_err(|e| e.to_string())?;
        Ok(Reply::Outcome { outcome: Box::new(outcome) })
    }
}

impl RequestHandler for Agent {
    fn handle(&self, request: Request) -> Reply {
        self.handle_with_progress(request, &|_| {})
    }

    fn handle_with_progress(&self, request: Request, on_progress: &OnProgress<'_>) -> Reply {
        leave_out_this_thread();
        self.answer(request, on_progress).unwrap_or_else(|why| Reply::Failed { why })
    }

    fn heartbeat(&self) {
        leave_out_this_thread();
        self.knobs.heartbeat();
    }

    fn relay(&self) -> Arc<RelayEnd> {
        Arc::clone(&self.ports.relay)
    }

    fn gone(&self, why: &str) {
        self.cancel().cancel();
        self.controls.unload_all();
        let restored = self.knobs.restore();
        // Writing fails if the reader of stderr is gone with the controller. That must not stop the cleanup.
        for note in restored.notes {
            let _ = writeln!(std::io::stderr(), "landspeed agent: {why}: {note}");
        }
    }
}

/// Reads this host's address from SSH_CONNECTION, which sshd sets: "CLIENT PORT SERVER PORT" (ssh(1)).
fn reached_at() -> Option<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    connection.split(' ').nth(2)?.split('%').next()?.parse().ok()
}

fn route(to: SocketAddr) -> Result<Reply, String> {
    let route = netlink::Rtnl::open().and_then(|rtnl| rtnl.route_towards(to)).map_err(|e| e.to_string())?;
    let source =
        route.source.ok_or_else(|| format!("the kernel names no source address towards {}", to.ip()))?;
    Ok(Reply::Route { device: route.device, source, local: route.local })
}

/// Deletes the kernel's TCP metrics of `peer`, such as the ssthresh and RTT of the last trial, so that both arms of a
/// pair start alike (RFC 9040 section 5; net/ipv4/tcp_metrics.c). If they cannot be deleted, because the permission is
/// missing, returns a text for the trial's `unseen`.
fn forget_path(peer: IpAddr) -> Option<String> {
    let forgotten = netlink::TcpMetrics::open().and_then(|metrics| metrics.delete(peer));
    forgotten.err().map(|error| format!(
            "earlier connections to {peer} may shape these: the kernel's TCP metrics of it could not be cleared ({error})"
        ))
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CARRIER_CHANGES, LINK_SPEED};

    use super::*;

    fn states(request: Request) -> Vec<KnobState> {
        match Agent::new(false).handle(request) {
            Reply::Knobs { states } => states,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn knobs_and_conditions_come_with_the_state_of_the_link() {
        let device = "lo".to_owned();
        let asked = [Request::Knobs { device: device.clone() }, Request::Conditions { device }];
        for states in asked.map(states) {
            let last: Vec<&str> = states.iter().rev().take(3).map(|state| state.knob.as_str()).collect();
            assert_eq!(last[..2], [CARRIER_CHANGES, LINK_SPEED]);
            assert!(last.len() == 3, "no knob: {last:?}");
        }
    }
}
