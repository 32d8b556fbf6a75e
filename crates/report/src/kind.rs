//! What became of a step, in word, sign and colour.

use landspeed_record::{Answer, StepSummary};

use crate::output::Tone;

/// What became of a step, as people are told: the answer, and what was done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
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

impl Kind {
    pub(crate) const MEASURED: [Kind; 7] = [
        Kind::Kept,
        Kind::Unconfirmed,
        Kind::Dropped,
        Kind::NoEffect,
        Kind::Harms,
        Kind::Undecided,
        Kind::Placebo,
    ];

    pub(crate) fn of(step: &StepSummary) -> Self {
        match (step.placebo, step.answer, step.kept) {
            (true, ..) => Kind::Placebo,
            (_, Answer::Skipped, _) => Kind::Skipped,
            (_, Answer::NotTried, _) => Kind::NotTried,
            (_, _, true) if step.confirmed == Some(false) => Kind::Unconfirmed,
            (_, _, true) => Kind::Kept,
            (_, Answer::Helps, false) => Kind::Dropped,
            (_, Answer::Harms, _) => Kind::Harms,
            (_, Answer::NoEffect, _) => Kind::NoEffect,
            (_, Answer::Undecided, _) => Kind::Undecided,
        }
    }

    pub(crate) fn is_kept(self) -> bool {
        matches!(self, Kind::Kept | Kind::Unconfirmed)
    }

    pub(crate) fn told(self) -> Told {
        let (word, brief, symbol, class, tone) = match self {
            Kind::Kept => ("kept", "kept", "✓", "kept", Tone::Good),
            Kind::Unconfirmed => ("kept, not confirmed", "not confirmed", "!", "unconfirmed", Tone::Open),
            Kind::Dropped => ("helped, then dropped", "dropped", "○", "dropped", Tone::Open),
            Kind::Harms => ("harms", "harms", "✗", "harms", Tone::Bad),
            Kind::NoEffect => ("no useful effect", "no effect", "=", "no-effect", Tone::Dim),
            Kind::Undecided => ("undecided", "undecided", "?", "undecided", Tone::Open),
            Kind::Placebo => ("placebo", "placebo", "~", "placebo", Tone::Noise),
            Kind::Skipped => ("skipped", "skipped", "-", "skipped", Tone::Dim),
            Kind::NotTried => ("not tried", "not tried", "-", "not-tried", Tone::Dim),
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
