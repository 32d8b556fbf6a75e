//! The present location of a journaled device.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::KnobTarget;

/// A device, and the network namespace that it is in; `None` for that of this thread.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceLocation {
    /// Name of the device in the location's network namespace; empty for a target without a device.
    pub(super) device: String,
    pub(super) netns: Option<Arc<OwnedFd>>,
}

impl DeviceLocation {
    pub(super) fn here(device: &str) -> DeviceLocation {
        DeviceLocation { device: device.to_owned(), netns: None }
    }

    /// Returns true if the location is in another network namespace than this thread.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.netns.is_some()
    }

    pub(super) fn target(&self) -> KnobTarget {
        KnobTarget { device: self.device.clone() }
    }
}

/// The result of searching for a journaled device.
#[derive(Debug, Clone)]
pub(super) enum DeviceWhereabouts {
    At(DeviceLocation),
    /// The device and its settings no longer exist.
    Gone,
}
