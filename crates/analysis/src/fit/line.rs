//! Fits the cost of messages over their sizes as a line: a fixed part, a part per byte, and for fragmented datagrams a
//! part that occurs once and a part for each fragment after the first.

use landspeed_record::LayerCostFit;
use landspeed_record::units::Bytes;

const TERMS: usize = 4;
/// The number of terms of a line through points of which none was fragmented.
const WHOLE_TERMS: usize = 2;
/// The number of passes of the fit, each with weights from the pass before it. The weights settle after a few passes.
const PASSES: usize = 20;
/// The number of standard deviations beyond which a residual weighs less (Huber 1964; 95 % efficient for normal
/// errors).
const HUBER: f64 = 1.345;
/// The ratio of the standard deviation to the median absolute deviation, for normal errors.
const MAD_TO_DEVIATION: f64 = 1.4826;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SizedCost {
    /// The payload of a packet, or of a datagram before it is cut.
    pub(super) size: Bytes,
    /// The number of packets that the message became.
    pub(super) fragments: u64,
    pub(super) cost_ns: f64,
    /// The time to which the error of `cost_ns` is proportional, in nanoseconds.
    pub(super) error_ns: f64,
}

impl SizedCost {
    /// Returns a cost that was measured. Its error is proportional to the cost.
    pub(super) fn measured(size: Bytes, fragments: u64, cost_ns: f64) -> Self {
        SizedCost { size, fragments, cost_ns, error_ns: cost_ns }
    }

    /// Returns a cost that was sampled as a part of `all_ns`. Its error is proportional to `all_ns` and does not depend
    /// on the cost itself, because each size has about the same number of samples, spread over all of its time.
    pub(super) fn sampled(size: Bytes, fragments: u64, cost_ns: f64, all_ns: f64) -> Self {
        SizedCost { size, fragments, cost_ns, error_ns: all_ns }
    }

    fn is_sampled(&self) -> bool {
        self.error_ns > self.cost_ns
    }
}

/// The reason why no line can be fitted to points.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FitError {
    /// The line needs one point more than it has terms, to judge the fit.
    #[error("cost over sizes: {points} points are too few for a line of {terms} terms: measure {} sizes", terms + 1)]
    TooFew { points: usize, terms: usize },
    #[error("cost over sizes: all points have one size: measure at least two")]
    OneSize,
    #[error("cost over sizes: the cost of {size} bytes is not a positive number: measure it again")]
    NotPositive { size: u64 },
}

/// Returns the line `fixed + per_byte * size + first_cut * (fragments > 1) + per_fragment * (fragments - 1)` that
/// fits best.
///
/// jin-yoo-2007 (section 3.1) has a time per fragment. `first_cut` is the cost of what a stack does once for each
/// fragmented datagram: it looks for the other fragments, and computes in software the checksum that a device computes
/// for whole datagrams.
///
/// Each point's distance is measured in units of its error. Huber's weights reduce the influence of measured points
/// that a disturbance hit. Sampled points are not reweighted: where most of them are zero, the few above zero are not
/// outliers. No term is negative, because time is spent and never gained: a term that would be negative is zero, and
/// the others are fitted without it.
pub(super) fn fit(points: &[SizedCost]) -> Result<LayerCostFit, FitError> {
    check(points)?;
    let rows: Vec<FitPoint> = points.iter().map(row).collect();
    let mut weights = vec![1.0; rows.len()];
    let mut line = [0.0; TERMS];
    for _ in 0..PASSES {
        line = best(&rows, &weights);
        let errors = rows.iter().map(|row| row.error(&line)).collect::<Vec<_>>();
        let robust = huber(&errors).into_iter().zip(points);
        weights = robust.map(|(weight, point)| if point.is_sampled() { 1.0 } else { weight }).collect();
    }
    let [fixed_ns, per_byte_ns, first_cut_ns, per_fragment_ns] = line;
    let residual = residual(points, &line);
    // A term is zero if the fit could not separate it from the others, or if nothing was fragmented.
    let if_any = |ns: f64| (ns > 0.0).then_some(ns);
    let (first_cut_ns, per_fragment_ns) = (if_any(first_cut_ns), if_any(per_fragment_ns));
    Ok(LayerCostFit { fixed_ns, per_byte_ns, first_cut_ns, per_fragment_ns, residual })
}

fn check(points: &[SizedCost]) -> Result<(), FitError> {
    let cut = points.iter().any(|point| point.fragments > 1);
    let terms = if cut { TERMS } else { WHOLE_TERMS };
    if points.len() <= terms {
        return Err(FitError::TooFew { points: points.len(), terms });
    }
    if points.iter().all(|point| point.size == points[0].size) {
        return Err(FitError::OneSize);
    }
    // A sampled cost may be zero; a measured cost is always above zero.
    let sane = |point: &SizedCost| {
        point.cost_ns.is_finite()
            && point.cost_ns >= 0.0
            && point.error_ns.is_finite()
            && point.error_ns > 0.0
    };
    let bad = points.iter().find(|point| !sane(point));
    bad.map_or(Ok(()), |point| Err(FitError::NotPositive { size: point.size.0 }))
}

fn row(point: &SizedCost) -> FitPoint {
    let terms = terms(point).map(|term| term / point.error_ns);
    FitPoint { terms, cost: point.cost_ns / point.error_ns }
}

fn terms(point: &SizedCost) -> [f64; TERMS] {
    let more = point.fragments.saturating_sub(1) as f64;
    [1.0, point.size.0 as f64, more.min(1.0), more]
}

/// Returns the root mean square of the points' deviations from the line, as a share of the mean cost.
fn residual(points: &[SizedCost], line: &[f64; TERMS]) -> f64 {
    let n = points.len() as f64;
    let mean = points.iter().map(|point| point.cost_ns / n).sum::<f64>();
    let square = |point: &SizedCost| ((point.cost_ns - dot(&terms(point), line)) / mean).powi(2) / n;
    points.iter().map(square).sum::<f64>().sqrt()
}

// Least squares without negative terms, and with little weight for outliers.

struct FitPoint {
    /// The factor of each term of the line, divided by the point's error.
    terms: [f64; TERMS],
    cost: f64,
}

impl FitPoint {
    /// Returns the deviation of the line from the point, in units of the point's error.
    fn error(&self, line: &[f64; TERMS]) -> f64 {
        dot(&self.terms, line) - self.cost
    }
}

fn dot(a: &[f64; TERMS], b: &[f64; TERMS]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the least squares line without a negative term: the best one over all choices of terms (four terms have
/// fifteen choices).
fn best(rows: &[FitPoint], weights: &[f64]) -> [f64; TERMS] {
    let squares = |line: &[f64; TERMS]| {
        rows.iter().zip(weights).map(|(row, w)| w * row.error(line).powi(2)).sum::<f64>()
    };
    let choices = 1..1usize << TERMS;
    let lines = choices.filter_map(|chosen| least_squares(rows, weights, chosen));
    let feasible = lines.filter(|line| line.iter().all(|term| term.is_finite() && *term >= 0.0));
    feasible.min_by(|a, b| squares(a).total_cmp(&squares(b))).unwrap_or_default()
}

/// Returns the weighted least squares line over the terms whose bit is set in `chosen`; `None` where they do not
/// determine a line.
fn least_squares(rows: &[FitPoint], weights: &[f64], chosen: usize) -> Option<[f64; TERMS]> {
    let terms: Vec<usize> = (0..TERMS).filter(|term| chosen >> term & 1 == 1).collect();
    // Columns of similar size keep the elimination exact: sizes are 10^5 times the constant.
    let scale: Vec<f64> =
        terms.iter().map(|&t| rows.iter().map(|row| row.terms[t].abs()).fold(0.0, f64::max)).collect();
    if scale.contains(&0.0) {
        return None;
    }
    let mut equations = vec![vec![0.0; terms.len() + 1]; terms.len()];
    for (row, weight) in rows.iter().zip(weights) {
        let values: Vec<f64> = terms.iter().zip(&scale).map(|(&t, s)| row.terms[t] / s).collect();
        for (i, equation) in equations.iter_mut().enumerate() {
            for (j, value) in values.iter().enumerate() {
                equation[j] += weight * values[i] * value;
            }
            equation[terms.len()] += weight * values[i] * row.cost;
        }
    }
    let solved = solve(equations)?;
    let mut line = [0.0; TERMS];
    for ((&term, value), scale) in terms.iter().zip(solved).zip(scale) {
        line[term] = value / scale;
    }
    Some(line)
}

/// Solves linear equations by Gaussian elimination with the largest pivot; the last column is the right-hand side.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        let leader = rows[column].clone();
        if leader[column].abs() < 1e-12 * leader.iter().fold(1.0, |most, value| value.abs().max(most)) {
            return None;
        }
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / leader[column];
            row.iter_mut().zip(&leader).for_each(|(value, lead)| *value -= factor * lead);
        }
    }
    let mut solved = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| rows[i][j] * solved[j]).sum();
        solved[i] = (rows[i][n] - known) / rows[i][i];
    }
    Some(solved)
}

/// Returns Huber's weights for relative errors, scaled by their median absolute deviation.
fn huber(errors: &[f64]) -> Vec<f64> {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let deviation = sizes[sizes.len() / 2] * MAD_TO_DEVIATION;
    let bound = HUBER * deviation;
    errors.iter().map(|error| if error.abs() <= bound { 1.0 } else { bound / error.abs() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::fragments::{IpVersion, fragments};

    const SIZES: [u64; 10] = [64, 256, 1024, 1472, 2048, 4096, 8192, 16_384, 32_768, 60_000];

    fn points(cost: impl Fn(u64, u64) -> f64) -> Vec<SizedCost> {
        let point = |size| {
            let count = fragments(Bytes(size), Bytes(1500), IpVersion::V4);
            SizedCost::measured(Bytes(size), count, cost(size, count))
        };
        SIZES.map(point).into()
    }

    fn near(seen: f64, truth: f64, share: f64) -> bool {
        (seen / truth - 1.0).abs() < share
    }

    #[test]
    fn the_cost_of_the_first_cut_and_that_of_each_cut_are_separated() {
        let line = fit(&points(|size, n| {
            let cut = if n > 1 { 2000.0 } else { 0.0 };
            3000.0 + 0.25 * size as f64 + cut + 700.0 * (n - 1) as f64
        }))
        .unwrap();
        let found = [line.fixed_ns, line.per_byte_ns, line.first_cut_ns.unwrap()];
        assert!(found.iter().zip([3000.0, 0.25, 2000.0]).all(|(x, truth)| near(*x, truth, 1e-6)), "{line:?}");
        assert!(near(line.per_fragment_ns.unwrap(), 700.0, 1e-6) && line.residual < 1e-6, "{line:?}");
    }

    #[test]
    fn one_disturbed_point_does_not_tilt_the_line() {
        let mut seen = points(|size, n| {
            let wobble = 1.0 + 0.01 * ((size % 7) as f64 - 3.0) / 3.0;
            (3000.0 + 0.25 * size as f64 + 700.0 * (n - 1) as f64) * wobble
        });
        seen[4].cost_ns *= 4.0;
        let line = fit(&seen).unwrap();
        assert!(near(line.fixed_ns, 3000.0, 0.03), "{line:?}");
        assert!(near(line.per_fragment_ns.unwrap(), 700.0, 0.1), "{line:?}");
        assert!(line.residual > 0.1, "and it shows: {line:?}");
    }

    #[test]
    fn a_sampled_part_that_is_nearly_nothing_at_small_sizes_does_not_tilt_the_line() {
        // The true cost of the part is 0.05 ns per byte; at least 1/800 of the whole cost is sampled.
        let seen: Vec<SizedCost> = points(|size, _| 2000.0 + 0.5 * size as f64)
            .into_iter()
            .map(|all| {
                let cost = (0.05 * all.size.0 as f64).max(0.00125 * all.cost_ns);
                SizedCost::sampled(all.size, all.fragments, cost, all.cost_ns)
            })
            .collect();
        let line = fit(&seen).unwrap();
        assert!(near(line.per_byte_ns, 0.05, 0.02), "{line:?}");
        assert!(line.residual < 0.02, "{line:?}");
    }

    #[test]
    fn sampled_sizes_that_hold_nearly_all_are_no_outliers() {
        let seen: Vec<SizedCost> = points(|size, _| 2000.0 + 0.5 * size as f64)
            .into_iter()
            .map(|all| {
                let share = if all.size.0 > 2000 { 0.1 * all.size.0 as f64 } else { 1.0 };
                SizedCost::sampled(all.size, all.fragments, share, all.cost_ns)
            })
            .collect();
        let line = fit(&seen).unwrap();
        let largest = line.at(Bytes(60_000), fragments(Bytes(60_000), Bytes(1500), IpVersion::V4));
        assert!(near(largest, 6000.0, 0.2), "{line:?}");
    }

    #[test]
    fn a_term_that_would_be_negative_is_zero_and_of_cuts_not_known() {
        let line = fit(&points(|size, _| 100.0 + 0.001 * (size as f64).powf(1.4))).unwrap();
        assert!(line.fixed_ns >= 0.0 && line.per_byte_ns >= 0.0, "{line:?}");
        assert!(line.per_fragment_ns.is_none_or(|ns| ns > 0.0), "{line:?}");
        let whole = [1, 2, 3].map(|size| SizedCost::measured(Bytes(size), 1, 5.0 + size as f64));
        let line = fit(&whole).unwrap();
        assert_eq!((line.first_cut_ns, line.per_fragment_ns), (None, None), "nothing was cut");
    }

    #[test]
    fn points_that_make_no_line_are_refused_in_words() {
        let point = |size, cost_ns| SizedCost::measured(Bytes(size), 1, cost_ns);
        assert_eq!(fit(&[point(1, 1.0)]), Err(FitError::TooFew { points: 1, terms: 2 }));
        assert_eq!(fit(&[point(1, 1.0); 4]), Err(FitError::OneSize));
        for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            let seen = [point(1, 1.0), point(2, bad), point(3, 1.0)];
            assert_eq!(fit(&seen), Err(FitError::NotPositive { size: 2 }));
        }
        let line = FitError::TooFew { points: 2, terms: 3 }.to_string();
        assert!(line.contains("measure 4 sizes"), "{line}");
    }
}
