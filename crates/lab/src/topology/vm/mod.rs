//! The topology `lab:vm`: two virtual machines, each with a kernel of its own.
//!
//! landspeed boots them in QEMU, and reaches them by ssh from the lab's namespace. They show the effect of a setting on
//! their kernels, whichever kernel this machine has. Their speeds say nothing about hardware, with KVM or without.

mod accelerator;
mod guests;
mod images;
mod login;
mod spec;
mod topology;

pub use accelerator::{ACCELERATOR_VARIABLE, Accelerator};
pub(crate) use guests::NETWORKS;
pub use guests::{Guests, drive};
pub use images::{FOLDER_VARIABLE, folder, has_device, kernel};
pub use login::GuestLogin;
pub(crate) use spec::GuestSpec;
pub(crate) use topology::VmTopology;
