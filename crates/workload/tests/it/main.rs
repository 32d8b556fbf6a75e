//! Trials with both ends in one process.

mod common;
mod copy;
mod datagrams;
mod lab_hosts;
mod loopback;
mod paths;
mod staggered;
mod stalls;
mod trouble;
