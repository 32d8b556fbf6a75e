//! Runs several observers over one window.

use landspeed_record::Observations;
use landspeed_record::units::Nanos;

use crate::{Error, Observer, RunPolicy, Watch, WatchSubject, rows};

/// An observer that can run on this host, and its watch.
struct PreparedObserver {
    name: &'static str,
    watch: Box<dyn Watch>,
    /// True from a successful opening of a window until its close.
    open: bool,
}

/// The observers of one host, which run together over the window of a trial. If one observer fails, the others and the
/// trial continue, and the failure becomes a line of [`Observations::unseen`].
pub struct Watcher {
    prepared: Vec<PreparedObserver>,
    /// The reasons why observers cannot run on this host.
    barred: Vec<String>,
    failed: Vec<String>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.prepared.iter().map(|observer| (observer.name, observer.open)).collect();
        f.debug_struct("Watcher").field("prepared", &names).field("barred", &self.barred).finish()
    }
}

impl Watcher {
    /// Prepares the observers with the policy [`RunPolicy::Always`] to watch the interface `link`.
    pub fn new(link: &str) -> Self {
        Self::with(&rows(&[], RunPolicy::Always).expect("no name is asked for"), link)
    }

    /// Prepares `observers` to watch the interface `link`. An observer that cannot run on this host is left out, and
    /// the observations of each window report the reason.
    pub fn with(observers: &[&'static Observer], link: &str) -> Self {
        let mut watcher = Watcher { prepared: Vec::new(), barred: Vec::new(), failed: Vec::new() };
        for row in observers {
            match row.can_run() {
                Ok(()) => {
                    watcher.prepared.push(PreparedObserver {
                        name: row.name,
                        watch: row.watch(link),
                        open: false,
                    });
                }
                Err(why) => watcher.barred.push(format!("{}: {why}", row.name)),
            }
        }
        watcher
    }

    /// Begins a window over `subject`. Discards a window that is still open. The watcher keeps duplicates of the
    /// sockets until [`Watcher::close`], so that it can read a flow's last state even if the workload closes the flow
    /// before.
    pub fn open(&mut self, subject: &WatchSubject<'_>) {
        self.failed.clear();
        for observer in &mut self.prepared {
            let opened = observer.watch.open(subject);
            observer.open = opened.is_ok();
            note(&mut self.failed, observer.name, opened);
        }
    }

    /// Takes a sample with each open observer, `at` after the flows' first data.
    pub fn sample(&mut self, at: Nanos) {
        for observer in self.prepared.iter_mut().filter(|observer| observer.open) {
            note(&mut self.failed, observer.name, observer.watch.sample(at));
        }
    }

    /// Ends the window and returns the observations. If no window is open, fills only `unseen`.
    pub fn close(&mut self) -> Observations {
        let mut seen = Observations::default();
        for observer in self.prepared.iter_mut().rev().filter(|observer| observer.open) {
            observer.open = false;
            note(&mut self.failed, observer.name, observer.watch.close(&mut seen));
        }
        let own = std::mem::take(&mut seen.unseen);
        seen.unseen = self.barred.iter().cloned().chain(self.failed.drain(..)).chain(own).collect();
        seen
    }
}

/// If `outcome` is an error, adds a line with the name of the observer and the error to `failed`. Does not add the same
/// line twice, because a hundred samples may fail in the same way.
fn note(failed: &mut Vec<String>, name: &str, outcome: Result<(), Error>) {
    if let Err(error) = outcome {
        let line = format!("{name}: {error}");
        if !failed.contains(&line) {
            failed.push(line);
        }
    }
}
