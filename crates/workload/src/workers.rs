//! The worker threads of one end of a trial.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use landspeed_transport::{CancelFlag, Flow};
use parking_lot::{Condvar, Mutex};
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use crate::Error;

/// The time that workers have to leave their last call after a trial, before their flows are aborted. A blocked sender
/// leaves when its peer closes the flow.
const GRACE: Duration = Duration::from_millis(200);

/// A worker's count, alone on its cache lines. The worker writes it, and the coordinator reads it from time to time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerTally(AtomicU64);

impl WorkerTally {
    pub(crate) fn set(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    /// Adds to the count, which only its own worker changes.
    pub(crate) fn add(&self, more: u64) {
        self.set(self.get() + more);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The work of one worker. `T` is the worker's result, which is kept even if the work fails.
pub(crate) type WorkerTask<'a, T> =
    Box<dyn FnOnce(&WorkerContext<'_>, &mut T) -> Result<(), Error> + Send + 'a>;

pub(crate) struct WorkerContext<'a> {
    pub(crate) tally: &'a WorkerTally,
    shared: &'a SharedWorkerState,
    report: mpsc::Sender<Option<i32>>,
}

impl WorkerContext<'_> {
    /// Reports that everything is prepared, and waits for the start. Returns false if the trial does not start.
    pub(crate) fn begin(&self) -> bool {
        // The coordinator outlives its workers, so the report cannot fail.
        let _ = self.report.send(Some(gettid().as_raw_nonzero().get()));
        let mut gate = self.shared.gate.lock();
        self.shared.opened.wait_while(&mut gate, |gate| *gate == WorkerGate::Shut);
        *gate == WorkerGate::Open
    }

    /// Sleeps until `deadline`. Returns false if the worker must leave now.
    pub(crate) fn sleep_until(&self, deadline: Instant) -> bool {
        let mut gate = self.shared.gate.lock();
        let left = deadline.saturating_duration_since(Instant::now());
        self.shared.opened.wait_while_for(&mut gate, |gate| *gate == WorkerGate::Open, left);
        *gate == WorkerGate::Open
    }

    /// Sleeps until the worker must leave. A worker that is done early stays, because threads are watched until the
    /// window is closed.
    pub(crate) fn rest(&self) {
        self.shared.opened.wait_while(&mut self.shared.gate.lock(), |gate| *gate == WorkerGate::Open);
    }

    /// Returns true if the worker must leave. It loads one flag, which is not written during the run.
    pub(crate) fn stopped(&self) -> bool {
        self.shared.stop.is_cancelled()
    }

    /// Returns the flag that [`WorkerContext::stopped`] reads, for waits that check it themselves.
    pub(crate) fn stop(&self) -> &CancelFlag {
        &self.shared.stop
    }

    /// Returns the error of a failed call, or `Ok` if the call was only interrupted or the worker had to leave. If the
    /// peer has closed the data flow, the error is [`Error::PeerGone`], because a data flow may show the peer's end
    /// before the signal flow does.
    pub(crate) fn judge(&self, operation: &'static str, error: std::io::Error) -> Result<(), Error> {
        match error.kind() {
            ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(()),
            _ if self.stopped() => Ok(()),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                Err(Error::PeerGone { phase: "while data flowed" })
            }
            _ => Err(Error::refused(operation, "a flow", error)),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum WorkerGate {
    Shut,
    Open,
    Off,
}

struct SharedWorkerState {
    stop: CancelFlag,
    gate: Mutex<WorkerGate>,
    opened: Condvar,
    working: AtomicUsize,
    failed: AtomicBool,
}

/// The running workers, for their coordinator.
pub(crate) struct Workers<'a> {
    /// Kernel thread IDs, in the order in which the workers reported.
    pub(crate) threads: Vec<i32>,
    /// The count of each worker, in the order of the tasks.
    pub(crate) tallies: &'a [WorkerTally],
    shared: &'a SharedWorkerState,
}

impl Workers<'_> {
    pub(crate) fn start(&self) {
        set_gate(self.shared, WorkerGate::Open);
    }

    pub(crate) fn failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }
}

/// A guard that reports, when dropped, that a worker has ended, even by a panic.
struct WorkerExitGuard<'a> {
    shared: &'a SharedWorkerState,
    report: mpsc::Sender<Option<i32>>,
}

impl Drop for WorkerExitGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.failed.store(true, Ordering::Release);
        }
        self.shared.working.fetch_sub(1, Ordering::AcqRel);
        let _ = self.report.send(None);
    }
}

/// Runs `tasks`, each in its own thread, while `lead` coordinates them in this thread. Pins each thread to the next of
/// `cores`, unless `cores` is empty. Returns the results of `lead` and of the tasks. All threads have ended when this
/// function returns.
pub(crate) fn run<T: Default + Send, R>(
    cores: &[u32],
    flows: &[Box<dyn Flow>],
    tasks: Vec<WorkerTask<'_, T>>,
    lead: impl FnOnce(&Workers<'_>) -> Result<R, Error>,
) -> Result<(R, Vec<T>), Error> {
    let tallies: Vec<WorkerTally> = tasks.iter().map(|_| WorkerTally::default()).collect();
    let shared = SharedWorkerState {
        stop: CancelFlag::new(),
        gate: Mutex::new(WorkerGate::Shut),
        opened: Condvar::new(),
        working: AtomicUsize::new(tasks.len()),
        failed: AtomicBool::new(false),
    };
    let (report, reports) = mpsc::channel();
    std::thread::scope(|scope| {
        let _dismissing = PanicDismissGuard { shared: &shared, flows };
        let mut workers = Vec::new();
        for (index, (task, tally)) in tasks.into_iter().zip(&tallies).enumerate() {
            let core = (!cores.is_empty()).then(|| cores[index % cores.len()]);
            let context = WorkerContext { tally, shared: &shared, report: report.clone() };
            workers.push(scope.spawn(move || work(core, context, task)));
        }
        let led = gather(workers.len(), &reports)
            .and_then(|threads| lead(&Workers { threads, tallies: &tallies, shared: &shared }));
        dismiss(&shared, flows, led.is_ok());
        let ended: Vec<_> = workers.into_iter().map(|w| w.join().expect("workers do not panic")).collect();
        conclude(led, ended)
    })
}

/// A guard that dismisses the workers if their coordinator panics, because the thread scope waits for them.
struct PanicDismissGuard<'a> {
    shared: &'a SharedWorkerState,
    flows: &'a [Box<dyn Flow>],
}

impl Drop for PanicDismissGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            dismiss(self.shared, self.flows, false);
        }
    }
}

fn work<T: Default>(
    core: Option<u32>,
    context: WorkerContext<'_>,
    task: WorkerTask<'_, T>,
) -> (T, Result<(), Error>) {
    let _leaving = WorkerExitGuard { shared: context.shared, report: context.report.clone() };
    let mut left = T::default();
    let result = core.map_or(Ok(()), |core| pin(&[core])).and_then(|()| task(&context, &mut left));
    if result.is_err() {
        context.shared.failed.store(true, Ordering::Release);
    }
    (left, result)
}

/// Pins this thread to `cores`, and the threads that it starts after that.
pub(crate) fn pin(cores: &[u32]) -> Result<(), Error> {
    let names = cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let refused = |source| Error::refused("pin a worker to", format!("core {names}"), source);
    if cores.iter().any(|core| *core as usize >= CpuSet::MAX_CPU) {
        return Err(refused(ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core as usize));
    sched_setaffinity(None, &set).map_err(|error| refused(error.into()))
}

/// Waits until every worker is prepared. Returns their thread IDs, in the order in which they reported.
fn gather(count: usize, reports: &mpsc::Receiver<Option<i32>>) -> Result<Vec<i32>, Error> {
    let mut threads = Vec::with_capacity(count);
    while threads.len() < count {
        threads.push(reports.recv().ok().flatten().ok_or(Error::Worker)?);
    }
    Ok(threads)
}

/// Makes every worker leave its loop, and waits until all have left. Aborts the flows of those that remain: after
/// [`GRACE`] if `gently`, otherwise immediately.
fn dismiss(shared: &SharedWorkerState, flows: &[Box<dyn Flow>], gently: bool) {
    shared.stop.cancel();
    set_gate(shared, WorkerGate::Off);
    flows.iter().for_each(|flow| flow.wake_receiver());
    let patience = Instant::now() + if gently { GRACE } else { Duration::ZERO };
    while shared.working.load(Ordering::Acquire) > 0 {
        if Instant::now() >= patience {
            flows.iter().for_each(|flow| _ = flow.abort());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Returns the result of a trial. A worker's own error replaces [`Error::Worker`], which says less. If the
/// coordinator succeeded, the errors of workers are ignored, because they came after the window.
fn conclude<T, R>(led: Result<R, Error>, ended: Vec<(T, Result<(), Error>)>) -> Result<(R, Vec<T>), Error> {
    let (left, results): (Vec<T>, Vec<_>) = ended.into_iter().unzip();
    match led {
        Ok(made) => Ok((made, left)),
        Err(Error::Worker) => {
            Err(Error::gravest(results.into_iter().filter_map(Result::err)).unwrap_or(Error::Worker))
        }
        Err(error) => Err(error),
    }
}

fn set_gate(shared: &SharedWorkerState, gate: WorkerGate) {
    *shared.gate.lock() = gate;
    shared.opened.notify_all();
}
