//! Knobs: settings of hosts that can be probed, changed, read back and restored.
//!
//! Each family of knobs has one folder with a `KNOBS` slice, and [`table`] joins them. Everything else (names,
//! `--help`, docs/reference/knobs, proposals, tests) derives from the table.

#![warn(missing_docs)]

#[macro_use]
mod knob;

mod cpu;
mod device;
mod device_name;
pub mod doctor;
mod error;
mod file;
pub mod journal;
mod kernel_file;
mod link;
mod napi;
mod nic;
mod offload;
mod order;
pub mod persist;
mod probe;
pub mod reference;
mod steering;
mod sysctl;
pub mod table;

pub use error::Error;
pub use knob::{HostKnob, Knob, KnobLimits, KnobTarget};
pub use landspeed_record::factor::{
    Condition, Domain, Factor, FactorPlacement, FactorScope, FactorView, MAX_VALUE_BYTES, PersistMethod,
    Proposal, SideEffect, SystemSetting, SystemdSpelling,
};
pub use order::in_order;
pub use probe::{NOT_ROOT, conditions, probe};
pub use table::{all, check, find};
