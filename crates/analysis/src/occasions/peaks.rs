//! Chooses the best cells of each occasion by the other occasions: the trials that are judged choose none.

use landspeed_record::{ExpectationReport, GridReport, Record};

use super::void::void;
use crate::grid::expected_beside;

/// Judges each occasion's `peaks` again, with the best cells of the other occasions that count. `all` has the reports of
/// the records.
pub(super) fn choose_elsewhere(records: &[(Record, String)], all: &mut [GridReport]) {
    let alone: &[GridReport] = all;
    let answers: Vec<Vec<ExpectationReport>> = records
        .iter()
        .enumerate()
        .map(|(place, (record, _))| expected_beside(record, &alone[place], &others(alone, place)))
        .collect();
    for (report, expected) in all.iter_mut().zip(answers) {
        report.expected = expected;
    }
}

fn others(all: &[GridReport], place: usize) -> Vec<&GridReport> {
    let others = all.iter().enumerate().filter(|(nth, report)| *nth != place && void(report).is_none());
    others.map(|(_, report)| report).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;
    use landspeed_record::{
        Estimate, Expectation, ExpectationAgreement, ExpectationTest, Grid, GridFactor, GridPlacebo,
        GridTrial, Line, Settings, TrialFigures,
    };
    use landspeed_stats::Random;

    use super::*;

    /// A grid of MTU 1500 and 9000 by size 1 and 2, which asks for the best of 9000 over 1500 with size 1.
    fn grid() -> Grid {
        let factor = |name: &str, levels: [&str; 2]| {
            let levels = levels.map(str::to_owned).into();
            GridFactor { name: name.into(), levels, ..GridFactor::default() }
        };
        let settings = |pairs: &[(&str, &str)]| -> Settings {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let (from, to) = (settings(&[("mtu", "1500"), ("size", "1")]), settings(&[("mtu", "9000")]));
        let test = ExpectationTest::Ratio { from, to, published: 1.0, within: 0.1, peaks: true };
        let expectations = vec![Expectation { test, ..Expectation::default() }];
        let factors = vec![factor("mtu", ["1500", "9000"]), factor("size", ["1", "2"])];
        Grid { factors, expectations, ..Grid::default() }
    }

    /// Returns the record of an occasion of four blocks whose cells have these log rates.
    fn record(cells: [f64; 4]) -> (Record, String) {
        let trial = |block: u32, cell: u32| {
            let noise = 0.01 * (f64::from((block * 7 + cell * 5) % 11) / 11.0 - 0.5);
            let rate = BitRate(1e9 * (cells[cell as usize] + noise).exp());
            let figures = TrialFigures { rate_bps: rate, ..TrialFigures::default() };
            Line::GridTrial(Box::new(GridTrial { block, cell, figures, ..GridTrial::default() }))
        };
        let trials = (0..4).flat_map(|block| (0..4).map(move |cell| (block, cell)));
        let plan = Line::Grid(Box::new(grid()));
        let lines = std::iter::once(plan).chain(trials.map(|(block, cell)| trial(block, cell))).collect();
        (Record { lines, ..Record::default() }, "a record".to_owned())
    }

    fn alone(records: &[(Record, String)]) -> Vec<GridReport> {
        records.iter().map(|(record, path)| crate::grid::judged(record, path).unwrap()).collect()
    }

    fn mean_log(reports: &[GridReport]) -> f64 {
        let logs = reports.iter().map(|report| report.expected[0].ours.unwrap().ratio.ln());
        logs.sum::<f64>() / reports.len() as f64
    }

    /// Twenty series of eight occasions, whose cells have the same truth and deviate by 20 % between occasions.
    #[test]
    fn the_best_of_equal_cells_is_no_better() {
        let mut random = Random::new(38);
        let (mut own, mut elsewhere) = (0.0, 0.0);
        for _ in 0..20 {
            let records: Vec<(Record, String)> =
                (0..8).map(|_| record([(); 4].map(|()| 0.2 * random.normal()))).collect();
            let mut all = alone(&records);
            own += mean_log(&all) / 20.0;
            choose_elsewhere(&records, &mut all);
            elsewhere += mean_log(&all) / 20.0;
        }
        // Three standard errors of 160 ratios. The better of two cells is 0.11 above their mean.
        assert!(own > 0.066, "an occasion's own choice favours what was lucky: {own}");
        assert!(elsewhere.abs() < 0.066, "{elsewhere}");
    }

    #[test]
    fn an_occasion_has_no_say_in_its_own_best_cell() {
        let usual = record([0.0, 0.0, 0.0, 0.1]);
        let records = vec![record([0.0, 0.0, 3.0, 0.0]), usual.clone(), usual, record([0.0, 0.0, 9.0, 0.0])];
        let mut all = alone(&records);
        all[3].void = Some("restarted".to_owned());
        assert_eq!(all[0].expected[0].why, "mtu=9000 size=1 over mtu=1500 size=1, each the best of this run");
        choose_elsewhere(&records, &mut all);
        assert!(all[0].expected[0].why.starts_with("mtu=9000 size=2 over mtu=1500 size=1"));
        assert!(all[0].expected[0].ours.unwrap().ratio < 1.1);
        assert!(!all[0].expected[0].why.contains("the best of this run"));
        let far = Estimate { ratio: 2.0, low: 1.5, high: 2.5 };
        all[3].placebos = vec![GridPlacebo { ratio: far, ..GridPlacebo::default() }];
        choose_elsewhere(&records, &mut all);
        let answer = &all[3].expected[0];
        assert_eq!(answer.agreement, ExpectationAgreement::Undecided);
        assert_eq!(answer.why, "a placebo of this run left 1");
    }
}
