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

    /// Whether the step is part of the final setting.
    pub(crate) fn is_kept(self) -> bool {
        matches!(self, Kind::Kept | Kind::Unconfirmed)
    }

    /// For people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Kept => "kept",
            Kind::Unconfirmed => "kept, not confirmed",
            Kind::Dropped => "helped, then dropped",
            Kind::Harms => "harms",
            Kind::NoEffect => "no useful effect",
            Kind::Undecided => "undecided",
            Kind::Placebo => "placebo",
            Kind::Skipped => "skipped",
            Kind::NotTried => "not tried",
        }
    }

    /// As [`Kind::word`], for a narrow column.
    pub(crate) fn brief(self) -> &'static str {
        match self {
            Kind::Unconfirmed => "not confirmed",
            Kind::Dropped => "dropped",
            Kind::NoEffect => "no effect",
            kind => kind.word(),
        }
    }

    /// One character, so that colour is never the only difference.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Kind::Kept => "✓",
            Kind::Unconfirmed => "!",
            Kind::Dropped => "○",
            Kind::Harms => "✗",
            Kind::NoEffect => "=",
            Kind::Undecided => "?",
            Kind::Placebo => "~",
            Kind::Skipped | Kind::NotTried => "-",
        }
    }

    /// Class in the page's style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Kind::Kept => "kept",
            Kind::Unconfirmed => "unconfirmed",
            Kind::Dropped => "dropped",
            Kind::Harms => "harms",
            Kind::NoEffect => "no-effect",
            Kind::Undecided => "undecided",
            Kind::Placebo => "placebo",
            Kind::Skipped => "skipped",
            Kind::NotTried => "not-tried",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Kind::Kept => Tone::Good,
            Kind::Harms => Tone::Bad,
            Kind::Unconfirmed | Kind::Undecided | Kind::Dropped => Tone::Open,
            Kind::Placebo => Tone::Noise,
            Kind::NoEffect | Kind::Skipped | Kind::NotTried => Tone::Dim,
        }
    }
}
