//! Known causes of slow paths, made on purpose in a lab, each at any strength.
//!
//! A [`Fault`] is one line of the table [`FAULTS`]: it changes a [`FaultScenario`], which is plain data, so that
//! several faults can be combined. A [`FaultLab`] sets a scenario up for real: a lab, settings of its hosts, and
//! programs that send and receive badly. Each is a separate process, as on a real host. The program that judges the
//! flow gets nothing but its address.
//!
//! What no field of a scenario describes yet takes a new field, and in `lab.rs` a setting of a host or a program.

mod app;
mod error;
mod fault;
mod group;
mod inject;
mod lab;
mod scenario;

pub use app::{ProgramSpec, play};
pub use error::Error;
pub use fault::{FAULTS, Fault, TrafficNeed, fault};
pub use lab::FaultLab;
pub use scenario::{FaultScenario, Shaper, Traffic};
