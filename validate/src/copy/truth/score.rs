//! How often the first cause is right, and what is named in its place.

use std::collections::BTreeMap;

use anyhow::Result;
use landspeed_analysis::hold_words;
use landspeed_record::CopyHolder;
use landspeed_stats::{binomial_interval, median};

use super::truths::Truth;
use crate::table::{self, BrokenPromises};

/// The least share of all runs that must be right, and the least share of those of each truth.
const LEAST: [(u32, u32); 2] = [(19, 20), (17, 20)];

/// What one run named.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TruthRun {
    /// The first cause; `None` if the copy names none.
    Named(Option<CopyHolder>),
    /// The copy failed, or was not the one that was to be made.
    Failed(String),
}

impl TruthRun {
    /// Returns the first cause in words.
    pub(super) fn words(&self) -> String {
        match self {
            TruthRun::Named(Some(first)) => hold_words(first.hold).to_owned(),
            TruthRun::Named(None) => "nothing".to_owned(),
            TruthRun::Failed(why) => format!("failed ({why})"),
        }
    }
}

/// The runs of one truth.
pub(super) struct TruthScore<'a> {
    pub(super) truth: &'a Truth,
    pub(super) runs: Vec<TruthRun>,
}

impl TruthScore<'_> {
    /// Returns the shares of the time of those first causes that are right.
    fn shares(&self) -> Vec<f64> {
        let first = |run: &TruthRun| match run {
            TruthRun::Named(Some(first)) if self.truth.right.contains(&first.hold) => Some(first.share),
            _ => None,
        };
        self.runs.iter().filter_map(first).collect()
    }

    fn right(&self) -> u32 {
        self.shares().len() as u32
    }

    fn of(&self) -> u32 {
        self.runs.len() as u32
    }

    /// Returns what was named in the place of what is right, most often first.
    fn instead(&self) -> String {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let is_wrong = |run: &&TruthRun| match run {
            TruthRun::Named(Some(first)) => !self.truth.right.contains(&first.hold),
            _ => true,
        };
        self.runs.iter().filter(is_wrong).for_each(|run| *counts.entry(run.words()).or_default() += 1);
        let mut all: Vec<(String, u32)> = counts.into_iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let all: Vec<String> = all.iter().map(|(words, count)| format!("{words}: {count}")).collect();
        if all.is_empty() { "-".to_owned() } else { all.join("; ") }
    }

    fn row(&self, broken: &mut BrokenPromises) {
        let (right, of) = (self.right(), self.of());
        let named: Vec<&str> = self.truth.right.iter().map(|hold| hold_words(*hold)).collect();
        table::row(&[
            &self.truth.name,
            &self.truth.about,
            &named.join(" or "),
            &format!("{right} of {of} [{}]", table::interval(right, of)),
            &self.instead(),
            &share_words(&self.shares()),
            &format!("17 of 20: {}", broken.check(is_enough(right, of, LEAST[1]))),
        ]);
    }
}

/// Prints the table. Returns an error if too few runs are right.
pub(super) fn report(scores: &[TruthScore]) -> Result<()> {
    let mut broken = BrokenPromises::default();
    table::head(
        "truth | made | right is | right, with the 95 % interval | named instead | its share, median with the 95 % interval | promise",
    );
    scores.iter().filter(|score| score.of() > 0).for_each(|score| score.row(&mut broken));
    let right: u32 = scores.iter().map(|score| score.right()).sum();
    let of: u32 = scores.iter().map(|score| score.of()).sum();
    let all = broken.check(is_enough(right, of, LEAST[0]));
    println!("\nOver all: {right} of {of} right [{}]; 95 %: {all}.", table::interval(right, of));
    broken.sum_up()
}

fn is_enough(right: u32, of: u32, (least, of_runs): (u32, u32)) -> bool {
    right * of_runs >= least * of
}

/// Returns the median of shares and its interval by ranks, which assumes nothing of their distribution.
fn share_words(shares: &[f64]) -> String {
    let Some(middle) = median(shares) else { return "-".to_owned() };
    let mut sorted = shares.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ends = binomial_interval(sorted.len() as u64, 0.5, 0.95).map(|ranks| {
        let (low, high) = (*ranks.start() as usize, *ranks.end() as usize);
        [low.saturating_sub(1), high.min(sorted.len() - 1)].map(|rank| sorted[rank])
    });
    let [low, high] = ends.unwrap_or([middle; 2]);
    format!("{middle:.2} [{low:.2}, {high:.2}]")
}

#[cfg(test)]
mod tests {
    use landspeed_record::CopyHold;

    use super::super::truths::TRUTHS;
    use super::*;

    fn score(truth: &'static str, named: &[(CopyHold, f64)]) -> TruthScore<'static> {
        static ALL: [Truth; 12] = TRUTHS;
        let truth = ALL.iter().find(|one| one.name == truth).unwrap();
        let run = |(hold, share): &(CopyHold, f64)| {
            TruthRun::Named(Some(CopyHolder { hold: *hold, stage: None, share: *share }))
        };
        TruthScore { truth, runs: named.iter().map(run).collect() }
    }

    #[test]
    fn only_the_first_causes_of_the_truth_are_right() {
        let mut score = score(
            "source-disk",
            &[(CopyHold::SourceDisk, 0.9), (CopyHold::TargetDisk, 0.8), (CopyHold::NetworkRate, 0.7)],
        );
        score.runs.push(TruthRun::Named(None));
        score.runs.push(TruthRun::Named(None));
        score.runs.push(TruthRun::Failed("no route".to_owned()));
        assert_eq!((score.right(), score.of(), score.shares()), (1, 6, vec![0.9]));
        let instead = score.instead();
        assert!(instead.starts_with("nothing: 2; "), "{instead}");
        assert!(
            instead.contains("target's disk: 1") && instead.contains("failed (no route): 1"),
            "{instead}"
        );
    }

    #[test]
    fn seventeen_of_twenty_are_enough_for_one_truth_and_not_for_all() {
        let named: Vec<(CopyHold, f64)> = (0..20)
            .map(|run| (if run < 17 { CopyHold::TargetDisk } else { CopyHold::Answers }, 0.5))
            .collect();
        let scores = [score("target-disk", &named)];
        assert!(is_enough(scores[0].right(), scores[0].of(), LEAST[1]));
        assert!(!is_enough(16, 20, LEAST[1]));
        assert!(report(&scores).is_err());
        assert!(report(&[score("target-disk", &named[..17])]).is_ok());
    }

    #[test]
    fn a_median_has_an_interval_by_ranks() {
        let shares: Vec<f64> = (1..=20).map(|number| f64::from(number) / 50.0).collect();
        // Ranks 6 and 15 of 20.
        assert_eq!(share_words(&shares), "0.21 [0.12, 0.30]");
        assert_eq!(share_words(&[0.5]), "0.50 [0.50, 0.50]");
        assert_eq!(share_words(&[]), "-");
    }
}
