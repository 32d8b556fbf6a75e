//! Applications: any program as a workload.
//!
//! A file lists the roles of an application, the command of each role, when a service is ready, and which figures an
//! output contains. [`read`] checks the file. `RoleProcess` starts and ends one role on this host, in its own
//! namespaces.
//!
//! | module | is |
//! |---|---|
//! | `file` | the TOML, as it is written |
//! | `check` | turns the TOML into an [`Application`], or returns the first mistake with its line |
//! | `shipped` | the applications that ship: `apps/*.toml` |
//! | `workload` | `app:NAME`: an application as a workload |
//! | `run`, `barrier` | one end of a trial of an application, and what the pairs of a trial share on host 1 |
//! | `fill` | placeholders such as `{port}` and their values |
//! | `figure` | reads the figures from a program's output |
//! | `role` | a role from the agent's side: start, readiness and end |
//! | `helpers` | finds `landspeed-helpers`, a program that applications call |
//! | `play` | the process that runs a role: `landspeed play-role` |

mod barrier;
mod check;
mod error;
mod figure;
mod file;
mod fill;
mod framed;
pub mod helpers;
mod model;
mod number;
pub mod play;
mod quick;
mod role;
mod run;
mod shipped;
mod workload;

pub use check::{METRIC, PATH, is_over_rdma, read};
pub(crate) use error::Error;
pub(crate) use figure::picture;
pub use figure::{RoleOutput, figures};
pub(crate) use fill::{PlaceholderValues, fill};
pub use model::Application;
pub(crate) use model::{
    ApplicationFigure, ApplicationParameter, ApplicationRole, FigureSource, Fixture, FixtureContent,
    ReadyCondition, RoleOrder, ServiceLifetime,
};
pub use quick::quick;
pub(crate) use role::RoleProcess;
pub(crate) use run::BlockServices;
pub(crate) use shipped::shipped;

/// The beginning of an application's name as a workload.
pub(crate) const PREFIX: &str = "app:";
