//! What the ladder says, in words.

use landspeed_record::{Candidate, Cell, Estimate};

use super::left_out::Confirmation;

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

/// What stands for `candidate`'s knob in `cell`; the candidate's own word where the cell does not say.
pub(crate) fn standing(candidate: &Candidate, cell: &Cell) -> String {
    let found = [&cell.flow, &cell.a, &cell.b].into_iter().find_map(|s| s.get(&candidate.knob));
    found.cloned().unwrap_or_else(|| candidate.from.clone())
}

/// What the blocks spread over the rest of the run say of a kept step.
pub(crate) fn confirmation(of: &Confirmation) -> String {
    let word = if of.confirmed { "confirmed" } else { "not confirmed" };
    let worth = of.worth.map(|worth| format!(": {}", interval(worth))).unwrap_or_default();
    format!("{word} by {} blocks over the rest of the run{worth}", of.blocks)
}
