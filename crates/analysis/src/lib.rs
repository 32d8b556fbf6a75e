//! Judges measurements: makes the ladder's decisions, and computes the figures of a trial and the summary of a run.
//!
//! Everything here is a pure function or a state machine that its caller drives, and reads no clock, host or file. So a
//! saved record can be judged again anywhere, and thousands of runs can be simulated (`make false-keeps`).

// For all modules of this crate.
#[macro_use(lines_of)]
extern crate landspeed_record;

mod block_contrast;
mod block_figures;
mod budget;
mod busy;
mod carrier;
pub mod compare;
mod confirm;
pub mod copy_choice;
mod copy_disk;
mod copy_held;
mod copy_progress;
mod copy_report;
mod design;
mod diff;
mod disturbance;
mod expectations;
pub mod fallback;
mod figures;
pub mod fit;
pub mod grid;
mod ladder;
mod lost;
mod metric;
mod occasions;
pub mod paths;
mod series;
mod steal;
mod summary;
mod trial_ends;
mod turns;
pub mod verdict;
pub mod wan;
pub mod window;

pub use block_figures::{arms, block_trials};
pub use budget::{BUDGET, PathStage, SizeBudget, TimeBudget, budgets};
pub use busy::busy;
pub use carrier::{PassedTraffic, PathEnd, carrier, remarks, strays};
pub use compare::compare;
pub use confirm::GainConfirmation;
pub use copy_held::{copy_held, hold_remedy, hold_words};
pub use copy_progress::CopyFollower;
pub use copy_report::{CopyInterval, copy_intervals, copy_plan, copy_report, shown_path};
pub use design::Designer;
pub use diff::{FigureMeans, FiguresDiff, RunDiff, StepDiff, diff};
pub use disturbance::{disturbances, disturbances_without_a_cause};
pub use figures::figures;
pub use ladder::{
    BlockResult, Forecast, Ladder, LadderAction, LadderBlock, LadderFindings, LadderRules, NO_ROOM,
    OUT_OF_TIME, PATH_LIMITS, RateBound, STOPPED, guard_margin, too_long_under_load,
};
pub use metric::{Metric, MetricRow};
pub use occasions::{expectation_over, occasions};
pub use summary::{RunFacts, assemble, summary};
pub use trial_ends::BothEnds;
pub use turns::{turn_log_ratios, turn_order, turn_ratio};
