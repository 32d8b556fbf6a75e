//! The outcome of a step as a word, a symbol and a colour.

use landspeed_record::{StepAnswer, StepSummary};

use crate::output::Tone;

/// The outcome of a step: the answer, and whether the change was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StepOutcome {
    Kept,
    /// Kept, but blocks that were spread over the rest of the run did not confirm it.
    Unconfirmed,
    /// Helped when it was tried, but the final check dropped it.
    Dropped,
    Harms,
    NoEffect,
    Undecided,
    Placebo,
    Skipped,
    NotTried,
}

impl StepOutcome {
    pub(crate) const MEASURED: [StepOutcome; 7] = [
        StepOutcome::Kept,
        StepOutcome::Unconfirmed,
        StepOutcome::Dropped,
        StepOutcome::NoEffect,
        StepOutcome::Harms,
        StepOutcome::Undecided,
        StepOutcome::Placebo,
    ];

    pub(crate) fn of(step: &StepSummary) -> Self {
        match (step.placebo, step.answer, step.kept) {
            (true, ..) => StepOutcome::Placebo,
            (_, StepAnswer::Skipped, _) => StepOutcome::Skipped,
            (_, StepAnswer::NotTried, _) => StepOutcome::NotTried,
            (_, _, true) if step.confirmed == Some(false) => StepOutcome::Unconfirmed,
            (_, _, true) => StepOutcome::Kept,
            (_, StepAnswer::Helps, false) => StepOutcome::Dropped,
            (_, StepAnswer::Harms, _) => StepOutcome::Harms,
            (_, StepAnswer::NoEffect, _) => StepOutcome::NoEffect,
            (_, StepAnswer::Undecided, _) => StepOutcome::Undecided,
        }
    }

    pub(crate) fn is_kept(self) -> bool {
        matches!(self, StepOutcome::Kept | StepOutcome::Unconfirmed)
    }

    pub(crate) fn labels(self) -> OutcomeLabels {
        let (word, brief, symbol, class, tone) = match self {
            StepOutcome::Kept => ("kept", "kept", "✓", "kept", Tone::Good),
            StepOutcome::Unconfirmed => {
                ("kept, not confirmed", "not confirmed", "!", "unconfirmed", Tone::Open)
            }
            StepOutcome::Dropped => ("helped, then dropped", "dropped", "○", "dropped", Tone::Open),
            StepOutcome::Harms => ("harms", "harms", "✗", "harms", Tone::Bad),
            StepOutcome::NoEffect => ("no useful effect", "no effect", "=", "no-effect", Tone::Dim),
            StepOutcome::Undecided => ("undecided", "undecided", "?", "undecided", Tone::Open),
            StepOutcome::Placebo => ("placebo", "placebo", "~", "placebo", Tone::Noise),
            StepOutcome::Skipped => ("skipped", "skipped", "-", "skipped", Tone::Dim),
            StepOutcome::NotTried => ("not tried", "not tried", "-", "not-tried", Tone::Dim),
        };
        OutcomeLabels { word, brief, symbol, class, tone }
    }
}

/// The forms in which a report shows an outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutcomeLabels {
    pub(crate) word: &'static str,
    /// A shorter form of `word` for a narrow column.
    pub(crate) brief: &'static str,
    /// A symbol, so that outcomes differ in more than colour.
    pub(crate) symbol: &'static str,
    /// Class in the page's style sheet.
    pub(crate) class: &'static str,
    pub(crate) tone: Tone,
}
