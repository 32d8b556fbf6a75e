//! Watches existing flows without generating traffic.
//!
//! ```no_run
//! # use landspeed_observer::LiveWatch;
//! # use landspeed_record::{FlowWatch, WatchTarget};
//! # use std::time::Duration;
//! let mut live = LiveWatch::new(WatchTarget::Top, None)?;
//! let seen = live.watch(Duration::from_secs(5), Duration::from_millis(100), || false);
//! println!("{} flows over {}", seen.get::<Vec<FlowWatch>>().len(), live.link());
//! # Ok::<(), landspeed_observer::Error>(())
//! ```

use std::net::IpAddr;
use std::time::{Duration, Instant};

use landspeed_kernel::netlink::{Rtnl, SockDiag};
use landspeed_record::{Observations, WatchTarget};

use crate::sockets::select;
use crate::{Error, Observer, RunPolicy, WatchSubject, Watcher, rows};

/// Returns the name of the link on the route to the peer of the target's busiest flow; "lo" if the peer is on this
/// host. If no flow has a peer, returns the link that has the address to which one of the sockets is bound. Returns
/// `None` if there is no such link.
pub fn busiest_link(target: WatchTarget) -> Result<Option<String>, Error> {
    let subject = WatchSubject { target, ..WatchSubject::default() };
    let found = select(&SockDiag::open()?, &subject)?.found;
    let rtnl = Rtnl::open()?;
    let peers = found.iter().map(|found| found.key().remote.ip());
    if let Some(peer) = peers.into_iter().find(|ip| !ip.is_unspecified()) {
        return Ok(Some(rtnl.route_get(peer)?.device));
    }
    // The sockets are datagram sockets without a peer: find the link that has the address to which one of them is
    // bound.
    let bound: Vec<IpAddr> = found.iter().map(|found| found.key().local.ip()).collect();
    let holder = rtnl.all_addresses()?.into_iter().find(|held| bound.contains(&held.address));
    Ok(holder.map(|held| rtnl.link_at(held.index)).transpose()?.map(|link| link.name))
}

/// A watch over existing flows.
#[derive(Debug)]
pub struct LiveWatch {
    watcher: Watcher,
    target: WatchTarget,
    link: String,
    notes: Vec<String>,
}

impl LiveWatch {
    /// Prepares all observers with the policies [`RunPolicy::Always`] and [`RunPolicy::Explaining`] to watch `link`. If
    /// `link` is `None`, they watch the link that [`busiest_link`] returns.
    pub fn new(target: WatchTarget, link: Option<&str>) -> Result<Self, Error> {
        Self::with(&rows(&[], RunPolicy::Explaining).expect("no name is asked for"), target, link)
    }

    /// Prepares `observers` to watch `link`, except those that need the workload's own sockets. If `link` is `None`,
    /// they watch the link that [`busiest_link`] returns. If it returns none, the observers that need a link report
    /// that it is missing, and the others still work.
    pub fn with(
        observers: &[&'static Observer],
        target: WatchTarget,
        link: Option<&str>,
    ) -> Result<Self, Error> {
        let mut notes = Vec::new();
        let link = match link {
            Some(link) => link.to_owned(),
            None => busiest_link(target)?.unwrap_or_else(|| {
                notes.push("which link is meant: no flow with a peer is there; name one".into());
                String::new()
            }),
        };
        let sighted: Vec<_> = observers.iter().copied().filter(|row| !row.own_sockets_only).collect();
        Ok(LiveWatch { watcher: Watcher::with(&sighted, &link), target, link, notes })
    }

    /// Returns the name of the link whose counters and settings are watched; empty if there is none.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// Watches for `length` on this thread, and takes a sample after each interval `every`. Calls `stop` before each
    /// sample, and ends early if it returns true.
    pub fn watch(&mut self, length: Duration, every: Duration, stop: impl Fn() -> bool) -> Observations {
        self.watcher.open(&WatchSubject { target: self.target, ..WatchSubject::default() });
        let opened = Instant::now();
        let mut next = opened + every;
        while next < opened + length && !stop() {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            self.watcher.sample(opened.elapsed().into());
            // If a sample is late, the following ones are late too, so that samples are never taken in bursts.
            next = (next + every).max(Instant::now());
        }
        if !stop() {
            std::thread::sleep((opened + length).saturating_duration_since(Instant::now()));
        }
        let mut seen = self.watcher.close();
        seen.unseen.extend(self.notes.iter().cloned());
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::{FlowWatch, LinkSettings};

    #[test]
    fn a_watch_can_be_stopped() {
        let at = "127.0.0.1:9".parse().unwrap();
        let mut live = LiveWatch::new(WatchTarget::Flow { at }, Some("lo")).unwrap();
        let begun = Instant::now();
        let seen = live.watch(Duration::from_secs(600), Duration::from_secs(60), || true);
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert!(
            seen.get::<Vec<FlowWatch>>().is_empty() && seen.get::<Vec<LinkSettings>>()[0].link == "lo",
            "{seen:?}"
        );
    }
}
