//! Watches the processes that own flows: the times for which they run and wait for a processor, and the kernel
//! functions in which they sleep.
//!
//! The queues of a socket at one end look the same for a slow reader and for a slow network. The state of the process
//! distinguishes the two cases. Each sample reads the threads' states from /proc, so the figures on where threads sleep
//! are counts of samples, not times.

mod process;
mod thread;

use std::collections::BTreeSet;
use std::time::Instant;

use landspeed_kernel::netlink::SockDiag;
use landspeed_record::units::{CpuNanos, Nanos};
use landspeed_record::{Observations, ProcessWatch, WatchTarget};

use crate::family::family;
use crate::figures::headlines;
use crate::sockets::{SocketOwners, select};
use crate::window::{OpenWindow, windows};
use crate::{Error, Observer, RunPolicy, WatchSubject, procfile};
use process::WatchedProcess;
pub(crate) use thread::ThreadId;

const MOST_PROCESSES: usize = 16;

pub(crate) static PROCESSES: Observer = Observer {
    name: "processes",
    about: "the flows' processes: processor time, waiting for a processor, where their threads sleep",
    cannot_see: &[
        "other users' processes behind a flow, and where they sleep, unless it runs as root",
        "where a thread sleeps between two samples: waiting_in counts moments, not time",
        "the run time of another process's thread that runs at this moment, closer than to a tick of the clock",
        "the run time of threads that began and ended within the window, other than in the process's own",
        "what a process waits for beyond the name of a kernel function; time spent waiting in user space for a \
         lock or a queue of its own looks like any futex",
    ],
    runs: RunPolicy::Explaining,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        all: Vec<ProcessWatch> => {
            "processor time", "of the flows' processes": Some(all.iter().map(|one| one.cpu_ns).sum::<CpuNanos>());
            "busiest thread", "its processor time": all.iter().map(|one| one.busiest_thread_ns).max();
            "waited for a processor", "a busiest thread, ready to run":
                all.iter().map(|one| one.waited_for_cpu_ns).max();
        }
    },
    can_run: || procfile::readable("/proc/self/stat"),
    watch: |_| windows(ProcessWindow::open),
};

/// The reciprocal of the share of time that may be spent on searching for new processes, which is slow on a host with
/// many processes.
const LOOKING_ONE_IN: u32 = 20;

struct ProcessWindow {
    target: WatchTarget,
    processes: Vec<WatchedProcess>,
    /// The processes that existed when the window opened, and those that were found since.
    known: BTreeSet<u32>,
    /// The earliest time of the next search for new processes.
    next_look: Instant,
    notes: BTreeSet<String>,
}

impl ProcessWindow {
    fn open(subject: &WatchSubject<'_>) -> Result<Self, Error> {
        let (target, now) = (subject.target, Instant::now());
        let mut window = ProcessWindow {
            target,
            processes: Vec::new(),
            known: BTreeSet::new(),
            next_look: now,
            notes: BTreeSet::new(),
        };
        window.processes = window.find(subject)?;
        window.next_look += now.elapsed() * LOOKING_ONE_IN;
        window.sample(Nanos(0))?;
        Ok(window)
    }

    fn find(&mut self, subject: &WatchSubject<'_>) -> Result<Vec<WatchedProcess>, Error> {
        let pids = match subject.target {
            WatchTarget::Workload => return Ok(WatchedProcess::own(subject.threads).into_iter().collect()),
            WatchTarget::Programs => family(subject.target)?.into_iter().collect(),
            WatchTarget::Pid { .. } | WatchTarget::Name { .. } => self.holders_first(subject)?,
            WatchTarget::Flow { .. } | WatchTarget::Top => self.holders(subject)?.into_iter().collect(),
        };
        if pids.len() > MOST_PROCESSES {
            self.notes.insert(format!("{} processes; {MOST_PROCESSES} of them are watched", pids.len()));
        }
        self.known.extend(&pids);
        let mut found = Vec::new();
        for pid in pids.into_iter().take(MOST_PROCESSES) {
            match WatchedProcess::other(pid) {
                Ok(process) => found.push(process),
                Err(error) => drop(self.notes.insert(error.to_string())),
            }
        }
        Ok(found)
    }

    /// Returns the processes of the target. Processes that hold a socket of the target's flows come first.
    fn holders_first(&mut self, subject: &WatchSubject<'_>) -> Result<Vec<u32>, Error> {
        let family = family(subject.target)?;
        // If this process may not see which processes hold sockets, the processes stay in the order of their ids.
        let notes = std::mem::take(&mut self.notes);
        let holders = self.holders(subject).unwrap_or_default();
        self.notes = notes;
        let (first, rest): (Vec<u32>, Vec<u32>) = family.into_iter().partition(|pid| holders.contains(pid));
        Ok([first, rest].concat())
    }

    /// If a search is due, adds the processes that belong to the target and were started since the window opened.
    fn newcomers(&mut self) {
        let now = Instant::now();
        let grows = matches!(self.target, WatchTarget::Pid { .. } | WatchTarget::Name { .. });
        if !grows || now < self.next_look || self.processes.len() >= MOST_PROCESSES {
            return;
        }
        for pid in family(self.target).unwrap_or_default() {
            if self.known.insert(pid) && self.processes.len() < MOST_PROCESSES {
                self.processes.extend(WatchedProcess::newborn(pid));
            }
        }
        self.next_look = Instant::now() + now.elapsed() * LOOKING_ONE_IN;
    }

    /// Returns the processes that hold the flows' sockets or a listening socket of the target.
    fn holders(&mut self, subject: &WatchSubject<'_>) -> Result<BTreeSet<u32>, Error> {
        let diag = SockDiag::open()?;
        let selection = select(&diag, subject)?;
        let listeners = selection.selector.listeners(&diag)?;
        let flows = selection.found.iter().map(|found| found.socket.inode);
        let owners = SocketOwners::find(flows.chain(listeners.iter().map(|listener| listener.inode)));
        self.notes.extend(owners.missing());
        if owners.pids().is_empty() {
            self.notes.insert("no process of a flow was found when the window opened".into());
        }
        Ok(owners.pids())
    }
}

impl OpenWindow for ProcessWindow {
    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        self.newcomers();
        for process in &mut self.processes {
            process.look();
        }
        Ok(())
    }

    fn close(self, seen: &mut Observations) -> Result<(), Error> {
        let mut notes = self.notes;
        let activities = self.processes.into_iter().filter_map(|process| process.tell(&mut notes));
        seen.put(activities.collect::<Vec<_>>());
        seen.unseen.extend(notes.into_iter().map(|note| format!("processes: {note}")));
        Ok(())
    }
}
