//! Experiments: plans and runs trials over the five plug-in points, from the controller's side. `analysis` decides
//! what to try next and what an answer is; a host's agent does the work there. This crate holds the sessions with both
//! hosts, sets the hosts from cell to cell, and records the results.

mod answers;
mod block;
mod buffers;
mod carry;
mod compare;
mod cores;
mod curve;
mod error;
mod explain;
mod factors;
mod file;
mod grid;
mod host;
mod measure;
mod meet;
mod pair;
mod reach;
mod record_run;
mod recovery;
mod sink;
mod stall;
mod trial;
mod tune;
mod ways;

pub use block::{BlockOutcome, Blocks};
pub use compare::{Carrier, RunId, StudyHead, begin, compare, compare_on, order, resume};
pub use error::Error;
pub use explain::{
    Attention, Effort, ExplainOptions, Progress, SizesOptions, explain, explain_live, explain_sizes,
    explain_time, glance_at_top,
};
pub use factors::{all_factors, factors, flow, transport_of};
pub use file::{Experiment, FileError, read_experiment, usual_by};
pub use grid::{
    FAN, GridHead, Ground, Names, RanHere, begin_grid, bundle, check_grid, factor, here, path_of,
    planned_blocks, prepare, resume_grid, run_grid, run_here, set, turns_knobs, vary,
};
pub use host::Host;
pub use measure::{Measurement, measure};
pub use pair::{Pair, Watching, Wishes, set_stage};
pub use reach::Reaching;
pub use record_run::{RecordRunOptions, record_run};
pub use recovery::{Losses, recover};
pub use sink::Sink;
pub use trial::Timing;
pub use tune::{Baseline, Placebos, TuneOptions, TunePlan, TunedProgram, placebos, plan, tune};
