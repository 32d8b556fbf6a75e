//! Whole runs on simulated trials: how often is something useless kept, how often is something useful found, and what do
//! guards let through?
//!
//! The real [`crate::Ladder`] decides; only the measuring is replaced. [`KINDS`] is the table of what trials may look
//! like.

mod dice;
mod noise;
mod run;
mod study;

pub use noise::{KINDS, Kind, Noise};
pub use run::{Outcome, Scene, Worth, candidate};
pub use study::{Counts, Found, USEFUL, USELESS, false_keeps, from_poor_start, single};
