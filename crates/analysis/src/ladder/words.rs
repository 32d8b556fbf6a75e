//! The texts of the ladder's reports.

use landspeed_record::{Candidate, Cell, Estimate};

/// Formats an estimate, such as "1.31x (1.18 to 1.47)".
pub(crate) fn interval(estimate: Estimate) -> String {
    format!("{}x ({} to {})", figure(estimate.ratio), figure(estimate.low), figure(estimate.high))
}

/// Formats a ratio; beyond a factor of a thousand the number is not worth printing.
fn figure(ratio: f64) -> String {
    match ratio {
        r if r > 1_000.0 => "any".into(),
        r if r < 0.001 => "0".into(),
        r if r >= 10.0 => format!("{r:.1}"),
        r => format!("{r:.3}"),
    }
}

/// Formats a change, such as "tso=on with tx-checksum=on, sg=on".
pub(crate) fn change(candidate: &Candidate) -> String {
    let name = format!("{}={}", candidate.knob, candidate.value);
    if candidate.with.is_empty() { name } else { format!("{name} with {}", candidate.with.join(", ")) }
}

/// Returns the value of `candidate`'s knob in `cell`, if possible one that differs from the candidate's value. If the
/// cell has none, returns the candidate's `from`.
pub(crate) fn value_before(candidate: &Candidate, cell: &Cell) -> String {
    let mut current = [&cell.flow, &cell.a, &cell.b].into_iter().filter_map(|s| s.get(&candidate.knob));
    let changed = current.clone().find(|value| **value != candidate.value);
    changed.or_else(|| current.next()).unwrap_or(&candidate.from).clone()
}
