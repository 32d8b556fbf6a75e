//! Accounts how the threads of an end spend their time.
//!
//! | module | content |
//! |---|---|
//! | `clock` | the clock of one thread |
//! | `split` | divides a thread's time by the reason of its waits |
//! | `slow` | makes the work of threads take longer for a while |
//! | `switch` | whether time is accounted |
//! | `network` | the TCP_INFO of the flows |
//!
//! A thread says when it enters a stage ([`enter`]) and when it waits for another one ([`wait`]): each costs one reading of the
//! clock. A thread cannot see when it sleeps in a system call, so it says once a message what such sleep means
//! ([`settle`]): the time that it was not on a processor since then was spent for a disk, for the other end's bytes, or for room to
//! send. Both are functions of the thread and not of an object that is handed down, so that a stage is one line where the work is
//! done, and no line where nothing is measured (docs/decisions/0081-what-holds-a-copy.md).

mod clock;
mod network;
mod slow;
mod split;
mod switch;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use landspeed_record::units::Nanos;
use landspeed_record::{CopyEndTimes, CopyStage, CopyStageTimes};
use parking_lot::Mutex;

pub(crate) use clock::{StageLife, enter, rest, settle, totals, wait};
pub(crate) use network::FlowMeter;
use network::NetworkTotals;
use split::Spent;

/// The reason why a thread is not on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// A disk or a file system.
    Device,
    /// The stage before it, which feeds it.
    Starved,
    /// The stage after it, which takes its output.
    Blocked,
    /// The limit that the user has set on the rate (`--limit-rate`).
    Limit,
    /// Nothing: the other flows have all work, and none is left for the thread.
    Idle,
}

/// The times of one end, to which its threads add.
#[derive(Debug)]
pub(crate) struct StageTotals {
    begun: Instant,
    /// In nanoseconds, by stage and in the order of [`Spent`].
    nanos: [[AtomicU64; split::STATES]; CopyStage::ALL.len()],
    network: NetworkTotals,
    /// Processor time of encryption and decryption, in nanoseconds.
    cipher: AtomicU64,
    /// Until when the threads work more slowly, in nanoseconds since the times began.
    slow_until: AtomicU64,
    /// The current stage and state of each thread.
    present: Mutex<Vec<Weak<Present>>>,
}

impl Default for StageTotals {
    fn default() -> Self {
        StageTotals {
            begun: Instant::now(),
            nanos: Default::default(),
            network: NetworkTotals::default(),
            cipher: AtomicU64::new(0),
            slow_until: AtomicU64::new(0),
            present: Mutex::default(),
        }
    }
}

impl StageTotals {
    /// Begins to account the time of this thread, which is in `stage`, until the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>, stage: CopyStage) -> StageLife {
        StageLife::begin(self, stage)
    }

    /// Returns the times so far. They have what a thread is doing now, if it does it for long.
    pub(crate) fn times(&self) -> CopyEndTimes {
        let now = self.now();
        let stage = |index: usize| self.nanos[index].each_ref().map(|nanos| nanos.load(Ordering::Relaxed));
        let mut spent: [Spent; CopyStage::ALL.len()] = std::array::from_fn(stage);
        for present in self.present.lock().iter().filter_map(Weak::upgrade) {
            let (stage, state, since) = present.get();
            if let Some(nanos) = spent.get_mut(stage).and_then(|spent| spent.get_mut(state)) {
                *nanos += now.saturating_sub(since);
            }
        }
        CopyEndTimes {
            stages: spent.map(times),
            network: self.network.times(),
            cipher_ns: Nanos(self.cipher.load(Ordering::Relaxed)),
            ..CopyEndTimes::default()
        }
    }

    fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    /// Returns a moment in nanoseconds since the times began.
    fn at(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX)
    }

    fn add(&self, stage: usize, spent: &Spent) {
        for (total, nanos) in self.nanos[stage].iter().zip(spent).filter(|(_, nanos)| **nanos > 0) {
            total.fetch_add(*nanos, Ordering::Relaxed);
        }
    }

    /// Adds processor time of encryption and decryption.
    fn add_cipher(&self, spent: Nanos) {
        self.cipher.fetch_add(spent.0, Ordering::Relaxed);
    }

    fn register(&self, present: &Arc<Present>) {
        let mut all = self.present.lock();
        // Flows that are opened again have new threads.
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(present));
    }
}

fn times([processor, queued, device, starved, blocked, limited, idle]: Spent) -> CopyStageTimes {
    CopyStageTimes {
        processor_ns: Nanos(processor),
        queued_ns: Nanos(queued),
        device_ns: Nanos(device),
        starved_ns: Nanos(starved),
        blocked_ns: Nanos(blocked),
        limited_ns: Nanos(limited),
        idle_ns: Nanos(idle),
    }
}

/// The current stage and state of a thread, and since when: the time in nanoseconds, then 4 bits for the stage and 4
/// for the state. Other threads read it atomically.
#[derive(Debug)]
struct Present(AtomicU64);

impl Present {
    fn set(&self, stage: CopyStage, state: usize, since: u64) {
        // The time has room for two years.
        self.0.store((since << 8) | ((stage as u64) << 4) | state as u64, Ordering::Relaxed);
    }

    fn get(&self) -> (usize, usize, u64) {
        let all = self.0.load(Ordering::Relaxed);
        (((all >> 4) & 0xf) as usize, (all & 0xf) as usize, all >> 8)
    }
}

#[cfg(test)]
mod tests;
