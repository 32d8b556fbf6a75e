//! Changes a copy while it runs: how many of its flows are in use, of which transport, and the congestion control of
//! those that send. Counts what each setting carries.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{CopyArm, CopyCount};
use landspeed_transport::{CancelFlag, Flow, tcp_limits};
use parking_lot::Mutex;
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};

use crate::link::FIRST_OTHER;
use crate::plan::PieceWork;
use crate::{CopyProgress, OtherFlows};

/// The interval at which a turn checks whether it is over.
const LOOK: Duration = Duration::from_millis(10);

/// The settings of one end's flows that can be changed, and the counts. By default all flows are opened and in use.
#[derive(Debug)]
pub(crate) struct Steering {
    /// The number of flows that are opened at the beginning.
    at_first: AtomicU32,
    /// The number of flows that are to be open.
    opened: AtomicU32,
    /// The number of flows that may send content. Others rest.
    in_use: AtomicU32,
    /// True if flows of another transport are in use before those of the copy's own.
    uses_others: AtomicBool,
    /// The other transport, once its flows are asked for.
    other: Mutex<Option<String>>,
    /// Those flows, before the links have taken them.
    coming: Mutex<Option<OtherFlows>>,
    /// Raised once flows of the copy's own transport are to replace them.
    left: CancelFlag,
    /// The bytes of pieces that the target has taken.
    taken: AtomicU64,
    /// The number of messages that carried something other than pieces of long files, plus the number of flows that
    /// have opened.
    others: AtomicU64,
    is_over: AtomicBool,
    /// The congestion control that was asked for.
    control: Mutex<Option<String>>,
    /// The congestion controls that the sockets have had.
    controls: Mutex<BTreeSet<String>>,
    flows: Mutex<Vec<Weak<dyn Flow>>>,
}

impl Default for Steering {
    fn default() -> Self {
        Steering {
            at_first: AtomicU32::new(u32::MAX),
            opened: AtomicU32::new(u32::MAX),
            in_use: AtomicU32::new(u32::MAX),
            uses_others: AtomicBool::new(false),
            other: Mutex::default(),
            coming: Mutex::default(),
            left: CancelFlag::new(),
            taken: AtomicU64::new(0),
            others: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            control: Mutex::default(),
            controls: Mutex::default(),
            flows: Mutex::default(),
        }
    }
}

impl Steering {
    pub(crate) fn at_first(&self) -> u32 {
        self.at_first.load(Ordering::Acquire)
    }

    pub(crate) fn opened(&self) -> u32 {
        self.opened.load(Ordering::Acquire)
    }

    pub(crate) fn in_use(&self) -> u32 {
        self.in_use.load(Ordering::Acquire)
    }

    /// Returns the number of the link that comes first in use. Those with lower numbers come after all others.
    pub(crate) fn first(&self) -> u32 {
        if self.uses_others.load(Ordering::Acquire) { FIRST_OTHER } else { 0 }
    }

    /// Returns flows of another transport that are asked for, once.
    pub(crate) fn take_others(&self) -> Option<OtherFlows> {
        self.coming.lock().take()
    }

    /// Returns the flag that is raised once flows of another transport are wanted no more.
    pub(crate) fn left(&self) -> &CancelFlag {
        &self.left
    }

    /// Sets the bytes of pieces that the target has taken. One thread at a time calls this.
    pub(crate) fn has_taken(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Release);
    }

    /// Takes note of pieces that are about to be sent.
    pub(crate) fn sends(&self, pieces: &[PieceWork]) {
        if pieces.iter().any(|piece| piece.pieces == 1 || !piece.is_sent) {
            self.others.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The copy is over. This ends any turn.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Adds a flow that has opened, which gets the congestion control that was asked for last. Returns why it does not
    /// have it.
    pub(crate) fn add(&self, flow: &Arc<dyn Flow>) -> Option<String> {
        let mut flows = self.flows.lock();
        flows.retain(|other| other.strong_count() > 0);
        flows.push(Arc::downgrade(flow));
        drop(flows);
        self.others.fetch_add(1, Ordering::AcqRel);
        let control = self.control.lock().clone();
        let refused = control.and_then(|control| give_control(flow.as_ref(), &control).err());
        self.note(flow.as_ref());
        refused
    }

    /// Takes note of the congestion controls that the sockets of a flow have.
    fn note(&self, flow: &dyn Flow) {
        let has = flow.sockets().into_iter().filter_map(|socket| tcp_congestion(socket).ok());
        self.controls.lock().extend(has);
    }

    /// Returns the congestion controls that the sockets have had; none if they have none.
    pub(crate) fn controls(&self) -> Vec<String> {
        self.controls.lock().iter().cloned().collect()
    }

    fn live(&self) -> Vec<Arc<dyn Flow>> {
        self.flows.lock().iter().filter_map(Weak::upgrade).collect()
    }

    fn set(&self, arm: &CopyArm) -> Result<(), String> {
        let is_other = arm.transport.is_some();
        if is_other && *self.other.lock() != arm.transport {
            return Err("no flows of that transport were asked for".to_owned());
        }
        self.uses_others.store(is_other, Ordering::Release);
        self.in_use.store(arm.flows.max(1), Ordering::Release);
        let Some(control) = &arm.control else { return Ok(()) };
        // A flow that opens meanwhile is among these flows, or sees the new control.
        let before = self.control.lock().replace(control.clone());
        let live = self.live();
        let given = live.iter().try_for_each(|flow| give_control(flow.as_ref(), control));
        live.iter().for_each(|flow| self.note(flow.as_ref()));
        if given.is_err() {
            *self.control.lock() = before;
        }
        given
    }

    /// Waits for this time, or until the copy is over.
    fn pause(&self, time: Duration, cancel: &CancelFlag) {
        let until = Instant::now() + time;
        let left = || until.saturating_duration_since(Instant::now());
        while !left().is_zero() && !cancel.is_cancelled() && !self.is_over.load(Ordering::Acquire) {
            std::thread::sleep(left().min(LOOK));
        }
    }
}

impl CopyProgress {
    /// Opens this number of flows at first and uses them. Others are opened once [`CopyProgress::widen`] asks for them.
    pub fn begin_with(&self, flows: u32) {
        let Steering { at_first, opened, in_use, .. } = &self.steering;
        [at_first, opened, in_use].into_iter().for_each(|number| number.store(flows, Ordering::Release));
    }

    /// Opens flows up to this number. The end that opens them does it; a number beyond that of the copy's flows opens
    /// all.
    pub fn widen(&self, flows: u32) {
        self.steering.opened.fetch_max(flows, Ordering::AcqRel);
    }

    /// Opens flows of another transport beside those of the copy, which rest until a setting names them. Both ends
    /// have to be asked, the one that accepts them first.
    ///
    /// # Errors
    /// Returns the reason, in words, if there are such flows already, or if the copy is over.
    pub fn add_others(&self, flows: OtherFlows) -> Result<(), String> {
        let mut other = self.steering.other.lock();
        if let Some(name) = &*other {
            return Err(format!("flows over {name} were asked for already"));
        }
        if self.steering.left.is_cancelled() {
            return Err("the copy is over".to_owned());
        }
        *other = Some(flows.transport.clone());
        *self.steering.coming.lock() = Some(flows);
        Ok(())
    }

    /// Replaces flows of another transport by flows of the copy's own, for good. Messages that they have not carried
    /// continue there. The end that accepts them closes its port.
    pub fn leave_others(&self) {
        self.steering.left.cancel();
    }

    /// Uses a setting from now on, and counts what the target takes: first nothing for the time `settle`, then for the
    /// time `count`, or until the copy is over. Only the source can do it.
    pub fn turn(&self, arm: &CopyArm, settle: Duration, count: Duration, cancel: &CancelFlag) -> CopyCount {
        if let Err(refused) = self.steering.set(arm) {
            return CopyCount { refused, ..self.flows_now() };
        }
        self.steering.pause(settle, cancel);
        let before = Reading::of(self);
        self.steering.pause(count, cancel);
        let after = Reading::of(self);
        CopyCount {
            taken_bytes: Bytes(after.taken.saturating_sub(before.taken)),
            counted_ns: Nanos::from(after.at - before.at),
            is_clean: before.others == after.others
                && !before.is_broken
                && !after.is_broken
                && !after.is_over,
            ..self.flows_now()
        }
    }

    /// Returns what the flows have now.
    fn flows_now(&self) -> CopyCount {
        let transport = self.steering.other.lock().clone();
        let transport = transport.filter(|_| self.steering.uses_others.load(Ordering::Acquire));
        let mut live = self.steering.live();
        live.retain(|flow| is_other(flow.as_ref()) == transport.is_some());
        let sockets = || live.iter().flat_map(|flow| flow.sockets());
        let of_tcp = sockets().filter_map(|socket| tcp_limits(socket).ok()).map(|limits| limits.rtt);
        // A user-space transport knows its own round trips.
        let own = live.iter().filter(|flow| flow.runs_in_calls()).filter_map(|flow| flow.progress().ok());
        let rtts = of_tcp.chain(own.map(|progress| progress.rtt));
        let controls: Vec<Option<String>> = sockets().map(|socket| tcp_congestion(socket).ok()).collect();
        let first = controls.first().cloned().flatten();
        CopyCount {
            // There are at most 64 of them.
            flows: (live.len() as u32).min(self.steering.in_use()),
            transport,
            rtt_ns: rtts.max().unwrap_or_default(),
            control: first.filter(|first| controls.iter().all(|other| other.as_ref() == Some(first))),
            ..CopyCount::default()
        }
    }
}

/// The counts at one moment.
struct Reading {
    at: Instant,
    taken: u64,
    others: u64,
    is_broken: bool,
    is_over: bool,
}

impl Reading {
    fn of(progress: &CopyProgress) -> Self {
        let steering = &progress.steering;
        Reading {
            at: Instant::now(),
            taken: steering.taken.load(Ordering::Acquire),
            others: steering.others.load(Ordering::Acquire),
            is_broken: progress.counts().broken_flows > 0,
            is_over: steering.is_over.load(Ordering::Acquire),
        }
    }
}

/// Returns true if a flow is of another transport than the copy's own. Every other transport runs in this program. A
/// kernel flow on such a link belongs to the copy's own transport, and replaces the missing one.
fn is_other(flow: &dyn Flow) -> bool {
    flow.number() >= FIRST_OTHER && flow.runs_in_calls()
}

/// Gives the sockets of a flow a congestion control, which those of another transport do not have. Returns why they
/// do not have it.
fn give_control(flow: &dyn Flow, control: &str) -> Result<(), String> {
    if is_other(flow) {
        return Ok(());
    }
    for socket in flow.sockets() {
        let refused = |error: rustix::io::Errno| format!("TCP_CONGESTION {control}: {error}");
        set_tcp_congestion(socket, control).map_err(refused)?;
        let has = tcp_congestion(socket).map_err(refused)?;
        if has != control {
            return Err(format!("TCP_CONGESTION: asked for {control}, got {has}"));
        }
    }
    Ok(())
}
