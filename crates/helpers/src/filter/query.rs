//! The state that the threads of one host share: whether the query continues, and its results.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::filter::Error;

/// The time that a host with a broken stream waits for the first host to report the cause. If one host fails, other
/// hosts end too and break more streams. Only the first host receives the errors of all hosts.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// The counts of one host, for the outcome of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HostReport {
    /// Bytes of frames that the host sent over sockets.
    pub(crate) network: u64,
    /// The number of buffers that the host's filters sent.
    pub(crate) buffers: u64,
    /// The largest payload that the host had sent and that was not used up yet, in bytes.
    pub(crate) peak: u64,
}

impl HostReport {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.network, self.buffers, self.peak].map(u64::to_le_bytes).concat()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let [network, buffers, peak] = words else { return None };
        let of = |word: &[u8; 8]| u64::from_le_bytes(*word);
        rest.is_empty().then(|| HostReport { network: of(network), buffers: of(buffers), peak: of(peak) })
    }
}

#[derive(Debug, Default)]
pub(crate) struct QueryState {
    /// The first reason why the query ended.
    pub(crate) failure: Option<Error>,
    /// The error of a broken stream and its time. It may be the consequence of another failure.
    suspect: Option<(Instant, Error)>,
    /// True once the query has ended without a failure. Later errors are then not recorded.
    pub(crate) is_over: bool,
    /// Number of other hosts that have joined all others.
    pub(crate) ready: usize,
    /// The number of this host's filters that still run.
    pub(crate) running: usize,
    /// Control connections that are still read.
    pub(crate) listening: usize,
    /// The reports that other hosts have sent.
    pub(crate) reports: Vec<HostReport>,
    /// The start time of each unit.
    started: Vec<Instant>,
    /// Duration of each finished unit, with its picture's hash.
    pub(crate) finished: Vec<(Duration, blake3::Hash)>,
    /// Picture of the unit that finished last.
    pub(crate) picture: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Query {
    state: Mutex<QueryState>,
    changed: Condvar,
    /// The sockets to shut down when the query ends, so that no thread stays blocked in a read or a write.
    sockets: Vec<TcpStream>,
    network: AtomicU64,
    buffers: AtomicU64,
    in_flight: AtomicU64,
    peak: AtomicU64,
}

impl Query {
    pub(crate) fn new(sockets: Vec<TcpStream>, running: usize) -> Self {
        Query {
            state: Mutex::new(QueryState { running, ..QueryState::default() }),
            changed: Condvar::new(),
            sockets,
            network: AtomicU64::new(0),
            buffers: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        }
    }

    /// Changes the state, and wakes the threads that wait for a change.
    pub(crate) fn note(&self, change: impl FnOnce(&mut QueryState)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    /// Ends the query with `error`, if it is the first one. Later errors are consequences and are ignored.
    pub(crate) fn fail(&self, error: Error) {
        self.note(|state| {
            if state.failure.is_none() && !state.is_over && !matches!(error, Error::Stopped) {
                state.failure = Some(error);
            }
        });
        self.shut();
    }

    /// Ends the query without an error.
    pub(crate) fn end(&self) {
        self.note(|state| state.is_over = true);
        self.shut();
    }

    fn shut(&self) {
        for socket in &self.sockets {
            // A socket that the peer has closed is already shut down.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Records a broken stream. The first host may report a better reason within [`GRACE`].
    pub(crate) fn suspect(&self, error: Error) {
        self.note(|state| {
            state.suspect.get_or_insert_with(|| (Instant::now(), error));
        });
    }

    /// Checks that the query continues.
    ///
    /// # Errors
    /// Returns [`Error::Stopped`] if the query has ended. The reason is in the state.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut state = self.state.lock();
        // When no filter runs any more, streams break because their other ends have received the goodbye earlier.
        let is_at_work = state.running > 0;
        let due = state.suspect.take_if(|(since, _)| is_at_work && since.elapsed() >= GRACE);
        drop(state);
        due.into_iter().for_each(|(_, why)| self.fail(why));
        let state = self.state.lock();
        if state.is_over || state.failure.is_some() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Records that a stream broke with `error`, waits until the query has ended, and returns [`Error::Stopped`].
    pub(crate) fn verdict(&self, error: Error) -> Error {
        self.suspect(error);
        while self.check().is_ok() {
            self.wait(Duration::from_millis(50), |_| false);
        }
        Error::Stopped
    }

    /// Waits until `done` returns true or the query ends, for at most `time`. Returns true if `done` returns true and
    /// the query has not failed.
    pub(crate) fn wait(&self, time: Duration, done: impl Fn(&QueryState) -> bool) -> bool {
        let goes_on = |state: &mut QueryState| state.failure.is_none() && !state.is_over && !done(state);
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, goes_on, time);
        state.failure.is_none() && done(&state)
    }

    /// Waits until `done` returns true, for at most `time`. It waits even after the end of the query.
    pub(crate) fn settle(&self, time: Duration, done: impl Fn(&QueryState) -> bool) {
        self.changed.wait_while_for(&mut self.state.lock(), |state| !done(state), time);
    }

    /// Waits until `done` returns true. It has no time limit, because `HostRuntime::watch` ends every query in time.
    ///
    /// # Errors
    /// Returns [`Error::Stopped`] if the query ends first.
    pub(crate) fn until(&self, done: impl Fn(&QueryState) -> bool) -> Result<(), Error> {
        while !self.wait(Duration::from_secs(1), &done) {
            self.check()?;
        }
        Ok(())
    }

    /// Waits until unit `unit` may start and records its start time. At most `ahead` units may be in the pipeline,
    /// and all `others` hosts must be ready.
    pub(crate) fn start(&self, unit: u32, ahead: u32, others: usize) -> Result<(), Error> {
        let may = |state: &QueryState| {
            state.ready == others && u64::from(unit) < state.finished.len() as u64 + u64::from(ahead)
        };
        self.until(may)?;
        self.note(|state| state.started.push(Instant::now()));
        Ok(())
    }

    /// Records that the last filter has finished the next unit, with its picture.
    pub(crate) fn finish(&self, picture: Vec<u8>) {
        self.note(|state| {
            let started = state.started.get(state.finished.len()).copied();
            let time = started.map(|started| started.elapsed()).unwrap_or_default();
            state.finished.push((time, blake3::hash(&picture)));
            state.picture = picture;
        });
    }

    /// Counts a buffer that was sent: `bytes` of payload, and `network` bytes of frames on a socket.
    pub(crate) fn sent(&self, bytes: u64, network: u64) {
        self.network.fetch_add(network, Ordering::Relaxed);
        self.buffers.fetch_add(1, Ordering::Relaxed);
        let now = self.in_flight.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
    }

    /// Counts `bytes` of payload as used up by their consumer.
    pub(crate) fn used(&self, bytes: u64) {
        self.in_flight.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> HostReport {
        HostReport {
            network: self.network.load(Ordering::Relaxed),
            buffers: self.buffers.load(Ordering::Relaxed),
            peak: self.peak.load(Ordering::Relaxed),
        }
    }
}
