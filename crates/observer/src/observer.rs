//! The interface that each observer implements: [`Observer`] describes it, and [`Watch`] runs it.

use std::os::fd::BorrowedFd;

use landspeed_record::units::Nanos;
use landspeed_record::{DetailError, Figure, KernelNeed, Observations, WatchTarget};

use crate::Error;

/// What an observer watches during one window.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchSubject<'a> {
    /// Thread ids of the workload, all in this process; empty if other programs own the flows. The threads exist until
    /// the window is closed.
    pub threads: &'a [i32],
    /// The workload's sockets, each with its flow's number; empty if other programs own the flows. A flow may have
    /// none or several, and sockets may be of any family.
    pub sockets: &'a [(u32, BorrowedFd<'a>)],
    /// The target whose flows are watched.
    pub target: WatchTarget,
    /// Threads that carry landspeed's own link between the hosts, of any process; `None` without such a link.
    pub link_threads: Option<[i32; 2]>,
}

/// The condition under which an observer runs without being requested by name. If the verdict uses an observer to find
/// a cause, the observer must run `Always` or `Explaining`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPolicy {
    /// In every trial and in every explanation.
    Always,
    /// Only when a path or a flow is explained.
    Explaining,
    /// Only if it is requested by name, for example because it disturbs the flows.
    OnRequest,
}

/// A figure that an observer prints, taken from the observations.
pub type ObserverHeadline = landspeed_record::Headline<Observations>;

/// An observer: a row of the table [`OBSERVERS`](crate::OBSERVERS).
pub struct Observer {
    /// The name, one lower-case word: "cpu", "tcp-info".
    pub name: &'static str,
    /// What the observer watches, in one line.
    pub about: &'static str,
    /// One sentence for each thing that the observer cannot see, with the reason.
    pub cannot_see: &'static [&'static str],
    /// The condition under which the observer runs without being requested by name.
    pub runs: RunPolicy,
    /// True if the observer reads the descriptors of the workload's sockets, and so cannot observe other programs'
    /// flows.
    pub own_sockets_only: bool,
    /// What the observer needs of the kernel; empty if every supported kernel has it.
    pub kernel: &'static [KernelNeed],
    /// The figures that the observer prints.
    pub headlines: &'static [ObserverHeadline],
    /// Checks that the observer can run on this host; returns the reason if it cannot.
    pub can_run: fn() -> Result<(), String>,
    /// Returns a watch of the interface with this name, which the workload's packets use. Does all slow look-ups,
    /// because at this time no window is open yet.
    pub watch: fn(&str) -> Box<dyn Watch>,
}

impl Observer {
    /// Returns the figures that the observer prints, taken from the observations `seen`.
    pub fn figures(&self, seen: &Observations) -> Result<Vec<Figure>, DetailError> {
        ObserverHeadline::figures(self.headlines, seen)
    }

    /// Checks that the observer can run on this host; returns the reason if it cannot.
    pub fn can_run(&self) -> Result<(), String> {
        (self.can_run)()
    }

    /// Returns a watch of the interface `link`, which the workload's packets use.
    pub fn watch(&self, link: &str) -> Box<dyn Watch> {
        (self.watch)(link)
    }
}

/// A running observer. It can be opened and closed any number of times, and each window is independent of the earlier
/// ones.
///
/// A watch that counts the segments that a host sent:
///
/// ```
/// use landspeed_observer::{Error, Watch, WatchSubject};
/// use landspeed_record::{Observations, SnmpCounts};
///
/// #[derive(Default)]
/// struct SentSegments(u64);
///
/// fn sent() -> u64 {
///     let text = std::fs::read_to_string("/proc/net/snmp").unwrap_or_default();
///     let tcp = text.lines().rfind(|line| line.starts_with("Tcp:")).unwrap_or_default();
///     tcp.split(' ').nth(11).and_then(|count| count.parse().ok()).unwrap_or_default()
/// }
///
/// impl Watch for SentSegments {
///     fn open(&mut self, _: &WatchSubject<'_>) -> Result<(), Error> {
///         self.0 = sent();
///         Ok(())
///     }
///
///     fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
///         seen.put(SnmpCounts([("Tcp.OutSegs".to_owned(), sent().saturating_sub(self.0))].into()));
///         Ok(())
///     }
/// }
///
/// let (mut watch, mut seen) = (SentSegments::default(), Observations::default());
/// watch.open(&WatchSubject::default())?;
/// watch.close(&mut seen)?;
/// assert!(seen.get::<SnmpCounts>().0.contains_key("Tcp.OutSegs"));
/// # Ok::<(), Error>(())
/// ```
pub trait Watch: Send {
    /// Begins a window over `subject`. Reads the counters whose growth [`Watch::close`] reports. The call must be
    /// quick.
    fn open(&mut self, subject: &WatchSubject<'_>) -> Result<(), Error>;

    /// Takes a sample within the window, `at` after the flows' first data.
    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        Ok(())
    }

    /// Ends the window and adds the observations to `seen`. Adds counts of zero too, because an absent detail means
    /// that the count is unknown.
    fn close(&mut self, seen: &mut Observations) -> Result<(), Error>;
}
