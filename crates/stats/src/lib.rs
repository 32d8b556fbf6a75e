//! Statistics of paired measurements: intervals, decisions that stay valid under repeated looks at the data, and the
//! error budget of a run.
//!
//! Ladders work on **log ratios**, one per block: the mean log of the candidate's trials minus the mean log of the
//! incumbent's. Zero is no change, and 0.0198 is 2 % better. Studies of transports work on figures over repeats:
//! means, paired differences, and the fairness index. All functions are pure: callers pass in the source of
//! randomness, and no function reads or writes anything outside its arguments.

mod contrast;
mod estimate;
mod excess;
mod family;
pub mod grid;
mod laws;
mod noninferiority;
mod occasions;
mod paired;
mod proportion;
mod random;
mod sequential;
mod share;
mod slope;
mod traffic;
mod welch;

pub use contrast::{BlockContrast, CountedAndAllMeans, MeanLogRatio};
pub use estimate::{
    deviation_at_least, estimate, half_width, mean_and_deviation, median, quantile, ratio_of,
    weighted_estimate,
};
pub use excess::{ExcessVariance, excess};
pub use family::ErrorLedger;
pub use laws::{exponential, geometric, pareto};
pub use noninferiority::{ArmTotals, GuardVerdict, guard, guard_sums};
pub use occasions::{OccasionEstimate, over_occasions, spread_by_chance};
pub use paired::{holm, mean_interval, paired_test};
pub use proportion::{binomial_interval, proportion_interval};
pub use random::Random;
pub use sequential::{Objection, StepDesign, StepJudgement, StepState, judge, judge_last};
pub use share::jain;
pub use slope::Slope;
pub use traffic::{DurationLaw, TrafficCounts, TrafficMix, TrafficProcess, TrafficSource, TrafficSpec};
pub use welch::{MeanDistance, apart, unpaired};
