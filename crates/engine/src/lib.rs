//! Experiments: plans and runs trials from the controller's side, over the topologies, transports, workloads, knobs and
//! observers. The crate `analysis` decides what to try next and computes the results. The agent of a host does the work
//! on that host. This crate keeps the sessions with the hosts, sets their knobs from cell to cell, and records the
//! results.

mod addresses;
mod answers;
mod block;
mod buffers;
mod carried;
mod carry;
mod compare;
mod controls;
mod copy;
mod cores;
mod curve;
mod drive;
mod error;
mod experiment;
mod explain;
mod factors;
mod grid;
mod group;
mod host;
mod join;
mod measure;
mod meet;
mod meeting;
mod pace;
mod pair;
mod port_choice;
mod reach;
mod record_run;
mod recovery;
mod sink;
mod stall;
mod trial;
mod tune;

pub use block::{BlockOutcome, BlockRunner};
pub use compare::{StudyRunner, begin, compare, compare_on, resume};
pub use controls::OpenControls;
pub use copy::{
    CPU_TICK, ComparisonDone, ComparisonListener, CopyChoosing, CopyDone, CopyListener, CopyOptions,
    CopyPaths, Landing, LandingError, THIS_HOST, TimedCommand, check_apart, check_landing, check_mirror,
    check_tunable, clean, compare_files, copy, copy_tuned, cpu_of_children, landed, landing, look,
    shown_place, timed,
};
pub use drive::StopCheck;
pub use error::Error;
pub use experiment::{Experiment, read_experiment, usual_by};
pub use explain::{
    ExplainOptions, ProgressSink, SizesEffort, SizesOptions, UserListener, explain, explain_live,
    explain_sizes, explain_time, glance_at_top,
};
pub use factors::{all_factors, factors, flow, transport_of};
pub use grid::{
    FAN, FactorNames, GateOutcome, GridHosts, LocalRunTimes, begin_grid, bundle, check_grid, factor, gate,
    here, path_of, prepare, resume_grid, run_grid, run_here, set, turns_knobs, vary,
};
pub use group::{HostGroup, MissingPath, WantedPath};
pub use host::{Host, UndoRequest, UndoneHost};
pub use join::{JoinedHosts, Pairing};
pub use measure::{MeasureOptions, measure};
pub use meeting::Meeting;
pub use pair::{Pair, PathOptions, RunSpec, WatchOptions};
pub use port_choice::PortRange;
pub use reach::ReachOptions;
pub use record_run::{RecordRunOptions, record_run};
pub use recovery::{RecoveryLosses, recover};
pub use sink::RecordSink;
pub use trial::TrialTiming;
pub use tune::{
    Baseline, FittedParameter, Placebos, TuneOptions, TunePlan, TunedProgram, placebos, plan, tune,
};
