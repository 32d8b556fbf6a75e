//! Reads the settings of links: MTU, transmit queue length and offloads.

use landspeed_kernel::netlink::{DeviceFeatures, Ethtool, Link, Rtnl};
use landspeed_record::units::Bytes;
use landspeed_record::{LinkSettings, Observations, WatchTarget};

use crate::figures::headlines;
use crate::window::{OpenWindow, windows};
use crate::{Error, Observer, RunPolicy, WatchSubject};

pub(crate) static SETTINGS: Observer = Observer {
    name: "settings",
    about: "MTU, transmit queue length and offloads of the link",
    cannot_see: &[
        "what changes within the window: settings are those of its end",
        "MTUs beyond the first link: the path's is in the flows' path_mtu_bytes, where one was learned",
        "offloads that a driver does without saying so",
    ],
    runs: RunPolicy::Explaining,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        links: Vec<LinkSettings> => {
            "MTU", "bytes": links.first().map(|link| link.mtu_bytes.0);
            "transmit queue", "packets": links.first().map(|link| u64::from(link.tx_queue_packets));
        }
    },
    can_run: || Rtnl::open().map(drop).map_err(|error| error.to_string()),
    watch: |link| {
        let link = link.to_owned();
        windows(move |subject| SettingsWindow::new(&link, subject))
    },
};

/// An open window. Its netlink sockets are in the network namespace of the thread that opened it.
struct SettingsWindow {
    rtnl: Rtnl,
    ethtool: Result<Ethtool, String>,
    /// The watched link; `None` for all links that are up.
    link: Option<String>,
}

impl SettingsWindow {
    /// Opens a window over `link`. If `link` is empty and other programs own the flows, the window is over all links
    /// that are up.
    fn new(link: &str, subject: &WatchSubject<'_>) -> Result<Self, Error> {
        let all = link.is_empty() && subject.target != WatchTarget::Workload;
        let ethtool = Ethtool::open().map_err(|error| error.to_string());
        Ok(SettingsWindow { rtnl: Rtnl::open()?, ethtool, link: (!all).then(|| link.to_owned()) })
    }

    fn links(&self) -> Result<Vec<Link>, Error> {
        if let Some(link) = &self.link {
            return Ok(vec![self.rtnl.link(link)?]);
        }
        let mut links = self.rtnl.links()?;
        links.retain(|link| link.up);
        Ok(links)
    }

    /// Returns the offloads of a link, or the reason why they cannot be read.
    fn features(&self, link: &str) -> Result<DeviceFeatures, String> {
        let ethtool = self.ethtool.as_ref().map_err(Clone::clone)?;
        ethtool.features(link).map_err(|error| error.to_string())
    }
}

/// Returns the settings of `link`. Lists only the offloads that are on or can be turned on.
fn settings(link: &Link, features: &DeviceFeatures) -> LinkSettings {
    let known = features.hw.iter().filter(|name| !features.nochange.contains(*name)).chain(&features.active);
    LinkSettings {
        link: link.name.clone(),
        mtu_bytes: Bytes(link.mtu.into()),
        tx_queue_packets: link.txqlen,
        features: known.map(|name| (name.clone(), features.is_on(name))).collect(),
        fixed: features.active.iter().filter(|name| !features.can_switch(name)).cloned().collect(),
    }
}

impl OpenWindow for SettingsWindow {
    fn close(self, seen: &mut Observations) -> Result<(), Error> {
        let described = self.links()?.into_iter().map(|link| {
            let features = self.features(&link.name).unwrap_or_else(|why| {
                seen.unseen.push(format!("settings: offloads of {}: {why}", link.name));
                DeviceFeatures::default()
            });
            settings(&link, &features)
        });
        let described: Vec<LinkSettings> = described.collect();
        seen.put(described);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn watched(link: &str, target: WatchTarget) -> Result<Observations, Error> {
        let mut watch = SETTINGS.watch(link);
        watch.open(&WatchSubject { target, ..WatchSubject::default() })?;
        let mut seen = Observations::default();
        watch.close(&mut seen)?;
        Ok(seen)
    }

    #[test]
    fn loopback_is_described() {
        let seen = watched("lo", WatchTarget::Workload).unwrap();
        let lo = &seen.get::<Vec<LinkSettings>>()[0];
        assert!(lo.mtu_bytes >= Bytes(1500) && lo.link == "lo", "{lo:?}");
        assert_eq!(lo.features.get("tx-tcp-segmentation"), Some(&true), "{:?}", seen.unseen);
        // The feature "loopback" of lo cannot be turned off.
        assert!(lo.fixed.contains(&"loopback".to_owned()), "{:?}", lo.fixed);
        assert!(lo.fixed.iter().all(|name| lo.features.contains_key(name)), "{lo:?}");
    }

    #[test]
    fn without_a_name_live_traffic_may_take_any_link() {
        assert!(watched("", WatchTarget::Workload).is_err());
        let seen = watched("", WatchTarget::Top).unwrap();
        assert!(seen.get::<Vec<LinkSettings>>().iter().any(|link| link.link == "lo"), "{seen:?}");
    }

    #[test]
    fn settings_that_a_link_lacks_are_left_out() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let features = DeviceFeatures {
            hw: set(&["tx-tcp-segmentation", "rx-gro", "netns-local"]),
            wanted: set(&[]),
            active: set(&["rx-gro", "highdma"]),
            nochange: set(&["netns-local"]),
        };
        let link = Link { name: "eth0".into(), mtu: 9000, txqlen: 500, ..Link::default() };
        let seen = settings(&link, &features);
        let on: Vec<_> = seen.features.iter().map(|(name, on)| (name.as_str(), *on)).collect();
        assert_eq!(on, [("highdma", true), ("rx-gro", true), ("tx-tcp-segmentation", false)]);
        assert_eq!(
            (seen.fixed, seen.mtu_bytes, seen.tx_queue_packets),
            (vec!["highdma".into()], Bytes(9000), 500)
        );
    }
}
