//! The two threads of this process that carry a link, one per direction.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use landspeed_kernel::netlink::Rtnl;
use landspeed_record::units::Bytes;
use parking_lot::Mutex;

use super::clock;
use super::direction::LinkDirection;
use super::error::Error;
use super::plan::DirectionPlan;
use super::pump::{Pump, StopSignal};
use super::socket::PacketSocket;
use super::stats::DirectionCounters;
use crate::failure::FailureContext;

type SharedNotes = Arc<Mutex<Vec<String>>>;
const DIRECTIONS: [&str; 2] = ["A to B", "B to A"];

/// The two threads of a link, which carry frames until this value is dropped.
#[derive(Debug)]
pub(super) struct LinkThreads {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<StopSignal>,
    /// The counters of both directions.
    pub(super) counters: [Arc<DirectionCounters>; 2],
    notes: SharedNotes,
}

impl LinkThreads {
    /// Starts the threads of a link between two network devices of this thread's namespace. Both devices must be up.
    pub(super) fn start(plans: &[DirectionPlan; 2], links: [&str; 2]) -> Result<Self, Error> {
        check_memory(plans)?;
        let stop = Arc::new(StopSignal::new().during(|| "make an event to end the link by".into())?);
        let mut link = LinkThreads {
            threads: Vec::new(),
            stop,
            counters: Default::default(),
            notes: SharedNotes::default(),
        };
        for (number, plan) in plans.iter().enumerate() {
            let ends = [links[number], links[1 - number]];
            let pump = link.pump(plan, ends, Arc::clone(&link.counters[number]))?;
            let notes = Arc::clone(&link.notes);
            let thread = std::thread::Builder::new().name(format!("ls-wan-{}", ["ab", "ba"][number]));
            let work = move || carry(pump, DIRECTIONS[number], &notes);
            link.threads.push(thread.spawn(work).during(|| "start the link's thread".into())?);
        }
        Ok(link)
    }

    fn pump(
        &self,
        plan: &DirectionPlan,
        [from, to]: [&str; 2],
        counters: Arc<DirectionCounters>,
    ) -> Result<Pump, Error> {
        let rtnl = Rtnl::open()?;
        let from = PacketSocket::receiving(from, rtnl.index_of(from)?)?;
        let to = PacketSocket::sending(to, rtnl.index_of(to)?)?;
        let direction = LinkDirection::new(plan, Arc::clone(&counters));
        Ok(Pump { from, to, direction, counters, stop: Arc::clone(&self.stop) })
    }

    /// Returns notes for readers of the statistics, for example that one direction has stopped.
    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.lock().clone()
    }
}

impl Drop for LinkThreads {
    fn drop(&mut self) {
        self.stop.ask();
        for thread in self.threads.drain(..) {
            // A panic in the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

/// Runs one thread of the link.
fn carry(pump: Pump, direction: &str, notes: &SharedNotes) {
    let note = |text: String| notes.lock().push(text);
    pump.counters.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
    if let Err(e) = clock::become_real_time() {
        // An ordinary thread's sleep is extended by up to 50 us, unless its timer slack is lowered.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        note(format!("the link has no real-time scheduling ({e}): trust its lateness, not its delay"));
    }
    if let Err(e) = pump.run() {
        note(format!("the link carries nothing from {direction} any more: {e}"));
    }
}

/// Returns an error if the link would need more than half of the available memory.
fn check_memory(plans: &[DirectionPlan; 2]) -> Result<(), Error> {
    let needed = plans.iter().map(LinkDirection::footprint).fold(0, usize::saturating_add) as u64;
    let Some(free) = available_memory() else { return Ok(()) };
    if needed <= free.0 / 2 {
        return Ok(());
    }
    let why = format!(
        "what is under way on this link takes {} of memory, and {free} is free: lower rate, rtt or queue",
        Bytes(needed)
    );
    Err(Error::CannotRun(why))
}

/// Reads the available memory (MemAvailable, proc(5)).
fn available_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(Bytes::kib(kib))
}
