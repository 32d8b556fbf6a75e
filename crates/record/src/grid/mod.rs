//! What `landspeed measure --vary` writes down and says.
//!
//! | file | is |
//! |---|---|
//! | `plan` | what is varied, over what, and when to stop |
//! | `trial` | one trial of one cell, as it was seen |
//! | `expect` | what is expected, and what became of it |
//! | `paths` | what paths below a program's sockets cost, and what follows |
//! | `report` | what `--json` prints: computed from the trials alone |

mod expect;
mod paths;
mod plan;
mod report;
mod trial;

pub use expect::{Agreement, Expectation, ExpectationTest, Expected, Shape};
pub use paths::{PathCost, PathPrediction, PathUse};
pub use plan::{Grid, GridFactor, GridPlace, GridSetting, HERE, LevelKind, MissingLevel};
pub use report::{
    FactorEffect, FactorialEffect, GRID_FORMAT, GridCell, GridContrast, GridCurves, GridReport,
};
pub use trial::{GridEnd, GridFigure, GridTrial};
