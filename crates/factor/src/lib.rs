//! Factors: anything that can be varied.
//!
//! A host's knob, a setting of the flow and a parameter of a workload are each one [`Factor`]: a name, what it does, its
//! values, its default, and what to try. Who owns a factor declares it in its own folder; command line, help,
//! reference pages, validation and the order of a ladder come from that declaration. A [`Table`] joins them.

mod candidates;
mod domain;
mod error;
mod factor;
mod levels;
mod persist;
mod propose;
pub mod reference;
mod system;
mod table;

pub use candidates::{Filter, PathView, Placebo, Planner};
pub use domain::{MAX_CPU, MAX_VALUE_BYTES, join, parse_cpus, print_cpus, split};
pub use error::Error;
pub use factor::{Disturbs, Domain, Factor, On, Proposal, Scope, View};
pub use levels::MOST_LEVELS;
pub use persist::{Persist, Spelling};
pub use propose::{NO_QUEUE, algorithms, at_least, each, flip, next_to, nothing, switch_on, unless};
pub use system::System;
pub use table::Table;
