//! The outcome of a step as a word, a symbol and a colour.

use landspeed_record::{StepAnswer, StepSummary};

use crate::output::Tone;

/// The outcome of a step: the answer, and whether the change was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
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

impl Outcome {
    pub(crate) const MEASURED: [Outcome; 7] = [
        Outcome::Kept,
        Outcome::Unconfirmed,
        Outcome::Dropped,
        Outcome::NoEffect,
        Outcome::Harms,
        Outcome::Undecided,
        Outcome::Placebo,
    ];

    pub(crate) fn of(step: &StepSummary) -> Self {
        match (step.placebo, step.answer, step.kept) {
            (true, ..) => Outcome::Placebo,
            (_, StepAnswer::Skipped, _) => Outcome::Skipped,
            (_, StepAnswer::NotTried, _) => Outcome::NotTried,
            (_, _, true) if step.confirmed == Some(false) => Outcome::Unconfirmed,
            (_, _, true) => Outcome::Kept,
            (_, StepAnswer::Helps, false) => Outcome::Dropped,
            (_, StepAnswer::Harms, _) => Outcome::Harms,
            (_, StepAnswer::NoEffect, _) => Outcome::NoEffect,
            (_, StepAnswer::Undecided, _) => Outcome::Undecided,
        }
    }

    pub(crate) fn is_kept(self) -> bool {
        matches!(self, Outcome::Kept | Outcome::Unconfirmed)
    }

    pub(crate) fn told(self) -> Told {
        let (word, brief, symbol, class, tone) = match self {
            Outcome::Kept => ("kept", "kept", "✓", "kept", Tone::Good),
            Outcome::Unconfirmed => ("kept, not confirmed", "not confirmed", "!", "unconfirmed", Tone::Open),
            Outcome::Dropped => ("helped, then dropped", "dropped", "○", "dropped", Tone::Open),
            Outcome::Harms => ("harms", "harms", "✗", "harms", Tone::Bad),
            Outcome::NoEffect => ("no useful effect", "no effect", "=", "no-effect", Tone::Dim),
            Outcome::Undecided => ("undecided", "undecided", "?", "undecided", Tone::Open),
            Outcome::Placebo => ("placebo", "placebo", "~", "placebo", Tone::Noise),
            Outcome::Skipped => ("skipped", "skipped", "-", "skipped", Tone::Dim),
            Outcome::NotTried => ("not tried", "not tried", "-", "not-tried", Tone::Dim),
        };
        Told { word, brief, symbol, class, tone }
    }
}

/// The forms in which a report shows an outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) word: &'static str,
    /// A shorter form of `word` for a narrow column.
    pub(crate) brief: &'static str,
    /// A symbol, so that outcomes differ in more than colour.
    pub(crate) symbol: &'static str,
    /// Class in the page's style sheet.
    pub(crate) class: &'static str,
    pub(crate) tone: Tone,
}
