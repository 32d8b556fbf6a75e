//! Measures the limit of each part of a host within seconds: the memory bandwidth by the four kernels of STREAM, copies
//! and checksums of cached and uncached data, TCP over loopback, raw packets, the link and its bus, and the processor's
//! clock.
//!
//! The SC'03 paper (feng-2003 section 3.5.2) derived the bottleneck from such figures: a part whose limit is far above
//! the flow's rate is not the bottleneck. [`measure`] takes all of these figures. Each part is a module with a time
//! limit; a part that cannot run on this host becomes a note.
//!
//! Nothing on the host is changed: packets go over loopback, or into a veth pair in a network namespace that is made
//! for them and ends with the thread that made it.

mod budget;
mod clock;
mod cores;
mod link;
mod loopback;
mod measure;
mod memory;
mod packets;
mod passes;

use crate::Error;
use crate::files::SystemFiles;
use budget::MeasurementBudget;
use cores::AllowedCores;
pub use measure::{TIME, measure};
