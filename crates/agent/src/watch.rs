//! Observers, opened and closed with a workload's window.

use std::net::IpAddr;
use std::time::Instant;

use landspeed_netlink::Rtnl;
use landspeed_observer::{Scene, Watcher};
use landspeed_record::Observations;
use landspeed_units::Nanos;
use landspeed_workload::{Ends, Watch};

/// What watches one trial: all observers, on the link that the flows take.
pub(crate) struct TrialWatch {
    watcher: Watcher,
    unseen: Option<String>,
    /// Start-up before the window: samples count their time from the flows' first data.
    warm_up: Nanos,
    opened: Option<Instant>,
}

impl TrialWatch {
    /// For a client of `peer`.
    pub(crate) fn towards(peer: IpAddr, warm_up: Nanos) -> Self {
        Self::on(warm_up, Rtnl::open().and_then(|rtnl| rtnl.route_get(peer)).map(|route| route.device))
    }

    /// For a server on the own address `address`.
    pub(crate) fn at(address: IpAddr, warm_up: Nanos) -> Self {
        Self::on(warm_up, Rtnl::open().and_then(|rtnl| link_of(&rtnl, address)))
    }

    fn on(warm_up: Nanos, link: Result<String, landspeed_netlink::Error>) -> Self {
        let (link, unseen) = match link {
            Ok(link) => (link, None),
            Err(error) => (String::new(), Some(format!("link counters: {error}"))),
        };
        TrialWatch { watcher: Watcher::new(&link), unseen, warm_up, opened: None }
    }
}

/// The link that holds the own address `address`.
fn link_of(rtnl: &Rtnl, address: IpAddr) -> Result<String, landspeed_netlink::Error> {
    let held = rtnl.all_addresses()?.into_iter().find(|a| a.address == address);
    match held {
        Some(held) => Ok(rtnl.link_at(held.index)?.name),
        None => Ok(String::new()),
    }
}

impl Watch for TrialWatch {
    fn open(&mut self, ends: &Ends) {
        self.watcher.open(&Scene { threads: ends.threads, sockets: ends.sockets, ..Scene::default() });
        self.opened = Some(Instant::now());
        self.watcher.sample(self.warm_up);
    }

    fn sample(&mut self, at: Nanos) {
        self.watcher.sample(at);
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
