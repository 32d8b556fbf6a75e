//! Topologies: the hosts of a run, how they are joined, and how to reach them.
//!
//! Topologies are one of landspeed's five kinds of plug-in. A new one needs a module here and a row of [`TOPOLOGIES`].
//! A topology of network namespaces returns a [`LabPlan`], from which the module `lab` creates the lab. A plan has one
//! of four shapes; a new shape must be added in `lab/plan.rs`. [`open`] selects the topology by the words of a command
//! line. A lab (namespaces on this machine) can also be used without [`open`]: [`Lab`], [`lab::list`], [`lab::down`].

mod back_to_back;
mod choose;
mod error;
mod hosts;
pub mod lab;
mod namespace;
mod path;
mod real;
pub mod reference;
mod registry;
mod switch;
pub mod vm;
mod wan;

pub use crate::emulator::{Parameter, SECOND_RTT_DSCP};
pub use choose::{find, open, path, with_parameters};
pub use error::Error;
pub use hosts::{HostPair, HostSet, InviteLine, ReachMethod, TopologyHost};
pub use lab::{Lab, LabHost, LabPlan};
pub use namespace::{Namespace, enter, exists, with_namespace};
pub use path::{PathLink, PlannedPath};
pub use real::{HostSpec, SshTarget, within};
pub use registry::{Topology, TopologyDescription, TopologyPlan};

/// All topologies. The first one is the default.
pub static TOPOLOGIES: &[&dyn Topology] = &[
    &back_to_back::BackToBackTopology,
    &switch::SwitchTopology,
    &wan::WanTopology,
    &vm::VmTopology,
    &real::RealTopology,
];
