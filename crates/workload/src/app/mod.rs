//! Applications: any program as a workload.
//!
//! A file lists the roles of an application, what each runs, when it is ready, and which figures its output holds.
//! [`read`] checks the file; [`RoleProcess`] starts one of its roles on this host, in its own namespaces, and ends it.
//!
//! | module | is |
//! |---|---|
//! | `file` | the TOML, as it is written |
//! | `check` | turns the TOML into an [`Application`], or returns the first mistake with its line |
//! | `fill` | placeholders such as `{port}` and their values |
//! | `figure` | reads the figures from a program's output |
//! | `role` | a role from the agent's side: start, readiness and end |
//! | `helpers` | finds `landspeed-helpers`, a program that applications call |
//! | `play` | the process that runs a role: `landspeed play-role` |

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
mod shipped;

pub use check::{METRIC, read};
pub use error::{ApplicationFileError, Error};
pub use figure::{RoleOutput, figures, picture};
pub use fill::{PlaceholderValues, fill};
pub use model::{
    Application, ApplicationFigure, ApplicationRole, FigureSource, Fixture, FixtureContent, HostSelector,
    PictureSource, ReadyCondition, RequiredProgram, RoleOrder, ServiceEnd, ServiceLifetime,
};
pub use number::NumberSpelling;
pub use quick::quick;
pub use role::{CommandResult, RoleProcess};
pub use shipped::{shipped, shipped_text};
