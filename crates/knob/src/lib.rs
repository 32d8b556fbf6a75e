//! Knobs: settings of hosts and flows that can be probed, turned, read back and rolled back.
//!
//! One folder per family of knobs, each with a `KNOBS` slice; [`table`] joins them. Everything else
//! (names, `--help`, docs/reference/knobs, proposals, tests) derives from the table.

pub mod baseline;
mod candidates;
mod cpu;
mod device;
mod domain;
mod error;
mod file;
mod flow;
pub mod journal;
mod link;
mod napi;
mod nic;
mod offload;
mod order;
mod probe;
mod propose;
pub mod reference;
mod row;
mod socket;
mod steering;
mod sysctl;
pub mod table;
mod workload;

pub use candidates::{Filter, PathView, Placebo, candidates, named, placebos};
pub use domain::MAX_VALUE_BYTES;
pub use error::Error;
pub use flow::{flow_cell, flow_settings};
pub use order::in_order;
pub use probe::probe;
pub use row::{Disturbs, Domain, HostKnob, Knob, Limits, On, Place, Proposal, Row, Scope, Turn, View};
pub use table::{all, check, find};
