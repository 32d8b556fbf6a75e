//! The commands, one per file.

pub(crate) mod agent;
pub(crate) mod app;
pub(crate) mod cc;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod faults;
pub(crate) mod generate;
pub(crate) mod grid;
pub(crate) mod knobs;
pub(crate) mod lab;
pub(crate) mod measure;
pub(crate) mod paths;
pub(crate) mod persist;
pub(crate) mod record_run;
pub(crate) mod records;
pub(crate) mod recovery;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod top;
pub(crate) mod tune;
pub(crate) mod undo;
pub(crate) mod verify;
