//! Helper programs that landspeed's applications start in addition to third-party programs. They are not part of the
//! program `landspeed`.
//!
//! | module | contents |
//! |---|---|
//! | `filter` | Iso-Surface and Virtual Microscope, as filters on several hosts |
//! | `sockets` | a benchmark of the sockets interface |
//! | `spawn` | the start of MPI's daemon on other hosts, without ssh |
//! | `gather` | Ganglia's collector |

#![warn(missing_docs)]

mod accept;
pub mod filter;
pub mod gather;
#[cfg(test)]
mod relay;
pub mod sockets;
pub mod spawn;
