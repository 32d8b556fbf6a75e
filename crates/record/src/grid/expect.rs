//! Expectations of a grid, and their results. An expectation is a published ratio, an order, a crossing or a shape.

use serde::{Deserialize, Serialize};

use super::GridFigure;
use crate::{Estimate, Settings};

/// A claim about some cells of a grid. Values of some factors select the cells; the other factors have all their
/// values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Expectation {
    /// The claim, in one sentence.
    pub claim: String,
    /// Source of the claim: paper and section.
    pub source: String,
    /// The figure that the claim concerns; `None` for the main figure of the grid.
    pub figure: Option<GridFigure>,
    /// The test of the claim.
    pub test: ExpectationTest,
    /// Why the result may differ today, in one sentence. It is a guess: nothing tests it.
    pub otherwise: String,
    /// Why the result may differ today, as an expectation of the same grid that tests it. Its claim is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<Box<Expectation>>,
    /// The claims of the papers' ledger that it tests, such as "feng.tune.mtu9000"; empty if it tests none of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// The mechanism that replaces the paper's, such as "AF_UNIX in place of a TOE"; empty if it is the same.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub in_kind: String,
}

/// The kind of an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectationKind {
    /// A number of the paper.
    Number,
    /// A direction: which value is larger, where curves cross, or the shape of a curve.
    #[default]
    Direction,
    /// Another mechanism replaces the paper's.
    InKind,
}

impl ExpectationKind {
    /// Returns true if another mechanism was measured in place of the one of a paper's claim. A different number then
    /// says nothing about the paper's.
    pub fn is_substitute(self, claims: &[String]) -> bool {
        self == ExpectationKind::InKind && !claims.is_empty()
    }
}

impl Expectation {
    /// Returns the kind of the expectation.
    pub fn kind(&self) -> ExpectationKind {
        match self.test {
            _ if !self.in_kind.is_empty() => ExpectationKind::InKind,
            ExpectationTest::Ratio { .. } => ExpectationKind::Number,
            _ => ExpectationKind::Direction,
        }
    }
}

/// A test of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum ExpectationTest {
    /// The ratio of the figure between two groups of cells.
    Ratio {
        /// Cells in the denominator.
        from: Settings,
        /// Cells in the numerator.
        to: Settings,
        /// The published ratio.
        published: f64,
        /// Largest deviation from the published ratio that still counts as reproduced, as a share.
        within: f64,
        /// True if the best cell of each group is compared, instead of the means.
        peaks: bool,
    },
    /// Groups of cells in ascending order of the figure.
    Order {
        /// Groups of cells, from least to most.
        cells: Vec<Settings>,
        /// True if the best cell of each group is compared, instead of the means.
        peaks: bool,
    },
    /// One curve starts below another and ends above it.
    Crossing {
        /// The factor along which the curves run.
        along: String,
        /// The curve that starts below, selected by the values of other factors.
        below: Settings,
        /// The curve that starts above, selected by the values of other factors.
        above: Settings,
    },
    /// The shape of a curve along a factor.
    Shape {
        /// The expected shape.
        shape: CurveShape,
        /// The factor along which the curve runs.
        along: String,
        /// The curve, selected by the values of other factors.
        at: Settings,
        /// For a dip, the first and the last value within it; `None` for other shapes.
        between: Option<[String; 2]>,
        /// For a flat curve, the largest deviation from its first value, as a share.
        within: f64,
    },
}

impl Default for ExpectationTest {
    fn default() -> Self {
        ExpectationTest::Order { cells: Vec::new(), peaks: false }
    }
}

/// The shape of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CurveShape {
    /// The curve ends higher than it starts, and falls nowhere.
    Rises,
    /// The curve ends lower than it starts, and rises nowhere.
    Falls,
    /// The curve stays close to its first value.
    Flat,
    /// The curve is lower in the middle than at its ends.
    Dip,
}

/// The result of testing an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectationAgreement {
    /// The measured result agrees with the published one.
    Reproduces,
    /// The interval of the measured result excludes the published one.
    Differs,
    /// The intervals are too wide to decide.
    #[default]
    Undecided,
    /// These hosts cannot be set to the values that the expectation needs, or another mechanism in place of the paper's
    /// does not have its number.
    NotHere,
}

impl ExpectationAgreement {
    /// Returns the result after it has turned out that the measurement cannot answer.
    #[must_use]
    pub fn withdrawn(self) -> Self {
        match self {
            ExpectationAgreement::Reproduces | ExpectationAgreement::Differs => {
                ExpectationAgreement::Undecided
            }
            other => other,
        }
    }
}

/// An expectation and the measured result.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ExpectationReport {
    /// The claim, in one sentence.
    pub claim: String,
    /// Source of the claim: paper and section.
    pub source: String,
    /// Kind of the expectation.
    pub kind: ExpectationKind,
    /// The mechanism that replaces the paper's; empty if it is the same.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub in_kind: String,
    /// The claims of the papers' ledger that it tests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// The result of the test.
    pub agreement: ExpectationAgreement,
    /// The published ratio; `None` for an order, a crossing or a shape.
    pub published: Option<f64>,
    /// Largest deviation from the published ratio that counts as reproduced, as a share; `None` without a published ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The measured ratio; `None` if there is none. For an order, a crossing or a shape, it is the ratio that decided
    /// the result. In 95 % of grids, all intervals of one expectation contain the true ratios.
    pub ours: Option<Estimate>,
    /// Remark on the result: what the measured ratio compares, why it may differ from the published one, or what the
    /// hosts reported.
    pub why: String,
}
