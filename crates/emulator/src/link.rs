//! A link at work, and what it did.

use std::sync::{Mutex, PoisonError};

use landspeed_record::{QueueSample, WanStats};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::clock;
use super::error::Error;
use super::spec::WanSpec;
use super::stats::Seen;
use super::threads::Threads;

/// A link that carries frames, until dropped.
#[derive(Debug)]
#[must_use = "the link carries nothing once this is dropped"]
pub struct Link {
    threads: Threads,
    /// Its parameters.
    told: WanStats,
    made: Nanos,
    mark: Mutex<Mark>,
}

/// The beginning of a run.
#[derive(Debug, Default)]
struct Mark {
    at: Nanos,
    seen: [Seen; 2],
}

impl Link {
    /// Joins two links, which are up, of this thread's network namespace.
    ///
    /// # Errors
    /// A file of the parameters that cannot be read, too little memory, or what the kernel refuses.
    pub fn start(spec: &WanSpec, links: [&str; 2]) -> Result<Self, Error> {
        let plans = spec.plan()?;
        let bounded = |n: u64| (n < u64::MAX).then_some(n);
        let told = WanStats {
            spec: spec.to_string(),
            rate_bps: BitRate(plans[0].mean_bps as f64),
            rtt_ns: spec.rtt(),
            queue_bytes: bounded(plans[0].queue.bytes).map(Bytes),
            queue_packets: bounded(plans[0].queue.packets),
            ..WanStats::default()
        };
        let threads = Threads::start(&plans, links)?;
        let made = clock::now();
        Ok(Link { threads, told, made, mark: Mutex::new(Mark { at: made, seen: Default::default() }) })
    }

    /// What it did since it was made. Never waits for the link.
    pub fn stats(&self) -> WanStats {
        let [a_to_b, b_to_a] = self.threads.counters.each_ref().map(|counters| counters.read().total());
        WanStats { a_to_b, b_to_a, ..self.window(self.made) }
    }

    /// A run begins: [`Link::since_mark`] counts from here, and so do losses by number.
    pub fn mark(&self) {
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.threads.counters.each_ref().map(|counters| counters.begin_run());
        *mark = Mark { at: clock::now(), seen };
    }

    /// What it did since the last mark (since it was made where there is none), and its queue from A to B
    /// over that time.
    pub fn since_mark(&self) -> (WanStats, Vec<QueueSample>) {
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        let [a_to_b, b_to_a] = [0, 1].map(|way| {
            let (counters, before) = (&self.threads.counters[way], &mark.seen[way]);
            counters.read().since(before, counters.most_queued_since(before))
        });
        let queue = self.threads.counters[0].queue_since(&mark.seen[0], mark.at);
        (WanStats { a_to_b, b_to_a, ..self.window(mark.at) }, queue)
    }

    fn window(&self, start: Nanos) -> WanStats {
        let mut notes = self.threads.notes();
        notes.sort_unstable();
        notes.dedup();
        WanStats { window_ns: clock::now() - start, notes, ..self.told.clone() }
    }
}
