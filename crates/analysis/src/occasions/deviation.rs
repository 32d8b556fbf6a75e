//! Finds the recorded conditions that vary together with a ratio, where the ratio varies more between occasions than the
//! trials of one occasion explain.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_record::{GridReport, Line, Record};
use landspeed_stats::mean_and_deviation;

/// The deviation between occasions, in standard errors of one occasion, from which a condition is looked for.
const LARGE: f64 = 3.0;
/// The largest share of the deviation that is left within groups of occasions with the same condition.
const LEFT: f64 = 1.0 / 3.0;
/// The least correlation with a measured condition, and the fewest occasions for one.
const CORRELATED: f64 = 0.9;
const FEW: usize = 5;

/// A condition that differed between occasions, with its value on each.
enum OccasionCondition {
    /// A setting or a name.
    Named { name: String, values: Vec<String> },
    /// A measured amount.
    Measured { name: &'static str, values: Vec<f64> },
}

impl OccasionCondition {
    /// Returns the condition in words, if the log ratios `logs` of the occasions go with it.
    fn goes_with(&self, logs: &[f64]) -> Option<String> {
        match self {
            OccasionCondition::Named { name, values } => is_grouped(values, logs).then(|| {
                let all: BTreeSet<&str> = values.iter().map(String::as_str).collect();
                format!("{name} ({})", all.into_iter().collect::<Vec<_>>().join("; "))
            }),
            OccasionCondition::Measured { name, values } => {
                let is_enough = logs.len() >= FEW;
                (is_enough && correlation(values, logs).abs() >= CORRELATED).then(|| (*name).to_owned())
            }
        }
    }
}

/// Returns a line for each cell of the first figure whose ratio deviates between occasions by more than three standard
/// errors of one occasion, with the conditions that go with it.
pub(super) fn remarks(records: &[&Record], reports: &[&GridReport]) -> Vec<String> {
    let conditions = conditions(records, reports);
    let cells =
        reports.first().and_then(|report| report.figures.first()).map_or(0, |curves| curves.cells.len());
    (1..cells).filter_map(|cell| line(reports, cell, &conditions)).collect()
}

fn line(reports: &[&GridReport], cell: usize, conditions: &[OccasionCondition]) -> Option<String> {
    let of = |report: &&GridReport| {
        let cell = report.figures.first()?.cells.get(cell)?;
        Some((cell.ratio?.ratio.ln(), cell.error_ln?))
    };
    let of_occasions = reports.iter().map(of).collect::<Option<Vec<_>>>()?;
    let (logs, errors): (Vec<f64>, Vec<f64>) = of_occasions.into_iter().unzip();
    let (_, deviation) = mean_and_deviation(&logs);
    // Their root mean square, because a variance between occasions is compared with squared errors.
    let error = (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt();
    let times = deviation / error;
    if logs.len() < 3 || !times.is_finite() || times <= LARGE {
        return None;
    }
    let found: Vec<String> = conditions.iter().filter_map(|one| one.goes_with(&logs)).collect();
    let why = if found.is_empty() {
        "unexplained".to_owned()
    } else {
        format!("it goes with {}", found.join(", "))
    };
    let values = reports.first()?.figures.first()?.cells.get(cell)?.values.join(" ");
    Some(format!(
        "{values} deviates between occasions by {:.0} %, {times:.1} times what the trials of one explain: {why}",
        100.0 * deviation.exp_m1()
    ))
}

/// Returns true if occasions with the same value agree: several groups, of which one has several occasions, and within
/// groups at most a third of the deviation.
fn is_grouped(values: &[String], logs: &[f64]) -> bool {
    let mut groups = BTreeMap::<&str, Vec<f64>>::new();
    values.iter().zip(logs).for_each(|(value, ln)| groups.entry(value).or_default().push(*ln));
    let freedom = logs.len() - groups.len();
    if groups.len() < 2 || freedom == 0 {
        return false;
    }
    let squares = |group: &Vec<f64>| {
        let mean = group.iter().sum::<f64>() / group.len() as f64;
        group.iter().map(|ln| (ln - mean).powi(2)).sum::<f64>()
    };
    let within = (groups.values().map(squares).sum::<f64>() / freedom as f64).sqrt();
    within <= LEFT * mean_and_deviation(logs).1
}

/// Returns Pearson's correlation; 0 where one of the two does not vary.
fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let ((x_mean, x_deviation), (y_mean, y_deviation)) = (mean_and_deviation(x), mean_and_deviation(y));
    let products: f64 = x.iter().zip(y).map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let found = products / (x.len() as f64 - 1.0) / x_deviation / y_deviation;
    if found.is_finite() { found } else { 0.0 }
}

/// Returns the recorded conditions that differ between the occasions.
fn conditions(records: &[&Record], reports: &[&GridReport]) -> Vec<OccasionCondition> {
    let named = |name: &str, of: &dyn Fn(usize) -> String| OccasionCondition::Named {
        name: name.to_owned(),
        values: (0..reports.len()).map(of).collect(),
    };
    let mut all = vec![
        named("the kernel", &|nth| reports[nth].host_a.kernel.clone()),
        named("the processor", &|nth| reports[nth].host_a.cpu_model.clone()),
        named("the boot", &|nth| reports[nth].host_a.boot_id.clone()),
        named("the congestion control", &|nth| {
            records[nth].controls().into_iter().collect::<Vec<_>>().join(" ")
        }),
    ];
    let names: BTreeSet<&String> =
        reports.iter().flat_map(|report| report.host_a.conditions.keys()).collect();
    all.extend(names.into_iter().map(|name| named(name, &|nth| condition(reports[nth], name))));
    all.push(OccasionCondition::Measured {
        name: "stolen time",
        values: records.iter().map(|record| stolen(record)).collect(),
    });
    all.push(OccasionCondition::Measured {
        name: "the load before it",
        values: reports.iter().map(|report| report.host_a.load.unwrap_or_default()).collect(),
    });
    all
}

fn condition(report: &GridReport, name: &str) -> String {
    let settings = report.host_a.conditions.get(name).into_iter().flatten();
    settings.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Returns the mean share of processor time that the hypervisor took during a record's trials.
fn stolen(record: &Record) -> f64 {
    let shares: Vec<f64> = lines_of!(record, Line::GridTrial(trial) => trial.figures.steal).collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use landspeed_record::{Estimate, GridCell, GridCurves, HostFacts};

    use super::*;

    fn report(ratio: f64, kernel: &str) -> GridReport {
        let interval = Estimate { ratio, low: ratio / 1.02, high: ratio * 1.02 };
        let cell = GridCell {
            values: vec!["mtu=9000".into()],
            ratio: Some(interval),
            error_ln: Some(0.01),
            ..GridCell::default()
        };
        let curves = GridCurves { cells: vec![GridCell::default(), cell], ..GridCurves::default() };
        let host_a = HostFacts { kernel: kernel.into(), ..HostFacts::default() };
        GridReport { figures: vec![curves], host_a, ..GridReport::default() }
    }

    fn said(of: &[(f64, &str)]) -> Vec<String> {
        let reports: Vec<GridReport> = of.iter().map(|(ratio, kernel)| report(*ratio, kernel)).collect();
        let record = Record::default();
        remarks(&vec![&record; of.len()], &reports.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_deviation_is_explained_by_the_condition_whose_occasions_agree() {
        let two_kernels = [(1.5, "6.12"), (1.51, "6.12"), (3.0, "6.18"), (3.02, "6.18"), (2.98, "6.18")];
        let lines = said(&two_kernels);
        assert!(lines.len() == 1 && lines[0].contains("it goes with the kernel (6.12; 6.18)"), "{lines:?}");
        let no_order = [(1.5, "6.12"), (3.0, "6.12"), (1.51, "6.18"), (3.02, "6.18")];
        assert!(said(&no_order)[0].ends_with("unexplained"), "{:?}", said(&no_order));
        assert!(said(&[(1.5, "6.12"), (1.51, "6.12"), (1.49, "6.18")]).is_empty());
    }

    /// The intervals of a family are wider than two standard errors, so they do not show an occasion's own error.
    #[test]
    fn a_deviation_is_compared_with_the_standard_error() {
        let with = |error_ln| {
            let mut reports: Vec<GridReport> = [1.5, 1.58, 1.43].map(|ratio| report(ratio, "6.12")).into();
            for report in &mut reports {
                let cell = &mut report.figures[0].cells[1];
                cell.error_ln = error_ln;
                cell.ratio =
                    cell.ratio.map(|of| Estimate { low: of.ratio / 2.0, high: 2.0 * of.ratio, ..of });
            }
            let record = Record::default();
            remarks(&[&record; 3], &reports.iter().collect::<Vec<_>>())
        };
        assert_eq!(with(Some(0.01)).len(), 1, "5 % beside 1 %");
        assert!(with(Some(0.02)).is_empty() && with(None).is_empty());
    }

    #[test]
    fn a_correlation_needs_both_to_vary() {
        assert!((correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]) - 1.0).abs() < 1e-12);
        assert!(correlation(&[1.0, 1.0, 1.0], &[2.0, 4.0, 6.0]).abs() < 1e-12);
    }
}
