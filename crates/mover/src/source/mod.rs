//! The end that reads: it walks the trees, offers their entries, and sends what the target wants.

mod read;
mod walk;

use std::path::{Path, PathBuf};
use std::time::Duration;

use landspeed_record::units::Bytes;
use landspeed_record::{CopyFailure, CopyOutcome, PathBytes};
use landspeed_transport::{CancelFlag, Flow};
use parking_lot::{Condvar, Mutex};

use crate::beneath::Root;
use crate::name::RelativeName;
use crate::plan::{FailedEntry, NextStep, Plan, Settled, Work};
use crate::threads::{FirstError, watch};
use crate::tree::Tree;
use crate::wire::{Failure, FrameReader, FrameWriter, ToSource, ToTarget};
use crate::{CopyProgress, Error};

/// What is copied.
#[derive(Debug, Clone)]
pub struct Source {
    /// The files and folders, in the order of the command line.
    pub roots: Vec<SourceRoot>,
}

/// A file or a folder that is copied.
#[derive(Debug, Clone)]
pub struct SourceRoot {
    /// The path. With a slash at its end, a symbolic link to a folder is followed.
    pub path: PathBuf,
    /// The name that it gets at the target; the empty name for a folder whose entries go into the target's folder itself.
    pub target: RelativeName,
}

/// Sends the source over the flows, and returns what came of it. The other end calls [`crate::receive`].
///
/// # Errors
/// Returns an error if a path of the source cannot be opened, if a flow breaks, or if `cancel` is set. An entry that
/// fails is in the outcome.
pub fn send(
    flows: &[Box<dyn Flow>],
    source: &Source,
    progress: &CopyProgress,
    cancel: &CancelFlag,
) -> Result<CopyOutcome, Error> {
    let trees = source.roots.iter().enumerate().map(|(number, root)| open(number, root));
    let sending = Sending {
        trees: trees.collect::<Result<_, _>>()?,
        plan: Mutex::new(Plan::new()),
        moved: Condvar::new(),
        finished: Mutex::new(None),
        progress,
    };
    let first = FirstError::default();
    let guard = |end: Result<(), Error>| {
        if let Err(error) = end {
            first.keep(error);
            sending.end();
        }
    };
    std::thread::scope(|scope| {
        let mut threads = vec![scope.spawn(|| sending.walk())];
        for flow in flows {
            let (sending, guard) = (&sending, &guard);
            threads.push(scope.spawn(move || guard(sending.send(flow.as_ref()))));
            threads.push(scope.spawn(move || guard(sending.hear(flow.as_ref()))));
        }
        watch(flows, cancel, &first, &|| {
            if sending.plan.lock().is_over() {
                flows.iter().for_each(|flow| flow.wake_receiver());
            }
            threads.iter().all(|thread| thread.is_finished())
        });
    });
    first.into_result()?;
    let unfinished = sending.finished.into_inner().and_then(Result::err);
    Ok(outcome(sending.plan.into_inner().settled(), unfinished))
}

fn outcome(settled: &Settled, unfinished: Option<Failure>) -> CopyOutcome {
    let file_system = |failure: Failure| format!("the target's file system {}", failure.words());
    let failure = |failed: &FailedEntry| CopyFailure {
        name_hex: PathBytes(failed.name.as_bytes().to_vec()),
        why: if failed.is_at_target { failed.failure.words_at_target() } else { failed.failure.words() },
    };
    CopyOutcome {
        copied: settled.copied,
        copied_bytes: Bytes(settled.copied_bytes),
        sent_bytes: Bytes(settled.sent_bytes),
        made: settled.made,
        unchanged: settled.unchanged,
        failed: settled.failed,
        is_full: settled.failures.iter().any(|failed| failed.failure.is_full()),
        failures: settled.failures.iter().map(failure).collect(),
        unfinished: unfinished.map(file_system).unwrap_or_default(),
    }
}

/// Opens the tree of a root: the folder, or the folder above a file.
pub(crate) fn open(number: usize, root: &SourceRoot) -> Result<Tree, Error> {
    let failed = |operation| Error::at(&root.path, operation);
    let seen = root.path.symlink_metadata().map_err(failed("read it"))?;
    let target = root.target.clone();
    if seen.is_dir() {
        let folder = Root::open_itself(&root.path).map_err(failed("open it"))?;
        return Ok(Tree { number, root: folder, start: RelativeName::root(), target });
    }
    let leaf = root.path.file_name().and_then(|leaf| RelativeName::parse(leaf.as_encoded_bytes()));
    let start = leaf.ok_or_else(|| failed("read it")(std::io::ErrorKind::InvalidInput.into()))?;
    let above = root.path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(Tree { number, root: Root::open(above).map_err(failed("open its folder"))?, start, target })
}

/// The time between two looks of the walk at a plan that is full.
const LOOK: Duration = Duration::from_millis(5);

/// What the threads of the source share.
struct Sending<'a> {
    trees: Vec<Tree>,
    plan: Mutex<Plan>,
    /// Signalled when there may be something to do.
    moved: Condvar,
    /// What the target says at its end.
    finished: Mutex<Option<Result<(), Failure>>>,
    progress: &'a CopyProgress,
}

impl Sending<'_> {
    /// Ends the copy for all threads.
    fn end(&self) {
        self.plan.lock().finish();
        self.moved.notify_all();
    }

    /// Changes the plan, and wakes the threads for which there may be something to do.
    fn change<T>(&self, change: impl FnOnce(&mut Plan) -> T) -> T {
        let mut plan = self.plan.lock();
        let changed = change(&mut plan);
        let settled = plan.settled();
        let all = settled.copied + settled.made + settled.unchanged + settled.failed;
        self.progress.moved(all, settled.moved_bytes);
        drop(plan);
        self.moved.notify_all();
        changed
    }

    /// Returns what is to be sent next; `None` once the copy is over.
    fn next(&self) -> Option<Work> {
        let mut plan = self.plan.lock();
        loop {
            match plan.step() {
                NextStep::Work(work) => return Some(work),
                NextStep::Over => return None,
                NextStep::Wait => self.moved.wait(&mut plan),
            }
        }
    }

    /// Sends over one flow until the copy is over.
    fn send(&self, flow: &dyn Flow) -> Result<(), Error> {
        let mut writer = FrameWriter::new(flow.sender()?);
        let mut body = Vec::new();
        while let Some(work) = self.next() {
            self.carry_out(work, &mut writer, &mut body).map_err(Error::Flow)?;
        }
        Ok(())
    }

    fn carry_out(&self, work: Work, writer: &mut FrameWriter<'_>, body: &mut Vec<u8>) -> std::io::Result<()> {
        match work {
            Work::Offer { first, entries, are_complete: false } => {
                writer.send(&ToTarget::Offer { first, entries }, &[])
            }
            Work::Offer { first, entries, are_complete: true } => {
                writer.send(&ToTarget::Folders { first, entries }, &[])
            }
            Work::Small(pieces) => self.send_pieces(&pieces, writer, body),
            Work::Piece(piece) => self.send_pieces(&[piece], writer, body),
            Work::Install { entry, digest } => writer.send(&ToTarget::Install { entry, digest }, &[]),
            Work::Withdraw { entry } => writer.send(&ToTarget::Withdraw { entry }, &[]),
            Work::Finish => writer.send(&ToTarget::Finish, &[]),
        }
    }

    /// Takes the target's messages on one flow until the copy is over.
    fn hear(&self, flow: &dyn Flow) -> Result<(), Error> {
        let mut reader = FrameReader::new(flow.receiver()?);
        loop {
            let heard = reader.next::<ToSource>();
            if self.plan.lock().is_over() {
                return Ok(());
            }
            match heard.map_err(Error::Flow)? {
                Some((ToSource::Answers { first, answers }, _)) => {
                    self.change(|plan| plan.answered(first, answers));
                }
                Some((ToSource::Outcome { entry, outcome }, _)) => {
                    self.change(|plan| plan.became(entry, outcome));
                }
                Some((ToSource::Finished(result), _)) => self.finish(result)?,
                None => return Err(Error::Flow(std::io::ErrorKind::UnexpectedEof.into())),
            }
        }
    }

    fn finish(&self, result: Result<(), Failure>) -> Result<(), Error> {
        if !self.plan.lock().is_finishing() {
            return Err(Error::Protocol("it says that all is done before it was asked"));
        }
        *self.finished.lock() = Some(result);
        self.end();
        Ok(())
    }
}
