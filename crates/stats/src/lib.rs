//! Statistics of paired measurements: intervals, decisions that stay valid under peeking, and the
//! error budget of a whole run.
//!
//! Ladders work on **log ratios**, one per block: the mean log of the candidate's trials minus the
//! mean log of the incumbent's; beside it stands how restless the block was. Zero is no change, 0.0198
//! is 2 % better. Studies of transports work on figures over repeats: means, paired differences, and how
//! equally a path is shared. Pure functions: randomness is passed in, nothing is read or written.

mod calm;
mod estimate;
mod family;
mod noninferiority;
mod paired;
mod random;
mod sequential;
mod share;
mod walk;
mod welch;

pub use calm::{Contrast, calm_mean};
pub use estimate::{estimate, mean_and_deviation, median, ratio_of, weighted_estimate};
pub use family::Ledger;
pub use noninferiority::{Guard, guard};
pub use paired::{holm, mean_interval, paired_test};
pub use random::Random;
pub use sequential::{Design, State, Verdict, judge};
pub use share::jain;
pub use welch::{Apart, apart, unpaired};
