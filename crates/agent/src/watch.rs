//! Observers of a trial, which are opened and closed with the workload's window.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Instant;

use crate::session::OnProgress;
use landspeed_kernel::netlink::Rtnl;
use landspeed_observer::{RunPolicy, WatchSubject, Watcher, observer, rows, tcp_info};
use landspeed_record::units::Nanos;
use landspeed_record::{Observations, Role, TrialProgress, TrialSpec, WatchTarget};
use landspeed_workload::{WatchTargets, WindowWatch};

/// The observers of one trial: those that always run and those that the request names, on the link that the flows take.
pub(crate) struct TrialWatch<'a> {
    on_progress: &'a OnProgress<'a>,
    /// Copies of the flows' sockets; `None` if the controller does not request progress messages.
    sockets: Option<Vec<OwnedFd>>,
    watcher: Watcher,
    unseen: Option<String>,
    /// The threads that carry landspeed's own link.
    link_threads: Option<[i32; 2]>,
    /// Duration of the warm-up before the window. Samples count their time from the flows' first data.
    warm_up: Nanos,
    opened: Option<Instant>,
}

impl<'a> TrialWatch<'a> {
    /// Prepares the observers of a trial on `link`. If `link` is empty, a client takes the link that leads to the
    /// server at `at`, and a server takes the link that has the address of `at`.
    pub(crate) fn of(
        role: Role,
        at: SocketAddr,
        link: &str,
        spec: &TrialSpec,
        on_progress: &'a OnProgress<'a>,
    ) -> Result<Self, String> {
        let rtnl = Rtnl::open();
        let link = match role {
            _ if !link.is_empty() => Ok(link.to_owned()),
            Role::Client => rtnl.and_then(|rtnl| rtnl.route_towards(at)).map(|route| route.device),
            Role::Server => rtnl.and_then(|rtnl| link_of(&rtnl, at.ip())),
        };
        Self::on(spec, on_progress, link)
    }

    fn on(
        spec: &TrialSpec,
        on_progress: &'a OnProgress<'a>,
        link: Result<String, landspeed_kernel::netlink::Error>,
    ) -> Result<Self, String> {
        let (link, unseen) = match link {
            Ok(link) => (link, None),
            Err(error) => (String::new(), Some(format!("link counters: {error}"))),
        };
        let watcher = Watcher::with(&rows(&spec.observers, RunPolicy::Always)?, &link);
        let sockets = (spec.progress_ns > Nanos(0)).then(Vec::new);
        let (link_threads, warm_up) = (spec.link_threads, spec.warm_up_ns);
        Ok(TrialWatch { on_progress, sockets, watcher, unseen, link_threads, warm_up, opened: None })
    }
}

/// Returns an error if one of these observers cannot run here.
pub(crate) fn can_run(names: &[String]) -> Result<(), String> {
    rows(names, RunPolicy::Always)?;
    let mut asked = names.iter().filter_map(|name| observer(name));
    asked.try_for_each(|row| row.can_run().map_err(|why| format!("{} cannot run here: {why}", row.name)))
}

/// Returns the link that has the local address `address`; empty if none has.
fn link_of(rtnl: &Rtnl, address: IpAddr) -> Result<String, landspeed_kernel::netlink::Error> {
    let held = rtnl.all_addresses()?.into_iter().find(|a| a.address == address);
    match held {
        Some(held) => Ok(rtnl.link_at(held.index)?.name),
        None => Ok(String::new()),
    }
}

impl WindowWatch for TrialWatch<'_> {
    fn open(&mut self, ends: &WatchTargets) {
        let target = if ends.programs { WatchTarget::Programs } else { WatchTarget::Workload };
        let WatchTargets { threads, sockets, .. } = *ends;
        self.watcher.open(&WatchSubject { threads, sockets, target, link_threads: self.link_threads });
        if let Some(sockets) = &mut self.sockets {
            // A flow whose descriptor cannot be copied reports no progress, but runs all the same.
            sockets.extend(ends.sockets.iter().filter_map(|(_, socket)| socket.try_clone_to_owned().ok()));
        }
        self.opened = Some(Instant::now());
        self.watcher.sample(self.warm_up);
    }

    fn sample(&mut self, at: Nanos) {
        self.watcher.sample(at);
    }

    fn progress(&mut self, so_far: TrialProgress) {
        let tcp = self.sockets.as_deref().and_then(tcp_info::progress);
        (self.on_progress)(TrialProgress { tcp, ..so_far });
    }

    /// Takes a last sample even if the interval is not over, because differences over the window need a sample at each
    /// end.
    fn close(&mut self) -> Observations {
        let open_for = self.opened.take().map_or(Nanos(0), |opened| opened.elapsed().into());
        self.watcher.sample(self.warm_up + open_for);
        let mut seen = self.watcher.close();
        seen.unseen.extend(self.unseen.take());
        seen
    }
}
