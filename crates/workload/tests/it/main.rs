//! Trials with both ends in one process.

mod common;
mod datagrams;
mod loopback;
mod namespaces;
mod staggered;
mod trouble;
mod wide_area;
