//! Factors: everything that a run can vary.
//!
//! A host's knob, a setting of the flow and a parameter of a workload are each a [`Factor`]: a name, a description,
//! the accepted values, the default, and the values to try. Each factor is declared once, in the folder of its owner.
//! Command line, help, reference pages, validation and the order of a ladder are derived from that declaration. A
//! [`FactorTable`] joins the factors of several owners.

mod candidates;
mod condition;
mod declaration;
mod domain;
mod error;
mod levels;
mod persist;
mod propose;
pub mod reference;
mod system;
mod table;

pub use candidates::{CandidatePlanner, KnobSelection, PathView, Placebo};
pub use condition::Condition;
pub use declaration::{
    Domain, Factor, FactorDeclaration, FactorPlacement, FactorScope, FactorView, Proposal, SideEffect,
};
pub use domain::{MAX_CPU, MAX_VALUE_BYTES, join, parse_cpus, print_cpus, split};
pub use error::Error;
pub use persist::{PersistMethod, SystemdSpelling};
pub use propose::{
    NO_QUEUE, algorithms, bdp, each, flip, largest_window, next_to, nothing, switch_on, unless,
};
pub use system::SystemSetting;
pub use table::FactorTable;
