//! What the ladder says, in words.

use landspeed_record::{Candidate, Cell, Estimate};

/// "1.31x (1.18 to 1.47)".
pub(crate) fn interval(estimate: Estimate) -> String {
    format!("{}x ({} to {})", figure(estimate.ratio), figure(estimate.low), figure(estimate.high))
}

/// A ratio; what lies beyond a factor of a thousand has no end worth printing.
fn figure(ratio: f64) -> String {
    match ratio {
        r if r > 1_000.0 => "any".into(),
        r if r < 0.001 => "0".into(),
        r if r >= 10.0 => format!("{r:.1}"),
        r => format!("{r:.3}"),
    }
}

/// "tso=on with tx-checksum=on, sg=on".
pub(crate) fn change(candidate: &Candidate) -> String {
    let name = format!("{}={}", candidate.knob, candidate.value);
    if candidate.with.is_empty() { name } else { format!("{name} with {}", candidate.with.join(", ")) }
}

/// What stands for `candidate`'s knob in `cell`, where the candidate changes it; its own word where the cell does not say.
pub(crate) fn standing(candidate: &Candidate, cell: &Cell) -> String {
    let mut standing = [&cell.flow, &cell.a, &cell.b].into_iter().filter_map(|s| s.get(&candidate.knob));
    let changed = standing.clone().find(|value| **value != candidate.value);
    changed.or_else(|| standing.next()).unwrap_or(&candidate.from).clone()
}
