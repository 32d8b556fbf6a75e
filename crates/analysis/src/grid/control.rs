//! The control of a grid: cells whose mean is known. Where they miss it, the report loses its answers.

use landspeed_record::{ExpectationReport, Grid, GridControlReport, GridCurves, GridReport, GridTrial};

/// Returns the mean of the cells of the grid's control; `None` if the grid has no control.
pub(super) fn measured(grid: &Grid, trials: &[&GridTrial]) -> Option<GridControlReport> {
    let control = grid.control.as_ref()?;
    let figures = |cell: u32| -> Vec<f64> {
        let of_cell = trials.iter().filter(|trial| trial.cell == cell);
        of_cell.filter_map(|trial| trial.figure(grid.figure)).collect()
    };
    let all: Vec<Vec<f64>> = grid.matching(&control.cells).map(figures).collect();
    // Each cell counts alike: a flow that enters first in one cell and last in another has its share of both.
    let means = all.iter().map(|of| mean(of)).collect::<Option<Vec<f64>>>();
    let cells = control.cells.iter().map(|(factor, value)| format!("{factor}={value}"));
    Some(GridControlReport {
        cells: cells.collect::<Vec<_>>().join(" "),
        figure: grid.figure,
        wanted: control.mean,
        within: control.within,
        mean: means.and_then(|means| mean(&means)),
        trials: all.iter().map(|of| of.len() as u32).sum(),
    })
}

/// Returns the control of several occasions together; `None` if none has one.
pub(crate) fn over(reports: &[&GridReport]) -> Option<GridControlReport> {
    let all: Vec<&GridControlReport> = reports.iter().filter_map(|report| report.control.as_ref()).collect();
    let first = (*all.first()?).clone();
    let means = all.iter().map(|one| one.mean).collect::<Option<Vec<f64>>>();
    let trials = all.iter().map(|one| one.trials).sum();
    Some(GridControlReport { mean: means.and_then(|means| mean(&means)), trials, ..first })
}

/// Returns the arithmetic mean; `None` of no values.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Removes the answers from a report whose control failed: the ratios of its figure, and the answers to its
/// expectations.
pub(super) fn applied(report: GridReport) -> GridReport {
    let failed = report.control.as_ref().and_then(|control| Some((control.figure, control.complaint()?)));
    let Some((figure, why)) = failed else { return report };
    let curves = |curves: GridCurves| match curves.figure == figure {
        true => without_ratios(curves, &why),
        false => curves,
    };
    let answer = |one: ExpectationReport| match one.agreement.withdrawn() {
        agreement if agreement != one.agreement => ExpectationReport { agreement, why: why.clone(), ..one },
        _ => one,
    };
    GridReport {
        figures: report.figures.into_iter().map(curves).collect(),
        expected: report.expected.into_iter().map(answer).collect(),
        doubts: report.doubts.into_iter().chain([why.clone()]).collect(),
        ..report
    }
}

fn without_ratios(mut curves: GridCurves, why: &str) -> GridCurves {
    curves.cells.iter_mut().for_each(|cell| cell.ratio = None);
    GridCurves {
        neighbours: Vec::new(),
        effects: Vec::new(),
        factorial: Vec::new(),
        method: None,
        no_intervals: Some(why.to_owned()),
        ..curves
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;
    use landspeed_record::{
        Expectation, ExpectationAgreement, ExpectationTest, GridControl, GridFactor, Line, Record, Settings,
        TrialFigures,
    };

    use super::*;

    fn flow(value: &str) -> Settings {
        Settings::from([("flow".to_owned(), value.to_owned())])
    }

    /// A grid of two flows, each first and last to enter, whose control is the first flow at 5 Gb/s.
    fn grid() -> Grid {
        let factor = |name: &str, levels: [&str; 2]| GridFactor {
            name: name.into(),
            levels: levels.map(str::to_owned).into(),
            ..GridFactor::default()
        };
        let order = ExpectationTest::Order { cells: vec![flow("cubic"), flow("bbr")], peaks: false };
        Grid {
            factors: vec![factor("flow", ["cubic", "bbr"]), factor("swap", ["off", "on"])],
            expectations: vec![Expectation { test: order, ..Expectation::default() }],
            control: Some(GridControl { cells: flow("cubic"), mean: 5e9, within: 0.3e9 }),
            ..Grid::default()
        }
    }

    /// Measures a grid in which the first flow has `first` where it enters first, and `last` where it enters last.
    fn report(first: f64, last: f64) -> GridReport {
        let rate = |block: u32, cell: u32| {
            let noise = 1.0 + 0.001 * f64::from((block * 7 + cell * 5) % 11);
            [first, last, 9e9, 9.1e9][cell as usize] * noise
        };
        let trial = |block: u32, cell: u32| {
            let figures = TrialFigures { rate_bps: BitRate(rate(block, cell)), ..TrialFigures::default() };
            Line::GridTrial(Box::new(GridTrial { block, cell, figures, ..GridTrial::default() }))
        };
        let trials = (0..6).flat_map(|block| (0..4).map(move |cell| (block, cell)));
        let plan = Line::Grid(Box::new(grid()));
        let lines = std::iter::once(plan).chain(trials.map(|(block, cell)| trial(block, cell))).collect();
        crate::grid::report(&Record { lines, ..Record::default() }, "a record").unwrap()
    }

    #[test]
    fn a_control_that_holds_over_both_orders_changes_nothing() {
        let report = report(7e9, 3e9);
        assert!(report.control.as_ref().unwrap().holds(), "{:?}", report.control);
        assert_eq!(report.control.unwrap().trials, 12);
        assert!(
            report.figures[0].cells[2].ratio.is_some() && report.doubts.is_empty(),
            "{:?}",
            report.doubts
        );
        assert_eq!(report.expected[0].agreement, ExpectationAgreement::Reproduces);
    }

    #[test]
    fn nothing_is_judged_where_the_control_fails() {
        let report = report(7e9, 4e9);
        let why = report.control.as_ref().unwrap().complaint().unwrap();
        assert_eq!(report.doubts, std::slice::from_ref(&why));
        assert_eq!(report.figures[0].no_intervals.as_ref(), Some(&why));
        assert!(report.figures[0].cells.iter().all(|cell| cell.ratio.is_none() && cell.mean.is_some()));
        assert!(report.figures[0].neighbours.is_empty() && report.figures[0].effects.is_empty());
        assert_eq!(report.expected[0].agreement, ExpectationAgreement::Undecided);
        assert_eq!(report.expected[0].why, why);
    }

    #[test]
    fn a_control_over_occasions_is_their_mean() {
        let of = |mean| GridReport {
            control: Some(GridControlReport {
                wanted: 0.5,
                within: 0.03,
                mean,
                trials: 8,
                ..GridControlReport::default()
            }),
            ..GridReport::default()
        };
        let [low, high, missing] = [Some(0.45), Some(0.55), None].map(of);
        let both = over(&[&low, &high]).unwrap();
        assert!(both.holds() && both.trials == 16, "{both:?}");
        assert!(!over(&[&low, &missing]).unwrap().holds());
        assert_eq!(over(&[&GridReport::default()]), None);
    }
}
