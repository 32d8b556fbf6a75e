//! The means of cells on other occasions, by which an occasion chooses its best cells. A cell that the occasion's own
//! trials choose is the best one partly by chance, which makes its mean too high (selection bias).

use landspeed_record::{GridFigure, GridReport};

use super::control::mean;

/// Returns the mean log of each cell over the occasions `others`, which have the same cells; `None` if none of them has
/// the figure.
pub(super) fn means(others: &[&GridReport], figure: GridFigure) -> Option<Vec<Option<f64>>> {
    let mut days: Vec<Vec<Option<f64>>> = others.iter().filter_map(|day| logs(day, figure)).collect();
    let cells = 0..days.first()?.len();
    let common: Vec<usize> =
        cells.clone().filter(|cell| days.iter().all(|day| day[*cell].is_some())).collect();
    // Without this, a fast day would raise the cells that it has above those that failed on it.
    for day in &mut days {
        let known: Vec<f64> = common.iter().filter_map(|cell| day[*cell]).collect();
        let level = mean(&known).unwrap_or_default();
        day.iter_mut().flatten().for_each(|ln| *ln -= level);
    }
    let over_days = |cell: usize| mean(&days.iter().filter_map(|day| day[cell]).collect::<Vec<f64>>());
    Some(cells.map(over_days).collect())
}

/// Returns the mean log of each cell on one occasion.
fn logs(day: &GridReport, figure: GridFigure) -> Option<Vec<Option<f64>>> {
    let curves = day.figures.iter().find(|curves| curves.figure == figure && !curves.is_beside)?;
    Some(curves.cells.iter().map(|cell| cell.mean.map(f64::ln)).collect())
}

#[cfg(test)]
mod tests {
    use landspeed_record::{GridCell, GridCurves};

    use super::*;

    fn day(means: [Option<f64>; 3]) -> GridReport {
        let cells = means.map(|mean| GridCell { mean, ..GridCell::default() }).into();
        let curves = GridCurves { figure: GridFigure::GOODPUT, cells, ..GridCurves::default() };
        GridReport { figures: vec![curves], ..GridReport::default() }
    }

    #[test]
    fn a_fast_day_with_a_missing_cell_does_not_decide() {
        let slow = day([Some(2.0), Some(1.0), Some(1.0)]);
        let fast = day([None, Some(10.0), Some(10.0)]);
        let found = means(&[&fast, &slow, &slow], GridFigure::GOODPUT).unwrap();
        let found: Vec<f64> = found.into_iter().flatten().collect();
        assert!((found[0] - 2f64.ln()).abs() < 1e-9 && found[1].abs() < 1e-9, "{found:?}");
        let unknown = means(&[&fast, &fast], GridFigure::GOODPUT).unwrap();
        assert_eq!((unknown[0], unknown.len()), (None, 3));
        assert_eq!(means(&[&slow], GridFigure::LATENCY), None);
        assert_eq!(means(&[], GridFigure::GOODPUT), None);
    }
}
