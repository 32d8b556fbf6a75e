//! The control of an experiment.

use landspeed_record::strict::FileMistake;
use landspeed_record::{Grid, GridControl, GridFactor};
use serde::Deserialize;

use super::levels::selected;
use super::values::FileSettings;

/// Cells whose mean is known. If their measured mean differs, nothing is judged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ControlSection {
    cells: FileSettings,
    mean: f64,
    within: f64,
}

/// Returns the control. Its cells must be cells of the grid.
pub(super) fn control(section: &ControlSection, factors: &[GridFactor]) -> Result<GridControl, FileMistake> {
    let cells = selected(&section.cells, factors)?;
    let is_known = |value: f64| value > 0.0 && value.is_finite();
    let ControlSection { mean, within, .. } = *section;
    if cells.is_empty() || !is_known(mean) || !is_known(within) {
        let why = "[control] has cells, the mean that they must have, and within, how far from it they may be; both above zero";
        return Err(FileMistake { at: None, why: why.to_owned() });
    }
    Ok(GridControl { cells, mean, within })
}

/// Returns an error if no cell of the grid's control is measured: the report would judge nothing.
pub(super) fn check_control(grid: &Grid) -> Result<(), String> {
    match &grid.control {
        Some(control) if grid.matching(&control.cells).next().is_none() => {
            Err("this leaves out all cells of the control".to_owned())
        }
        _ => Ok(()),
    }
}
