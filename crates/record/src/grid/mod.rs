//! What `landspeed measure --vary` writes down and says.
//!
//! | file | is |
//! |---|---|
//! | `plan` | what is varied, over what, and when to stop |
//! | `trial` | one trial of one cell, as it was seen |
//! | `report` | what `--json` prints: computed from the trials alone |

mod plan;
mod report;
mod trial;

pub use plan::{Grid, GridFactor, GridPlace, LevelKind};
pub use report::{
    FactorEffect, FactorialEffect, GRID_FORMAT, GridCell, GridContrast, GridCurves, GridReport,
};
pub use trial::{GridEnd, GridFigure, GridTrial};
