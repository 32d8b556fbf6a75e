//! Compares published results with the measured ones.
//!
//! A result is reproduced if its interval lies on the published side, and differs if it lies on the other side. It is
//! undecided if the interval includes both sides. The confidence level holds for all intervals of one expectation
//! jointly. Where a result differs, its reason is tested like an expectation.
//!
//! To add a kind of test, add a variant to [`ExpectationTest`] and a method to `ExpectationJudge`. The method makes
//! contrasts (`difference`) between cells (`some`, `line`), and must compare all of them in one call of `compared`:
//! only then does the confidence level hold for all of their intervals jointly. Contrasts are of logarithms, so bounds
//! are logarithms too. `engine/src/experiment/expectation.rs` reads the keys of a file. The grid line of a record
//! contains the tests: an older landspeed that does not know one of the tests leaves out this line, and so shows
//! nothing of the record.

use landspeed_record::{
    CurveShape, Estimate, Expectation, ExpectationAgreement, ExpectationReport, ExpectationTest, Grid,
    GridReport, GridTrial, Settings,
};
use landspeed_stats::grid::{Contrast, ContrastEstimate};

use super::elsewhere;
use super::fitted::{FigureModel, points};
use crate::ladder::words;

/// The reason why a number of another mechanism does not count as different from the paper's.
const SUBSTITUTE: &str = "this number is of the other mechanism, and does not show whether the paper's holds";

/// The trials by which expectations are judged.
pub(super) struct JudgedTrials<'a> {
    pub(super) grid: &'a Grid,
    pub(super) trials: &'a [&'a GridTrial],
    /// The other occasions, which choose the best cells of this one; empty for a record alone, which chooses its own.
    pub(super) others: &'a [&'a GridReport],
}

/// Returns true if the test compares the best cell of each group.
pub(super) fn has_peaks(test: &ExpectationTest) -> bool {
    matches!(test, ExpectationTest::Ratio { peaks: true, .. } | ExpectationTest::Order { peaks: true, .. })
}

pub(super) fn judge(of: &JudgedTrials<'_>, expectation: &Expectation) -> ExpectationReport {
    let (published, within) = match &expectation.test {
        ExpectationTest::Ratio { published, within, .. } => (Some(*published), Some(*within)),
        _ => (None, None),
    };
    let ExpectationOutcome { agreement, ours, text } = test(of, expectation);
    let differs = agreement == ExpectationAgreement::Differs;
    let reason = differs.then(|| reason(of, expectation)).flatten();
    let is_substitute =
        differs && published.is_some() && expectation.kind().is_substitute(&expectation.claims);
    let agreement = if is_substitute { ExpectationAgreement::NotHere } else { agreement };
    let text = Some(text).filter(|text| !text.is_empty());
    let apart = is_substitute.then(|| SUBSTITUTE.to_owned());
    let why = [text, apart, reason].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let Expectation { claim, source, claims, in_kind, .. } = expectation.clone();
    ExpectationReport {
        claim,
        source,
        kind: expectation.kind(),
        in_kind,
        claims,
        agreement,
        published,
        within,
        ours,
        why,
    }
}

/// Tests the claim of `expectation`.
fn test(of: &JudgedTrials<'_>, expectation: &Expectation) -> ExpectationOutcome {
    let JudgedTrials { grid, trials, others } = *of;
    let figure = expectation.figure.unwrap_or(grid.figure);
    let fitted = FigureModel::of(grid, &points(grid, trials.iter().copied(), |trial| trial.figure(figure)));
    let found = match &fitted {
        Ok(fitted) => {
            let elsewhere = elsewhere::means(others, figure);
            ExpectationJudge { grid, fitted, elsewhere }.test(&expectation.test)
        }
        Err(why) => Err((ExpectationAgreement::Undecided, why.to_string())),
    };
    found.unwrap_or_else(|(agreement, text)| ExpectationOutcome { agreement, ours: None, text })
}

/// Says why a result differs: what the test of the reason showed, or that nothing tests it. `None` if the expectation
/// has no reason.
fn reason(of: &JudgedTrials<'_>, expectation: &Expectation) -> Option<String> {
    let Some(because) = &expectation.because else {
        let guess = &expectation.otherwise;
        return (!guess.is_empty()).then(|| format!("perhaps (untested): {guess}"));
    };
    let ExpectationOutcome { agreement, ours, text } = test(of, because);
    let word = match agreement {
        ExpectationAgreement::Reproduces => "because",
        ExpectationAgreement::Differs => "not because",
        ExpectationAgreement::Undecided | ExpectationAgreement::NotHere => "undecided whether",
    };
    let shown = [ours.map(words::interval), Some(text).filter(|text| !text.is_empty())];
    let shown = shown.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let shown = if shown.is_empty() { shown } else { format!(" ({shown})") };
    Some(format!("{word} {}{shown}", because.claim))
}

struct ExpectationOutcome {
    agreement: ExpectationAgreement,
    ours: Option<Estimate>,
    text: String,
}

type ExpectationResult = Result<ExpectationOutcome, (ExpectationAgreement, String)>;

struct ExpectationJudge<'a> {
    grid: &'a Grid,
    fitted: &'a FigureModel,
    /// The mean log of each cell on other occasions; `None` without any.
    elsewhere: Option<Vec<Option<f64>>>,
}

impl ExpectationJudge<'_> {
    fn test(&self, test: &ExpectationTest) -> ExpectationResult {
        match test {
            ExpectationTest::Ratio { from, to, published, within, peaks } => {
                self.ratio([from, to], *published, *within, *peaks)
            }
            ExpectationTest::Order { cells, peaks } => self.order(cells, *peaks),
            ExpectationTest::Crossing { along, below, above } => self.crossing(along, below, above),
            ExpectationTest::Shape { shape, along, at, between, within } => {
                let line = self.line(along, at)?;
                match shape {
                    CurveShape::Rises => self.slope(&line, 1.0),
                    CurveShape::Falls => self.slope(&line, -1.0),
                    CurveShape::Flat => self.flat(&line, *within),
                    CurveShape::Dip => self.dip(along, at, between.as_ref()),
                }
            }
        }
    }

    fn ratio(
        &self,
        [from, to]: [&Settings; 2],
        published: f64,
        within: f64,
        peaks: bool,
    ) -> ExpectationResult {
        let (from, to) = (self.some(from, peaks)?, self.some(to, peaks)?);
        let found = self.compared(&[self.difference(&from, &to)])?[0];
        let (low, high) = (published.ln() - within.ln_1p(), published.ln() + within.ln_1p());
        let (ours_low, ours_high) = found.together;
        let agreement = match () {
            () if ours_high < low || ours_low > high => ExpectationAgreement::Differs,
            () if ours_low >= low && ours_high <= high => ExpectationAgreement::Reproduces,
            () => ExpectationAgreement::Undecided,
        };
        let compared =
            peaks.then(|| format!("{} over {}{}", self.name(&to), self.name(&from), self.choice(peaks)));
        let decides = (agreement == ExpectationAgreement::Undecided).then(|| decidable((low, high), &found));
        let text = compared.into_iter().chain(decides).collect::<Vec<_>>().join("; ");
        Ok(ExpectationOutcome { agreement, ours: Some(found.estimate()), text })
    }

    fn order(&self, cells: &[Settings], peaks: bool) -> ExpectationResult {
        let places = cells.iter().map(|cell| self.some(cell, peaks)).collect::<Result<Vec<_>, _>>()?;
        let steps: Vec<Contrast> = places.windows(2).map(|two| self.difference(&two[0], &two[1])).collect();
        let found = self.compared(&steps)?;
        Ok(all_above(&found, |n| {
            let (to, from) = (self.name(&places[n + 1]), self.name(&places[n]));
            format!("{to} over {from}{}", self.choice(peaks))
        }))
    }

    fn crossing(&self, along: &str, below: &Settings, above: &Settings) -> ExpectationResult {
        let (low, high) = (self.line(along, below)?, self.line(along, above)?);
        let ends =
            |line: &[Vec<u32>]| [line.first().cloned(), line.last().cloned()].map(Option::unwrap_or_default);
        let ([low_first, low_last], [high_first, high_last]) = (ends(&low), ends(&high));
        let begins = self.difference(&low_first, &high_first);
        let ends = self.difference(&high_last, &low_last);
        let found = self.compared(&[begins, ends])?;
        let named = ["where they begin", "where they end"];
        Ok(all_above(&found, |n| named[n].to_owned()))
    }

    /// Judges whether a curve's end differs from its beginning in the direction `way` (1 up, -1 down), and no step
    /// has the opposite direction.
    fn slope(&self, line: &[Vec<u32>], way: f64) -> ExpectationResult {
        let steps: Vec<Contrast> = line.windows(2).map(|two| self.difference(&two[0], &two[1])).collect();
        let whole = match line {
            [first, .., last] => self.difference(first, last),
            _ => return Err((ExpectationAgreement::Undecided, "the curve has one point".to_owned())),
        };
        let found = self.compared(&[vec![whole], steps].concat())?;
        let turned = |one: &ContrastEstimate| {
            if way > 0.0 { one.together } else { (-one.together.1, -one.together.0) }
        };
        let against = found.iter().enumerate().find(|(_, one)| turned(one).1 < 0.0);
        let agreement = match against {
            Some(_) => ExpectationAgreement::Differs,
            None if turned(&found[0]).0 > 0.0 => ExpectationAgreement::Reproduces,
            None => ExpectationAgreement::Undecided,
        };
        let (at, decided) = against.unwrap_or((0, &found[0]));
        let text = match at {
            0 => "from the first to the last".to_owned(),
            at => format!("{} over {}", self.name(&line[at]), self.name(&line[at - 1])),
        };
        Ok(ExpectationOutcome { agreement, ours: Some(decided.estimate()), text })
    }

    fn flat(&self, line: &[Vec<u32>], within: f64) -> ExpectationResult {
        let steps: Vec<Contrast> =
            line.iter().skip(1).map(|place| self.difference(&line[0], place)).collect();
        let found = self.compared(&steps)?;
        let bound = within.ln_1p();
        let beyond = |one: &ContrastEstimate| one.together.0 > bound || one.together.1 < -bound;
        let inside = |one: &ContrastEstimate| one.together.0 >= -bound && one.together.1 <= bound;
        let agreement = match () {
            () if found.iter().any(beyond) => ExpectationAgreement::Differs,
            () if found.iter().all(inside) => ExpectationAgreement::Reproduces,
            () => ExpectationAgreement::Undecided,
        };
        let farthest = found.iter().enumerate().max_by(|a, b| a.1.ln.abs().total_cmp(&b.1.ln.abs()));
        let text = farthest.map(|(n, _)| format!("{} over {}", self.name(&line[n + 1]), self.name(&line[0])));
        Ok(ExpectationOutcome {
            agreement,
            ours: farthest.map(|(_, one)| one.estimate()),
            text: text.unwrap_or_default(),
        })
    }

    /// Judges whether the curve is lower on average between two values than right before the first and right after
    /// the last.
    fn dip(&self, along: &str, at: &Settings, between: Option<&[String; 2]>) -> ExpectationResult {
        let factor = self.grid.factors.iter().find(|factor| factor.name == along);
        let place =
            |value: &String| factor.and_then(|factor| factor.levels.iter().position(|level| level == value));
        let ends = between.and_then(|[first, last]| Some((place(first)?, place(last)?)));
        let Some((first, last)) = ends else {
            return Err((
                ExpectationAgreement::Undecided,
                "the values of the dip were not measured".to_owned(),
            ));
        };
        let line = self.line(along, at)?;
        let (Some(before), Some(after)) = (first.checked_sub(1), line.get(last + 1)) else {
            return Err((ExpectationAgreement::Undecided, "nothing was measured beside the dip".to_owned()));
        };
        let inside: Vec<u32> = line[first..=last].concat();
        let outside = [line[before].clone(), after.clone()].concat();
        let found = self.compared(&[self.difference(&inside, &outside)])?;
        Ok(all_above(&found, |_| "beside it over within it".to_owned()))
    }

    /// Returns the contrast that is the mean of `to` minus the mean of `from`. A cell whose trials all failed is left
    /// out, together with its counterpart in the other list.
    fn difference(&self, from: &[u32], to: &[u32]) -> Contrast {
        let means = self.fitted.means();
        let is_known = |cell: &u32| means.iter().any(|mean| mean.cell == *cell);
        let both = |n: &usize| {
            let known = |cells: &[u32]| cells.get(*n).is_some_and(is_known);
            from.len() != to.len() || (known(from) && known(to))
        };
        let kept = |cells: &[u32]| -> Vec<u32> {
            let kept = (0..cells.len()).filter(both).map(|n| cells[n]);
            kept.filter(is_known).collect()
        };
        let share = |cells: Vec<u32>, sign: f64| {
            let weight = sign / cells.len().max(1) as f64;
            cells.into_iter().map(|cell| (cell, weight)).collect::<Vec<_>>()
        };
        Contrast { weights: [share(kept(to), 1.0), share(kept(from), -1.0)].concat() }
    }

    fn compared(&self, family: &[Contrast]) -> Result<Vec<ContrastEstimate>, (ExpectationAgreement, String)> {
        let found = self.fitted.compare(family).into_iter().collect::<Option<Vec<_>>>();
        let few = || (ExpectationAgreement::Undecided, "too few blocks visited all of its cells".to_owned());
        found.filter(|found| !found.is_empty()).ok_or_else(few)
    }

    /// Returns the cells with these values, or only the one with the highest mean if `peaks` is set: on the other
    /// occasions, or without any in these trials.
    fn some(&self, values: &Settings, peaks: bool) -> Result<Vec<u32>, (ExpectationAgreement, String)> {
        let cells = self.cells(values)?;
        if !peaks || cells.len() < 2 {
            return Ok(cells);
        }
        let own = self.fitted.means();
        let mean = |cell: u32| match &self.elsewhere {
            Some(means) => means.get(cell as usize).copied().flatten(),
            None => own.iter().find(|mean| mean.cell == cell).map(|mean| mean.ln),
        };
        let known = cells.into_iter().filter_map(|cell| Some((cell, mean(cell)?)));
        let best = known.max_by(|(_, a), (_, b)| a.total_cmp(b));
        Ok(best.into_iter().map(|(cell, _)| cell).collect())
    }

    /// Says that the best cells were chosen by the trials that are compared; empty if they were not.
    fn choice(&self, peaks: bool) -> &'static str {
        if peaks && self.elsewhere.is_none() { ", each the best of this run" } else { "" }
    }

    /// Returns every cell with these values.
    fn cells(&self, values: &Settings) -> Result<Vec<u32>, (ExpectationAgreement, String)> {
        for (name, value) in values {
            let gone = self.grid.missing.iter().find(|one| one.factor == *name && one.level == *value);
            if let Some(gone) = gone {
                return Err((ExpectationAgreement::NotHere, gone.why.clone()));
            }
            let factor = self.grid.factors.iter().find(|factor| factor.name == *name);
            if !factor.is_some_and(|factor| factor.levels.contains(value)) {
                return Err((ExpectationAgreement::Undecided, format!("{name}={value} was not measured")));
            }
        }
        let fits = |cell: &u32| {
            let own = self.grid.factors.iter().zip(self.grid.values_of(*cell));
            own.into_iter()
                .all(|(factor, value)| values.get(&factor.name).is_none_or(|wanted| wanted == value))
        };
        Ok((0..self.grid.cells()).filter(fits).collect())
    }

    /// Returns, for each value of the factor `along`, the cells that have it and the values `at`.
    fn line(&self, along: &str, at: &Settings) -> Result<Vec<Vec<u32>>, (ExpectationAgreement, String)> {
        let factor = self.grid.factors.iter().find(|factor| factor.name == along);
        let levels = factor.map_or(&[][..], |factor| &factor.levels);
        let with = |level: &String| {
            let mut values = at.clone();
            values.insert(along.to_owned(), level.clone());
            self.cells(&values)
        };
        let line = levels.iter().map(with).collect::<Result<Vec<_>, _>>()?;
        if line.len() < 2 {
            return Err((ExpectationAgreement::Undecided, format!("{along} has one value here")));
        }
        Ok(line)
    }

    /// Returns a name such as "mtu=9000 write-size=65536", of the values that the cells have in common.
    fn name(&self, cells: &[u32]) -> String {
        let Some((first, others)) = cells.split_first() else { return String::new() };
        let values = self.grid.factors.iter().zip(self.grid.values_of(*first)).enumerate();
        let common = values
            .filter(|(n, (_, value))| others.iter().all(|other| self.grid.values_of(*other)[*n] == *value));
        common.map(|(_, (factor, value))| format!("{}={value}", factor.name)).collect::<Vec<_>>().join(" ")
    }
}

/// Says which ratios an interval as wide as that of `found` decides, beside bounds that are logarithms.
fn decidable((low, high): (f64, f64), found: &ContrastEstimate) -> String {
    let half = (found.together.1 - found.together.0) / 2.0;
    let outside = format!("below {:.2} or above {:.2}", (low - half).exp(), (high + half).exp());
    let inside = (low + half < high - half)
        .then(|| format!(", or from {:.2} to {:.2}", (low + half).exp(), (high - half).exp()));
    format!("this run decides a ratio {outside}{}", inside.unwrap_or_default())
}

/// Judges whether every ratio is proven to be above one. The reported ratio is the first that is proven to be below
/// one, or else the one with the lowest interval.
fn all_above(found: &[ContrastEstimate], name: impl Fn(usize) -> String) -> ExpectationOutcome {
    let below = found.iter().enumerate().find(|(_, one)| one.together.1 < 0.0);
    let least = found.iter().enumerate().min_by(|a, b| a.1.together.0.total_cmp(&b.1.together.0));
    let agreement = match (below, least) {
        (Some(_), _) => ExpectationAgreement::Differs,
        (None, Some((_, least))) if least.together.0 > 0.0 => ExpectationAgreement::Reproduces,
        _ => ExpectationAgreement::Undecided,
    };
    let decided = below.or(least);
    let text = decided.map(|(n, _)| name(n)).unwrap_or_default();
    ExpectationOutcome { agreement, ours: decided.map(|(_, one)| one.estimate()), text }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;
    use landspeed_record::{GridFactor, MissingLevel, TrialFigures};

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn factor(name: &str, levels: &[&str]) -> GridFactor {
        let levels = levels.iter().map(|level| (*level).to_owned()).collect();
        GridFactor { name: name.into(), levels, ..GridFactor::default() }
    }

    /// Judges a grid of mtu 1500 and 9000 over sizes 1 to 4; 9000 is twice as fast, but has a dip at size 3.
    fn judged_with(expectation: Expectation) -> ExpectationReport {
        let factors = vec![factor("mtu", &["1500", "9000"]), factor("size", &["1", "2", "3", "4"])];
        let missing =
            vec![MissingLevel { factor: "mtu".into(), level: "16000".into(), why: "too large".into() }];
        let grid = Grid { factors, missing, ..Grid::default() };
        let rate = |cell: u32| [1.0, 2.0, 3.0, 4.0, 2.0, 4.0, 3.0, 8.0][cell as usize] * 1e9;
        let trial = |block: u32, cell: u32| {
            let noise = 1.0 + 0.01 * (f64::from((block * 7 + cell * 5) % 11) / 11.0 - 0.5);
            let figures = TrialFigures { rate_bps: BitRate(rate(cell) * noise), ..TrialFigures::default() };
            GridTrial { block, cell, figures, ..GridTrial::default() }
        };
        let trials: Vec<GridTrial> = (0..8)
            .flat_map(|block| (0..8).map(move |cell| (block, cell)))
            .map(|(b, c)| trial(b, c))
            .collect();
        let trials: Vec<&GridTrial> = trials.iter().collect();
        judge(&JudgedTrials { grid: &grid, trials: &trials, others: &[] }, &expectation)
    }

    fn judged(test: ExpectationTest) -> ExpectationReport {
        judged_with(Expectation { test, otherwise: "it is another machine".into(), ..Expectation::default() })
    }

    fn ratio(from: &str, to: &str, published: f64, peaks: bool) -> ExpectationReport {
        let (from, to) = (settings(&[("mtu", from)]), settings(&[("mtu", to)]));
        judged(ExpectationTest::Ratio { from, to, published, within: 0.1, peaks })
    }

    #[test]
    fn a_ratio_is_of_means_or_of_peaks() {
        assert_eq!(ratio("1500", "9000", 2.0, true).agreement, ExpectationAgreement::Reproduces);
        let means = ratio("1500", "9000", 2.0, false);
        // Twice at three of four sizes, and equal at the fourth: 2^(3/4).
        assert_eq!((means.agreement, means.published), (ExpectationAgreement::Differs, Some(2.0)));
        assert!(
            (means.ours.unwrap().ratio - 1.68).abs() < 0.02
                && means.why.ends_with("perhaps (untested): it is another machine")
        );
        let close = ratio("1500", "9000", 1.82, true);
        assert_eq!(close.agreement, ExpectationAgreement::Undecided, "{close:?}");
        assert!(close.why.contains("this run decides a ratio below 1."), "{}", close.why);
        let gone = ratio("1500", "16000", 3.0, true);
        assert_eq!((gone.agreement, gone.why.as_str()), (ExpectationAgreement::NotHere, "too large"));
        assert_eq!(ratio("1500", "4000", 3.0, true).agreement, ExpectationAgreement::Undecided);
    }

    #[test]
    fn a_substitute_with_another_number_says_nothing_of_the_papers() {
        let judged = |published: f64, claims: &[&str]| {
            let (from, to) = (settings(&[("mtu", "1500")]), settings(&[("mtu", "9000")]));
            let test = ExpectationTest::Ratio { from, to, published, within: 0.1, peaks: false };
            let in_kind = "a veth in place of an adapter".to_owned();
            let claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
            judged_with(Expectation { test, in_kind, claims, ..Expectation::default() })
        };
        let other = judged(5.0, &["feng.mtu"]);
        assert_eq!((other.agreement, other.ours.is_some()), (ExpectationAgreement::NotHere, true));
        assert!(other.why.contains(SUBSTITUTE), "{}", other.why);
        assert_eq!(judged(1.68, &["feng.mtu"]).agreement, ExpectationAgreement::Reproduces);
        assert_eq!(judged(5.0, &[]).agreement, ExpectationAgreement::Differs, "it is no paper's number");
    }

    #[test]
    fn a_reason_is_tested_where_a_result_differs() {
        let size = |size: &str| settings(&[("size", size), ("mtu", "1500")]);
        let order =
            |cells: [&str; 2]| ExpectationTest::Order { cells: cells.map(size).to_vec(), peaks: false };
        let text = |claimed: [&str; 2], reason: [&str; 2]| {
            let because =
                Expectation { claim: "3 is more".into(), test: order(reason), ..Expectation::default() };
            let because = Some(Box::new(because));
            judged_with(Expectation { test: order(claimed), because, ..Expectation::default() }).why
        };
        let differs = ["4", "1"];
        assert!(
            text(differs, ["1", "3"]).contains("; because 3 is more (3.0"),
            "{}",
            text(differs, ["1", "3"])
        );
        assert!(text(differs, ["3", "1"]).contains("; not because 3 is more"));
        assert!(text(differs, ["3", "3"]).contains("; undecided whether 3 is more"));
        assert!(
            text(differs, ["3", "7"]).ends_with("(size=7 was not measured)"),
            "{}",
            text(differs, ["3", "7"])
        );
        assert!(!text(["1", "4"], ["1", "3"]).contains("because"), "a result that agrees needs no reason");
    }

    #[test]
    fn orders_crossings_and_shapes_need_proof() {
        let cells = |values: [&str; 2]| values.map(|value| settings(&[("mtu", value)])).to_vec();
        let order = |cells| judged(ExpectationTest::Order { cells, peaks: true }).agreement;
        assert_eq!(order(cells(["1500", "9000"])), ExpectationAgreement::Reproduces);
        assert_eq!(order(cells(["9000", "1500"])), ExpectationAgreement::Differs);
        assert_eq!(order(cells(["9000", "9000"])), ExpectationAgreement::Undecided);
        let shape = |shape, mtu: &str, between: Option<[&str; 2]>| {
            let (along, at) = ("size".to_owned(), settings(&[("mtu", mtu)]));
            let between = between.map(|ends| ends.map(str::to_owned));
            judged(ExpectationTest::Shape { shape, along, at, between, within: 0.1 }).agreement
        };
        assert_eq!(shape(CurveShape::Rises, "1500", None), ExpectationAgreement::Reproduces);
        assert_eq!(shape(CurveShape::Rises, "9000", None), ExpectationAgreement::Differs, "it falls at 3");
        assert_eq!(shape(CurveShape::Falls, "1500", None), ExpectationAgreement::Differs);
        assert_eq!(shape(CurveShape::Flat, "1500", None), ExpectationAgreement::Differs);
        assert_eq!(shape(CurveShape::Dip, "9000", Some(["3", "3"])), ExpectationAgreement::Reproduces);
        assert_eq!(
            shape(CurveShape::Dip, "1500", Some(["2", "3"])),
            ExpectationAgreement::Differs,
            "4 is higher, 1 is lower"
        );
        let [below, above] = ["1500", "9000"].map(|mtu| settings(&[("mtu", mtu)]));
        let crossing = judged(ExpectationTest::Crossing { along: "size".into(), below, above });
        assert_eq!(
            (crossing.agreement, crossing.why.starts_with("where they end")),
            (ExpectationAgreement::Differs, true)
        );
    }
}
