//! Hosts and the networks between them: topologies, landspeed's own emulated link with a rate, delay, queue and losses,
//! and labs with deliberate faults.

pub mod emulator;
mod failure;
pub mod faults;
pub mod topology;

pub use failure::IoFailure;
