//! A link, whoever carries it, and what it did.

use std::sync::{Mutex, PoisonError};

use landspeed_netlink::Netem;
use landspeed_record::{QueueSample, WanCarrier, WanStats};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::clock;
use super::error::Error;
use super::netem::{self, Emulators};
use super::plan::WayPlan;
use super::spec::{Carrier, WanSpec};
use super::stats::Seen;
use super::threads::Threads;

/// A link that carries frames, until dropped.
#[derive(Debug)]
#[must_use = "the link carries nothing once this is dropped"]
pub struct Link {
    carried: Carried,
    /// What is always said of it: its parameters, and why it is carried as it is.
    told: WanStats,
    made: Nanos,
    mark: Mutex<Mark>,
}

#[derive(Debug)]
enum Carried {
    Threads(Threads),
    Netem(Emulators),
}

/// The beginning of a run.
#[derive(Debug, Default)]
struct Mark {
    at: Nanos,
    seen: [Seen; 2],
}

/// Who carries a link; with a reason where somebody else was preferred.
enum Choice {
    Threads { why: Option<String> },
    Netem(Box<[Netem; 2]>),
}

impl Link {
    /// Joins two links, which are up, of this thread's network namespace.
    ///
    /// # Errors
    /// A file that cannot be understood, netem asked for and not to be had, too little memory, or what the
    /// kernel refuses.
    pub fn start(spec: &WanSpec, links: [&str; 2]) -> Result<Self, Error> {
        let plans = spec.plan()?;
        let (carried, why) = match choose(spec.carrier, &plans)? {
            Choice::Threads { why } => (Carried::Threads(Threads::start(&plans, links)?), why),
            Choice::Netem(netem) => (Carried::Netem(Emulators::start(&netem, links)?), None),
        };
        let made = clock::now();
        let told = WanStats { notes: why.into_iter().collect(), ..told(spec, &plans[0]) };
        Ok(Link { carried, told, made, mark: Mutex::new(Mark { at: made, seen: Default::default() }) })
    }

    /// What it did since it was made. Never waits for the link.
    pub fn stats(&self) -> WanStats {
        let [a_to_b, b_to_a] = self.carried.seen().map(|seen| seen.total());
        WanStats { a_to_b, b_to_a, ..self.window(self.made) }
    }

    /// A run begins: [`Link::since_mark`] counts from here, and so do losses by number.
    pub fn mark(&self) {
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = match &self.carried {
            Carried::Threads(threads) => threads.counters.each_ref().map(|counters| counters.begin_run()),
            Carried::Netem(emulators) => emulators.seen(),
        };
        *mark = Mark { at: clock::now(), seen };
    }

    /// What it did since the last mark (since it was made where there is none), and its queue from A to B
    /// over that time.
    pub fn since_mark(&self) -> (WanStats, Vec<QueueSample>) {
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.carried.seen();
        let most = self.carried.most_queued(&mark);
        let [a_to_b, b_to_a] = [0, 1].map(|n| seen[n].since(&mark.seen[n], most[n]));
        let queue = match &self.carried {
            Carried::Threads(threads) => threads.counters[0].queue_since(&mark.seen[0], mark.at),
            Carried::Netem(_) => Vec::new(),
        };
        (WanStats { a_to_b, b_to_a, ..self.window(mark.at) }, queue)
    }

    fn window(&self, start: Nanos) -> WanStats {
        let mut notes = self.told.notes.clone();
        notes.extend(self.carried.notes());
        notes.sort_unstable();
        notes.dedup();
        let carrier = match self.carried {
            Carried::Threads(_) => WanCarrier::Threads,
            Carried::Netem(_) => WanCarrier::Netem,
        };
        WanStats { window_ns: clock::now() - start, carrier, notes, ..self.told.clone() }
    }
}

impl Carried {
    fn seen(&self) -> [Seen; 2] {
        match self {
            Carried::Threads(threads) => threads.counters.each_ref().map(|counters| counters.read()),
            Carried::Netem(emulators) => emulators.seen(),
        }
    }

    fn most_queued(&self, mark: &Mark) -> [Bytes; 2] {
        match self {
            Carried::Threads(threads) => [0, 1].map(|n| threads.counters[n].most_queued_since(&mark.seen[n])),
            Carried::Netem(_) => Default::default(),
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Carried::Threads(threads) => threads.notes(),
            Carried::Netem(emulators) => emulators.notes(),
        }
    }
}

fn told(spec: &WanSpec, plan: &WayPlan) -> WanStats {
    let bounded = |n: u64| (n < u64::MAX).then_some(n);
    WanStats {
        spec: spec.to_string(),
        rate_bps: BitRate(plan.speed.mean_bps() as f64),
        rtt_ns: spec.rtt(),
        queue_bytes: Bytes(bounded(plan.queue.bytes).unwrap_or(0)),
        queue_packets: bounded(plan.queue.packets),
        ..WanStats::default()
    }
}

fn choose(carrier: Carrier, plans: &[WayPlan; 2]) -> Result<Choice, Error> {
    let is_asked = carrier == Carrier::Netem;
    let netem = || -> Result<Choice, String> {
        let cannot = |why| format!("netem cannot play it: {why}");
        let there = netem::of(&plans[0], is_asked).map_err(cannot)?;
        let back = netem::of(&plans[1], is_asked).map_err(cannot)?;
        netem::probe(&there)?;
        Ok(Choice::Netem(Box::new([there, back])))
    };
    match carrier {
        Carrier::User => Ok(Choice::Threads { why: None }),
        Carrier::Netem => netem().map_err(|why| Error::CannotRun(format!("{why}; link=user needs no netem"))),
        Carrier::Auto => Ok(netem().unwrap_or_else(|why| Choice::Threads {
            why: Some(format!("carried by threads of landspeed, not by the kernel: {why}")),
        })),
    }
}
