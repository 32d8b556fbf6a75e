//! Hosts and the networks between them: topologies, the emulated link (rate, delay, queue, losses), and labs with
//! deliberate faults.

pub mod emulator;
mod failure;
pub mod faults;
pub mod topology;

pub use failure::IoFailure;
