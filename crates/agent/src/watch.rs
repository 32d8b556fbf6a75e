//! Observers, opened and closed with a workload's window.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Instant;

use landspeed_netlink::Rtnl;
use landspeed_observer::{Runs, Scene, Watcher, observer, rows, tcp_info};
use landspeed_record::{Observations, Progress, Role, TrialSpec, WatchTarget};
use landspeed_session::Tell;
use landspeed_units::Nanos;
use landspeed_workload::{Watch, Watched};

/// What watches one trial: the usual observers and those asked for, on the link that the flows take.
pub(crate) struct TrialWatch<'a> {
    tell: &'a Tell<'a>,
    /// The flows' own, where the controller wants to know how far they are.
    sockets: Option<Vec<OwnedFd>>,
    watcher: Watcher,
    unseen: Option<String>,
    /// Start-up before the window: samples count their time from the flows' first data.
    warm_up: Nanos,
    opened: Option<Instant>,
}

impl<'a> TrialWatch<'a> {
    /// On `link`; where it is empty, on the one that leads to the server at `at`, or that holds the own address there.
    pub(crate) fn of(
        role: Role,
        at: SocketAddr,
        link: &str,
        (spec, tell): (&TrialSpec, &'a Tell<'a>),
    ) -> Result<Self, String> {
        let rtnl = Rtnl::open();
        let link = match role {
            _ if !link.is_empty() => Ok(link.to_owned()),
            Role::Client => rtnl.and_then(|rtnl| rtnl.route_towards(at)).map(|route| route.device),
            Role::Server => rtnl.and_then(|rtnl| link_of(&rtnl, at.ip())),
        };
        Self::on(spec, tell, link)
    }

    fn on(
        spec: &TrialSpec,
        tell: &'a Tell<'a>,
        link: Result<String, landspeed_netlink::Error>,
    ) -> Result<Self, String> {
        let (link, unseen) = match link {
            Ok(link) => (link, None),
            Err(error) => (String::new(), Some(format!("link counters: {error}"))),
        };
        let watcher = Watcher::with(&rows(&spec.observers, Runs::Always)?, &link);
        let sockets = (spec.progress_ns > Nanos(0)).then(Vec::new);
        Ok(TrialWatch { tell, sockets, watcher, unseen, warm_up: spec.warm_up_ns, opened: None })
    }
}

/// Whether all these observers can run here.
pub(crate) fn can_run(names: &[String]) -> Result<(), String> {
    rows(names, Runs::Always)?;
    let mut asked = names.iter().filter_map(|name| observer(name));
    asked.try_for_each(|row| row.can_run().map_err(|why| format!("{} cannot run here: {why}", row.name)))
}

/// The link that holds the own address `address`.
fn link_of(rtnl: &Rtnl, address: IpAddr) -> Result<String, landspeed_netlink::Error> {
    let held = rtnl.all_addresses()?.into_iter().find(|a| a.address == address);
    match held {
        Some(held) => Ok(rtnl.link_at(held.index)?.name),
        None => Ok(String::new()),
    }
}

impl Watch for TrialWatch<'_> {
    fn open(&mut self, ends: &Watched) {
        let target = if ends.programs { WatchTarget::Programs } else { WatchTarget::Workload };
        self.watcher.open(&Scene { threads: ends.threads, sockets: ends.sockets, target });
        if let Some(sockets) = &mut self.sockets {
            // One that cannot be had tells nothing, and flows all the same.
            sockets.extend(ends.sockets.iter().filter_map(|(_, socket)| socket.try_clone_to_owned().ok()));
        }
        self.opened = Some(Instant::now());
        self.watcher.sample(self.warm_up);
    }

    fn sample(&mut self, at: Nanos) {
        self.watcher.sample(at);
    }

    fn progress(&mut self, so_far: Progress) {
        let tcp = self.sockets.as_deref().and_then(tcp_info::progress);
        (self.tell)(Progress { tcp, ..so_far });
    }

    /// Each end of the window has its sample, whatever the interval: differences over the window need
    /// both.
    fn close(&mut self) -> Observations {
        let open_for = self.opened.take().map_or(Nanos(0), |opened| opened.elapsed().into());
        self.watcher.sample(self.warm_up + open_for);
        let mut seen = self.watcher.close();
        seen.unseen.extend(self.unseen.take());
        seen
    }
}
