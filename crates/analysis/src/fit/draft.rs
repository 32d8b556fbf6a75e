//! A question of the paper, and its answer while it is built.

use std::collections::BTreeMap;

use landspeed_record::{ExpectationKind, SizeAnswer};

/// A question of the paper.
pub(super) struct SizeQuestion {
    pub(super) question: &'static str,
    /// The claims of the papers' ledger with which the answer's figures are compared, and how.
    pub(super) claims: &'static [(&'static str, ExpectationKind)],
    /// The paper's own answer; empty if it has no figure of this kind.
    pub(super) paper: &'static str,
}

/// An answer in the making: the lines and figures that were added so far.
#[derive(Debug, Default)]
pub(super) struct AnswerDraft {
    pub(super) lines: Vec<String>,
    figures: BTreeMap<String, f64>,
}

impl AnswerDraft {
    pub(super) fn figure(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.figures.insert(name.into(), value);
        }
    }

    /// Adds a figure, if it is known.
    pub(super) fn known(&mut self, name: impl Into<String>, value: Option<f64>) {
        self.figure(name, value.unwrap_or(f64::NAN));
    }

    /// Returns the answer, with the paper's own as its last line; `None` if there is nothing to say.
    pub(super) fn answer(self, asked: &SizeQuestion) -> Option<SizeAnswer> {
        let AnswerDraft { lines, figures } = self;
        if lines.is_empty() {
            return None;
        }
        let paper = Some(asked.paper).filter(|paper| !paper.is_empty()).map(str::to_owned);
        Some(SizeAnswer {
            question: asked.question.to_owned(),
            answer: lines.into_iter().chain(paper).collect(),
            claims: asked.claims.iter().map(|(claim, _)| (*claim).to_owned()).collect(),
            figures,
        })
    }
}
