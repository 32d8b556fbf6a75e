//! The candidates that a verdict advises, with the reason and the expected gain of each. Advised candidates are tried
//! before the others. Advice changes the order of candidates and nothing else.

use landspeed_record::{Cell, Finding, Remedy, StepPrediction, VerdictLine};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnobHint {
    pub(crate) knob: String,
    /// The advised value; empty if the knob table chooses the value.
    pub(crate) value: String,
    pub(crate) why: StepPrediction,
}

/// Returns the hints of a verdict: for each finding, in the verdict's order, its remedies that name a knob. A remedy
/// whose value is already set in `cell` is left out.
pub(crate) fn hints(line: &VerdictLine, cell: &Cell) -> Vec<Vec<KnobHint>> {
    line.verdict.findings.iter().map(|finding| of_finding(line.number, finding, cell)).collect()
}

/// Returns the hints of one finding. The expected gain belongs to the first remedy. If the value of that remedy is
/// already set, the gain must come from something else and passes to the next remedy.
fn of_finding(verdict: u32, finding: &Finding, cell: &Cell) -> Vec<KnobHint> {
    let mut passed_on = None;
    let mut hints = Vec::new();
    for remedy in finding.remedies.iter().filter(|remedy| !remedy.knob.is_empty()) {
        let expected_ratio = remedy.expected_ratio.or(passed_on.take());
        if is_set(remedy, cell) {
            passed_on = expected_ratio;
            continue;
        }
        let why = StepPrediction { verdict, cause: finding.cause, weight: finding.weight, expected_ratio };
        hints.push(KnobHint { knob: remedy.knob.clone(), value: exact(remedy).to_owned(), why });
    }
    hints
}

/// Returns the value that a candidate must have to match the remedy; empty if any value matches. A computed size
/// matches any value, because the knob table chooses the sizes for a path itself.
fn exact(remedy: &Remedy) -> &str {
    if remedy.computed.is_empty() { &remedy.value } else { "" }
}

/// Returns true if `cell` sets the remedy's knob, and sets it to the remedy's value in every place.
fn is_set(remedy: &Remedy, cell: &Cell) -> bool {
    let mut places =
        [&cell.a, &cell.b, &cell.flow].into_iter().filter_map(|s| s.get(&remedy.knob)).peekable();
    places.peek().is_some() && places.all(|value| *value == remedy.value)
}
