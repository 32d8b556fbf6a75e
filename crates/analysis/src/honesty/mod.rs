//! Whole runs replayed on recorded noise: how often is something useless kept, how often is something
//! useful found?
//!
//! The real [`crate::Ladder`] decides; only the measuring is replaced. A block's trials are
//! recorded trials of equal cells, taken in stretches of consecutive blocks so that slow drift stays in
//! (moving blocks: Kuensch 1989), with the effects of the candidate's settings multiplied in.

mod noise;
mod replay;
mod study;

pub use noise::{Noise, NoiseBlock, TooLittleNoise};
pub use replay::{Effects, Outcome, Replay, candidate};
pub use study::{FalseKeepStudy, FalseKeeps, Power, PowerStudy, false_keep_study, power_study};
