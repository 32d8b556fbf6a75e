//! The control of a grid: cells whose mean figure is known before anything is measured.

use serde::{Deserialize, Serialize};

use super::GridFigure;
use crate::Settings;

/// Cells whose mean is known, for example because two equal flows each get half. If they do not have this mean, no
/// figure of the grid is judged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridControl {
    /// Values of factors that select the cells.
    pub cells: Settings,
    /// The mean of the grid's figure that the cells must have.
    pub mean: f64,
    /// The largest deviation from `mean`.
    pub within: f64,
}

/// The result of a grid's control.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridControlReport {
    /// Values that select the cells: "flow=cubic".
    pub cells: String,
    /// The figure.
    pub figure: GridFigure,
    /// The mean that the cells must have.
    pub wanted: f64,
    /// The largest deviation from `wanted`.
    pub within: f64,
    /// Mean over the cells of the mean of each; `None` if a cell has no trial with the figure.
    pub mean: Option<f64>,
    /// Number of trials of these cells that gave the figure.
    pub trials: u32,
}

impl GridControlReport {
    /// Returns true if the cells have the mean that they must have.
    pub fn holds(&self) -> bool {
        self.mean.is_some_and(|mean| (mean - self.wanted).abs() <= self.within)
    }

    /// Formats the measured and the required mean: "flow=cubic has a mean of 0.510 over 24 trials, and must have 0.5 ±
    /// 0.03".
    pub fn description(&self) -> String {
        let mean = self.mean.map_or("no mean".to_owned(), |mean| format!("a mean of {mean:.3}"));
        let GridControlReport { cells, wanted, within, trials, .. } = self;
        format!("{cells} has {mean} over {trials} trials, and must have {wanted} ± {within}")
    }

    /// Returns the reason why nothing is judged; `None` if the control holds.
    pub fn complaint(&self) -> Option<String> {
        (!self.holds()).then(|| format!("the control failed, so nothing is judged: {}", self.description()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_holds_within_its_bounds_and_where_it_was_measured() {
        let of = |mean| GridControlReport {
            cells: "flow=cubic".into(),
            wanted: 0.5,
            within: 0.03,
            mean,
            trials: 24,
            ..GridControlReport::default()
        };
        assert_eq!(
            [Some(0.475), Some(0.525), Some(0.46), Some(0.54), None].map(|mean| of(mean).holds()),
            [true, true, false, false, false]
        );
        assert_eq!(of(Some(0.51)).complaint(), None);
        let line = of(Some(0.68)).complaint().unwrap();
        assert!(
            line.ends_with("flow=cubic has a mean of 0.680 over 24 trials, and must have 0.5 ± 0.03"),
            "{line}"
        );
    }
}
