//! What became of a step, in word, sign and colour.

use landspeed_record::{Answer, StepSummary};

use crate::output::Tone;

/// What became of a step, as people are told: the answer, and what was done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Kept,
    /// Kept, and blocks that were spread over the rest of the run did not confirm it.
    Unconfirmed,
    /// Helped when it was tried, and was dropped in the final check.
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
            (_, Answer::Skipped, _) => Outcome::Skipped,
            (_, Answer::NotTried, _) => Outcome::NotTried,
            (_, _, true) if step.confirmed == Some(false) => Outcome::Unconfirmed,
            (_, _, true) => Outcome::Kept,
            (_, Answer::Helps, false) => Outcome::Dropped,
            (_, Answer::Harms, _) => Outcome::Harms,
            (_, Answer::NoEffect, _) => Outcome::NoEffect,
            (_, Answer::Undecided, _) => Outcome::Undecided,
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

/// How people are told what became of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) word: &'static str,
    /// For a narrow column.
    pub(crate) brief: &'static str,
    /// So that colour is never the only difference.
    pub(crate) symbol: &'static str,
    /// In the page's style sheet.
    pub(crate) class: &'static str,
    pub(crate) tone: Tone,
}
