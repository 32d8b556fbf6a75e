//! Runs one end of a trial.
//!
//! The source generates its tree first, and reports at intervals that it is still working. Once it has finished, it
//! reports that, the target opens its window and answers, and the source opens its own window and begins. A window
//! closes when the copy is over at its end. At the source this is when the target has reported that everything is on
//! stable storage.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landspeed_mover::{
    CopyProgress, CopyRules, Flows, RelativeName, Source, SourceRoot, Target, discard, receive, send,
    send_made,
};
use landspeed_record::units::Bytes;
use landspeed_record::{CopyKeeping, CopyOutcome, Role, TrialSpec};

use super::folder::TrialFolder;
use super::made::MadeTree;
use super::{CopyPlan, whole};
use crate::Error;
use crate::signal::TrialSignal;
use crate::trial::{TrialCoordinator, WindowMeasurement};
use crate::workers::{self, WorkerContext};

/// Interval at which an end checks its worker.
const LOOK: Duration = Duration::from_millis(2);
/// Interval at which the source reports that it is still generating its tree.
const AGAIN: Duration = Duration::from_millis(250);

/// The source is still generating its tree.
const MAKING: u64 = 0;
/// The source has generated its tree.
const MADE: u64 = 1;
/// The target has opened its window.
const OPEN: u64 = 2;

/// The progress of an end's worker, and the steps that it may take.
#[derive(Debug, Default)]
pub(super) struct CopySteps {
    is_made: AtomicBool,
    may_copy: AtomicBool,
    is_copied: AtomicBool,
}

fn is_set(step: &AtomicBool) -> bool {
    step.load(Ordering::Acquire)
}

fn set(step: &AtomicBool) {
    step.store(true, Ordering::Release);
}

impl CopySteps {
    /// Waits until the worker may copy. Returns false if it must stop.
    fn wait(&self, context: &WorkerContext<'_>) -> bool {
        while !is_set(&self.may_copy) {
            if context.stopped() {
                return false;
            }
            std::thread::sleep(LOOK / 4);
        }
        true
    }
}

/// One end of a copy, as its worker needs it.
pub(super) struct CopyEnd<'a> {
    pub(super) role: Role,
    pub(super) spec: &'a TrialSpec,
    pub(super) plan: &'a CopyPlan,
    /// `None` at an end that stores nothing.
    pub(super) folder: Option<&'a TrialFolder>,
    pub(super) steps: &'a CopySteps,
}

impl CopyEnd<'_> {
    /// Generates the tree at the source, or the block from which its content is taken. Then copies once permitted, and
    /// stays until the window is closed.
    pub(super) fn work(
        &self,
        context: &WorkerContext<'_>,
        flows: Flows,
        outcome: &mut CopyOutcome,
    ) -> Result<(), Error> {
        // The mover starts threads, which must run on the same cores.
        if !self.spec.cores.is_empty() {
            workers::pin(&self.spec.cores)?;
        }
        if !context.begin() {
            return Ok(());
        }
        let made = MadeTree::of(self.plan.tree);
        if self.role == Role::Client {
            let make = |folder: &TrialFolder| self.plan.tree.make(&folder.tree(), &|| context.stopped());
            self.folder.map_or(Ok(()), make)?;
            set(&self.steps.is_made);
        }
        if self.steps.wait(context) {
            *outcome = self.copy(context, flows, &made)?;
            set(&self.steps.is_copied);
            context.rest();
        }
        Ok(())
    }

    /// Copies, and returns the outcome. The outcome of a target with a folder has no counts of files.
    fn copy(&self, context: &WorkerContext<'_>, flows: Flows, made: &MadeTree) -> Result<CopyOutcome, Error> {
        let (progress, stop) = (CopyProgress::default(), context.stop());
        match (self.role, self.folder) {
            (Role::Client, Some(folder)) => {
                whole(send(flows, &self.source(folder), &progress, stop)?, self.plan)
            }
            (Role::Client, None) => {
                whole(send_made(flows, made, self.plan.rate, &progress, stop)?, self.plan)
            }
            (Role::Server, Some(folder)) => {
                receive(flows, &self.target(folder), &progress, stop)?;
                Ok(CopyOutcome::default())
            }
            (Role::Server, None) => {
                let found = discard(flows, &progress, stop)?;
                let (copied, copied_bytes) = (found.files, Bytes(found.bytes));
                Ok(CopyOutcome { copied, copied_bytes, ..CopyOutcome::default() })
            }
        }
    }

    fn rules(&self) -> CopyRules {
        CopyRules { limit: self.plan.rate, walkers: self.plan.walkers, ..CopyRules::default() }
    }

    fn source(&self, folder: &TrialFolder) -> Source {
        let root = SourceRoot { path: folder.tree().into(), target: RelativeName::root() };
        Source { roots: vec![root], keeping: CopyKeeping::default(), rules: self.rules() }
    }

    fn target(&self, folder: &TrialFolder) -> Target {
        let folder = folder.tree().into();
        let (names, keeping) = (vec![RelativeName::root()], CopyKeeping::default());
        Target { folder, names, is_synced: true, keeping, rules: self.rules() }
    }
}

/// Runs the trial with its worker. The trial fails if it is not over at `until`.
pub(super) fn timed(
    mut trial: TrialCoordinator<'_, '_>,
    role: Role,
    steps: &CopySteps,
    until: Instant,
) -> Result<WindowMeasurement, Error> {
    trial.workers.start();
    match role {
        Role::Client => await_tree(&mut trial, steps, until)?,
        Role::Server => await_source(&mut trial, until)?,
    }
    let window_start = trial.open_from_start();
    set(&steps.may_copy);
    if role == Role::Server {
        trial.say(TrialSignal::Ready(OPEN))?;
    }
    while !is_set(&steps.is_copied) {
        in_time(until)?;
        trial.tick(LOOK)?;
    }
    trial.close(&window_start)
}

/// Waits until the source's worker has generated the tree and the target has opened its window.
fn await_tree(trial: &mut TrialCoordinator<'_, '_>, steps: &CopySteps, until: Instant) -> Result<(), Error> {
    let mut reported = Instant::now();
    while !is_set(&steps.is_made) {
        in_time(until)?;
        trial.tick(LOOK)?;
        if reported.elapsed() >= AGAIN {
            reported = Instant::now();
            trial.say(TrialSignal::Ready(MAKING))?;
        }
    }
    trial.say(TrialSignal::Ready(MADE))?;
    let is_open = |signal: TrialSignal| (signal == TrialSignal::Ready(OPEN)).then_some(());
    trial.expect("while it opened its window", is_open)
}

/// Waits until the source has generated its tree, as long as the source reports that it is working.
fn await_source(trial: &mut TrialCoordinator<'_, '_>, until: Instant) -> Result<(), Error> {
    let patience = trial.patience();
    let mut silent_at = Instant::now() + patience;
    while Instant::now() < silent_at {
        in_time(until)?;
        match trial.tick(AGAIN)? {
            Some(TrialSignal::Ready(MADE)) => return Ok(()),
            Some(_) => silent_at = Instant::now() + patience,
            None => {}
        }
    }
    Err(Error::silent("while it made its tree", patience))
}

/// Returns an error once the trial has taken too long.
fn in_time(until: Instant) -> Result<(), Error> {
    if Instant::now() < until {
        return Ok(());
    }
    let why = "the copy took longer than its limit: choose a smaller tree (bytes, files), or a longer limit";
    Err(Error::Copy(why.to_owned()))
}
