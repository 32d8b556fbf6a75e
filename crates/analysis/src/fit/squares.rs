//! Least squares without negative terms, and without much weight for outliers.

pub(super) const TERMS: usize = 4;
/// Residuals beyond this many deviations weigh less (Huber 1964; 95 % efficient where nothing is wrong).
const HUBER: f64 = 1.345;
/// Median absolute deviation to standard deviation, for normal errors.
const MAD_TO_DEVIATION: f64 = 1.4826;

pub(super) struct Row {
    /// What each term of the line is multiplied with.
    pub(super) terms: [f64; TERMS],
    pub(super) cost: f64,
}

impl Row {
    /// How far a line is off, in errors.
    pub(super) fn error(&self, line: &[f64; TERMS]) -> f64 {
        dot(&self.terms, line) - self.cost
    }
}

pub(super) fn dot(a: &[f64; TERMS], b: &[f64; TERMS]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The least squares line without a negative term: of all choices of terms (four have fifteen), the best
/// that has none.
pub(super) fn best(rows: &[Row], weights: &[f64]) -> [f64; TERMS] {
    let squares = |line: &[f64; TERMS]| {
        rows.iter().zip(weights).map(|(row, w)| w * row.error(line).powi(2)).sum::<f64>()
    };
    let choices = 1..1usize << TERMS;
    let lines = choices.filter_map(|chosen| least_squares(rows, weights, chosen));
    let feasible = lines.filter(|line| line.iter().all(|term| term.is_finite() && *term >= 0.0));
    feasible.min_by(|a, b| squares(a).total_cmp(&squares(b))).unwrap_or_default()
}

/// Weighted least squares over the terms whose bit is set in `chosen`; `None` where they do not determine
/// a line.
fn least_squares(rows: &[Row], weights: &[f64], chosen: usize) -> Option<[f64; TERMS]> {
    let terms: Vec<usize> = (0..TERMS).filter(|term| chosen >> term & 1 == 1).collect();
    // Columns of like size keep the elimination exact: sizes are 10^5 times the constant.
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

/// Gaussian elimination with the largest pivot; the last column is the right-hand side.
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

/// Huber's weights for relative errors, scaled by their median absolute deviation.
pub(super) fn huber(errors: &[f64]) -> Vec<f64> {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let deviation = sizes[sizes.len() / 2] * MAD_TO_DEVIATION;
    let bound = HUBER * deviation;
    errors.iter().map(|error| if error.abs() <= bound { 1.0 } else { bound / error.abs() }).collect()
}
