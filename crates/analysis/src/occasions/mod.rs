//! One grid over several occasions: what holds on other days.
//!
//! An occasion is one run of the whole design. Its ratios between cells are its own: whatever made all cells of an
//! occasion faster or slower cancels. Student's t over the log ratios of the occasions gives the mean and a prediction
//! of another occasion. The best cells of an occasion (`peaks`) are chosen by the others. An answer needs five
//! occasions on two boots; with fewer it holds for today only.

mod deviation;
mod peaks;
mod void;

use std::collections::BTreeSet;

use landspeed_record::{
    ExpectationAgreement, ExpectationKind, ExpectationReport, GridControlReport, GridCurves, GridFigure,
    GridReport, OCCASIONS_FORMAT, Occasion, OccasionCell, OccasionCurves, OccasionExpectation,
    OccasionsReport, Record,
};
use landspeed_stats::{over_occasions, spread_by_chance};

use void::{left_out, void};

/// The confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// The fewest occasions and boots of an answer that holds for other days.
const FEW: usize = 5;
const FEW_BOOTS: usize = 2;
/// The probability below which the placebos of a series spread more than by chance.
const CHANCE: f64 = 0.01;
/// The ratio of the ends of a mean above which a figure with a control is unsteady.
const UNSTEADY: f64 = 1.5;

/// Returns the report of records of one grid, each with its path.
///
/// # Errors
/// Returns a line if a record is not that of a grid, if fewer than two are given, or if their designs differ.
pub fn occasions(records: &[(Record, String)], landspeed: &str) -> Result<OccasionsReport, String> {
    let judged = |(record, path): &(Record, String)| {
        crate::grid::judged(record, path).map_err(|error| error.to_string())
    };
    let mut all: Vec<GridReport> = records.iter().map(judged).collect::<Result<_, _>>()?;
    let (first, others) = all
        .split_first()
        .filter(|(_, others)| !others.is_empty())
        .ok_or("two records or more make occasions")?;
    for other in others {
        same_design(first, other)?;
    }
    peaks::choose_elsewhere(records, &mut all);
    let first = &all[0];
    let counted = records.iter().zip(&all).filter(|(_, report)| void(report).is_none());
    let (counted, reports): (Vec<&Record>, Vec<&GridReport>) =
        counted.map(|((record, _), report)| (record, report)).unzip();
    if reports.len() < 2 {
        return Err(format!("fewer than two of these records count: {}", left_out(&all).join("; ")));
    }
    let deviating = deviation::remarks(&counted, &reports);
    let by_chance = spread_by_chance(&statistics(&all));
    let is_wide = by_chance.is_some_and(|chance| chance < CHANCE);
    let is_today = are_of_today(&reports);
    // One occasion's mean varies more than that of all, so the control is of all occasions together.
    let control = crate::grid::control_over(&reports);
    let failed = control.as_ref().and_then(GridControlReport::complaint);
    let is_open = is_wide || failed.is_some();
    let expected = claims(&all).into_iter().filter_map(|claim| judged_over(&all, claim));
    let expected = expected.map(|answer| match is_open {
        true => OccasionExpectation { agreement: answer.agreement.withdrawn(), is_firm: false, ..answer },
        false => answer,
    });
    let figures = figures_over(first, &reports, control.as_ref());
    let unsteady = control.iter().flat_map(|control| unsteady(&figures, control.figure));
    let notes = caveat(first)
        .into_iter()
        .chain(failed)
        .chain(notes(&all, is_today, is_wide))
        .chain(unsteady)
        .collect();
    Ok(OccasionsReport {
        format: OCCASIONS_FORMAT,
        landspeed: landspeed.to_owned(),
        title: title(first),
        occasions: records
            .iter()
            .zip(&all)
            .map(|((record, path), report)| occasion(record, path, report))
            .collect(),
        boots: boots(&reports) as u32,
        figures,
        expected: expected.collect(),
        placebos_by_chance: by_chance,
        deviating,
        notes,
        control,
    })
}

/// Returns the number of boots that these occasions span.
fn boots(reports: &[&GridReport]) -> usize {
    reports.iter().map(|report| report.host_a.boot_id.as_str()).collect::<BTreeSet<_>>().len()
}

/// Returns true if these occasions are too few for an answer about other days.
fn are_of_today(reports: &[&GridReport]) -> bool {
    reports.len() < FEW || boots(reports) < FEW_BOOTS
}

/// Returns the claims of all occasions, each once. A file may get an expectation between two occasions.
fn claims(reports: &[GridReport]) -> Vec<&str> {
    let mut known = BTreeSet::new();
    let all = reports.iter().flat_map(|report| &report.expected).map(|one| one.claim.as_str());
    all.filter(|claim| known.insert(*claim)).collect()
}

/// Judges an expectation over the occasions that asked it; `None` if none of those counts.
fn judged_over(all: &[GridReport], claim: &str) -> Option<OccasionExpectation> {
    let asked: Vec<(u32, &GridReport, &ExpectationReport)> = (0..)
        .zip(all)
        .filter_map(|(place, report)| {
            let one = report.expected.iter().find(|one| one.claim == claim)?;
            void(report).is_none().then_some((place, report, one))
        })
        .collect();
    let reports: Vec<&GridReport> = asked.iter().map(|(_, report, _)| *report).collect();
    let of: Vec<&ExpectationReport> = asked.iter().map(|(.., one)| *one).collect();
    let answer = (!of.is_empty()).then(|| expectation_over(&of, are_of_today(&reports)))?;
    Some(OccasionExpectation { occasions: asked.iter().map(|(place, ..)| *place).collect(), ..answer })
}

fn title(report: &GridReport) -> String {
    let factors = || report.factors.iter().map(|factor| factor.name.as_str()).collect::<Vec<_>>().join(", ");
    match report.title.is_empty() {
        true => format!("{} over {}", report.workload.name, factors()),
        false => report.title.clone(),
    }
}

/// Returns a line that says how two grids differ, if their cells are not the same.
fn same_design(one: &GridReport, other: &GridReport) -> Result<(), String> {
    let levels = |report: &GridReport| -> Vec<(String, Vec<String>)> {
        report.factors.iter().map(|factor| (factor.name.clone(), factor.levels.clone())).collect()
    };
    let named = |report: &GridReport| report.record.clone().unwrap_or_default();
    if one.workload.name != other.workload.name {
        let (a, b) = (&one.workload.name, &other.workload.name);
        return Err(format!("{} measured {a}, {} measured {b}", named(one), named(other)));
    }
    if one.caveat_mark() != other.caveat_mark() {
        let mark = one.caveat_mark().or(other.caveat_mark()).unwrap_or_default();
        return Err(format!(
            "one of {} and {} was measured in {mark}, the other was not",
            named(one),
            named(other)
        ));
    }
    match levels(one) == levels(other) {
        true => Ok(()),
        false => Err(format!("{} and {} do not vary the same values", named(one), named(other))),
    }
}

fn occasion(record: &Record, path: &str, report: &GridReport) -> Occasion {
    Occasion {
        record: path.to_owned(),
        started: report.started.clone(),
        boot_id: report.host_a.boot_id.clone(),
        processor: report.host_a.cpu_model.clone(),
        kernel: report.host_a.kernel.clone(),
        controls: record.controls().into_iter().collect(),
        hosts: vec![report.host_a.clone(), report.host_b.clone()],
    }
}

/// Returns the curves of a figure over all occasions; `None` if an occasion does not have the figure.
fn over(curves: &GridCurves, reports: &[&GridReport]) -> Option<OccasionCurves> {
    let same = |other: &&GridCurves| other.figure == curves.figure && other.program == curves.program;
    let all: Vec<&GridCurves> =
        reports.iter().map(|report| report.figures.iter().find(same)).collect::<Option<_>>()?;
    let cell = |(nth, cell): (usize, &landspeed_record::GridCell)| {
        let ratios = all.iter().filter_map(|curves| Some(curves.cells.get(nth)?.ratio?.ratio));
        pooled(cell.values.clone(), ratios.collect())
    };
    let cells = curves.cells.iter().enumerate().skip(1).map(cell).collect();
    Some(OccasionCurves { program: curves.program.clone(), figure: curves.figure, cells })
}

/// Returns the curves of all figures that all occasions have. A figure whose control failed has no answer.
fn figures_over(
    first: &GridReport,
    reports: &[&GridReport],
    control: Option<&GridControlReport>,
) -> Vec<OccasionCurves> {
    let failed = control.filter(|control| !control.holds()).map(|control| control.figure);
    let all = first.figures.iter().filter_map(|curves| over(curves, reports));
    all.map(|curves| if failed == Some(curves.figure) { without_means(curves) } else { curves }).collect()
}

/// Returns the curves of a figure whose control failed: the ratios of the occasions, without an answer.
fn without_means(curves: OccasionCurves) -> OccasionCurves {
    let bare = |cell: OccasionCell| OccasionCell { mean: None, another: None, deviation_ln: None, ..cell };
    OccasionCurves { cells: curves.cells.into_iter().map(bare).collect(), ..curves }
}

/// Returns a line for each cell of a figure whose mean is known too badly to be read as a figure.
fn unsteady(figures: &[OccasionCurves], figure: GridFigure) -> Vec<String> {
    let cells = figures.iter().filter(|curves| curves.figure == figure).flat_map(|curves| &curves.cells);
    let wide = cells.filter(|cell| cell.mean.is_some_and(|mean| mean.high > UNSTEADY * mean.low));
    let line = |cell: &OccasionCell| {
        format!("{} is unsteady: the ends of its mean are over {UNSTEADY} times apart", cell.values.join(" "))
    };
    wide.map(line).collect()
}

fn pooled(values: Vec<String>, ratios: Vec<f64>) -> OccasionCell {
    let logs: Vec<f64> = ratios.iter().filter(|ratio| **ratio > 0.0).map(|ratio| ratio.ln()).collect();
    let found = over_occasions(&logs, CONFIDENCE);
    OccasionCell {
        values,
        ratios,
        mean: found.map(|found| found.mean),
        another: found.map(|found| found.another),
        deviation_ln: found.map(|found| found.deviation_ln),
    }
}

/// Judges an expectation over the occasions that measured it: a number by the interval of its mean, a direction by the answers of the
/// occasions.
pub fn expectation_over(of: &[&ExpectationReport], is_today: bool) -> OccasionExpectation {
    let first = of.first().copied().cloned().unwrap_or_default();
    let alone: Vec<ExpectationAgreement> = of.iter().map(|one| one.agreement).collect();
    let is_number = first.kind != ExpectationKind::Direction && first.published.is_some();
    let ratios = of.iter().filter_map(|one| Some(one.ours?.ratio)).filter(|_| is_number).collect();
    let ratio = pooled(Vec::new(), ratios);
    let is_here = alone.iter().any(|one| *one != ExpectationAgreement::NotHere);
    let (agreement, is_firm) = match first.published.zip(first.within) {
        Some((published, within)) if is_here => match by_number(&ratio, published, within) {
            (ExpectationAgreement::Differs, _) if first.kind.is_substitute(&first.claims) => {
                (ExpectationAgreement::NotHere, false)
            }
            found => found,
        },
        _ => by_answers(&alone),
    };
    OccasionExpectation {
        claim: first.claim,
        kind: first.kind,
        published: first.published,
        ratio,
        occasions: (0..).take(of.len()).collect(),
        alone,
        agreement,
        is_firm: is_firm && !is_today,
        is_today,
    }
}

/// Returns the answer of a mean beside a published ratio, which the share `within` bounds, and true if another occasion is
/// expected to be on the same side.
fn by_number(ratio: &OccasionCell, published: f64, within: f64) -> (ExpectationAgreement, bool) {
    let Some((mean, another)) = ratio.mean.zip(ratio.another) else {
        return (ExpectationAgreement::Undecided, false);
    };
    let (low, high) = (published / (1.0 + within), published * (1.0 + within));
    let inside = |of: landspeed_record::Estimate| low <= of.low && of.high <= high;
    let outside = |of: landspeed_record::Estimate| of.high < low || of.low > high;
    match (inside(mean), outside(mean)) {
        (true, _) => (ExpectationAgreement::Reproduces, inside(another)),
        (_, true) => (ExpectationAgreement::Differs, outside(another)),
        _ => (ExpectationAgreement::Undecided, false),
    }
}

/// Returns the answer of most occasions if no other occasion answers the opposite, and true if all answer the same.
fn by_answers(alone: &[ExpectationAgreement]) -> (ExpectationAgreement, bool) {
    let count = |agreement| alone.iter().filter(|one| **one == agreement).count();
    let (good, bad) = (count(ExpectationAgreement::Reproduces), count(ExpectationAgreement::Differs));
    match (good, bad) {
        _ if !alone.is_empty() && count(ExpectationAgreement::NotHere) == alone.len() => {
            (ExpectationAgreement::NotHere, false)
        }
        (good, 0) if 2 * good > alone.len() => (ExpectationAgreement::Reproduces, good == alone.len()),
        (0, bad) if 2 * bad > alone.len() => (ExpectationAgreement::Differs, bad == alone.len()),
        _ => (ExpectationAgreement::Undecided, false),
    }
}

/// Returns the statistics of all placebos of a series, with their degrees of freedom. Occasions that do not count because a
/// placebo left 1 are included: without them, the spread would be that of the placebos that happened to hold.
fn statistics(reports: &[GridReport]) -> Vec<(f64, f64)> {
    let placebos = reports.iter().filter(|report| report.void.is_none()).flat_map(|report| &report.placebos);
    placebos.map(|placebo| (placebo.statistic, placebo.freedom)).collect()
}

/// Returns what a reader must know of all figures of the hosts.
fn caveat(report: &GridReport) -> Option<String> {
    let mut of_hosts = [&report.host_a, &report.host_b].into_iter().map(|host| &host.caveat);
    of_hosts.find(|caveat| !caveat.is_empty()).cloned()
}

fn notes(reports: &[GridReport], is_today: bool, is_wide: bool) -> Vec<String> {
    let few = format!("answers are of today: other days need {FEW} occasions on {FEW_BOOTS} boots");
    let wide = "no answer counts: the placebos of these occasions spread more than their ranges promise";
    let remarks = [is_today.then_some(few), is_wide.then(|| wide.to_owned())];
    remarks.into_iter().flatten().chain(left_out(reports)).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::HostFacts;

    use super::*;

    fn number(ratio: f64) -> ExpectationReport {
        ExpectationReport {
            kind: ExpectationKind::Number,
            published: Some(1.5),
            within: Some(0.2),
            ours: Some(landspeed_stats::ratio_of(ratio.ln(), ratio.ln(), ratio.ln())),
            ..ExpectationReport::default()
        }
    }

    fn judged(ratios: &[f64]) -> (ExpectationAgreement, bool) {
        let reports: Vec<ExpectationReport> = ratios.iter().map(|ratio| number(*ratio)).collect();
        let found = expectation_over(&reports.iter().collect::<Vec<_>>(), false);
        (found.agreement, found.is_firm)
    }

    #[test]
    fn a_number_is_judged_by_the_mean_over_occasions_and_firm_by_another() {
        assert_eq!(judged(&[1.48, 1.52, 1.50, 1.51, 1.49]), (ExpectationAgreement::Reproduces, true));
        assert_eq!(
            judged(&[1.3, 1.7, 1.5, 1.62, 1.4]),
            (ExpectationAgreement::Reproduces, false),
            "another may be outside"
        );
        assert_eq!(judged(&[3.0, 3.1, 2.9, 3.0, 3.05]), (ExpectationAgreement::Differs, true));
        assert_eq!(judged(&[1.0, 3.0, 2.0, 1.2, 1.9]), (ExpectationAgreement::Undecided, false));
        assert_eq!(judged(&[1.5]), (ExpectationAgreement::Undecided, false), "one occasion has no spread");
    }

    /// A number of another mechanism does not show whether the paper's holds.
    #[test]
    fn a_number_in_kind_never_differs() {
        let of = |ratios: [f64; 5]| {
            let reports = ratios.map(|ratio| ExpectationReport {
                kind: ExpectationKind::InKind,
                claims: vec!["feng.mtu".into()],
                agreement: ExpectationAgreement::Undecided,
                ..number(ratio)
            });
            let found = expectation_over(&reports.iter().collect::<Vec<_>>(), false);
            (found.agreement, found.is_firm, found.ratio.mean.is_some())
        };
        assert_eq!(of([3.0, 3.1, 2.9, 3.0, 3.05]), (ExpectationAgreement::NotHere, false, true));
        assert_eq!(of([1.48, 1.52, 1.50, 1.51, 1.49]), (ExpectationAgreement::Reproduces, true, true));
    }

    #[test]
    fn a_direction_is_judged_by_most_answers_unless_one_is_the_opposite() {
        use ExpectationAgreement::{Differs, NotHere, Reproduces, Undecided};
        assert_eq!(by_answers(&[Reproduces, Reproduces, Undecided]), (Reproduces, false));
        assert_eq!(by_answers(&[Reproduces, Reproduces, Differs]), (Undecided, false));
        assert_eq!(by_answers(&[Differs, Differs]), (Differs, true));
        assert_eq!(by_answers(&[NotHere, NotHere]), (NotHere, false));
        assert_eq!(by_answers(&[]), (Undecided, false));
        let not_here = ExpectationReport {
            agreement: NotHere,
            published: Some(1.36),
            within: Some(0.1),
            ..ExpectationReport::default()
        };
        assert_eq!(expectation_over(&[&not_here, &not_here], true).agreement, NotHere);
    }

    #[test]
    fn occasions_in_virtual_machines_are_not_pooled_with_others() {
        let of = |caveat: &str| {
            let host_a = HostFacts { caveat: caveat.into(), ..HostFacts::default() };
            GridReport { host_a, ..GridReport::default() }
        };
        let (real, guests) = (of(""), of("virtual machines: speeds do not hold"));
        assert!(same_design(&real, &real).is_ok() && same_design(&guests, &guests).is_ok());
        for pair in [[&real, &guests], [&guests, &real]] {
            assert!(same_design(pair[0], pair[1]).unwrap_err().contains("in virtual machines, the other"));
        }
        assert_eq!(caveat(&guests).as_deref(), Some("virtual machines: speeds do not hold"));
        assert_eq!(caveat(&real), None);
    }

    #[test]
    fn an_expectation_is_judged_by_the_occasions_that_asked_it() {
        let of = |nth: u32, claims: &[&str]| GridReport {
            expected: claims
                .iter()
                .map(|claim| ExpectationReport { claim: (*claim).to_owned(), ..number(1.5) })
                .collect(),
            host_a: HostFacts { boot_id: format!("boot {}", nth / 3), ..HostFacts::default() },
            void: (nth == 5).then(|| "restarted".to_owned()),
            ..GridReport::default()
        };
        let asked =
            |nth: u32| -> &'static [&'static str] { if nth < 3 { &["old"] } else { &["new", "old"] } };
        let all: Vec<GridReport> = (0..7).map(|nth| of(nth, asked(nth))).collect();
        assert_eq!(claims(&all), ["old", "new"]);
        let [old, new] = ["old", "new"].map(|claim| judged_over(&all, claim).unwrap());
        assert_eq!((old.occasions, old.is_today), (vec![0, 1, 2, 3, 4, 6], false));
        assert_eq!((new.alone.len(), new.occasions, new.is_today), (3, vec![3, 4, 6], true));
        assert_eq!(judged_over(&all[5..6], "new"), None, "a record that does not count");
    }

    #[test]
    fn a_mean_whose_ends_are_far_apart_is_unsteady() {
        let figure = GridFigure::default();
        let cells = [[1.0, 1.01, 1.02], [0.5, 1.0, 2.0]];
        let cells = cells.map(|ratios| pooled(vec![format!("x={}", ratios[0])], ratios.into())).into();
        let curves = [OccasionCurves { figure, cells, ..OccasionCurves::default() }];
        let lines = unsteady(&curves, figure);
        assert!(lines.len() == 1 && lines[0].starts_with("x=0.5 is unsteady"), "{lines:?}");
        let bare = without_means(curves[0].clone());
        assert!(unsteady(std::slice::from_ref(&bare), figure).is_empty());
        assert_eq!((bare.cells[1].mean, bare.cells[1].ratios.len()), (None, 3));
    }

    #[test]
    fn one_record_is_no_series() {
        assert!(occasions(&[], "0.1.0").is_err());
    }
}
