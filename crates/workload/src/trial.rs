//! The coordinator of one end of a trial: it waits, watches and measures while the workers run.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    DatagramCounts, Details, Observations, PathStall, Silences, TrialProgress, TrialSpec,
};
use landspeed_transport::{CancelFlag, DatagramTotals, Flow};

use crate::check::MOST_SAMPLES;
use crate::feedback::FeedbackMonitor;
use crate::signal::{SignalFlow, TrialSignal};
use crate::silence::SilenceDetector;
use crate::workers::Workers;
use crate::{Error, WatchTargets, WindowWatch};

/// The shortest window without data that shows a broken path. In a shorter one, a process may only have waited for its
/// core.
const TELLING: Nanos = Nanos::millis(500);
/// The longest time that the coordinator sleeps between two checks.
const TICK: Duration = Duration::from_millis(50);
/// Interval at which the coordinator checks for the first data.
const FIRST_TICK: Duration = Duration::from_micros(500);
/// After a worker has failed, the time limit of the wait for the end of the signal flow, which shows that the peer
/// has ended. It is longer than the peer's `GRACE`.
const LEAVING: Duration = Duration::from_millis(500);

/// One end of a trial, as its coordinator sees it.
pub(crate) struct TrialCoordinator<'c, 'p> {
    pub(crate) workers: &'c Workers<'c>,
    pub(crate) spec: &'p TrialSpec,
    parts: TrialParts<'p>,
    clock: TrialClock,
    feedback: FeedbackMonitor,
    silence: SilenceDetector,
    peer_closed: bool,
    /// Number of tasks that receive payload, which are the first ones; `None` if silences and progress are not
    /// recorded.
    receiving: Option<usize>,
    reporter: Option<ProgressReporter>,
}

/// The progress reports of an open window. Their sums start when the window opens.
struct ProgressReporter {
    opened: Instant,
    next: Instant,
    /// Bytes received before the window opened.
    before: u64,
}

/// Times of past and future events of a trial.
#[derive(Default)]
struct TrialClock {
    first: Option<Instant>,
    next_sample: Option<Instant>,
    /// The instant from which the times of samples count: the first data, or the window's opening if none had arrived
    /// by then.
    origin: Option<Instant>,
    /// Number of samples of all flows so far.
    samples: u64,
}

pub(crate) struct WindowStart {
    at: Instant,
    counts: Vec<u64>,
    datagrams: Vec<DatagramTotals>,
}

pub(crate) struct WindowMeasurement {
    /// Length of the window by this end's clock.
    pub(crate) window: Nanos,
    /// The count of each task within the window, in the order of the tasks; mostly bytes.
    pub(crate) counts: Vec<u64>,
    /// The datagram counts of each flow within the window; empty if the transport has no datagrams.
    pub(crate) datagrams: Vec<DatagramCounts>,
    /// Number of connections to the port that did not prove the key.
    pub(crate) strangers: u64,
    /// The details that the flows' transport adds to an outcome.
    pub(crate) details: Details,
    /// The observations that the watch returned when the window closed.
    pub(crate) observed: Observations,
    /// The pauses without payload; `None` at an end that receives none.
    pub(crate) silences: Option<Silences>,
    /// The stall of the path that ended the run early, if one did.
    pub(crate) broken: Option<PathStall>,
}

/// The parts of one end of a trial, without the workers.
pub(crate) struct TrialParts<'a> {
    pub(crate) spec: &'a TrialSpec,
    pub(crate) flows: &'a [Box<dyn Flow>],
    pub(crate) strangers: u64,
    pub(crate) signals: &'a mut SignalFlow,
    pub(crate) watch: &'a mut dyn WindowWatch,
    pub(crate) cancel: &'a CancelFlag,
}

impl<'a> TrialParts<'a> {
    /// Returns the coordinator of a trial that these workers run.
    pub(crate) fn trial<'c>(self, workers: &'c Workers<'c>) -> TrialCoordinator<'c, 'a> {
        let feedback = FeedbackMonitor::new(self.spec.patience().into());
        TrialCoordinator {
            workers,
            spec: self.spec,
            parts: self,
            clock: TrialClock::default(),
            feedback,
            silence: SilenceDetector::new(),
            peer_closed: false,
            receiving: None,
            reporter: None,
        }
    }
}

impl TrialCoordinator<'_, '_> {
    /// Declares that the first `receiving` tasks receive payload. Their silences are then recorded, and their
    /// progress is reported if the specification requests it.
    pub(crate) fn telling(self, receiving: usize) -> Self {
        TrialCoordinator { receiving: Some(receiving), ..self }
    }

    /// Checks for cancellation, failed workers and a broken path, and then waits for a signal of the peer, for at most
    /// `at_most` and at most [`TICK`]. Returns the signal, if one arrived.
    pub(crate) fn tick(&mut self, at_most: Duration) -> Result<Option<TrialSignal>, Error> {
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
        self.listen(now)?;
        let until_sample = self.sample_if_due(now);
        self.tell_if_due(now);
        let said = self.parts.signals.receive(at_most.min(TICK).min(until_sample))?;
        self.peer_closed |= said == Some(TrialSignal::Closed);
        Ok(said)
    }

    /// At a receiving end, records if payload has arrived. Returns an error if none has arrived for as long as
    /// [`TrialCoordinator::patience`].
    fn listen(&mut self, now: Instant) -> Result<(), Error> {
        if self.receiving.is_none_or(|tasks| tasks == 0) || !self.started() {
            return Ok(());
        }
        self.silence.look(now, self.received());
        let most = Duration::from(self.spec.patience());
        let waited_ns = Nanos::from(self.silence.lasts());
        if self.silence.lasts() < most {
            return Ok(());
        }
        Err(Error::PathBroke(PathStall { waited_ns, ..PathStall::default() }))
    }

    pub(crate) fn started(&self) -> bool {
        self.clock.first.is_some()
    }

    pub(crate) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Returns why a worker failed: the peer has gone, or the worker failed itself. A peer that ends closes its data
    /// flows first, and its signal flow when its workers have left.
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

    /// Reports progress if a report is due. A report may be a tick late; its time is the one at which its bytes were
    /// counted.
    fn tell_if_due(&mut self, now: Instant) {
        if self.reporter.as_ref().is_none_or(|reporter| reporter.next > now) {
            return;
        }
        let received = self.received();
        let Some(reporter) = &mut self.reporter else { return };
        reporter.next += Duration::from(self.spec.progress_ns);
        let (at_ns, received_bytes) = (Nanos::from(now - reporter.opened), Bytes(received - reporter.before));
        self.parts.watch.progress(TrialProgress { at_ns, received_bytes, tcp: None });
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
        let since = self.clock.origin.map_or(Duration::ZERO, |origin| now.saturating_duration_since(origin));
        self.parts.watch.sample(since.into());
        // A late coordinator skips samples instead of crowding them.
        let interval = Duration::from(self.spec.interval_ns);
        self.clock.next_sample = Some((due + interval).max(now));
        self.clock.samples += self.sampled();
        if self.is_full() {
            self.clock.next_sample = None;
        }
        interval
    }

    /// Returns the number of samples that one interval adds: one for each flow.
    fn sampled(&self) -> u64 {
        self.parts.flows.len().max(1) as u64
    }

    /// Returns true if the samples of another interval would exceed [`MOST_SAMPLES`]. The check before a run cannot
    /// exclude that, because some workloads take as long as they need.
    fn is_full(&self) -> bool {
        self.clock.samples + self.sampled() > MOST_SAMPLES
    }

    /// Waits for the first data of any flow. Returns [`Error::PeerGone`] if the peer closed its window before any arrived.
    pub(crate) fn await_first(&mut self) -> Result<Instant, Error> {
        const PHASE: &str = "while the first data was awaited";
        let first = self.first()?;
        let none = if self.peer_closed {
            Error::PeerGone { phase: PHASE }
        } else {
            Error::silent(PHASE, self.patience())
        };
        first.ok_or(none)
    }

    /// Waits for the first data of any flow. Returns `None` if none arrived before the peer closed its window, or
    /// within [`TrialCoordinator::patience`].
    pub(crate) fn first(&mut self) -> Result<Option<Instant>, Error> {
        let deadline = Instant::now() + self.patience();
        while !self.started() && !self.peer_closed && Instant::now() <= deadline {
            self.tick(FIRST_TICK)?;
        }
        Ok(self.clock.first)
    }

    /// Returns how long the coordinator waits for a silent path or peer.
    pub(crate) fn patience(&self) -> Duration {
        self.spec.patience().into()
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

    pub(crate) fn say(&self, signal: TrialSignal) -> Result<(), Error> {
        self.parts.signals.send(signal)
    }

    /// Waits for a signal that `pick` accepts, for as long as [`TrialCoordinator::patience`], and returns its result.
    /// Other signals belong to an earlier part and are dropped.
    pub(crate) fn expect<T>(
        &mut self,
        phase: &'static str,
        pick: impl Fn(TrialSignal) -> Option<T>,
    ) -> Result<T, Error> {
        self.expect_within(self.patience(), phase, pick)
    }

    /// Waits as [`TrialCoordinator::expect`] does, but for at most `longest`.
    pub(crate) fn expect_within<T>(
        &mut self,
        longest: Duration,
        phase: &'static str,
        pick: impl Fn(TrialSignal) -> Option<T>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + longest;
        while Instant::now() < deadline {
            if let Some(found) = self.tick(TICK)?.and_then(&pick) {
                return Ok(found);
            }
        }
        Err(Error::silent(phase, longest))
    }

    pub(crate) fn open(&mut self) -> WindowStart {
        let flows = self.parts.flows.iter();
        let sockets: Vec<(u32, BorrowedFd<'_>)> =
            flows.flat_map(|flow| flow.sockets().into_iter().map(|socket| (flow.number(), socket))).collect();
        let programs = self.spec.program.is_some();
        self.parts.watch.open(&WatchTargets { threads: &self.workers.threads, sockets: &sockets, programs });
        let at = Instant::now();
        let (counts, datagrams) = (self.counts(), self.datagrams());
        self.silence.begin(at, self.received());
        if self.spec.progress_ns > Nanos(0) && self.receiving.is_some() {
            let next = at + Duration::from(self.spec.progress_ns);
            self.reporter = Some(ProgressReporter { opened: at, next, before: self.received() });
        }
        if self.spec.interval_ns > Nanos(0) {
            self.clock.next_sample = Some(at + Duration::from(self.spec.interval_ns));
            self.clock.origin = self.clock.first.or(Some(at));
        }
        WindowStart { at, counts, datagrams }
    }

    /// Opens the window now, and includes everything that was counted before. It is for workloads that measure a
    /// whole run without a warm-up.
    pub(crate) fn open_from_start(&mut self) -> WindowStart {
        let window_start = self.open();
        WindowStart { counts: vec![0; window_start.counts.len()], ..window_start }
    }

    /// Opens the window with `since` as its start, for a run that ended before its window opened.
    pub(crate) fn open_late(&mut self, since: Instant) -> WindowStart {
        let window_start = self.open_from_start();
        self.silence.begin(since, 0);
        WindowStart {
            at: since,
            datagrams: vec![DatagramTotals::default(); window_start.datagrams.len()],
            ..window_start
        }
    }

    /// Closes the window now, and waits until the peer's is closed too. Until then each end keeps sending and
    /// receiving, so that both windows are complete. If the path breaks after the window, the figures are kept.
    pub(crate) fn close(&mut self, window_start: &WindowStart) -> Result<WindowMeasurement, Error> {
        self.close_then(window_start, |_| Ok(()))
    }

    /// Closes the window now, runs `then`, and only after that signals the peer that this end is done and waits for
    /// the peer.
    pub(crate) fn close_then(
        &mut self,
        window_start: &WindowStart,
        then: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<WindowMeasurement, Error> {
        let mut measured = self.measured(window_start);
        match then(self).and_then(|()| self.part()) {
            Err(Error::PathBroke(broken)) => measured.broken = Some(broken),
            parted => parted?,
        }
        Ok(measured)
    }

    /// Closes the window early, keeping what was measured until now.
    pub(crate) fn break_off(&mut self, window_start: &WindowStart, broken: PathStall) -> WindowMeasurement {
        let measured = self.measured(window_start);
        // The peer receives this signal if the path is broken only in the other direction.
        let _ = self.say(TrialSignal::Closed);
        WindowMeasurement { broken: Some(broken), ..measured }
    }

    fn measured(&mut self, window_start: &WindowStart) -> WindowMeasurement {
        let now = Instant::now();
        let window = Nanos::from(now - window_start.at);
        let counts: Vec<u64> =
            self.counts().iter().zip(&window_start.counts).map(|(now, then)| now - then).collect();
        let datagrams =
            self.datagrams().iter().zip(&window_start.datagrams).map(|(now, then)| now.since(then)).collect();
        let mut details = Details::default();
        self.parts.flows.iter().for_each(|flow| flow.add_details(&mut details));
        let mut observed = self.parts.watch.close();
        if self.is_full() {
            observed.unseen.push(format!("samples: {MOST_SAMPLES} of all flows came before the end"));
        }
        self.clock.next_sample = None;
        self.reporter = None;
        let receiving = self.receiving.unwrap_or_default();
        let came: u64 = counts[..receiving].iter().sum();
        self.silence.look(now, self.received());
        let silences = (receiving > 0).then(|| self.silence.end().beyond(Bytes(came), window));
        let nothing = PathStall { waited_ns: window, ..PathStall::default() };
        let broken = (receiving > 0 && came == 0).then_some(nothing).filter(|_| window >= TELLING);
        let strangers = self.parts.strangers;
        WindowMeasurement { window, counts, datagrams, strangers, details, observed, silences, broken }
    }

    fn counts(&self) -> Vec<u64> {
        self.workers.tallies.iter().map(|tally| tally.get()).collect()
    }

    pub(crate) fn datagrams(&self) -> Vec<DatagramTotals> {
        self.parts.flows.iter().filter_map(|flow| flow.datagrams()).collect()
    }

    /// Signals to the peer that this end is done, and waits for the peer's signal. A peer that has closed all its flows
    /// has already closed its window, so its signal is not needed. The wait has a time limit, because the path may
    /// delay the signal for a long time.
    fn part(&mut self) -> Result<(), Error> {
        if self.say(TrialSignal::Closed).is_err() {
            return Ok(());
        }
        // Data that arrives from here on is not measured. The time of the current silence, if any, counts towards the
        // time limit.
        let receives = self.receiving.take().is_some_and(|tasks| tasks > 0);
        let since = if receives { self.silence.since() } else { Instant::now() };
        let deadline = since + self.patience();
        while !self.peer_closed && Instant::now() < deadline {
            match self.tick(TICK) {
                Ok(_) => {}
                Err(Error::PeerGone { .. } | Error::Worker) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
