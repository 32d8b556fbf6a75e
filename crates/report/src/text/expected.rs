//! Steps that a verdict brought forward: why, what was expected, what was measured.

use landspeed_record::TuneSummary;

use crate::expected::{advised, because, outcome, sums};
use crate::output::{Style, Tone};
use crate::words::{self, Kind, wrapped};

/// A line a step, and the run's figures; nothing where the run looked at nothing.
pub(super) fn section(summary: &TuneSummary, width: u16, style: Style) -> Option<String> {
    let of = summary.expectations.as_ref()?;
    let width = usize::from(width);
    let steps = advised(summary).into_iter().map(|(step, said)| {
        let head = format!("{} {}", Kind::of(step).symbol(), words::setting(step));
        let parts = [head, because(said), outcome(step, said)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        wrapped(&parts.join("; "), width)
    });
    let mut lines = vec!["Tried first because of what held the path back:".to_owned()];
    lines.extend(steps);
    if lines.len() == 1 {
        lines = vec!["What held the path back named no step that was measured.".to_owned()];
    }
    lines.push(style.paint(Tone::Dim, &wrapped(&sums(of), width)));
    Some(lines.join("\n"))
}
