//! A running emulated link, and its statistics.

use std::sync::atomic::Ordering::Relaxed;

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{QueueSample, WanStats};
use parking_lot::Mutex;

use super::clock;
use super::error::Error;
use super::spec::WanSpec;
use super::stats::DirectionSnapshot;
use super::threads::LinkThreads;

/// An emulated link. It carries frames until it is dropped.
#[derive(Debug)]
#[must_use = "the link carries nothing once this is dropped"]
pub struct EmulatedLink {
    threads: LinkThreads,
    /// The link's parameters, in the form in which `stats` reports them.
    parameters: WanStats,
    made: Nanos,
    mark: Mutex<RunStart>,
}

/// The time and the counts at the beginning of a run.
#[derive(Debug, Default)]
struct RunStart {
    at: Nanos,
    snapshots: [DirectionSnapshot; 2],
}

impl EmulatedLink {
    /// Starts a link that joins two network devices of this thread's network namespace. Both devices must be up.
    ///
    /// # Errors
    /// Returns an error if a file of the parameters cannot be read, if there is too little memory, or if the kernel
    /// refuses a socket or a thread.
    pub(crate) fn start(spec: &WanSpec, links: [&str; 2]) -> Result<Self, Error> {
        let plans = spec.plan()?;
        let bounded = |n: u64| (n < u64::MAX).then_some(n);
        let parameters = WanStats {
            spec: spec.to_string(),
            rate_bps: BitRate(plans[0].mean_bps as f64),
            rtt_ns: spec.rtt(),
            queue_bytes: bounded(plans[0].queue.bytes).map(Bytes),
            queue_packets: bounded(plans[0].queue.packets),
            ..WanStats::default()
        };
        let threads = LinkThreads::start(&plans, links)?;
        let made = clock::now();
        Ok(EmulatedLink {
            threads,
            parameters,
            made,
            mark: Mutex::new(RunStart { at: made, snapshots: Default::default() }),
        })
    }

    /// Returns the statistics since the link was created. Never blocks the link's threads.
    pub fn stats(&self) -> WanStats {
        let [a_to_b, b_to_a] = self.threads.counters.each_ref().map(|counters| counters.read().total());
        WanStats { a_to_b, b_to_a, ..self.window(self.made) }
    }

    /// Begins a run. [`EmulatedLink::since_mark`] counts from this call on, and losses by number start again from 1.
    pub fn mark(&self) {
        let mut mark = self.mark.lock();
        let snapshots = self.threads.counters.each_ref().map(|counters| counters.begin_run());
        *mark = RunStart { at: clock::now(), snapshots };
    }

    /// Returns the statistics since the last mark (or since the link was created if there is none), and samples of the
    /// queue from A to B over that time.
    pub fn since_mark(&self) -> (WanStats, Vec<QueueSample>) {
        let mark = self.mark.lock();
        let [a_to_b, b_to_a] = [0, 1].map(|direction| {
            let (counters, before) = (&self.threads.counters[direction], &mark.snapshots[direction]);
            counters.read().since(before, counters.most_queued_since(before))
        });
        let queue = self.threads.counters[0].queue_since(&mark.snapshots[0], mark.at);
        (WanStats { a_to_b, b_to_a, ..self.window(mark.at) }, queue)
    }

    /// Returns the IDs of the threads of this process that carry the link, one for each direction; `None` before both run.
    pub fn threads(&self) -> Option<[i32; 2]> {
        let threads = self.threads.counters.each_ref().map(|counters| counters.thread.load(Relaxed));
        (!threads.contains(&0)).then_some(threads)
    }

    fn window(&self, start: Nanos) -> WanStats {
        let mut notes = self.threads.notes();
        notes.sort_unstable();
        notes.dedup();
        WanStats { window_ns: clock::now() - start, notes, ..self.parameters.clone() }
    }
}
