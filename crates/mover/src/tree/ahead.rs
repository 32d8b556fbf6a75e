//! Reads folders ahead of a walk, in threads of its own.
//!
//! A look at an entry may wait for a disk or for another host, and a thread that waits does nothing else. So helpers
//! read parts of folders that the walk will need soon. The walk takes what they have read in the order in which it
//! would read by itself ([`Steps`]), and reads the next part itself if none of them does. It works without any helper.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use landspeed_record::CopyStage;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Tree;
use super::portion::{FolderPart, OpenFolder, Portion, Seen};
use super::steps::{NextStep, Steps};
use crate::name::RelativeName;
use crate::stage::{self, Pause, StageTotals};

/// The number of portions, for each helper, that may be between the walk and what is read ahead.
const NEAR: usize = 4;

/// The entries that are read ahead of a walk below a folder.
pub(super) struct Ahead<'a> {
    tree: &'a Tree,
    only_folders: bool,
    helpers: usize,
    steps: Mutex<Steps>,
    /// Signalled when something was read.
    moved: Condvar,
    /// Signalled when there may be something to read ahead.
    wanted: Condvar,
    is_over: AtomicBool,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(tree: &'a Tree, only_folders: bool) -> Self {
        Ahead {
            tree,
            only_folders,
            // The walk is one of the threads.
            helpers: tree.walkers.saturating_sub(1),
            steps: Mutex::default(),
            moved: Condvar::new(),
            wanted: Condvar::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Calls `walk` while helpers read ahead of it, and returns its result.
    pub(super) fn beside<T>(&self, walk: impl FnOnce() -> T) -> T {
        let totals = stage::totals();
        thread::scope(|scope| {
            let _ending = Ending(self);
            for _ in 0..self.helpers {
                let totals = totals.clone();
                let helper = thread::Builder::new().spawn_scoped(scope, move || self.help(totals));
                // A host that allows no more threads has fewer helpers.
                if helper.is_err() {
                    break;
                }
            }
            walk()
        })
    }

    /// Adds a folder, which is read next.
    pub(super) fn push(&self, folder: RelativeName) {
        self.steps.lock().push(folder);
    }

    /// Returns what comes next in the walk; `None` at its end.
    pub(super) fn next_portion(&self) -> Option<Vec<Seen>> {
        let mut steps = self.steps.lock();
        while !self.is_over() {
            match steps.step() {
                NextStep::Over => return None,
                NextStep::Take(seen) => {
                    self.ask_for_help(&steps, usize::from(steps.is_next_unread()));
                    return Some(seen);
                }
                NextStep::Read(reading, part) => {
                    MutexGuard::unlocked(&mut steps, || self.read(reading, part));
                }
                // A helper waits for the file system instead of this thread.
                NextStep::Wait => stage::wait(Pause::Device, || self.moved.wait(&mut steps)),
            }
        }
        None
    }

    /// Reads ahead until the walk is over.
    fn help(&self, totals: Option<Arc<StageTotals>>) {
        let _ending = Ending(self);
        let _life = totals.map(|totals| totals.begin(CopyStage::Metadata));
        while let Some((reading, part)) = self.next_ahead() {
            self.read(reading, part);
            stage::settle(Pause::Device);
        }
    }

    /// Returns what a helper reads next; `None` once the walk is over.
    fn next_ahead(&self) -> Option<(u64, FolderPart)> {
        let mut steps = self.steps.lock();
        while !self.is_over() {
            if let Some(next) = steps.next_ahead(self.near()) {
                return Some(next);
            }
            // The walk and the other helpers have all parts.
            stage::wait(Pause::Idle, || self.wanted.wait(&mut steps));
        }
        None
    }

    /// Reads a part of a folder.
    fn read(&self, reading: u64, part: FolderPart) {
        let mut portion = Portion::default();
        match part.open(self.tree) {
            Ok(folder) => self.read_in(reading, &folder, &mut portion),
            Err((name, error)) => portion.fail_folder(name, &error),
        }
        let mut steps = self.steps.lock();
        steps.finish(reading, portion);
        self.ask_for_help(&steps, 1);
        drop(steps);
        self.moved.notify_one();
    }

    fn read_in(&self, reading: u64, folder: &Arc<OpenFolder>, portion: &mut Portion) {
        let (names, has_more) = folder.names(self.only_folders);
        if has_more == Ok(true) {
            let mut steps = self.steps.lock();
            steps.leave(reading, Arc::clone(folder));
            self.ask_for_help(&steps, 0);
        }
        for leaf in names.iter().take_while(|_| !self.is_over()) {
            portion.look(self.tree, folder, leaf);
        }
        if let Err(error) = has_more {
            portion.fail_folder(folder.name().clone(), &error.into());
        }
    }

    /// Wakes a helper if more than `own` parts wait to be read: a thread that has read a part reads the next one.
    fn ask_for_help(&self, steps: &Steps, own: usize) {
        if self.helpers > 0 && steps.wants_help(self.near(), own) {
            self.wanted.notify_one();
        }
    }

    fn near(&self) -> usize {
        NEAR * self.helpers
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Ends the walk for all its threads when it is dropped, also where one of them panics.
struct Ending<'a>(&'a Ahead<'a>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        // A thread that has just looked does not wait yet, but holds the lock.
        let steps = self.0.steps.lock();
        self.0.is_over.store(true, Ordering::Relaxed);
        drop(steps);
        self.0.moved.notify_all();
        self.0.wanted.notify_all();
    }
}
