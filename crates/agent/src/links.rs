//! The interfaces of a session, by the names that the controller uses for them.

use std::collections::HashMap;

use landspeed_kernel::netlink::{HardwareAddress, Link, Rtnl};
use parking_lot::Mutex;

/// The largest number of interfaces whose renames are followed; more than a controller needs.
const LIMIT: usize = 64;

/// The interfaces of a session, by the names that the session first used for them. Each is still found after a rename.
#[derive(Default)]
pub(crate) struct InterfaceNames(Mutex<HashMap<String, InterfaceIdentity>>);

/// The properties of an interface that a rename does not change.
#[derive(Clone)]
struct InterfaceIdentity {
    index: u32,
    permanent: Option<HardwareAddress>,
}

impl InterfaceNames {
    /// Returns the current name of the interface that the session first called `name`, or `name` if there is no such
    /// interface.
    pub(crate) fn current(&self, name: &str) -> String {
        self.find(name).map_or_else(|| name.to_owned(), |link| link.name)
    }

    /// Returns the session's name and the current name of each interface that was renamed.
    pub(crate) fn renamed(&self) -> Vec<(String, String)> {
        let known = self.0.lock().clone();
        let now = known.iter().filter_map(|(name, known)| Some((name.clone(), known.link()?.name)));
        now.filter(|(then, now)| then != now).collect()
    }

    fn find(&self, name: &str) -> Option<Link> {
        let mut known = self.0.lock();
        if let Some(known) = known.get(name) {
            return known.link();
        }
        let link = Rtnl::open().ok()?.link(name).ok()?;
        if known.len() < LIMIT {
            known.insert(
                name.to_owned(),
                InterfaceIdentity { index: link.index, permanent: link.permanent_mac.clone() },
            );
        }
        Some(link)
    }
}

impl InterfaceIdentity {
    /// Reads the interface; `None` if it is gone. Compares the permanent address too, because a program can create an
    /// interface with the index of one that is gone.
    fn link(&self) -> Option<Link> {
        let link = Rtnl::open().ok()?.link_at(self.index).ok()?;
        (link.permanent_mac == self.permanent).then_some(link)
    }
}

#[cfg(test)]
mod tests {
    use landspeed_kernel::netlink::{LinkChange, VethEnd, in_throwaway};

    use super::*;

    #[test]
    fn a_renamed_interface_is_followed_and_its_name_is_not_taken_over() {
        let Ok(names) = in_throwaway(|| {
            let rtnl = Rtnl::open().unwrap();
            let end = |name| VethEnd { name, mac: None, netns: None, queues: 1 };
            rtnl.create_veth(&end("eth0"), &end("other")).unwrap();
            let links = InterfaceNames::default();
            let first = links.current("eth0");
            rtnl.set_link("eth0", LinkChange::Name("lan0")).unwrap();
            rtnl.set_link("other", LinkChange::Name("eth0")).unwrap();
            [first, links.current("eth0"), links.current("absent")]
        }) else {
            return eprintln!("SKIP a_renamed_interface_is_followed: no network namespace can be made");
        };
        assert_eq!(names, ["eth0", "lan0", "absent"]);
    }
}
