//! The clock of one thread.

use std::cell::RefCell;
use std::fs::File;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use landspeed_record::CopyStage;
use landspeed_transport::{cipher_time, used_by_thread};

use super::slow::prolong;
use super::split::{HASH, PROCESSOR, QUEUED, STATES, Spent, on_processor, state, take_queued};
use super::{Pause, Present, StageTotals, switch};

/// The least time between two additions to the times of the end.
const FOLD: Duration = Duration::from_millis(100);
/// A stretch of a stage that lasts this long is settled at its end. A reading of the processor time takes 0.3 % of it
/// at most.
const LONG: Duration = Duration::from_micros(100);
const STAGES: usize = CopyStage::ALL.len();

thread_local! {
    static CLOCK: RefCell<Option<ThreadClock>> = const { RefCell::new(None) };
}

/// Accounts the time of its thread until it is dropped, which must be on the same thread.
#[must_use]
pub(crate) struct StageLife(PhantomData<*const ()>);

impl StageLife {
    pub(super) fn begin(totals: &Arc<StageTotals>, stage: CopyStage) -> Self {
        if switch::is_on() {
            let clock = ThreadClock::new(totals, stage);
            CLOCK.with_borrow_mut(|place| *place = Some(clock));
        }
        StageLife(PhantomData)
    }
}

impl Drop for StageLife {
    fn drop(&mut self) {
        if let Some(mut clock) = CLOCK.take() {
            // A flow that breaks ends its threads while they wait for the other end.
            clock.settle(usual_pause(clock.stage));
            clock.fold();
        }
    }
}

/// Returns the times to which this thread adds, for threads that help it; `None` if its time is not accounted.
pub(crate) fn totals() -> Option<Arc<StageTotals>> {
    on_clock(|clock| Arc::clone(&clock.totals))
}

/// From now on, this thread is in `stage`.
pub(crate) fn enter(stage: CopyStage) {
    on_clock(|clock| clock.enter(stage));
}

/// The other end has nothing for this thread now. Until work arrives, the thread counts as idle.
pub(crate) fn rest() {
    on_clock(|clock| clock.rests = true);
}

/// Calls `pause`, in which this thread waits for another stage.
pub(crate) fn wait<T>(why: Pause, pause: impl FnOnce() -> T) -> T {
    on_clock(|clock| clock.begin_wait(why));
    let done = pause();
    on_clock(|clock| clock.end_wait(why));
    done
}

/// Attributes to `why` the time that this thread has slept in system calls since the last call. Returns true about ten
/// times a second, after the times have been added to those of the end.
pub(crate) fn settle(why: Pause) -> bool {
    on_clock(|clock| clock.settle(why)).unwrap_or_default()
}

/// Calls `act` with the clock of this thread, if its time is accounted.
fn on_clock<T>(act: impl FnOnce(&mut ThreadClock) -> T) -> Option<T> {
    CLOCK.with_borrow_mut(|clock| clock.as_mut().map(act))
}

/// The clock of one thread: its stage, and the time that it has spent in each.
struct ThreadClock {
    totals: Arc<StageTotals>,
    present: Arc<Present>,
    stage: CopyStage,
    /// When the thread entered the stage, or began or ended a wait.
    since: Instant,
    /// Nanoseconds in each stage since the last reading of the processor time, without waits.
    unsettled: [u64; STAGES],
    /// The thread's processor time at its last reading.
    used: u64,
    /// The thread's processor time up to which it has been slowed, or was not to be.
    paid: u64,
    /// Times that are not yet added to those of the end.
    spent: [Spent; STAGES],
    folded: Instant,
    /// The counts of the scheduler about the thread; `None` if the kernel has none.
    counts: Option<File>,
    /// The thread's time waiting for a processor at its last reading.
    queued: u64,
    /// The part of it since then that is known to be of hashing.
    queued_to_hash: u64,
    /// True if the other end has nothing for the thread.
    rests: bool,
}

impl ThreadClock {
    fn new(totals: &Arc<StageTotals>, stage: CopyStage) -> Self {
        // The thread's cryptography is counted from now on.
        cipher_time();
        let now = Instant::now();
        let present = Arc::new(Present(Default::default()));
        present.set(stage, state(usual_pause(stage)), totals.at(now));
        totals.register(&present);
        let counts = File::open("/proc/thread-self/schedstat").ok();
        let used = used_by_thread().0;
        ThreadClock {
            totals: Arc::clone(totals),
            present,
            stage,
            since: now,
            unsettled: [0; STAGES],
            used,
            paid: used,
            spent: [[0; STATES]; STAGES],
            folded: now,
            queued: queued(counts.as_ref()),
            counts,
            queued_to_hash: 0,
            rests: false,
        }
    }

    /// Returns the nanoseconds since the last call, and what happens from now on.
    fn lap(&mut self, state: usize) -> u64 {
        let now = Instant::now();
        let nanos = now.saturating_duration_since(self.since).as_nanos() as u64;
        self.since = now;
        self.present.set(self.stage, state, self.totals.at(now));
        nanos
    }

    fn enter(&mut self, stage: CopyStage) {
        let paused = self.unsaid();
        self.rests &= stage == CopyStage::Receive;
        let left = std::mem::replace(&mut self.stage, stage);
        let nanos = self.lap(self.unsaid());
        self.unsettled[left as usize] += nanos;
        if u128::from(nanos) >= LONG.as_nanos() {
            self.divide(paused);
        }
    }

    fn begin_wait(&mut self, why: Pause) {
        let nanos = self.lap(state(why));
        self.unsettled[self.stage as usize] += nanos;
    }

    fn end_wait(&mut self, why: Pause) {
        let waited = self.lap(self.unsaid());
        self.spent[self.stage as usize][state(why)] += waited;
        self.fold_when_due();
    }

    fn settle(&mut self, why: Pause) -> bool {
        let nanos = self.lap(self.unsaid());
        self.unsettled[self.stage as usize] += nanos;
        self.divide(self.state_of(why));
        self.be_slow();
        self.fold_when_due()
    }

    /// Divides what is unsettled into time on a processor and a pause in this state. Hashing pauses for a processor alone.
    fn divide(&mut self, paused: usize) {
        let before = std::mem::replace(&mut self.used, used_by_thread().0);
        let used = on_processor(&self.unsettled, self.used.saturating_sub(before));
        for (stage, (nanos, used)) in self.unsettled.iter_mut().zip(used).enumerate() {
            let state = if stage == HASH { QUEUED } else { paused };
            self.spent[stage][PROCESSOR] += used;
            self.spent[stage][state] += *nanos - used;
            self.queued_to_hash += if stage == HASH { *nanos - used } else { 0 };
            *nanos = 0;
        }
    }

    /// Works more slowly, if this end is to.
    fn be_slow(&mut self) {
        let is_slow = self.totals.is_slow(self.since);
        self.paid = if is_slow { prolong(self.paid, self.used) } else { self.used };
    }

    fn fold_when_due(&mut self) -> bool {
        let is_due = self.since.saturating_duration_since(self.folded) >= FOLD;
        if is_due {
            self.fold();
        }
        is_due
    }

    /// Returns the state of the thread if it has been in its stage for so long that it waits, and has not said for what.
    fn unsaid(&self) -> usize {
        self.state_of(usual_pause(self.stage))
    }

    /// Returns the state of the thread while it waits in a system call.
    fn state_of(&self, why: Pause) -> usize {
        let is_idle = self.rests && why == Pause::Starved;
        state(if is_idle { Pause::Idle } else { why })
    }

    /// Adds the times to those of the end.
    fn fold(&mut self) {
        let before = std::mem::replace(&mut self.queued, queued(self.counts.as_ref()));
        let to_hash = std::mem::take(&mut self.queued_to_hash);
        take_queued(&mut self.spent, self.queued.saturating_sub(before).saturating_sub(to_hash));
        for (stage, spent) in self.spent.iter_mut().enumerate() {
            self.totals.add(stage, spent);
            *spent = [0; STATES];
        }
        self.totals.add_cipher(cipher_time());
        self.folded = self.since;
    }
}

/// Returns what a thread waits for in the system calls of a stage.
fn usual_pause(stage: CopyStage) -> Pause {
    match stage {
        CopyStage::Send => Pause::Blocked,
        CopyStage::Receive => Pause::Starved,
        _ => Pause::Device,
    }
}

/// Returns the nanoseconds that a thread was runnable and waited for a processor, by the scheduler's counts; zero if the kernel does
/// not count them.
fn queued(counts: Option<&File>) -> u64 {
    // Three numbers of 20 digits at the most.
    let mut text = [0; 64];
    let length = counts.and_then(|counts| counts.read_at(&mut text, 0).ok()).unwrap_or_default();
    let counts = std::str::from_utf8(&text[..length]).unwrap_or_default();
    counts.split_whitespace().nth(1).and_then(|queued| queued.parse().ok()).unwrap_or_default()
}
