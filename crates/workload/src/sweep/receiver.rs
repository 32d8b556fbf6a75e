//! The receiving end of a sweep, which holds the watch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::{EndpointOutcome, SweepPoint};
use landspeed_transport::Flow;
use landspeed_units::{Bytes, Nanos};

use super::Part;
use crate::Error;
use crate::buffer::Buffer;
use crate::crew::{self, Task};
use crate::end::{outcome, sum};
use crate::pace::{Measured, Pace, Parts};
use crate::signal::Signal;
use crate::stream::{Left, why};

/// The most that one size may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How often the coordinator looks whether a part has come.
const LOOK: Duration = Duration::from_millis(1);

/// Marks on the byte count: the worker notes the time when its count leaves `start` and when it
/// reaches `end`. The coordinator moves them while nothing is under way.
struct Marks {
    origin: Instant,
    start: AtomicU64,
    end: AtomicU64,
    /// Nanoseconds since `origin`, zero while not reached.
    first: AtomicU64,
    last: AtomicU64,
}

impl Marks {
    fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Marks { origin: Instant::now(), start: zero(), end: zero(), first: zero(), last: zero() }
    }

    fn now(&self) -> u64 {
        Nanos::from(self.origin.elapsed()).0.max(1)
    }

    fn set(&self, from: u64, total: Bytes) {
        self.first.store(0, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
        self.start.store(from, Ordering::Relaxed);
        self.end.store(from + total.0, Ordering::Release);
    }

    /// Called by the worker when its count went from `before` to `after`.
    fn passed(&self, before: u64, after: u64) {
        if before == self.start.load(Ordering::Acquire) {
            self.first.store(self.now(), Ordering::Relaxed);
        }
        if after == self.end.load(Ordering::Acquire) {
            self.last.store(self.now(), Ordering::Release);
        }
    }
}

pub(super) fn run(parts: Parts<'_>) -> Result<EndpointOutcome, Error> {
    let (flows, spec) = (parts.flows, parts.spec);
    let plan = super::parts(spec);
    let marks = Marks::new();
    let task = task(flows[0].as_ref(), spec.flow.read_bytes.0 as usize, &marks);
    let ((mut measured, sweep), left) =
        crew::run(&spec.cores, flows, vec![task], |crew| lead(parts.pace(crew), &plan, &marks))?;
    let received = sum(&measured.counts);
    Ok(EndpointOutcome {
        received_bytes: received,
        flow_bytes: vec![received],
        sweep,
        zerocopy_mapped_bytes: left.iter().map(|l| l.mapped).sum(),
        ..outcome(&mut measured, flows)
    })
}

fn lead(mut pace: Pace<'_, '_>, plan: &[Part], marks: &Marks) -> Result<(Measured, Vec<SweepPoint>), Error> {
    let mut mark = None;
    let mut points = Vec::with_capacity(plan.len());
    for (number, part) in plan.iter().enumerate() {
        marks.set(count(&pace), part.total);
        if number == 0 {
            pace.crew.start();
        }
        if !part.warm_up && mark.is_none() {
            mark = Some(pace.open());
        }
        pace.say(Signal::Ready(number as u64))?;
        let limit = if part.warm_up { pace.spec.warm_up_ns.into() } else { LIMIT };
        let point = take(&mut pace, part, marks, limit)?;
        if !part.warm_up {
            points.push(point);
        }
    }
    let mark = mark.expect("a sweep has a size (checked)");
    Ok((pace.close(&mark)?, points))
}

/// Takes one part: to its end, or to the limit.
fn take(pace: &mut Pace<'_, '_>, part: &Part, marks: &Marks, limit: Duration) -> Result<SweepPoint, Error> {
    let start = count(pace);
    let limit = Instant::now() + limit;
    let mut sent = None;
    let point = |moved: u64, until: u64| SweepPoint {
        size_bytes: part.size,
        moved_bytes: Bytes(moved),
        took_ns: Nanos(until.saturating_sub(marks.first.load(Ordering::Relaxed))),
    };
    let point = loop {
        let last = marks.last.load(Ordering::Acquire);
        if last != 0 {
            break point(part.total.0, last);
        }
        if Instant::now() >= limit {
            let reached = point(count(pace) - start, marks.now());
            pace.say(Signal::Cut)?;
            break reached;
        }
        sent = sent.or(pace.tick(LOOK)?.and_then(bytes_sent));
    };
    let sent = match sent {
        Some(sent) => sent,
        None => pace.expect("while it finished a size", bytes_sent)?,
    };
    drain(pace, sent)?;
    Ok(point)
}

/// Waits until everything that was sent has come.
fn drain(pace: &mut Pace<'_, '_>, sent: u64) -> Result<(), Error> {
    let limit = Instant::now() + LIMIT;
    while count(pace) < sent {
        if Instant::now() > limit {
            return Err(Error::PeerSilent {
                phase: "while its last bytes were awaited",
                waited: LIMIT.into(),
            });
        }
        pace.tick(LOOK)?;
    }
    Ok(())
}

fn bytes_sent(said: Signal) -> Option<u64> {
    match said {
        Signal::Sent(bytes) => Some(bytes),
        _ => None,
    }
}

fn count(pace: &Pace<'_, '_>) -> u64 {
    pace.crew.tallies[0].get()
}

/// The loop of `stream`, with marks.
fn task<'a>(flow: &'a dyn Flow, size: usize, marks: &'a Marks) -> Task<'a, Left> {
    Box::new(move |station, left| {
        let mut buffer = Buffer::new(size);
        let mut receiver = flow.receiver()?;
        if !station.begin() {
            return Ok(());
        }
        let mut total = 0;
        while !station.stopped() {
            match receiver.receive(&mut buffer) {
                Ok(n) if n > 0 => {
                    let before = total;
                    total += n as u64;
                    marks.passed(before, total);
                    station.tally.set(total);
                }
                ended => station.judge("receive on", why(ended))?,
            }
        }
        left.mapped = receiver.mapped();
        Ok(())
    })
}
