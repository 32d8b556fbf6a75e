//! Topologies: which hosts there are, what joins them, and how to reach them.
//!
//! A topology is one of landspeed's five kinds of plug-in: a folder here and a line in [`TOPOLOGIES`].
//! [`open`] picks one from the words of a command line. The lab (namespaces on this machine) can also be
//! used on its own: [`Lab`], [`lab::list`], [`lab::down`].

#![warn(missing_docs)]

mod error;
pub mod lab;
mod namespace;
mod real;
mod registry;

pub use error::Error;
pub use lab::{Lab, LabHost, LabKind};
pub use landspeed_emulator::WanSpec;
pub use namespace::{Namespace, enter, exists, with_namespace};
pub use real::{HostSpec, SshTarget};
pub use registry::{Host, Hosts, Invite, Reach, TOPOLOGIES, Topology, find, open};
