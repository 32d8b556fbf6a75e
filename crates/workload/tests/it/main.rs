//! Trials with both ends in one process.

mod common;
mod loopback;
mod namespaces;
mod trouble;
