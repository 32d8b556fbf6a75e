//! The coordinator of one end: it waits, watches and measures while the workers work.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use landspeed_record::{DatagramCounts, Details, Observations, Progress, TrialSpec};
use landspeed_transport::{Cancel, Datagrams, Flow};
use landspeed_units::{Bytes, Nanos};

use crate::check::MOST_SAMPLES;
use crate::signal::{Signal, Signals};
use crate::workers::Workers;
use crate::{Error, Watch, Watched};

/// The longest that the coordinator sleeps without looking whether something is amiss.
const TICK: Duration = Duration::from_millis(50);
/// How often it looks for the first data.
const FIRST_TICK: Duration = Duration::from_micros(500);
/// How long it waits for first data, and for the peer to say what comes next.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the workers of a peer that ends may take to leave; longer than their grace.
const LEAVING: Duration = Duration::from_millis(500);
/// Traffic stops this long after the last acknowledgement of new data, a tick and the workers' way out
/// not counted: within a second in all. Paths with longer round trips are not for this program.
const FEEDBACK: Duration = Duration::from_millis(800);

/// One end of a trial as its coordinator sees it.
pub(crate) struct Trial<'c, 'p> {
    pub(crate) workers: &'c Workers<'c>,
    pub(crate) spec: &'p TrialSpec,
    parts: Parts<'p>,
    clock: Clock,
    feedback: Feedback,
    peer_closed: bool,
    /// How many tasks, the first ones, receive payload; `None` where nothing is told while the trial goes on.
    receiving: Option<usize>,
    told: Option<Told>,
}

/// What is told while the window is open: sums since it did.
struct Told {
    opened: Instant,
    next: Instant,
    /// What had been received by then.
    before: u64,
}

/// When things happened, and happen next.
#[derive(Default)]
struct Clock {
    first: Option<Instant>,
    next_sample: Option<Instant>,
    /// Samples so far, of all flows.
    samples: u64,
}

pub(crate) struct Mark {
    at: Instant,
    counts: Vec<u64>,
    datagrams: Vec<Datagrams>,
}

pub(crate) struct Measured {
    /// Its length by this end's clock.
    pub(crate) window: Nanos,
    /// What each task counted in it.
    pub(crate) counts: Vec<u64>,
    /// Its datagrams, by flow; empty where there are none.
    pub(crate) datagrams: Vec<DatagramCounts>,
    /// Who came to the port without the key.
    pub(crate) strangers: u64,
    /// What only the flows' transport knows of them.
    pub(crate) details: Details,
    /// What was watched.
    pub(crate) observed: Observations,
}

/// What an end of a trial is made of, beside the workers.
pub(crate) struct Parts<'a> {
    pub(crate) spec: &'a TrialSpec,
    pub(crate) flows: &'a [Box<dyn Flow>],
    pub(crate) strangers: u64,
    pub(crate) signals: &'a mut Signals,
    pub(crate) watch: &'a mut dyn Watch,
    pub(crate) cancel: &'a Cancel,
}

impl<'a> Parts<'a> {
    /// The trial that these workers run.
    pub(crate) fn trial<'c>(self, workers: &'c Workers<'c>) -> Trial<'c, 'a> {
        let now = Instant::now();
        let feedback = Feedback { heard: 0, since: now, due: now };
        Trial {
            workers,
            spec: self.spec,
            parts: self,
            clock: Clock::default(),
            feedback,
            peer_closed: false,
            receiving: None,
            told: None,
        }
    }
}

impl Trial<'_, '_> {
    /// Tells how far it is where that is asked for: the first `receiving` tasks receive payload.
    pub(crate) fn telling(self, receiving: usize) -> Self {
        Trial { receiving: Some(receiving), ..self }
    }

    /// Sleeps at most so long (and a tick), looks whether all is well, and hands out what the peer said.
    pub(crate) fn tick(&mut self, at_most: Duration) -> Result<Option<Signal>, Error> {
        if self.parts.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if self.workers.failed() {
            return Err(self.failure());
        }
        self.feedback.check(self.parts.flows)?;
        let now = Instant::now();
        if !self.started() && self.workers.tallies.iter().any(|tally| tally.get() > 0) {
            self.clock.first = Some(now);
        }
        let until_sample = self.sample_if_due(now);
        self.tell_if_due(now);
        let said = self.parts.signals.receive(at_most.min(TICK).min(until_sample))?;
        self.peer_closed |= said == Some(Signal::Closed);
        Ok(said)
    }

    pub(crate) fn started(&self) -> bool {
        self.clock.first.is_some()
    }

    pub(crate) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// A worker failed: for want of a peer, or by itself? A peer that ends closes its data flows first, and its signal
    /// flow when its workers have left.
    fn failure(&mut self) -> Error {
        let deadline = Instant::now() + LEAVING;
        while Instant::now() < deadline {
            if self.parts.cancel.is_cancelled() {
                return Error::Cancelled;
            }
            if let Err(gone) = self.parts.signals.receive(TICK) {
                return gone;
            }
        }
        Error::Worker
    }

    /// At the looks that are taken anyway: a word comes up to a tick late, with the time at which it was true.
    fn tell_if_due(&mut self, now: Instant) {
        if self.told.as_ref().is_none_or(|told| told.next > now) {
            return;
        }
        let received = self.received();
        let Some(told) = &mut self.told else { return };
        told.next += Duration::from(self.spec.progress_ns);
        let (at_ns, received_bytes) = (Nanos::from(now - told.opened), Bytes(received - told.before));
        self.parts.watch.progress(Progress { at_ns, received_bytes, tcp: None });
    }

    fn received(&self) -> u64 {
        let receiving = self.receiving.unwrap_or_default();
        self.workers.tallies.iter().take(receiving).map(|tally| tally.get()).sum()
    }

    fn sample_if_due(&mut self, now: Instant) -> Duration {
        let Some(due) = self.clock.next_sample else { return TICK };
        if now < due {
            return due - now;
        }
        let since = self.clock.first.map_or(Duration::ZERO, |first| now - first);
        self.parts.watch.sample(since.into());
        // A coordinator that comes late skips samples; it does not crowd them.
        let interval = Duration::from(self.spec.interval_ns);
        self.clock.next_sample = Some((due + interval).max(now));
        self.clock.samples += self.sampled();
        if self.is_full() {
            self.clock.next_sample = None;
        }
        interval
    }

    /// Samples that are taken at once.
    fn sampled(&self) -> u64 {
        self.parts.flows.len().max(1) as u64
    }

    /// Whether the outcome has no room for more samples: a workload may take as long as it needs.
    fn is_full(&self) -> bool {
        self.clock.samples + self.sampled() > MOST_SAMPLES
    }

    /// Waits for the first data of any flow.
    pub(crate) fn await_first(&mut self) -> Result<Instant, Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.tick(FIRST_TICK)?;
            if let Some(first) = self.clock.first {
                return Ok(first);
            }
            if Instant::now() > deadline {
                return Err(Error::silent("while the first data was awaited", PATIENCE));
            }
        }
    }

    pub(crate) fn until(&mut self, deadline: Instant) -> Result<(), Error> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.tick(left)?;
        }
    }

    pub(crate) fn say(&self, signal: Signal) -> Result<(), Error> {
        self.parts.signals.send(signal)
    }

    /// Waits for the peer to say what `pick` takes; anything else is of an earlier part and let go.
    pub(crate) fn expect<T>(
        &mut self,
        phase: &'static str,
        pick: impl Fn(Signal) -> Option<T>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(found) = self.tick(TICK)?.and_then(&pick) {
                return Ok(found);
            }
        }
        Err(Error::silent(phase, PATIENCE))
    }

    pub(crate) fn open(&mut self) -> Mark {
        let flows = self.parts.flows.iter();
        let sockets: Vec<(u32, BorrowedFd<'_>)> =
            flows.flat_map(|flow| flow.sockets().into_iter().map(|socket| (flow.number(), socket))).collect();
        let programs = self.spec.program.is_some();
        self.parts.watch.open(&Watched { threads: &self.workers.threads, sockets: &sockets, programs });
        let at = Instant::now();
        let (counts, datagrams) = (self.counts(), self.datagrams());
        if self.spec.progress_ns > Nanos(0) && self.receiving.is_some() {
            let next = at + Duration::from(self.spec.progress_ns);
            self.told = Some(Told { opened: at, next, before: self.received() });
        }
        if self.spec.interval_ns > Nanos(0) {
            self.clock.next_sample = Some(at + Duration::from(self.spec.interval_ns));
        }
        Mark { at, counts, datagrams }
    }

    /// Opens the window now, and lets it hold what came just before: the whole of a run without a warm-up.
    pub(crate) fn open_from_start(&mut self) -> Mark {
        let mark = self.open();
        Mark { counts: vec![0; mark.counts.len()], ..mark }
    }

    /// Closes the window now, and stays until the peer's is closed too: until then each end keeps
    /// sending and taking, so that both windows are full to their ends.
    pub(crate) fn close(&mut self, mark: &Mark) -> Result<Measured, Error> {
        self.close_then(mark, |_| Ok(()))
    }

    /// The same, where this end does more before it lets the peer go.
    pub(crate) fn close_then(
        &mut self,
        mark: &Mark,
        then: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<Measured, Error> {
        let window = Nanos::from(mark.at.elapsed());
        let counts = self.counts().iter().zip(&mark.counts).map(|(now, then)| now - then).collect();
        let datagrams =
            self.datagrams().iter().zip(&mark.datagrams).map(|(now, then)| now.since(then)).collect();
        let mut details = Details::default();
        self.parts.flows.iter().for_each(|flow| flow.tell(&mut details));
        let mut observed = self.parts.watch.close();
        if self.is_full() {
            observed.unseen.push(format!("samples: {MOST_SAMPLES} of all flows came before the end"));
        }
        self.clock.next_sample = None;
        self.told = None;
        then(self)?;
        self.part()?;
        Ok(Measured { window, counts, datagrams, strangers: self.parts.strangers, details, observed })
    }

    fn counts(&self) -> Vec<u64> {
        self.workers.tallies.iter().map(|tally| tally.get()).collect()
    }

    pub(crate) fn datagrams(&self) -> Vec<Datagrams> {
        self.parts.flows.iter().filter_map(|flow| flow.datagrams()).collect()
    }

    /// Tells the peer that this end has what it wants, and hears the same. A peer that has closed all
    /// its flows has closed its window before, and needs not say so.
    fn part(&mut self) -> Result<(), Error> {
        if self.say(Signal::Closed).is_err() {
            return Ok(());
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.peer_closed {
            match self.tick(TICK) {
                Ok(_) if Instant::now() < deadline => {}
                Ok(_) => {
                    return Err(Error::silent("while the end of its window was awaited", PATIENCE));
                }
                Err(Error::PeerGone { .. } | Error::Worker) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether sent data is still acknowledged, in order or not: on a long path repairing one loss takes longer than
/// traffic may go on without a word, and selective acknowledgements come all the while.
struct Feedback {
    heard: u64,
    since: Instant,
    /// When the sockets are asked again: each asking takes their locks, which the workers want too.
    due: Instant,
}

impl Feedback {
    fn check(&mut self, flows: &[Box<dyn Flow>]) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.due {
            return Ok(());
        }
        // Half a tick: who looks once a tick asks at each look, so that feedback is missed no later than it was.
        self.due = now + TICK / 2;
        // A flow that has ended says nothing; that it has is seen elsewhere.
        let progress: Vec<_> = flows.iter().filter_map(|flow| flow.progress().ok()).collect();
        let heard = progress.iter().map(|p| p.acked.0 + p.delivered).sum();
        if heard != self.heard || !progress.iter().any(|p| p.outstanding) {
            (self.heard, self.since) = (heard, now);
        }
        let waited = now - self.since;
        if waited > FEEDBACK { Err(Error::FeedbackLost { waited: waited.into() }) } else { Ok(()) }
    }
}
