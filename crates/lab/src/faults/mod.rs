//! Known causes of slow paths, made on purpose in a lab, each at any strength.
//!
//! A [`Fault`] is one row of the table [`FAULTS`]. It changes a [`FaultScenario`], which is plain data, so that several
//! faults can be combined. A [`FaultLab`] sets up a scenario: it creates a lab, changes settings of its hosts, and
//! starts programs that send and receive badly. Each program is a separate process, as on a real host. The program
//! under test, which explains the flow, gets nothing but the flow's address.
//!
//! A fault that no field of a scenario can describe needs a new field, and in `lab.rs` a setting of a host or a
//! program.

mod app;
mod error;
mod fault;
mod group;
mod inject;
mod lab;
mod scenario;

pub use app::{DISK_FOLDER, ProgramSpec, play};
pub use error::Error;
pub use fault::{FAULTS, Fault, TrafficNeed, fault};
pub use group::{ControlGroup, GroupLimit};
pub use lab::FaultLab;
pub use scenario::{FaultScenario, Shaper, Traffic};
