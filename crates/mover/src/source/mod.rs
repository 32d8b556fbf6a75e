//! The end that reads: it walks the trees, offers their entries, and sends what the target wants.

mod crew;
mod folders;
mod made;
mod names;
mod outcome;
mod pace;
mod read;
mod walk;

use std::sync::Arc;
use std::time::Duration;

use landspeed_record::units::BitRate;
use landspeed_record::{CopyKeeping, CopyKept, CopyOutcome, CopyStage};
use landspeed_transport::CancelFlag;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::beneath::Root;
use crate::link::{End, Flows, Link, Links, OpenFlow};
use crate::metadata;
use crate::name::RelativeName;
use crate::named_path::NamedPath;
use crate::plan::{NextStep, PieceWork, Plan, Work};
use crate::select::{CopyRules, IgnoreRules};
use crate::stage::{self, FlowMeter, Pause, StageTotals};
use crate::tree::{MOST_WALKERS, Tree, WALKERS};
use crate::wire::{Failure, ToSource, ToTarget, encode};
use crate::{CopyProgress, Error};
use crew::{CrewPlace, FlowCrew};
pub use made::MadeFiles;
pub(crate) use names::can_remove;
use outcome::outcome;
use pace::Pace;
use read::Body;

/// The entries that a copy sends, and how.
#[derive(Debug, Clone)]
pub struct Source {
    /// The files and folders, in the order of the command line.
    pub roots: Vec<SourceRoot>,
    /// The metadata that are kept of each entry.
    pub keeping: CopyKeeping,
    /// The user's other options.
    pub rules: CopyRules,
}

impl Source {
    /// Opens the trees of the roots.
    pub(crate) fn open(&self) -> Result<Vec<Tree>, Error> {
        if self.keeping.has(CopyKept::Xattrs) || self.keeping.has(CopyKept::Acls) {
            metadata::check()?;
        }
        let ignore = Arc::new(self.rules.ignore.clone());
        let tree = |(number, root)| self.tree(number, root, &ignore);
        let trees = self.roots.iter().enumerate().map(tree).collect::<Result<Vec<_>, _>>()?;
        if self.rules.removal.is_some() {
            can_remove(&trees)?;
        }
        Ok(trees)
    }

    /// Opens the tree of a root: the folder, or the folder above a file.
    fn tree(&self, number: usize, root: &SourceRoot, ignore: &Arc<IgnoreRules>) -> Result<Tree, Error> {
        let (start, above) = begin(root)?;
        Ok(Tree {
            number,
            root: above,
            start,
            target: root.target.clone(),
            keeping: self.keeping.clone(),
            ignore: Arc::clone(ignore),
            only: self.rules.only.clone(),
            walkers: self.rules.walkers.unwrap_or(WALKERS).clamp(1, MOST_WALKERS),
        })
    }
}

/// A file or a folder that is copied.
#[derive(Debug, Clone)]
pub struct SourceRoot {
    /// The path. With a slash at its end, a symbolic link to a folder is followed.
    pub path: NamedPath,
    /// The name that it gets at the target; the empty name for a folder whose entries go into the target's folder itself.
    pub target: RelativeName,
}

/// Sends the source over the flows, and returns the outcome. The other end calls [`crate::receive`].
///
/// # Errors
/// Returns an error if a path of the source cannot be opened, if a flow breaks and cannot be opened again in time, or if
/// `cancel` is set. An entry that fails is in the outcome.
pub fn send(
    flows: Flows,
    source: &Source,
    progress: &CopyProgress,
    cancel: &CancelFlag,
) -> Result<CopyOutcome, Error> {
    let rules = &source.rules;
    let plan = Plan::new().removing(rules.removal).proving(rules.lists_digests);
    let plan = plan.ignoring_room(rules.ignores_room);
    let sending = Sending { plan: Mutex::new(plan), ..Sending::new(progress, source.rules.limit) };
    Sending { trees: source.open()?, ..sending }.run(flows, cancel, &source.roots)
}

/// Sends generated files over the flows, at most at the rate `limit`, and returns the outcome. The other end calls
/// [`crate::receive`] with the root's name, or [`crate::discard`].
///
/// # Errors
/// Returns an error if a flow breaks and cannot be opened again in time, or if `cancel` is set.
pub fn send_made(
    flows: Flows,
    files: &dyn MadeFiles,
    limit: Option<BitRate>,
    progress: &CopyProgress,
    cancel: &CancelFlag,
) -> Result<CopyOutcome, Error> {
    Sending { made: Some(files), ..Sending::new(progress, limit) }.run(flows, cancel, &[])
}

/// Returns the entry at which the walk of a root begins, and the folder in which that is: a folder itself, or the one above a
/// file.
fn begin(root: &SourceRoot) -> Result<(RelativeName, Root), Error> {
    let failed = |operation| Error::at(root.path.as_path(), operation);
    if root.path.is_folder().map_err(failed("read it"))? {
        let folder = root.path.open_root_itself().map_err(failed("open it"))?;
        return Ok((RelativeName::root(), folder));
    }
    let nameless = || failed("read it")(std::io::ErrorKind::InvalidInput.into());
    let (above, leaf) = root.path.split().ok_or_else(nameless)?;
    let start = RelativeName::parse(leaf.as_encoded_bytes()).ok_or_else(nameless)?;
    let above = above.open_root().map_err(failed("open its folder"))?;
    Ok((start, above))
}

/// The interval at which the walk looks again at a full plan, and a link at a target that has many messages to take.
const LOOK: Duration = Duration::from_millis(5);
/// The interval at which a flow that rests looks for work. It rests because fewer flows are in use.
const RESTING: Duration = Duration::from_millis(50);
/// The largest number of unacknowledged messages on a link. It bounds the messages that have to be sent again, and the
/// target's answers in flight.
const MOST_UNHEARD: usize = 4_096;

/// State that the threads of the source share.
struct Sending<'a> {
    trees: Vec<Tree>,
    /// The generated files that are sent instead of trees.
    made: Option<&'a dyn MadeFiles>,
    plan: Mutex<Plan>,
    /// Signalled when there may be something to do.
    moved: Condvar,
    /// Signalled when a flow has broken, and at the end. A flow that rests is not woken for each answer of the target.
    over: Condvar,
    crew: FlowCrew,
    /// The target's final message.
    finished: Mutex<Option<Result<(), Failure>>>,
    progress: &'a CopyProgress,
    pace: Pace,
}

impl<'a> Sending<'a> {
    /// Returns a copy without entries.
    fn new(progress: &'a CopyProgress, limit: Option<BitRate>) -> Self {
        Sending {
            trees: Vec::new(),
            made: None,
            plan: Mutex::new(Plan::new()),
            moved: Condvar::new(),
            over: Condvar::new(),
            crew: FlowCrew::default(),
            finished: Mutex::new(None),
            progress,
            pace: Pace::new(limit),
        }
    }

    fn run(self, flows: Flows, cancel: &CancelFlag, roots: &[SourceRoot]) -> Result<CopyOutcome, Error> {
        let links = Links::new(&flows);
        std::thread::scope(|scope| {
            scope.spawn(|| self.walk());
            let ran = links.run(flows.opening, cancel, &self);
            // The walk ends with the plan.
            self.end();
            ran
        })?;
        let unfinished = self.finished.into_inner().and_then(Result::err);
        Ok(outcome(self.plan.into_inner().settled(), roots, unfinished))
    }

    /// Changes the plan, and wakes the threads for which there may be something to do.
    fn change<T>(&self, change: impl FnOnce(&mut Plan) -> T) -> T {
        let mut plan = self.plan.lock();
        let changed = change(&mut plan);
        let settled = plan.settled();
        let all = settled.copied + settled.made + settled.unchanged + settled.failed;
        self.progress.moved(all, settled.moved_bytes);
        self.progress.steering.has_taken(settled.taken_bytes);
        let proven = plan.take_proven();
        drop(plan);
        if !proven.is_empty() {
            self.progress.proven.push(proven);
        }
        self.moved.notify_all();
        changed
    }

    /// Returns the message with this number: one that was on a flow that has broken, or the next one of the plan.
    /// Returns `None` once the flow is broken or the copy is over.
    fn next(
        &self,
        link: &Link<Arc<Outgoing>>,
        number: u64,
        flow: &OpenFlow<'_>,
        place: &CrewPlace<'_>,
    ) -> Option<Arc<Outgoing>> {
        if let Some(unheard) = link.outbox.message(number) {
            return Some(unheard);
        }
        let outgoing = Arc::new(Outgoing::of(self.next_work(link, flow, place)?));
        link.outbox.say(Arc::clone(&outgoing), 1);
        Some(outgoing)
    }

    fn next_work(
        &self,
        link: &Link<Arc<Outgoing>>,
        flow: &OpenFlow<'_>,
        place: &CrewPlace<'_>,
    ) -> Option<Work> {
        let mut plan = self.plan.lock();
        while !flow.is_broken() {
            let steering = &self.progress.steering;
            if place.is_beyond(steering.in_use(), steering.first()) && !plan.is_over() {
                if place.rests_anew() {
                    return Some(Work::Rest);
                }
                place.idle(|| self.over.wait_for(&mut plan, RESTING));
                continue;
            }
            if link.outbox.weight() >= MOST_UNHEARD {
                stage::wait(Pause::Blocked, || self.moved.wait_for(&mut plan, LOOK));
                continue;
            }
            match plan.step() {
                NextStep::Work(work) => {
                    place.works();
                    return Some(work);
                }
                NextStep::Map(map) => MutexGuard::unlocked(&mut plan, || self.map(&map)),
                NextStep::Over => return None,
                NextStep::Wait if !place.is_spare(plan.usable_flows()) => {
                    stage::wait(Pause::Starved, || self.moved.wait(&mut plan));
                }
                NextStep::Wait if place.rests_anew() => return Some(Work::Rest),
                NextStep::Wait => place.idle(|| self.moved.wait(&mut plan)),
            }
        }
        None
    }

    fn carry_out(&self, outgoing: &Outgoing, flow: &OpenFlow<'_>, body: &mut Body) -> Result<(), Error> {
        match outgoing {
            Outgoing::Message(message) => {
                stage::enter(CopyStage::Send);
                flow.writer.send(message, &[])
            }
            Outgoing::Pieces(pieces) => {
                self.progress.steering.sends(pieces);
                self.send_pieces(pieces, flow, body)
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

impl End for Sending<'_> {
    type Kept = Arc<Outgoing>;
    type Heard = ToSource;

    fn send(&self, link: &Link<Self::Kept>, flow: &OpenFlow<'_>) -> Result<(), Error> {
        let (mut body, place) = (Body::default(), self.crew.join(link.number));
        let mut number = flow.next;
        let stages = self.stages();
        let (_life, mut meter) = (stages.begin(CopyStage::Read), FlowMeter::new(flow.writer, stages));
        while let Some(outgoing) = self.next(link, number, flow, &place) {
            // The wait for the plan's lock does not count as time of a disk.
            stage::settle(Pause::Starved);
            self.carry_out(&outgoing, flow, &mut body)?;
            if stage::settle(Pause::Blocked) {
                meter.read();
            }
            stage::enter(CopyStage::Read);
            number += 1;
        }
        if flow.is_broken() { Ok(()) } else { flow.writer.send(&encode(&ToTarget::Over), &[]) }
    }

    fn take(&self, _: &Arc<Link<Self::Kept>>, message: ToSource, _: &[u8]) -> Result<bool, Error> {
        match message {
            ToSource::Answers { first, answers } => self.change(|plan| plan.answered(first, answers)),
            ToSource::Outcomes(outcomes) => {
                self.change(|plan| outcomes.into_iter().for_each(|(entry, one)| plan.became(entry, one)));
            }
            ToSource::Lost(lost) => self.change(|plan| plan.lost(lost)),
            ToSource::Finished(result) => self.finish(result)?,
            ToSource::Swept { number, swept } => self.change(|plan| plan.swept(number, swept)),
            ToSource::Room { free } => self.change(|plan| plan.has_room(free)),
        }
        // After the end, the target closes the flow.
        Ok(true)
    }

    fn wake(&self, _: &Link<Self::Kept>) {
        // A thread that has just looked does not wait yet, but holds the lock.
        drop(self.plan.lock());
        self.moved.notify_all();
        self.over.notify_all();
    }

    /// Ends the copy for all threads.
    fn end(&self) {
        self.progress.steering.end();
        self.plan.lock().finish();
        self.moved.notify_all();
        self.over.notify_all();
    }

    fn is_over(&self) -> bool {
        self.plan.lock().is_over()
    }

    fn is_done(&self) -> bool {
        self.is_over()
    }

    fn progress(&self) -> &CopyProgress {
        self.progress
    }

    fn stages(&self) -> &Arc<StageTotals> {
        &self.progress.stages
    }
}

/// A message on a link, kept until the target has acknowledged it. Pieces are read from the file again if they are
/// retransmitted.
#[derive(Debug)]
enum Outgoing {
    /// A message without a body.
    Message(Vec<u8>),
    Pieces(Vec<PieceWork>),
}

impl Outgoing {
    fn of(work: Work) -> Self {
        let message = match work {
            Work::Small(pieces) => return Outgoing::Pieces(pieces),
            Work::Piece(piece) => return Outgoing::Pieces(vec![piece]),
            Work::Offer { first, entries, are_complete: false } => ToTarget::Offer { first, entries },
            Work::Offer { first, entries, are_complete: true } => ToTarget::Folders { first, entries },
            Work::Holes { entry, holes } => ToTarget::Holes { entry, holes },
            Work::Install { entry, digest } => ToTarget::Install { entry, digest },
            Work::Withdraw { entry } => ToTarget::Withdraw { entry },
            Work::Names { number, folders, removes } => ToTarget::Names { number, folders, removes },
            Work::Room { again } => ToTarget::Room { again },
            Work::Rest => ToTarget::Rest,
            Work::Finish => ToTarget::Finish,
        };
        Outgoing::Message(encode(&message))
    }
}
