//! The plug-in point.

use std::os::fd::BorrowedFd;

use landspeed_record::{Figure, Misshapen, Observations, WatchTarget};
use landspeed_units::Nanos;

use crate::{Error, Headline};

/// What a watch looks at, known when the window opens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scene<'a> {
    /// Thread ids of the workload's own threads, all of this process; empty where the flows are
    /// somebody else's. They live until the window is closed.
    pub threads: &'a [i32],
    /// The workload's sockets, each with its flow's number; empty likewise. A flow may have none, or several, and sockets may
    /// be of any family.
    pub sockets: &'a [(u32, BorrowedFd<'a>)],
    /// Whose flows are watched.
    pub target: WatchTarget,
}

/// When an observer runs without being asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// In every trial and in every explanation.
    Always,
    /// Where what was seen is to be explained.
    Explaining,
    /// Where it is asked for by name: it disturbs what it looks at.
    OnRequest,
}

/// One kind of observation: a row of the table.
pub struct Observer {
    /// One lower-case word: "cpu", "tcp-info".
    pub name: &'static str,
    /// What it watches, one line.
    pub about: &'static str,
    /// What it cannot see, and why: one sentence each.
    pub cannot_see: &'static [&'static str],
    /// When it runs without being asked for by name.
    pub runs: Runs,
    /// It asks the workload's own descriptors: of somebody else's flows it sees nothing then.
    pub own_sockets_only: bool,
    /// What it prints of what it saw: the figures that are looked at first.
    pub headlines: &'static [Headline],
    /// Whether it can run on this host; the reason where it cannot.
    pub can_run: fn() -> Result<(), String>,
    /// A watch over this link, the interface that the workload's packets take. Whatever is slow to find is found here,
    /// before the window opens.
    pub watch: fn(&str) -> Box<dyn Watch>,
}

impl Observer {
    /// What it prints of what was seen.
    pub fn figures(&self, seen: &Observations) -> Result<Vec<Figure>, Misshapen> {
        Headline::figures(self.headlines, seen)
    }

    /// Whether it can run on this host; the reason where it cannot.
    pub fn can_run(&self) -> Result<(), String> {
        (self.can_run)()
    }

    /// A watch over this link.
    pub fn watch(&self, link: &str) -> Box<dyn Watch> {
        (self.watch)(link)
    }
}

/// An observer at work. Opened and closed any number of times, each time anew.
pub trait Watch: Send {
    /// Begins a window: reads the counters whose difference [`Watch::close`] reports. Quick.
    fn open(&mut self, scene: &Scene<'_>) -> Result<(), Error>;

    /// Takes a sample within the window, `at` after the flows' first data.
    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        Ok(())
    }

    /// Ends the window and adds what was seen to `seen`.
    fn close(&mut self, seen: &mut Observations) -> Result<(), Error>;
}
