//! What findings are judged from, and what is said of them.

use landspeed_record::{PaperFinding, Study};
use landspeed_stats::mean_interval;

use super::super::book::Entry;
use super::super::names::title;
use super::super::repeats::CONFIDENCE;
use super::super::run::RunFigures;
use super::tables::TABLE_1;

/// The study and its contests of the paper's kind.
pub(super) struct Scene<'a> {
    pub(super) study: &'a Study,
    pub(super) entries: &'a [&'a Entry<'a>],
    /// Whether our figures may stand beside the paper's.
    pub(super) is_papers: bool,
}

impl<'a> Scene<'a> {
    /// The contest of a protocol, where at least one of its runs counts.
    pub(super) fn of(&self, protocol: &str) -> Option<&'a Entry<'a>> {
        self.entries.iter().copied().find(|entry| entry.protocol() == protocol && !entry.runs.is_empty())
    }

    /// The paper's TCPs that this study has.
    pub(super) fn papers_own(&self) -> Vec<&'static str> {
        TABLE_1.iter().map(|row| row.protocol).filter(|protocol| self.of(protocol).is_some()).collect()
    }

    /// A figure of each run of a protocol; none where it is not in the study.
    pub(super) fn each(&self, protocol: &str, of: impl Fn(&RunFigures) -> Option<f64>) -> Vec<f64> {
        self.of(protocol).map(|entry| entry.each(of).into_values().collect()).unwrap_or_default()
    }

    /// What the queue can add to a round trip, as a share of it; `None` where nobody knows it.
    pub(super) fn queue_share(&self) -> Option<f64> {
        let queue = self.study.path.queue_bytes.0;
        (queue > 0).then(|| queue as f64 / self.study.path.bdp().0.max(1) as f64)
    }
}

pub(super) struct Judged {
    /// Whether it shows; `None` where the study cannot tell.
    pub(super) shows: Option<bool>,
    pub(super) evidence: String,
}

impl Judged {
    pub(super) fn cannot(why: impl Into<String>) -> Self {
        Judged { shows: None, evidence: why.into() }
    }

    pub(super) fn without(protocols: &[&str]) -> Self {
        let names: Vec<&str> = protocols.iter().map(|protocol| title(protocol)).collect();
        Judged::cannot(format!("not in this study, or no run counts: {}", names.join(", ")))
    }

    /// By a margin in each repeat, which is above zero where the finding shows: what its interval leaves open, the study
    /// cannot tell, and neither can a single repeat.
    pub(super) fn by_margin(margins: &[f64], evidence: String) -> Self {
        let shows =
            mean_interval(margins, CONFIDENCE).and_then(|(low, high)| match (low > 0.0, high < 0.0) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            });
        let why = match (shows, margins.len()) {
            (Some(_), _) => "",
            (None, 0 | 1) => "; one repeat cannot tell it from chance",
            (None, _) => "; the repeats differ by more than that",
        };
        Judged { shows, evidence: evidence + why }
    }
}

pub(super) struct Row {
    pub(super) place: &'static str,
    pub(super) claim: &'static str,
    /// It is a value of the paper's path and size: elsewhere nothing of ours may stand beside it.
    pub(super) is_value: bool,
    pub(super) judge: fn(&Scene<'_>) -> Judged,
    /// The likely reason where it does not show.
    pub(super) reason: fn(&Scene<'_>) -> String,
}

impl Row {
    pub(super) fn judged(&self, scene: &Scene<'_>) -> PaperFinding {
        let judged = if self.is_value && !scene.is_papers {
            Judged::cannot("a value of the paper's size and path: nothing of this study may stand beside it")
        } else {
            (self.judge)(scene)
        };
        let reason = (judged.shows == Some(false)).then(|| (self.reason)(scene));
        let scaled =
            if scene.is_papers { "" } else { "; and this study is not at the paper's size and path" };
        PaperFinding {
            place: self.place.to_owned(),
            claim: self.claim.to_owned(),
            reproduces: judged.shows,
            evidence: judged.evidence,
            reason: reason.map(|reason| reason + scaled),
        }
    }
}
