//! The runtime of one host of a group: its filters as threads, its ends of the streams, and its control connections.

use std::net::{Shutdown, TcpStream};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::filter::application::{Filter, FilterApplication, FilterCopy};
use crate::filter::error::PeerHost;
use crate::filter::frame::{self, FrameKind, FrameReadError, SocketFrame};
use crate::filter::join::{JoinedConnections, join};
use crate::filter::plan::{ConnectionPurpose, FilterJob};
use crate::filter::query::{HostReport, Query};
use crate::filter::stream::{receive, receive_credits};
use crate::filter::wires::{HostWiring, clone};
use crate::filter::{Bytes, Error, FilterInput, FilterOutput};

/// Interval of heartbeats.
const BEAT: Duration = Duration::from_secs(1);

/// The time without a frame after which the host at the other end of a control connection counts as gone.
const SILENCE: Duration = Duration::from_secs(15);

/// The time limit for the other ends to close their control connections after the query.
const LINGER: Duration = Duration::from_secs(3);

/// Longest text of an error that a host sends, in bytes.
const TEXT: usize = 1024;

/// The outcome of a query on one host.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryOutcome {
    /// The duration of each unit in seconds, from its start until the last filter is done, on the first host's clock.
    /// Empty on other hosts.
    pub seconds: Vec<f64>,
    /// The bytes of frames that the hosts sent to each other. On hosts other than the first: only those that this
    /// host sent.
    pub network: Bytes,
    /// The number of buffers that the filters sent. On hosts other than the first: only those of this host's filters.
    pub buffers: u64,
    /// An upper bound of the largest payload in flight: the sum of each host's own maximum. On hosts other than the
    /// first: only this host's own maximum.
    pub peak: Bytes,
    /// The limit of the payload in flight, from [`Placement::bound`](crate::filter::Placement::bound).
    pub bound: Bytes,
    /// The BLAKE3 hash over the hashes of all pictures, in order. Empty on hosts other than the first.
    pub hash: String,
    /// True if every picture equals the plain computation; `None` if they were not compared.
    pub is_equal: Option<bool>,
    /// The last unit's picture, one byte of grey per pixel. Empty on hosts other than the first.
    pub picture: Vec<u8>,
}

/// Runs this host's part of a query until the query ends. All hosts must run the same job. If `verify` is true, the
/// first host compares every picture with the plain computation.
///
/// # Errors
/// Returns an error if a host is missing or has gone, if a filter fails, or if the time limit expires. Every host
/// then returns an error.
pub fn run_job(
    application: &dyn FilterApplication,
    job: &FilterJob,
    verify: bool,
) -> Result<QueryOutcome, Error> {
    job.check()?;
    // Filters create their data before the hosts join, so that no unit waits for it.
    let filters = own_filters(application, job);
    let mut connections = join(job)?;
    let controls = controls(&mut connections)?;
    let sockets = connections.values().map(|(stream, _)| clone(stream)).collect::<Result<_, _>>()?;
    for (stream, _) in connections.values() {
        let set = stream.set_read_timeout(None).and_then(|()| stream.set_write_timeout(Some(job.limit)));
        set.and_then(|()| stream.set_nodelay(true)).map_err(|error| Error::io("set up a stream", error))?;
    }
    let query = Query::new(sockets, filters.len());
    let host = HostRuntime { application, job, query: &query, controls: &controls };
    thread::scope(|scope| host.serve(scope, filters, connections))?;
    host.outcome(verify)
}

type PlacedFilter<'a> = (FilterCopy, Box<dyn Filter + 'a>);

fn own_filters<'a>(application: &'a dyn FilterApplication, job: &FilterJob) -> Vec<PlacedFilter<'a>> {
    let all = job.placement.filters.iter().enumerate().flat_map(|(stage, placed)| {
        let copies = placed.hosts.len();
        placed.hosts.iter().enumerate().map(move |(copy, host)| (*host, FilterCopy { stage, copy, copies }))
    });
    all.filter(|(host, _)| *host == job.host).map(|(_, place)| (place, application.filter(place))).collect()
}

/// A control connection, between the first host and another one.
#[derive(Debug)]
struct ControlConnection {
    host: usize,
    reads: TcpStream,
    writes: Mutex<TcpStream>,
}

impl ControlConnection {
    fn write_frame(&self, kind: FrameKind, body: &[u8]) -> Result<(), std::io::Error> {
        frame::write(&mut *self.writes.lock(), kind, body)
    }
}

/// Removes the control connections from `connections` and returns them.
fn controls(connections: &mut JoinedConnections) -> Result<Vec<ControlConnection>, Error> {
    let taken = connections.extract_if(|purpose, _| matches!(purpose, ConnectionPurpose::Control(_)));
    taken
        .map(|(_, (reads, host))| {
            let set = reads.set_read_timeout(Some(SILENCE));
            set.and_then(|()| reads.set_write_timeout(Some(SILENCE)))
                .and_then(|()| reads.set_nodelay(true))
                .map_err(|error| Error::io("set up a control connection", error))?;
            Ok(ControlConnection { host, writes: Mutex::new(clone(&reads)?), reads })
        })
        .collect()
}

struct HostRuntime<'a> {
    application: &'a dyn FilterApplication,
    job: &'a FilterJob,
    query: &'a Query,
    controls: &'a [ControlConnection],
}

impl<'a> HostRuntime<'a> {
    /// Starts all threads, waits for the end of the query, and records its failure if any.
    fn serve<'s>(
        &'a self,
        scope: &'s Scope<'s, '_>,
        filters: Vec<PlacedFilter<'a>>,
        connections: JoinedConnections,
    ) -> Result<(), Error>
    where
        'a: 's,
    {
        self.query.note(|state| state.listening = self.controls.len());
        for control in self.controls {
            scope.spawn(|| {
                self.listen(control);
                self.query.note(|state| state.listening -= 1);
            });
        }
        scope.spawn(|| self.watch());
        let started = self.start(scope, filters, connections);
        let ended = started.and_then(|()| if self.job.host == 0 { self.lead() } else { self.follow() });
        if let Err(error) = ended {
            self.query.fail(error);
        }
        self.leave();
        Ok(())
    }

    /// Runs the first host's part: waits for its own filters and the reports of all other hosts, and ends the query.
    fn lead(&self) -> Result<(), Error> {
        let others = self.controls.len();
        self.query.until(|state| state.running == 0 && state.reports.len() == others)?;
        // From here on, a closed connection is no error. The other hosts receive the goodbye before the streams
        // close.
        self.query.note(|state| state.is_over = true);
        self.controls.iter().for_each(|control| drop(control.write_frame(FrameKind::Goodbye, &[])));
        self.query.end();
        Ok(())
    }

    /// Runs the part of another host: reports to the first host when its filters are done, and waits for the end.
    fn follow(&self) -> Result<(), Error> {
        let first = &self.controls[0];
        let lost = |error| Error::lost(self.job.peer(first.host), error);
        first.write_frame(FrameKind::Ready, &[]).map_err(lost)?;
        self.query.until(|state| state.running == 0)?;
        first.write_frame(FrameKind::Done, &self.query.report().to_bytes()).map_err(lost)?;
        // The goodbye ends this wait.
        self.query.until(|_| false).or(Ok(()))
    }

    /// Sends the reason to the other hosts if the query has failed, and closes the control connections.
    fn leave(&self) {
        let mut text = None;
        self.query.note(|state| text = state.failure.as_ref().map(ToString::to_string));
        for control in self.controls {
            if let Some(text) = &text {
                drop(control.write_frame(FrameKind::Failed, &text.as_bytes()[..text.len().min(TEXT)]));
            }
            drop(control.reads.shutdown(Shutdown::Write));
        }
        // Data that a peer has not read yet is lost if this end closes with unread data (RFC 1122, section 4.2.2.13).
        self.query.settle(LINGER, |state| state.listening == 0);
        self.controls.iter().for_each(|control| drop(control.reads.shutdown(Shutdown::Both)));
    }

    /// Sends heartbeats, and fails the query at its time limit.
    fn watch(&self) {
        let until = Instant::now() + self.job.limit;
        loop {
            self.query.wait(BEAT, |_| false);
            if self.query.check().is_err() {
                return;
            }
            // Errors are ignored here, because `listen` detects a host that has gone.
            self.controls.iter().for_each(|control| drop(control.write_frame(FrameKind::Beat, &[])));
            if Instant::now() > until {
                self.query.fail(Error::Late(self.job.limit));
            }
        }
    }

    /// Reads the frames of the host at the other end of a control connection.
    fn listen(&self, control: &ControlConnection) {
        let peer = self.job.peer(control.host);
        let error = loop {
            match frame::read(&mut &control.reads, TEXT) {
                Ok(frame) => match self.handle_frame(peer, frame) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => break error,
                },
                Err(FrameReadError::Io(error)) => break Error::lost(peer, silence(error)),
                Err(wrong) => break Error::protocol(peer, wrong),
            }
        };
        self.query.fail(error);
    }

    /// Handles a frame of a control connection. Returns true if more frames may follow.
    fn handle_frame(&self, peer: PeerHost, SocketFrame { kind, body }: SocketFrame) -> Result<bool, Error> {
        let is_first = self.job.host == 0;
        match kind {
            FrameKind::Beat => {}
            FrameKind::Ready if is_first => self.query.note(|state| state.ready += 1),
            FrameKind::Done if is_first => {
                let why = || Error::protocol(peer, "a report of another length");
                let report = HostReport::from_bytes(&body).ok_or_else(why)?;
                self.query.note(|state| state.reports.push(report));
            }
            FrameKind::Goodbye if !is_first => {
                self.query.end();
                return Ok(false);
            }
            FrameKind::Failed => {
                let why = landspeed_record::units::EscapedText::from(&*String::from_utf8_lossy(&body));
                return Err(Error::PeerFailed { peer, why: why.into() });
            }
            other => return Err(Error::protocol(peer, format!("{other:?} on a control connection"))),
        }
        Ok(true)
    }

    fn outcome(self, verify: bool) -> Result<QueryOutcome, Error> {
        let own = self.query.report();
        let mut outcome = QueryOutcome {
            seconds: Vec::new(),
            network: Bytes(own.network),
            buffers: own.buffers,
            peak: Bytes(own.peak),
            bound: self.job.placement.bound(self.application.stages()),
            hash: String::new(),
            is_equal: None,
            picture: Vec::new(),
        };
        let mut ended = Ok(());
        let mut finished = Vec::new();
        self.query.note(|state| {
            ended = state.failure.take().map_or(Ok(()), Err);
            for report in &state.reports {
                outcome.network.0 += report.network;
                outcome.buffers += report.buffers;
                outcome.peak.0 += report.peak;
            }
            finished = std::mem::take(&mut state.finished);
            outcome.picture = std::mem::take(&mut state.picture);
        });
        ended?;
        if self.job.host == 0 {
            outcome.seconds = finished.iter().map(|(time, _)| time.as_secs_f64()).collect();
            let mut all = blake3::Hasher::new();
            for (_, hash) in &finished {
                all.update(hash.as_bytes());
            }
            outcome.hash = all.finalize().to_string();
            let is_plain =
                |(unit, (_, hash)): (u32, &(_, _))| *hash == blake3::hash(&self.application.plain(unit));
            outcome.is_equal = verify.then(|| (0..).zip(&finished).all(is_plain));
        }
        Ok(outcome)
    }

    /// Connects the filters by streams, and starts a thread for each filter.
    fn start<'s>(
        &'a self,
        scope: &'s Scope<'s, '_>,
        filters: Vec<PlacedFilter<'a>>,
        connections: JoinedConnections,
    ) -> Result<(), Error>
    where
        'a: 's,
    {
        let mut wiring = HostWiring::new(self.job);
        for (purpose, (stream, other)) in connections {
            let ConnectionPurpose::Stream(link) = purpose else { continue };
            let (n, end) = (usize::from(link.stream), (clone(&stream)?, self.job.peer(other)));
            let (producer, consumer) = (usize::from(link.producer), usize::from(link.consumer));
            if self.job.ends(link).0 == self.job.host {
                let back = (wiring.back(n, producer), consumer);
                scope.spawn(move || receive_credits(self.query, end, back));
            } else {
                let inbox = (wiring.inbox(n, consumer), producer);
                let largest = FilterJob::largest(self.application.stages(), n);
                scope.spawn(move || receive(self.query, end, largest, inbox));
            }
            wiring.add((n, producer, consumer), stream, self.job.peer(other));
        }
        let mut ends = Vec::new();
        let stages = self.application.stages();
        for (place, filter) in filters {
            let input = wiring.input(self.query, place.stage, place.copy)?;
            ends.push((input, wiring.output(self.query, stages, (place.stage + 1, place.copy))?, filter));
        }
        if self.job.host == 0 {
            let output = wiring.output(self.query, stages, (0, 0))?;
            scope.spawn(move || self.begin(output));
        }
        for (input, output, filter) in ends {
            scope.spawn(move || self.work(input, output, filter));
        }
        Ok(())
    }

    /// Starts each unit with an end-of-work marker, which is the only input of the first filter.
    fn begin(&self, mut output: FilterOutput<'_>) {
        let others = self.controls.len();
        let begun = (0..self.job.units).try_for_each(|unit| {
            self.query.start(unit, self.job.ahead, others)?;
            output.end(unit)
        });
        begun.unwrap_or_else(|error| self.query.fail(error));
    }

    /// Runs a filter for all units.
    fn work(
        &self,
        mut input: FilterInput<'_>,
        mut output: FilterOutput<'_>,
        mut filter: Box<dyn Filter + '_>,
    ) {
        let _guard = PanicGuard(self.query);
        let worked = (0..self.job.units).try_for_each(|unit| {
            filter.work(unit, &mut input, &mut output)?;
            input.turn()?;
            output.end(unit)
        });
        match worked {
            Ok(()) => self.query.note(|state| state.running -= 1),
            Err(error) => self.query.fail(error),
        }
    }
}

/// A guard that fails the query if its thread panics, so that the other hosts do not wait for the filter of that
/// thread.
struct PanicGuard<'a>(&'a Query);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(Error::Panicked);
        }
    }
}

fn silence(error: std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => format!("it said nothing for {SILENCE:?}"),
        std::io::ErrorKind::UnexpectedEof => "its connection closed".to_owned(),
        _ => error.to_string(),
    }
}
