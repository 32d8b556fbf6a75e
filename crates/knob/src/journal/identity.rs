//! Whose settings a journal speaks of: which boot, which network namespace, which device.

use std::fs;
use std::io;

use landspeed_netlink::{Link, netns_cookie};
use serde::{Deserialize, Serialize};

use super::JournalError;

/// The boot and the network namespace that this thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Here {
    pub(super) boot_id: String,
    pub(super) netns_cookie: u64,
}

impl Here {
    pub(super) fn find_out() -> Result<Here, JournalError> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_err(|source| JournalError::Unknown { what: "the boot id", source })?;
        let netns_cookie = netns_cookie().map_err(|e| JournalError::Unknown {
            what: "the network namespace",
            source: io::Error::other(e),
        })?;
        Ok(Here { boot_id: boot_id.trim().to_owned(), netns_cookie })
    }
}

/// Whether host-wide settings can be turned from this network namespace. The kernel registers
/// net.core.netdev_budget for the machine's first namespace only (net/core/sysctl_net_core.c), so its
/// presence tells, also inside a container whose /proc hides process 1.
pub(crate) fn in_initial_netns() -> bool {
    fs::exists("/proc/sys/net/core/netdev_budget").unwrap_or(false)
}

/// A device, told from a later one with the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    /// Its name when the journal was written.
    pub(super) name: String,
    /// Never used twice within a namespace and boot, unless somebody asks for it.
    pub(super) ifindex: u32,
    /// The address burnt into the hardware; virtual devices have none.
    pub(super) permanent_mac: Option<String>,
    /// Its address on the bus ("0000:01:00.0"), of hardware.
    #[serde(default)]
    pub(super) parent: Option<String>,
    /// "veth", "bridge", ...; of virtual devices.
    #[serde(default)]
    pub(super) kind: Option<String>,
    /// Its hardware address, which it keeps in another network namespace.
    #[serde(default)]
    pub(super) mac: Option<String>,
}

impl Device {
    pub(super) fn of(link: &Link) -> Device {
        Device {
            name: link.name.clone(),
            ifindex: link.index,
            permanent_mac: link.permanent_mac.as_ref().map(ToString::to_string),
            parent: link.parent.clone(),
            kind: link.kind.clone(),
            mac: Some(link.mac.to_string()).filter(|mac| !mac.is_empty()),
        }
    }
}
