//! The receiving end of a sweep, which measures the times.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use landspeed_record::units::Bytes;
use landspeed_record::{DatagramCounts, EndpointOutcome, SweepDatagrams, SweepPoint};
use landspeed_transport::settings::READ_SIZE;
use landspeed_transport::{Delivery, Flow};

use super::SweepPart;
use super::marks::ByteMarks;
use crate::end::{outcome, sum, zero_copied};
use crate::signal::TrialSignal;
use crate::stream::{ReceiveLoop, ZeroCopyResult};
use crate::trial::{TrialCoordinator, TrialParts, WindowMeasurement};
use crate::workers::{self, WorkerTask};
use crate::{Error, check};

/// Time without arrivals after which missing datagrams count as lost, once the peer has reported how much it sent. A
/// sweep is therefore valid only on paths with shorter queueing delays.
const SILENCE: Duration = Duration::from_millis(200);
/// Interval at which the coordinator checks if a part has arrived.
const LOOK: Duration = Duration::from_millis(1);

pub(super) fn run(parts: TrialParts<'_>) -> Result<EndpointOutcome, Error> {
    let (flows, spec) = (parts.flows, parts.spec);
    let plan = super::parts(spec);
    let marks = ByteMarks::new();
    let task = task(flows[0].as_ref(), READ_SIZE.number(&spec.flow) as usize, &marks);
    let ((mut measured, taken), zero_copy) =
        workers::run(&spec.cores, flows, vec![task], |workers| lead(parts.trial(workers), &plan, &marks))?;
    let received = sum(&measured.counts);
    let (points, datagrams): (Vec<_>, Vec<_>) = taken.into_iter().map(|t| (t.point, t.datagrams)).unzip();
    let datagrams = datagrams.into_iter().flatten().collect();
    Ok(EndpointOutcome { received_bytes: received, ..outcome(&mut measured, flows) }
        .with(points)
        .with(SweepDatagrams(datagrams))
        .with(zero_copied(zero_copy.iter().map(|l| (l.completions, l.mapped)))))
}

struct SweepPartResult {
    point: SweepPoint,
    datagrams: Option<DatagramCounts>,
}

fn lead(
    mut trial: TrialCoordinator<'_, '_>,
    plan: &[SweepPart],
    marks: &ByteMarks,
) -> Result<(WindowMeasurement, Vec<SweepPartResult>), Error> {
    let mut window_start = None;
    let mut all = Vec::with_capacity(plan.len());
    let mut sent = 0;
    for (number, part) in plan.iter().enumerate() {
        marks.set(count(&trial), part.total);
        if number == 0 {
            trial.workers.start();
        }
        if !part.warm_up && window_start.is_none() {
            window_start = Some(trial.open());
        }
        let taken = take(&mut trial, number, part, marks, &mut sent)?;
        if !part.warm_up {
            all.push(taken);
        }
    }
    let window_start = window_start.expect("a sweep has a size (checked)");
    Ok((trial.close(&window_start)?, all))
}

/// Requests one part and receives it, until it is complete, silent for too long, or at its limit. `sent` is the number
/// of bytes that the peer had sent before the part. The function sets it to the number after the part.
fn take(
    trial: &mut TrialCoordinator<'_, '_>,
    number: usize,
    part: &SweepPart,
    marks: &ByteMarks,
    sent: &mut u64,
) -> Result<SweepPartResult, Error> {
    // Reads the counts before it requests the part, because data may arrive immediately.
    let (start, before) = (count(trial), trial.datagrams().first().copied());
    trial.say(TrialSignal::Ready(number as u64))?;
    let (reached, said) = come(trial, part, marks, start)?;
    let said = match said {
        Some(said) => said,
        None => trial.expect("while it finished a size", bytes_sent)?,
    };
    let of_part = said.saturating_sub(*sent);
    *sent = said;
    check_figure(trial, part, &reached, of_part)?;
    drain(trial, start + of_part)?;
    let after = trial.datagrams().first().copied();
    let datagrams = before.zip(after).map(|(before, after)| {
        let counts = after.since(&before);
        let sent = of_part / part.size.0;
        // The peer's report shows the loss of datagrams at the end of the part. Gaps in the sequence numbers do not
        // show it, because no later datagram arrives.
        DatagramCounts { sent, lost: sent.saturating_sub(counts.received), ..counts }
    });
    Ok(SweepPartResult { point: reached, datagrams })
}

/// Returns an error if a part has no figure: nothing of it arrived, and no datagrams of it were lost.
fn check_figure(
    trial: &TrialCoordinator<'_, '_>,
    part: &SweepPart,
    reached: &SweepPoint,
    of_part: u64,
) -> Result<(), Error> {
    let were_lost = of_part > 0 && has_datagrams(trial);
    if reached.moved_bytes > Bytes(0) || were_lost {
        return Ok(());
    }
    let waited = part.longest_wait(trial.patience());
    Err(Error::silent("while this end waited for the first data of a size", waited))
}

/// Waits until a part has arrived or is cut. Returns the part's result, and the total of bytes that the peer has sent
/// if its report has arrived too. The part's limit counts from its first data.
fn come(
    trial: &mut TrialCoordinator<'_, '_>,
    part: &SweepPart,
    marks: &ByteMarks,
    start: u64,
) -> Result<(SweepPoint, Option<u64>), Error> {
    let latest = Instant::now() + part.longest_wait(trial.patience());
    let mut silence = SilenceTimer::new(trial);
    let mut said = None;
    loop {
        let last = marks.last.load(Ordering::Acquire);
        if last != 0 {
            return Ok((marks.point(part, part.total.0, last), said));
        }
        let over = said.is_some() && silence.is_the_end(trial);
        let late = Instant::now() >= marks.cut_at(part, latest);
        if late && said.is_none() {
            trial.say(TrialSignal::Cut)?;
        }
        if over || late {
            let until = last_arrival(trial).map_or_else(|| marks.now(), |last| marks.at(last));
            return Ok((marks.point(part, count(trial) - start, until), said));
        }
        said = said.or(trial.tick(LOOK)?.and_then(bytes_sent));
    }
}

/// Returns the time at which the last datagram arrived; `None` over a stream, or if none has arrived.
fn last_arrival(trial: &TrialCoordinator<'_, '_>) -> Option<Instant> {
    trial.datagrams().first().and_then(|datagrams| datagrams.last)
}

/// Waits until everything that was sent has arrived, or the missing data counts as lost.
fn drain(trial: &mut TrialCoordinator<'_, '_>, end: u64) -> Result<(), Error> {
    let patience = trial.patience();
    let limit = Instant::now() + patience;
    let mut silence = SilenceTimer::new(trial);
    while count(trial) < end && !silence.is_the_end(trial) {
        if Instant::now() > limit {
            return Err(Error::silent("while its last bytes were awaited", patience));
        }
        trial.tick(LOOK)?;
    }
    Ok(())
}

struct SilenceTimer {
    count: u64,
    since: Instant,
}

impl SilenceTimer {
    fn new(trial: &TrialCoordinator<'_, '_>) -> Self {
        SilenceTimer { count: count(trial), since: Instant::now() }
    }

    /// Returns true if missing datagrams count as lost, because none arrived for [`SILENCE`]. Over a stream it
    /// returns false.
    fn is_the_end(&mut self, trial: &TrialCoordinator<'_, '_>) -> bool {
        if self.count != count(trial) {
            *self = SilenceTimer::new(trial);
        }
        has_datagrams(trial) && self.since.elapsed() >= SILENCE
    }
}

fn has_datagrams(trial: &TrialCoordinator<'_, '_>) -> bool {
    check::delivery(&trial.spec.flow) == Delivery::Datagrams
}

fn bytes_sent(said: TrialSignal) -> Option<u64> {
    match said {
        TrialSignal::Sent(bytes) => Some(bytes),
        _ => None,
    }
}

fn count(trial: &TrialCoordinator<'_, '_>) -> u64 {
    trial.workers.tallies[0].get()
}

/// Returns the task that receives and records the times at `marks`.
fn task<'a>(flow: &'a dyn Flow, size: usize, marks: &'a ByteMarks) -> WorkerTask<'a, ZeroCopyResult> {
    Box::new(move |context, zero_copy| {
        let passed = |before, total| marks.passed(before, total);
        zero_copy.mapped = ReceiveLoop { flow, size, passed, is_end: |_| false }.run(context)?;
        Ok(())
    })
}
