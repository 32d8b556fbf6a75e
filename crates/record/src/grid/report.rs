//! The result of a grid: what `landspeed measure --vary --json` prints. Schema: docs/reference/json.md.

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

use super::{Expected, GridEnd, GridFactor, GridFigure, GridTrial, MissingLevel, PathPrediction, PathUse};
use crate::{Estimate, HostFacts, PathFacts, ProgramOf, Workload};

pub const GRID_FORMAT: u32 = 1;

/// What a grid found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GridReport {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub command: String,
    pub topology: String,
    /// What was sent, with every parameter that was not varied.
    pub workload: Workload,
    pub host_a: HostFacts,
    pub host_b: HostFacts,
    /// The path between them.
    pub path: PathFacts,
    /// What was varied.
    pub factors: Vec<GridFactor>,
    /// The factor with a curve for each value, by its place among `factors`.
    pub by: Option<u32>,
    /// Blocks that were measured to their end.
    pub blocks: u32,
    /// Trials that gave figures.
    pub trials: u32,
    /// Trials that gave none.
    pub failed: u32,
    pub took_ns: Nanos,
    /// What ended it; `None` where it was cut off.
    pub ended: Option<GridEnd>,
    /// Of an experiment's file: what it is about; empty otherwise.
    pub title: String,
    /// What was expected, beside what was measured.
    pub expected: Vec<Expected>,
    /// Values that were asked for and that these hosts cannot have.
    pub missing: Vec<MissingLevel>,
    /// The figure that was asked for, then the others that the workload has.
    pub figures: Vec<GridCurves>,
    /// What the program did with its sockets over the first path; `None` unless the costs of paths are known.
    pub used: Option<PathUse>,
    /// What that predicts for each path.
    pub predicted: Vec<PathPrediction>,
    /// What it predicts for the papers' interconnects, beside the first of them.
    pub interconnects: Vec<PathPrediction>,
    /// Why the figures must not be used; `None` where they may.
    pub void: Option<String>,
    pub notes: Vec<String>,
    pub record: Option<String>,
}

/// One figure over all cells.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GridCurves {
    /// Of a program's figure: which one, and its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramOf>,
    /// Which; its unit is the end of its name.
    pub figure: GridFigure,
    /// Whether it is a figure that the program told beside the one that decides.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_beside: bool,
    /// Every cell, by its number.
    pub cells: Vec<GridCell>,
    /// Ratios between neighbouring values of one factor, all else equal.
    pub neighbours: Vec<GridContrast>,
    /// What each factor is worth at most, and whether it has an effect.
    pub effects: Vec<FactorEffect>,
    /// Main effects and interactions, where they were asked for.
    pub factorial: Vec<FactorialEffect>,
    /// How the intervals were made: "mixed model", "paired differences"; `None` where there are none.
    pub method: Option<String>,
    /// Why there are no intervals; `None` where there are.
    pub no_intervals: Option<String>,
}

impl GridCurves {
    /// What a trial says of it, in its own unit; `None` where it does not.
    pub fn of(&self, trial: &GridTrial) -> Option<f64> {
        match &self.program {
            Some(program) if self.is_beside && trial.failed.is_none() => {
                let figure = trial.program()?.all.iter().find(|one| one.name == program.figure)?;
                Some(figure.value).filter(|value| *value > 0.0 && value.is_finite())
            }
            _ => trial.figure(self.figure),
        }
    }
}

/// One combination of values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GridCell {
    /// The values, factor by factor.
    pub values: Vec<String>,
    /// Trials that gave the figure.
    pub trials: u32,
    /// Geometric mean, the differences between blocks taken out; `None` where no trial gave the figure.
    pub mean: Option<f64>,
    /// Low end of the mean's own 95 % interval; `None` where there is none.
    pub low: Option<f64>,
    /// High end of it; `None` where there is none.
    pub high: Option<f64>,
    /// Ratio to the reference, the first cell. All ratios of a figure hold together in 95 % of grids; `None` for the
    /// reference itself and where there is no interval.
    pub ratio: Option<Estimate>,
}

/// A ratio between two cells.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GridContrast {
    /// Name of the factor that differs.
    pub factor: String,
    /// Number of the cell before.
    pub from: u32,
    /// Number of the cell after.
    pub to: u32,
    /// How many times the figure before. The ratios between neighbours hold together in 95 % of grids.
    pub ratio: Estimate,
}

/// What a factor does, over all its values and all else that was varied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FactorEffect {
    /// Its name.
    pub factor: String,
    /// Whether the interval of any ratio between two of its neighbouring values lies on one side of 1.
    pub has_effect: bool,
    /// The largest change, either way, that no interval excludes, as a share: 0.04 is 4 %. `None` where an interval has
    /// no end.
    pub at_most: Option<f64>,
}

/// An effect of a factorial experiment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FactorialEffect {
    /// The factors: one for what it is worth, two for how they depend on each other.
    pub factors: Vec<String>,
    /// "alone", "with tso=on", "on average", "interaction".
    pub given: String,
    /// From the first value to the second; of an interaction, how many times as much with the other factor's second value.
    pub ratio: Estimate,
}
