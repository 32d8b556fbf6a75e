//! The data of `landspeed measure --vary`.
//!
//! | file | is |
//! |---|---|
//! | `plan` | the plan: what is varied, over which values, and when to stop |
//! | `figure` | the figures of a trial, one row each |
//! | `trial` | the raw data of one trial of one cell |
//! | `expect` | expectations and their results |
//! | `paths` | costs of paths below a program's sockets, and predictions |
//! | `occasions` | what `show R1 R2 ... --json` prints: one grid over several occasions |
//! | `control` | cells whose mean is known, and their measured mean |
//! | `report` | what `--json` prints: computed from the trials alone |

mod control;
mod expect;
mod figure;
mod occasions;
mod paths;
mod plan;
mod report;
mod trial;

pub use control::{GridControl, GridControlReport};
pub use expect::{
    CurveShape, Expectation, ExpectationAgreement, ExpectationKind, ExpectationReport, ExpectationTest,
};
pub use figure::{FigureRow, FigureUnit, GridFigure};
pub use occasions::{
    OCCASIONS_FORMAT, Occasion, OccasionCell, OccasionCurves, OccasionExpectation, OccasionsReport,
};
pub use paths::{PathCost, PathPrediction, SocketUsage};
pub use plan::{Grid, GridFactor, GridSetting, GridSettingTarget, HERE, LevelKind, MissingLevel};
pub use report::{
    FactorEffect, FactorialEffect, GRID_FORMAT, GridCell, GridContrast, GridCurves, GridPlacebo, GridReport,
};
pub use trial::{GridEndReason, GridTrial};
