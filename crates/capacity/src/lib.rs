//! What each part of a host could do at most, measured on that host within seconds: memory by the four
//! kernels of STREAM, copies and checksums hot and cold, TCP over loopback, raw packets, the link and its
//! bus, the processor's clock.
//!
//! SC'03 (feng-2003 section 3.5.2) argued by hand from such figures which part is the bottleneck: a
//! part whose limit is far above what the flow does is acquitted. [`measure`] takes all of them; every
//! part is a module of its own, bounded in time, and one that cannot run here becomes a note in words.
//!
//! Nothing on the host is changed: packets go over loopback, or into a veth pair in a network namespace
//! that is made for them and ends with the thread that made it.

mod budget;
mod clock;
mod cores;
mod error;
mod files;
mod link;
mod loopback;
mod measure;
mod memory;
mod packets;
mod passes;

use budget::Budget;
use cores::Cores;
use error::Error;
use files::Files;
pub use measure::{TIME, measure};
