//! Measures the limit of each part of a host within seconds: the memory bandwidth with the four kernels of STREAM, the
//! rates of copies and checksums of cached and uncached data, TCP over loopback, the rate of raw packets, the link and
//! its bus, and the processor's clock.
//!
//! The SC'03 paper (feng-2003 section 3.5.2) derived the bottleneck from such figures: a part whose limit is far above
//! the flow's rate is not the bottleneck. [`measure`] measures all of them. Each part is a module with a time limit. If
//! a part cannot be measured on this host, a note gives the reason.
//!
//! The measurement changes nothing on the host. Packets are sent over loopback, or over a veth pair in a temporary
//! network namespace, which the kernel removes when the thread that created it ends.

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
