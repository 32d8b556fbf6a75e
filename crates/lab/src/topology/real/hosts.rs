//! Hosts that exist without landspeed.

use crate::topology::hosts::{HostSet, TopologyHost};

/// The named hosts, as they are.
#[derive(Debug)]
pub(crate) struct RealHosts {
    pub(crate) hosts: Vec<TopologyHost>,
    pub(crate) label: String,
}

impl HostSet for RealHosts {
    fn hosts(&self) -> &[TopologyHost] {
        &self.hosts
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn is_lab(&self) -> bool {
        false
    }
}
