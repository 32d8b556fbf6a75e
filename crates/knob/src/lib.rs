//! Knobs: settings of hosts and flows that can be probed, turned, read back and rolled back.
//!
//! One folder per family of knobs, each with a `KNOBS` slice; [`table`] joins them. Everything else
//! (names, `--help`, docs/reference/knobs, proposals, tests) derives from the table.

mod error;
mod row;

pub use error::Error;
pub use row::{Disturbs, Domain, HostKnob, Knob, On, Place, Proposal, Row, Scope, Turn, View};
