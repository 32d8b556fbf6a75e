//! What is expected of a grid: a published figure, an order, a crossing or a shape, and what became of it.

use serde::{Deserialize, Serialize};

use super::GridFigure;
use crate::{Estimate, Settings};

/// What is said of some cells. Cells are named by the values of some factors; all values of the others are meant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expectation {
    /// What is claimed, one sentence.
    pub claim: String,
    /// Where: paper and section.
    pub source: String,
    /// The figure that it is about; `None` for that of the grid.
    pub figure: Option<GridFigure>,
    /// What is claimed, for the judge.
    pub test: ExpectationTest,
    /// Why it may differ today, one sentence.
    pub otherwise: String,
}

/// What is to be found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum ExpectationTest {
    /// How many times the figure of some cells that of others is.
    Ratio {
        /// Cells before.
        from: Settings,
        /// Cells after.
        to: Settings,
        /// The published ratio.
        published: f64,
        /// How far from it is still the same, as a share.
        within: f64,
        /// Whether the best cells of both are compared, and not their means.
        peaks: bool,
    },
    /// Each has more of the figure than the one before.
    Order {
        /// From least to most.
        cells: Vec<Settings>,
        /// Whether the best cells of each are compared, and not their means.
        peaks: bool,
    },
    /// One curve begins below another and ends above it.
    Crossing {
        /// The factor along which they run.
        along: String,
        /// The curve that begins below.
        below: Settings,
        /// The curve that begins above.
        above: Settings,
    },
    /// What a curve does along a factor.
    Shape {
        /// What.
        shape: Shape,
        /// The factor along which it runs.
        along: String,
        /// Which curve.
        at: Settings,
        /// Of a dip: the first and the last value within it.
        between: Option<[String; 2]>,
        /// Of a flat curve: how far from its first value it may be, as a share.
        within: f64,
    },
}

impl Default for ExpectationTest {
    fn default() -> Self {
        ExpectationTest::Order { cells: Vec::new(), peaks: false }
    }
}

/// What a curve does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// It ends higher than it begins, and falls nowhere.
    Rises,
    /// It ends lower than it begins, and rises nowhere.
    Falls,
    /// It stays about where it begins.
    Flat,
    /// It is lower in between.
    Dip,
}

/// What became of an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// What was measured is what was published.
    Reproduces,
    /// What was measured is proven to be something else.
    Differs,
    /// The intervals are too wide for either.
    #[default]
    Undecided,
    /// These hosts cannot have the values that it is about.
    NotHere,
}

/// An expectation beside what was measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Expected {
    /// What is claimed.
    pub claim: String,
    /// Where: paper and section.
    pub source: String,
    /// What became of it.
    pub agreement: Agreement,
    /// The published ratio; `None` of an order, a crossing or a shape.
    pub published: Option<f64>,
    /// What was measured in its place: of an order, a crossing or a shape, the ratio that decided. The intervals of one
    /// expectation hold together in 95 % of grids.
    pub ours: Option<Estimate>,
    /// Which ratio that is, why it may differ, or what the hosts said.
    pub why: String,
}
