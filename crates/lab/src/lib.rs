//! Hosts and what joins them: topologies, landspeed's own link with a rate, delay, queue and losses, and faults that
//! are made on purpose.

pub mod emulator;
mod failure;
pub mod faults;
pub mod topology;

pub use failure::IoFailure;
