//! The topology of hosts that landspeed did not create: this machine, hosts reached by ssh, and hosts with an agent
//! that was started by hand.

mod host_spec;
mod hosts;
mod topology;

pub use host_spec::{HostSpec, SshTarget};
pub(crate) use hosts::RealHosts;
pub use hosts::within;
pub(crate) use topology::RealTopology;
