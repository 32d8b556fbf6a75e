//! The judge of one cause, and the finding that it returns.

use landspeed_record::units::BitRate;
use landspeed_record::{Cause, Finding, Remedy};

use super::evidence::Evidence;
use super::sizing::ComputedValue;
use super::view::VerdictView;
use super::words::share;

/// The limit that the remedies of a cause relieve. The other limits stay, and bound the gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelievedLimit {
    /// The time for which an end holds the flow.
    End,
    /// The processor's cost of a byte.
    Processor,
    /// The path, or the queues on it.
    Path,
}

/// A cause and its judge. It uses figures only: no name of a host, a program or a test decides.
#[derive(Debug)]
pub struct CauseJudge {
    pub cause: Cause,
    /// The cause in words that follow "held back by".
    pub words: &'static str,
    /// True for a limit: what remains when nothing is wrong.
    pub is_limit: bool,
    pub(super) relieves: RelievedLimit,
    /// The observations that the judge needs.
    pub needs: &'static [Evidence],
    /// Returns the finding, if the cause is present.
    pub(super) judge: fn(&VerdictView<'_>) -> Option<Finding>,
    /// Returns, if the cause costs nothing now, the finding with the rate that it would let through, from settings
    /// and counters. `super::order` decides whether it is reported.
    pub(super) next: fn(&VerdictView<'_>) -> Option<Finding>,
}

/// Returns a finding without evidence and remedies. `weight` is the share of the flow's time or rate that the cause
/// costs. It and `confidence` are clamped to 0 to 1.
pub(super) fn found(cause: Cause, weight: f64, confidence: f64, summary: impl Into<String>) -> Finding {
    Finding {
        cause,
        at: String::new(),
        summary: summary.into(),
        confidence: share(confidence),
        weight: share(weight),
        allows_bps: None,
        evidence: Vec::new(),
        remedies: Vec::new(),
    }
}

/// Returns a finding, without evidence and remedies, of a fault that costs nothing now and would limit the flow to the
/// rate `allows`.
pub(super) fn behind(cause: Cause, allows: BitRate, confidence: f64, summary: impl Into<String>) -> Finding {
    Finding { allows_bps: Some(allows), ..found(cause, 0.0, confidence, summary) }
}

/// Methods that fill in a finding, one line at a time.
pub(super) trait FindingBuilder: Sized {
    fn at(self, place: impl Into<String>) -> Self;
    fn saw(self, line: impl Into<String>) -> Self;
    /// Adds a line of evidence, if there is one.
    fn saw_if(self, line: Option<String>) -> Self;
    fn saw_when(self, holds: bool, line: impl Into<String>) -> Self;
    /// Adds the remedy to set a knob to `value`. With an empty value, `tune` tries the first value that the knob's row
    /// proposes, and `explain` shows no command.
    fn try_knob(self, knob: &str, value: impl Into<String>, what: &str) -> Self;
    /// Adds the remedy to set a knob to a value that was computed for this path, if there is one.
    fn try_computed(self, knob: &str, value: Option<ComputedValue>, what: &str) -> Self;
    /// Adds a remedy that a person must carry out.
    fn ask(self, what: impl Into<String>) -> Self;
    /// Sets the goodput that is expected after the first remedy, as a ratio to the present one. A ratio of 1 or less
    /// counts as unknown.
    fn expect(self, ratio: Option<f64>) -> Self;
    /// Sets the least goodput that is expected after the first remedy, as a ratio to the present one, where nothing shows
    /// how much more there is. A ratio of 1 or less counts as unknown.
    fn expect_at_least(self, ratio: Option<f64>) -> Self;
}

impl FindingBuilder for Finding {
    fn at(mut self, place: impl Into<String>) -> Self {
        self.at = place.into();
        self
    }

    fn saw(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    fn saw_if(mut self, line: Option<String>) -> Self {
        self.evidence.extend(line);
        self
    }

    fn saw_when(self, holds: bool, line: impl Into<String>) -> Self {
        self.saw_if(holds.then(|| line.into()))
    }

    fn try_knob(mut self, knob: &str, value: impl Into<String>, what: &str) -> Self {
        self.remedies.push(Remedy {
            knob: knob.into(),
            value: value.into(),
            what: what.into(),
            ..Remedy::default()
        });
        self
    }

    fn try_computed(mut self, knob: &str, value: Option<ComputedValue>, what: &str) -> Self {
        self.remedies.extend(value.map(|ComputedValue { value, how }| Remedy {
            knob: knob.into(),
            value,
            computed: how,
            what: what.into(),
            ..Remedy::default()
        }));
        self
    }

    fn ask(self, what: impl Into<String>) -> Self {
        let what = what.into();
        self.try_knob("", "", &what)
    }

    fn expect_at_least(mut self, ratio: Option<f64>) -> Self {
        if let Some(first) = self.remedies.first_mut() {
            first.expected_low = ratio.filter(|r| r.is_finite() && *r > 1.0);
        }
        self
    }

    fn expect(mut self, ratio: Option<f64>) -> Self {
        if let Some(first) = self.remedies.first_mut() {
            first.expected_ratio = ratio.filter(|r| r.is_finite() && *r > 1.0);
        }
        self
    }
}
