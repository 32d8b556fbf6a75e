//! The identity of a journal's settings: the boot, the network namespace and the device.

use std::fs;
use std::io;

use landspeed_kernel::namespace::boot_id;
use landspeed_kernel::netlink::{Link, netns_cookie};
use serde::{Deserialize, Serialize};

use super::JournalError;

/// The boot and the network namespace of this thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamespaceIdentity {
    pub(super) boot_id: String,
    pub(super) netns_cookie: u64,
}

impl NamespaceIdentity {
    pub(super) fn find_out() -> Result<NamespaceIdentity, JournalError> {
        let boot_id = boot_id().map_err(|source| JournalError::Unknown { what: "the boot id", source })?;
        let netns_cookie = netns_cookie().map_err(|e| JournalError::Unknown {
            what: "the network namespace",
            source: io::Error::other(e),
        })?;
        Ok(NamespaceIdentity { boot_id, netns_cookie })
    }
}

/// Returns true if host-wide settings can be changed from this network namespace. The kernel registers
/// net.core.netdev_budget for the machine's first namespace only (net/core/sysctl_net_core.c), so its presence
/// decides, even in a container whose /proc hides process 1.
pub(crate) fn in_initial_netns() -> bool {
    fs::exists("/proc/sys/net/core/netdev_budget").unwrap_or(false)
}

/// The identity of a device, which distinguishes it from a later one with the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceIdentity {
    /// Name of the device when the journal was written.
    pub(super) name: String,
    /// Interface index. The kernel does not use an index twice within a namespace and boot unless a program requests
    /// it.
    pub(super) ifindex: u32,
    /// Permanent hardware address; virtual devices have none.
    pub(super) permanent_mac: Option<String>,
    /// Bus address of hardware ("0000:01:00.0").
    #[serde(default)]
    pub(super) parent: Option<String>,
    /// Kind of a virtual device: "veth", "bridge", ...
    #[serde(default)]
    pub(super) kind: Option<String>,
    /// Hardware address, which the device keeps in another network namespace.
    #[serde(default)]
    pub(super) mac: Option<String>,
}

impl DeviceIdentity {
    pub(super) fn of(link: &Link) -> DeviceIdentity {
        DeviceIdentity {
            name: link.name.clone(),
            ifindex: link.index,
            permanent_mac: link.permanent_mac.as_ref().map(ToString::to_string),
            parent: link.parent.clone(),
            kind: link.kind.clone(),
            mac: Some(link.mac.to_string()).filter(|mac| !mac.is_empty()),
        }
    }
}
