//! The result of a grid over several occasions: what `landspeed show R1 R2 ... --json` prints.

use crate::{Estimate, HostFacts, ProgramMetric};
use serde::{Deserialize, Serialize};

use super::{ExpectationAgreement, ExpectationKind, GridControlReport, GridFigure};

pub const OCCASIONS_FORMAT: u32 = 1;

/// The result of a grid over several occasions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct OccasionsReport {
    pub format: u32,
    pub landspeed: String,
    /// Title from an experiment's file, or else the workload and the factors.
    pub title: String,
    /// The occasions, in the order of their records.
    pub occasions: Vec<Occasion>,
    /// Number of boots that the occasions span.
    pub boots: u32,
    /// Curves of each figure that all occasions have.
    pub figures: Vec<OccasionCurves>,
    /// Expectations and their results over all occasions.
    pub expected: Vec<OccasionExpectation>,
    /// Probability that placebos without any effect spread as much as those of all occasions together; `None` without
    /// placebos. Below 0.01, no answer counts.
    pub placebos_by_chance: Option<f64>,
    /// Cells whose mean is known, and their mean over all occasions; `None` without any. If they do not have the known
    /// mean, no answer counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<GridControlReport>,
    /// Cells whose ratio deviates between occasions by over three times an occasion's own standard error, one line each,
    /// with the recorded condition that goes with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviating: Vec<String>,
    pub notes: Vec<String>,
}

/// One occasion.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Occasion {
    /// Path of the record.
    pub record: String,
    /// When it began.
    pub started: String,
    /// Boot ID of host A.
    pub boot_id: String,
    /// Model of host A's processors.
    pub processor: String,
    /// Kernel release of host A.
    pub kernel: String,
    /// Congestion controls that the sockets reported.
    pub controls: Vec<String>,
    /// Facts about the hosts A and B, when the occasion began.
    pub hosts: Vec<HostFacts>,
}

/// The results of one figure over all cells but the first, to which they are ratios.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct OccasionCurves {
    /// Name and unit of the figure, if it is a program's; `None` otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramMetric>,
    /// The figure.
    pub figure: GridFigure,
    /// The cells.
    pub cells: Vec<OccasionCell>,
}

/// A cell's ratio to the first one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct OccasionCell {
    /// The values, one for each factor.
    pub values: Vec<String>,
    /// The ratio on each occasion that has it.
    pub ratios: Vec<f64>,
    /// Interval of the mean over occasions like these; `None` for fewer than two.
    pub mean: Option<Estimate>,
    /// Interval of another occasion's ratio; `None` for fewer than two.
    pub another: Option<Estimate>,
    /// Standard deviation of the log ratios between occasions; `None` for fewer than two.
    pub deviation_ln: Option<f64>,
}

/// An expectation over all occasions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct OccasionExpectation {
    /// The claim, in one sentence.
    pub claim: String,
    /// Kind of the expectation.
    pub kind: ExpectationKind,
    /// The published ratio; `None` for a direction.
    pub published: Option<f64>,
    /// The ratio over occasions; its figure is empty for a direction.
    pub ratio: OccasionCell,
    /// The valid occasions that tested it, by their positions in the report. A file may gain an expectation between two
    /// occasions.
    pub occasions: Vec<u32>,
    /// The answer of each of these alone.
    pub alone: Vec<ExpectationAgreement>,
    /// The answer over all occasions.
    pub agreement: ExpectationAgreement,
    /// True if another occasion is expected to answer the same.
    pub is_firm: bool,
    /// True if there are too few occasions to predict other days: fewer than five, or all within one boot.
    pub is_today: bool,
}
