//! What applications start beside other people's programs. It is no part of the product's own program.
//!
//! | module | is |
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
