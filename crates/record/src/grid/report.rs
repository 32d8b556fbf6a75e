//! The result of a grid: what `landspeed measure --vary --json` prints. Schema: docs/reference/json.md.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

use super::{
    ExpectationReport, GridControlReport, GridEndReason, GridFactor, GridFigure, GridTrial, MissingLevel,
    PathPrediction, SocketUsage,
};
use crate::{Estimate, HostFacts, PathFacts, ProgramMetric, Workload};

pub const GRID_FORMAT: u32 = 1;

/// The result of a grid.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridReport {
    pub format: u32,
    pub landspeed: String,
    pub started: String,
    pub command: String,
    pub topology: String,
    /// The workload, with every parameter that was not varied.
    pub workload: Workload,
    pub host_a: HostFacts,
    pub host_b: HostFacts,
    /// The path between the two hosts.
    pub path: PathFacts,
    /// Factors that were varied.
    pub factors: Vec<GridFactor>,
    /// Position in `factors` of the factor that has a curve for each value; `None` if there is only one factor.
    pub by: Option<u32>,
    /// Number of blocks that were completed.
    pub blocks: u32,
    /// Number of trials that gave figures.
    pub trials: u32,
    /// Number of trials that gave no figures.
    pub failed: u32,
    pub took_ns: Nanos,
    /// What ended the grid; `None` if it was interrupted.
    pub ended: Option<GridEndReason>,
    /// Title from an experiment's file; empty otherwise.
    pub title: String,
    /// Expectations and the measured results.
    pub expected: Vec<ExpectationReport>,
    /// Requested values that the hosts cannot have.
    pub missing: Vec<MissingLevel>,
    /// Curves of the requested figure, followed by those of the workload's other figures.
    pub figures: Vec<GridCurves>,
    /// The program's use of its sockets over the first path; `None` unless the costs of paths are known.
    pub used: Option<SocketUsage>,
    /// Predictions of the program's speed over each path, from `used`.
    pub predicted: Vec<PathPrediction>,
    /// Predictions of the program's speed over the papers' interconnects, from `used`, relative to the first
    /// interconnect; empty where the model is too far off over a measured path.
    pub interconnects: Vec<PathPrediction>,
    /// Reason why the figures must not be used; `None` if they may be.
    pub void: Option<String>,
    /// Cells that were measured twice under two names. Their ratios are 1 in truth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placebos: Vec<GridPlacebo>,
    /// Cells whose mean is known, and their measured mean; `None` without any. If they do not have the known mean,
    /// their figure has no ratios, and no expectation has an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<GridControlReport>,
    /// Conditions that differed between cells although no factor varies them, and placebos whose interval excludes 1,
    /// one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    pub notes: Vec<String>,
    pub record: Option<String>,
}

impl GridReport {
    /// Returns the kind of host that limits the figures ([`HostFacts::caveat_mark`]); `None` if no host is of such a
    /// kind.
    pub fn caveat_mark(&self) -> Option<&str> {
        self.host_a.caveat_mark().or(self.host_b.caveat_mark())
    }
}

/// A cell that blocks measured a second time under another name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridPlacebo {
    /// The cell's values: "mtu=9000 write-size=1K".
    pub cell: String,
    /// Number of blocks that measured it twice.
    pub blocks: u32,
    /// Ratio of the second name to the first, with its interval at 99.9 %.
    pub ratio: Estimate,
    /// The ratio's logarithm divided by its standard error: Student's statistic with `freedom` degrees of freedom.
    pub statistic: f64,
    /// Degrees of freedom of `statistic`.
    pub freedom: f64,
}

impl GridPlacebo {
    /// Returns true if the interval contains 1.
    pub fn holds(&self) -> bool {
        self.ratio.low <= 1.0 && self.ratio.high >= 1.0
    }
}

/// The results of one figure over all cells.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridCurves {
    /// Name and unit of the figure, if it is a program's; `None` otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramMetric>,
    /// The figure. Its name ends with its unit.
    pub figure: GridFigure,
    /// True for a figure that the program reported in addition to the one that decides.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_beside: bool,
    /// Results of all cells, by cell number.
    pub cells: Vec<GridCell>,
    /// Ratios between neighbouring values of one factor, with the values of all other factors equal.
    pub neighbours: Vec<GridContrast>,
    /// The effect of each factor, with a bound on its size.
    pub effects: Vec<FactorEffect>,
    /// Main effects and interactions, if they were requested.
    pub factorial: Vec<FactorialEffect>,
    /// How the intervals were computed: by a mixed model, by differences within blocks, or some by each; `None` without
    /// intervals.
    pub method: Option<String>,
    /// Why there are no intervals; `None` if there are.
    pub no_intervals: Option<String>,
}

impl GridCurves {
    /// Returns the figure of a trial, in its own unit, or `None` if the trial does not have it.
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

/// The result of one cell: one combination of values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridCell {
    /// The values, one for each factor.
    pub values: Vec<String>,
    /// Trials that gave the figure.
    pub trials: u32,
    /// Geometric mean of the figure, corrected for the differences between blocks; `None` if no trial gave the
    /// figure.
    pub mean: Option<f64>,
    /// Low end of the mean's own 95 % interval; `None` without an interval.
    pub low: Option<f64>,
    /// High end of the mean's own 95 % interval; `None` without an interval.
    pub high: Option<f64>,
    /// Figure of the cell divided by the figure of the reference, which is the first cell; `None` for the reference
    /// itself, and if there is no interval. In 95 % of grids, the intervals of all ratios of a figure contain the true
    /// ratios.
    pub ratio: Option<Estimate>,
    /// Standard error of the natural log of `ratio`; `None` without a ratio, and from a landspeed that did not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ln: Option<f64>,
}

/// The ratio of a figure between two cells.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridContrast {
    /// Name of the factor that differs.
    pub factor: String,
    /// Number of the cell in the denominator.
    pub from: u32,
    /// Number of the cell in the numerator.
    pub to: u32,
    /// Ratio of the figure. In 95 % of grids, the intervals of all ratios between neighbours contain the true ratios.
    pub ratio: Estimate,
}

/// The effect of a factor over all its values and over all values of the other factors.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct FactorEffect {
    /// Name of the factor.
    pub factor: String,
    /// True if the ratio of any two neighbouring values has an interval that does not contain 1.
    pub has_effect: bool,
    /// The largest change in either direction that the intervals do not exclude, as a share: 0.04 is 4 %. `None` if
    /// an interval is unbounded.
    pub at_most: Option<f64>,
}

/// An effect of a factorial experiment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct FactorialEffect {
    /// The factors: one for a main effect, two for an interaction.
    pub factors: Vec<String>,
    /// The condition: "alone", "with tso=on", "on average", "interaction".
    pub given: String,
    /// Ratio of the figure between the factor's second and first value. For an interaction it is a quotient of two such
    /// ratios: the ratio at the other factor's second value, divided by the ratio at the other factor's first value.
    pub ratio: Estimate,
}
