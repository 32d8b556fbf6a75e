//! A grid of cells: the order in which they are measured, and the analysis of their trials.

mod called;
mod conditions;
mod control;
mod design;
mod elsewhere;
mod expect;
mod fitted;
mod gate;
mod judge;
mod kinds;
mod order;
mod placebo;
mod precision;
mod size;
mod visit;

pub(crate) use control::over as control_over;
pub use design::GridDesigner;
pub use gate::{GateForecast, asks, forecast};
pub use judge::report;
pub(crate) use judge::{expected_beside, judged};
pub use order::blocks_a_pass;
pub use precision::Precision;
pub use size::{least_time, planned_blocks, planned_trials};
pub use visit::GridVisit;
