//! A wide-area link in user space: rate, delay, loss, reordering and a bounded queue between two links of
//! one network namespace, for kernels without netem (and where they have it, loss and queue by segment,
//! not by superpacket).
//!
//! ```text
//!  link --> socket --> look --> fate of each segment --> line (a ring of bytes) --> socket --> link
//!           kernel's   frame,   path: size, queue,       and a second one for
//!           time       virtio   rate, loss, reorder      those held back
//! ```
//!
//! | file | is |
//! |---|---|
//! | `spec`, `parse`, `share` | what the link is to be, as written |
//! | `path`, `loss`, `random` | what becomes of a segment: a state machine fed with times |
//! | `line` | memory for frames that are under way |
//! | `frame`, `virtio`, `split` | superpackets, and segments cut out of them |
//! | `direction` | these joined: frames in, frames out; no sockets, no clocks |
//! | `socket`, `batch`, `clock`, `pump` | the thread of a direction, and the kernel |
//! | `stats`, `lateness` | what the link did, and how late |
//!
//! The link runs as two threads of the process that owns the lab: they end with it, however it ends, and
//! what is left of the lab (namespaces) is what `landspeed lab down` removes for every lab. The sockets
//! see frames of the two links only. Nobody else depends on how a link is carried: one made of netem
//! would be another way to [`Link::start`].
//!
//! What it is not: a rate beyond what two threads can copy (some Gb/s at MTU 1500 without segmentation
//! offload) shows in [`WanStats`] as lateness and as `missed_frames`, and must be read before
//! figures are believed. A superpacket arrives when its last segment would, at most 1 ms after its first.

mod batch;
mod clock;
mod direction;
mod frame;
mod lateness;
mod line;
mod loss;
mod parse;
mod path;
mod pump;
mod share;
mod socket;
mod spec;
mod split;
mod stats;
mod virtio;

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use landspeed_netlink::Rtnl;
use landspeed_record::WanStats;
use landspeed_units::{Bytes, Nanos};

use crate::error::{During, Error};
use crate::namespace::{try_in_throwaway, with_namespace};
use direction::Direction;
pub use parse::WanSpecError;
use pump::{Pump, Stop};
pub use share::Share;
use socket::Socket;
pub use spec::WanSpec;
use stats::Counters;

/// A link that carries frames, until dropped.
#[derive(Debug)]
#[must_use = "the link carries nothing once this is dropped"]
pub(crate) struct Link {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<Stop>,
    /// Of both directions.
    counters: [Arc<Counters>; 2],
    notes: Notes,
    spec: WanSpec,
    since: Instant,
}

type Notes = Arc<Mutex<Vec<String>>>;
const DIRECTIONS: [&str; 2] = ["A to B", "B to A"];

impl Link {
    /// Joins two links, which are up, of a network namespace.
    pub(crate) fn start(spec: &WanSpec, netns: &str, links: [&str; 2]) -> Result<Self, Error> {
        check_memory(spec)?;
        let stop = Arc::new(Stop::new().during(|| "make an event to end the link by".into())?);
        let mut link = Link {
            threads: Vec::new(),
            stop,
            counters: Default::default(),
            notes: Notes::default(),
            spec: *spec,
            since: Instant::now(),
        };
        for number in 0..2 {
            let pump = link.pump(spec, netns, [links[number], links[1 - number]], number)?;
            let notes = Arc::clone(&link.notes);
            let thread = std::thread::Builder::new().name(format!("ls-wan-{}", ["ab", "ba"][number]));
            let work = move || carry(pump, DIRECTIONS[number], &notes);
            link.threads.push(thread.spawn(work).during(|| "start the link's thread".into())?);
        }
        Ok(link)
    }

    fn pump(&self, spec: &WanSpec, netns: &str, [from, to]: [&str; 2], number: usize) -> Result<Pump, Error> {
        let open = || {
            let rtnl = Rtnl::open()?;
            let from = Socket::receiving(from, rtnl.index_of(from)?)?;
            Ok::<_, Error>((from, Socket::sending(to, rtnl.index_of(to)?)?))
        };
        let (from, to) = with_namespace(netns, open)??;
        let counters = Arc::clone(&self.counters[number]);
        let direction = Direction::new(spec, number as u64, Arc::clone(&counters));
        Ok(Pump { from, to, direction, counters, stop: Arc::clone(&self.stop) })
    }

    /// What it did so far. Never waits for the link.
    pub(crate) fn stats(&self) -> WanStats {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        notes.sort_unstable();
        notes.dedup();
        WanStats {
            spec: self.spec.to_string(),
            rate_bps: self.spec.rate(),
            rtt_ns: self.spec.rtt(),
            queue_bytes: self.spec.queue(),
            window_ns: Nanos::from(self.since.elapsed()),
            a_to_b: self.counters[0].read(),
            b_to_a: self.counters[1].read(),
            notes,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.ask();
        for thread in self.threads.drain(..) {
            // A panic there was printed when it happened; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// The life of one thread.
fn carry(pump: Pump, direction: &str, notes: &Notes) {
    let note = |text: String| notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    pump.counters.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
    if let Err(e) = clock::become_real_time() {
        // An ordinary thread's sleep is stretched by up to 50 us unless it objects.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        note(format!("the link has no real-time scheduling ({e}): trust its lateness, not its delay"));
    }
    if let Err(e) = pump.run() {
        note(format!("the link carries nothing from {direction} any more: {e}"));
    }
}

/// Refuses a link that would take more than half of the memory that is left.
fn check_memory(spec: &WanSpec) -> Result<(), Error> {
    let needed = Direction::footprint(spec).saturating_mul(2) as u64;
    let Some(free) = available_memory() else { return Ok(()) };
    if needed <= free.0 / 2 {
        return Ok(());
    }
    let why = format!(
        "what is under way on this link takes {} of memory, and {free} is free: lower rate, rtt or queue",
        Bytes(needed)
    );
    Err(Error::CannotRun { topology: "lab:wan", why })
}

/// MemAvailable (proc(5)).
fn available_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(Bytes::kib(kib))
}

/// Whether this user may carry frames here; otherwise why not. Asks the kernel, in a namespace that is
/// gone before this returns.
pub(crate) fn can_carry() -> Result<(), String> {
    const LOOPBACK: u32 = 1;
    match try_in_throwaway(|| Socket::receiving("lo", LOOPBACK)) {
        Err(e) => Err(format!("this kernel refuses a network namespace: {e}")),
        Ok(Err(e)) => Err(format!("a link in user space needs packet sockets (CAP_NET_RAW): {e}")),
        Ok(Ok(_)) => Ok(()),
    }
}
