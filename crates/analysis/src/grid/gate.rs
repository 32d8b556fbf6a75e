//! Forecasts, from a few trials before a grid, whether its blocks can answer what its expectations ask.

use landspeed_record::{CurveShape, Expectation, ExpectationTest, Grid};
use landspeed_stats::{deviation_at_least, half_width};

use super::size::planned_passes;

/// The confidence of the intervals that are forecast, and of the spread's lower bound.
const CONFIDENCE: f64 = 0.95;

/// The forecast of a grid's intervals, from trials of the reference before it.
#[derive(Debug, Clone, PartialEq)]
pub struct GateForecast {
    /// Standard deviation of a trial's log figure.
    pub spread_ln: f64,
    /// The blocks that the grid plans.
    pub blocks: u32,
    /// Half the width, as a log, of the narrowest interval that an expectation of the grid can get.
    pub best_ln: f64,
    /// Half the width, as a log, that the widest question of the grid allows.
    pub asked_ln: f64,
    /// The blocks that the widest question needs at this spread.
    pub needed: u32,
}

impl GateForecast {
    /// Returns true if the grid may answer something. It is false only where even the lower bound of the spread is too
    /// much for the widest question.
    pub fn can_decide(&self) -> bool {
        self.best_ln <= self.asked_ln
    }
}

/// A question of a grid: the half-width of the interval that answers it, and the cells whose mean it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GateQuestion {
    half_ln: f64,
    cells: usize,
}

impl GateQuestion {
    /// Returns half the width of the interval from trials that spread by `deviation`, beside the width that is asked.
    fn excess(&self, deviation: f64, blocks: u32) -> f64 {
        half_width(deviation, blocks, CONFIDENCE) / (self.cells as f64).sqrt() / self.half_ln
    }
}

/// Returns true if an expectation of the grid asks for a precision: a number, or a flat curve.
pub fn asks(grid: &Grid) -> bool {
    !questions(grid).is_empty()
}

fn questions(grid: &Grid) -> Vec<GateQuestion> {
    let own = |one: &&Expectation| one.figure.is_none_or(|figure| figure == grid.figure);
    grid.expectations.iter().filter(own).filter_map(|one| question(grid, &one.test)).collect()
}

fn question(grid: &Grid, test: &ExpectationTest) -> Option<GateQuestion> {
    let (within, cells) = match test {
        ExpectationTest::Ratio { from, to, within, .. } => {
            (*within, grid.matching(from).count().min(grid.matching(to).count()))
        }
        ExpectationTest::Shape { shape: CurveShape::Flat, within, .. } => (*within, 1),
        ExpectationTest::Shape { .. } | ExpectationTest::Order { .. } | ExpectationTest::Crossing { .. } => {
            return None;
        }
    };
    (within > 0.0 && cells > 0).then_some(GateQuestion { half_ln: within.ln_1p(), cells })
}

/// Returns the forecast from the log figures of trials of the reference, in the order in which they were made. `None` if
/// the grid asks for no precision, or from fewer than three trials.
///
/// Differences between successive trials leave out drift, which blocks leave out too. The reference is a cell of most
/// contrasts; a louder cell only widens their intervals.
pub fn forecast(grid: &Grid, logs: &[f64]) -> Option<GateForecast> {
    let steps = logs.len().saturating_sub(1) as f64;
    if steps < 2.0 {
        return None;
    }
    let squares: f64 = logs.windows(2).map(|pair| (pair[1] - pair[0]).powi(2) / 2.0).sum();
    let spread_ln = (squares / steps).sqrt();
    // Successive differences share a trial, which leaves two thirds of their number as degrees of freedom (von Neumann,
    // Annals of Mathematical Statistics 12, 1941).
    let least = deviation_at_least(spread_ln, 2.0 * steps / 3.0, CONFIDENCE);
    let blocks = planned_passes(grid);
    let all = questions(grid);
    let widest =
        all.iter().min_by(|a, b| a.excess(least, blocks).total_cmp(&b.excess(least, blocks))).copied()?;
    let enough = |count: &u32| widest.excess(spread_ln, *count) <= 1.0;
    Some(GateForecast {
        spread_ln,
        blocks,
        best_ln: widest.excess(least, blocks) * widest.half_ln,
        asked_ln: widest.half_ln,
        needed: (2..=MOST_BLOCKS).find(enough).unwrap_or(MOST_BLOCKS),
    })
}

/// The largest number of blocks that a forecast names.
const MOST_BLOCKS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use landspeed_record::{GridFactor, Settings};
    use landspeed_stats::Random;

    use super::*;

    fn grid(within: &[f64]) -> Grid {
        let levels = vec!["1500".to_owned(), "9000".to_owned()];
        let factors = vec![GridFactor { name: "mtu".into(), levels, ..GridFactor::default() }];
        let cell = |value: &str| Settings::from([("mtu".to_owned(), value.to_owned())]);
        let asked = |within: &f64| Expectation {
            test: ExpectationTest::Ratio {
                from: cell("1500"),
                to: cell("9000"),
                published: 1.5,
                within: *within,
                peaks: false,
            },
            ..Expectation::default()
        };
        Grid { factors, blocks: Some(6), expectations: within.iter().map(asked).collect(), ..Grid::default() }
    }

    fn logs(deviation: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..10).map(|_| deviation * random.normal()).collect()
    }

    #[test]
    fn only_a_spread_that_hides_every_question_is_refused() {
        let asked = grid(&[0.1, 0.3]);
        let quiet = forecast(&asked, &logs(0.05, 1)).unwrap();
        assert!(quiet.can_decide() && quiet.blocks == 6, "{quiet:?}");
        let loud = forecast(&asked, &logs(1.0, 1)).unwrap();
        assert!(!loud.can_decide() && loud.needed > 50, "{loud:?}");
        assert!((loud.asked_ln - 0.3f64.ln_1p()).abs() < 1e-12, "the widest question counts: {loud:?}");
        assert_eq!(forecast(&grid(&[]), &logs(1.0, 1)), None);
        assert_eq!(forecast(&asked, &[0.0, 0.1]), None);
    }

    /// A curve that rises asks for no precision, although its test has a margin like any other: only a flat one uses
    /// it.
    #[test]
    fn of_curves_only_a_flat_one_asks_for_a_precision() {
        let asking = |shape| {
            let (along, at, within) = ("mtu".to_owned(), Settings::new(), 0.2);
            let test = ExpectationTest::Shape { shape, along, at, between: None, within };
            asks(&Grid { expectations: vec![Expectation { test, ..Expectation::default() }], ..grid(&[]) })
        };
        assert!(asking(CurveShape::Flat));
        assert!(![CurveShape::Rises, CurveShape::Falls, CurveShape::Dip].into_iter().any(asking));
    }

    /// A spread at which the grid's interval is just as wide as its question is refused in 5 % of gates at most.
    #[test]
    fn a_grid_that_can_just_decide_is_seldom_refused() {
        let asked = grid(&[0.2]);
        let deviation = 0.2f64.ln_1p() / half_width(1.0, 6, CONFIDENCE);
        let refused =
            (0..2000).filter(|seed| !forecast(&asked, &logs(deviation, *seed)).unwrap().can_decide()).count();
        // 5 % of 2,000 with the 99.9 % bound of the binomial distribution.
        assert!(refused <= 133, "{refused}");
        assert!(refused >= 20, "the bound is not so low that it never refuses: {refused}");
    }

    /// A drift over the trials is no spread, because blocks leave it out too.
    #[test]
    fn drift_is_no_spread() {
        let drift: Vec<f64> = logs(0.01, 4).iter().enumerate().map(|(n, ln)| ln + 0.02 * n as f64).collect();
        let found = forecast(&grid(&[0.2]), &drift).unwrap();
        assert!(found.spread_ln < 0.03, "{found:?}");
    }
}
