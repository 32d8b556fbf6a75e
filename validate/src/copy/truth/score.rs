//! How often the first cause is right, and what is named in its place.

use anyhow::Result;
use landspeed_analysis::hold_words;
use landspeed_record::units::BitRate;
use landspeed_record::{CopyHolder, CopySlowAnswer};
use landspeed_stats::{binomial_interval, median};
use serde::{Deserialize, Serialize};

use super::truths::Truth;
use crate::table::{self, BrokenPromises};

/// The least share of all runs that must be right, and the least share of those of each truth.
const LEAST: [(u32, u32); 2] = [(19, 20), (17, 20)];
/// The least share of the runs that were decided by slowing the first cause in which that agrees with what was made.
const AGREES: (u32, u32) = (9, 10);
/// How many times as fast a copy must be without what was made, at the least. Otherwise another part of it is about as slow.
const BINDS: f64 = 1.25;

/// What a copy came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct MadeCopy {
    /// What it names first, if anything.
    pub(super) first: Option<CopyHolder>,
    /// What came of the test of that, if it was slowed.
    pub(super) slowed: Option<CopySlowAnswer>,
    pub(super) rate: BitRate,
}

/// What one run named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TruthRun {
    Named {
        /// The first cause; `None` if the copy names none.
        first: Option<CopyHolder>,
        /// How many times as fast the copy is without what was made; `None` where nothing was.
        faster: Option<f64>,
        /// What came of the test of the first cause, if it was slowed.
        #[serde(default)]
        slowed: Option<CopySlowAnswer>,
    },
    /// What was made was not what held the copy, which is only this many times as fast without it.
    NotMade { faster: f64 },
    /// The copy failed, or was not the one that was to be made.
    Failed(String),
}

impl TruthRun {
    /// Returns what a copy named, held against the same one without what was made.
    pub(super) fn of(with: MadeCopy, without: Option<MadeCopy>) -> TruthRun {
        let faster = without.map(|without| without.rate.0 / with.rate.0);
        match faster {
            Some(faster) if faster < BINDS => TruthRun::NotMade { faster },
            _ => TruthRun::Named { first: with.first, faster, slowed: with.slowed },
        }
    }

    /// Returns the first cause in words.
    pub(super) fn words(&self) -> String {
        match self {
            TruthRun::Named { first: Some(first), .. } => hold_words(first.hold).to_owned(),
            TruthRun::Named { first: None, .. } => "nothing".to_owned(),
            TruthRun::NotMade { faster } => format!("not made: without it {faster:.2} times as fast"),
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
            TruthRun::Named { first: Some(first), .. } if self.truth.right.contains(&first.hold) => {
                Some(first.share)
            }
            _ => None,
        };
        self.runs.iter().filter_map(first).collect()
    }

    /// Returns how many runs were decided by slowing the first cause, and in how many of them that agrees with what was made.
    fn tested(&self) -> [u32; 2] {
        let agrees = |run: &TruthRun| match run {
            TruthRun::Named { first: Some(first), slowed: Some(slowed), .. } => {
                let is_right = self.truth.right.contains(&first.hold);
                let decided = *slowed != CopySlowAnswer::NotTested;
                decided.then_some(is_right == (*slowed == CopySlowAnswer::Answers))
            }
            _ => None,
        };
        let decided: Vec<bool> = self.runs.iter().filter_map(agrees).collect();
        [decided.len(), decided.iter().filter(|agrees| **agrees).count()].map(|runs| runs as u32)
    }

    fn right(&self) -> u32 {
        self.shares().len() as u32
    }

    /// Returns the number of runs that say something: in the others, what was to be made did not hold the copy.
    fn of(&self) -> u32 {
        self.runs.len() as u32 - self.not_made()
    }

    fn not_made(&self) -> u32 {
        self.runs.iter().filter(|run| matches!(run, TruthRun::NotMade { .. })).count() as u32
    }

    /// Returns how many times as fast the copies are without what was made.
    fn faster(&self) -> Vec<f64> {
        let faster = |run: &TruthRun| match run {
            TruthRun::Named { faster, .. } => *faster,
            TruthRun::NotMade { faster } => Some(*faster),
            TruthRun::Failed(_) => None,
        };
        self.runs.iter().filter_map(faster).collect()
    }

    /// Returns true if enough runs are right. A truth that is seldom made shows nothing.
    fn is_kept(&self) -> bool {
        let is_made = is_enough(self.of(), self.runs.len() as u32, LEAST[1]);
        is_made && is_enough(self.right(), self.of(), LEAST[1])
    }

    /// Returns what was named in the place of what is right, most often first.
    fn instead(&self) -> String {
        let is_wrong = |run: &&TruthRun| match run {
            TruthRun::Named { first: Some(first), .. } => !self.truth.right.contains(&first.hold),
            TruthRun::NotMade { .. } => false,
            TruthRun::Named { first: None, .. } | TruthRun::Failed(_) => true,
        };
        table::counts(self.runs.iter().filter(is_wrong).map(TruthRun::words))
    }

    fn row(&self, broken: &mut BrokenPromises) {
        let (right, of) = (self.right(), self.of());
        let named: Vec<&str> = self.truth.right.iter().map(|hold| hold_words(*hold)).collect();
        table::row(&[
            &self.truth.name,
            &self.truth.about,
            &median_words(&self.faster()),
            &self.not_made(),
            &named.join(" or "),
            &format!("{right} of {of} [{}]", table::interval(right, of)),
            &self.instead(),
            &median_words(&self.shares()),
            &format!("17 of 20: {}", broken.check(self.is_kept())),
        ]);
    }
}

/// Prints the table. Returns an error if too few runs are right.
pub(super) fn report(scores: &[TruthScore]) -> Result<()> {
    let mut broken = BrokenPromises::default();
    table::head(
        "truth | made | times as fast without it | not made | right is | right, with the 95 % interval | named instead | its share | promise",
    );
    scores.iter().filter(|score| !score.runs.is_empty()).for_each(|score| score.row(&mut broken));
    let right: u32 = scores.iter().map(|score| score.right()).sum();
    let of: u32 = scores.iter().map(|score| score.of()).sum();
    let all = broken.check(is_enough(right, of, LEAST[0]));
    let not_made: u32 = scores.iter().map(TruthScore::not_made).sum();
    println!("\nOver all: {right} of {of} right [{}]; 95 %: {all}.", table::interval(right, of));
    let [decided, agree] = [0, 1].map(|which| scores.iter().map(|score| score.tested()[which]).sum::<u32>());
    if decided > 0 {
        let kept = broken.check(is_enough(agree, decided, AGREES));
        let interval = table::interval(agree, decided);
        println!(
            "Slowing the first cause decided {decided} runs and agrees in {agree} [{interval}]; 90 %: {kept}."
        );
    }
    println!(
        "{not_made} runs are in no share: without what was made, the same copy was not {BINDS} times as fast."
    );
    println!("Times and shares are medians with 95 % intervals.");
    broken.sum_up()
}

fn is_enough(right: u32, of: u32, (least, of_runs): (u32, u32)) -> bool {
    right * of_runs >= least * of
}

/// Returns the median of figures and its interval by ranks, which assumes nothing of their distribution.
fn median_words(figures: &[f64]) -> String {
    let Some(middle) = median(figures) else { return "-".to_owned() };
    let mut sorted = figures.to_vec();
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
            let first = Some(CopyHolder { hold: *hold, stage: None, share: *share });
            TruthRun::Named { first, faster: Some(2.0), slowed: None }
        };
        TruthScore { truth, runs: named.iter().map(run).collect() }
    }

    #[test]
    fn only_the_first_causes_of_the_truth_are_right() {
        let mut score = score(
            "source-disk",
            &[(CopyHold::SourceDisk, 0.9), (CopyHold::TargetDisk, 0.8), (CopyHold::NetworkRate, 0.7)],
        );
        score.runs.extend(vec![TruthRun::Named { first: None, faster: Some(3.0), slowed: None }; 2]);
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

    /// A run in which something else was slower is neither right nor wrong, whatever it named.
    #[test]
    fn a_run_whose_limit_did_not_bind_is_counted_apart() {
        let copy = |rate: f64| {
            let first = Some(CopyHolder { hold: CopyHold::TargetDisk, stage: None, share: 0.9 });
            MadeCopy { first, slowed: None, rate: BitRate(rate) }
        };
        let slower = TruthRun::of(copy(1e8), Some(copy(2e8)));
        assert_eq!(slower, TruthRun::Named { first: copy(1e8).first, faster: Some(2.0), slowed: None });
        let not_made = TruthRun::of(copy(1e8), Some(copy(1.2e8)));
        assert!(matches!(not_made, TruthRun::NotMade { .. }), "{not_made:?}");
        assert!(matches!(TruthRun::of(copy(1e8), None), TruthRun::Named { faster: None, .. }));
        let mut score = score("target-disk", &[(CopyHold::TargetDisk, 0.9); 17]);
        score.runs.extend(vec![not_made.clone(); 3]);
        assert_eq!((score.right(), score.of(), score.not_made()), (17, 17, 3));
        assert_eq!(score.instead(), "-");
        assert!(score.is_kept());
        score.runs[0] = not_made;
        assert!(!score.is_kept(), "what is made in 16 of 20 runs shows nothing");
    }

    #[test]
    fn a_run_is_kept_as_it_was() {
        let first = Some(CopyHolder { hold: CopyHold::RelayTarget, stage: None, share: 0.5 });
        for run in [
            TruthRun::Named { first, faster: None, slowed: Some(CopySlowAnswer::Slack) },
            TruthRun::NotMade { faster: 1.1 },
            TruthRun::Failed("no route".to_owned()),
        ] {
            let line = serde_json::to_string(&run).unwrap();
            assert_eq!(serde_json::from_str::<TruthRun>(&line).unwrap(), run, "{line}");
        }
    }

    /// What is right must answer, and what is wrong must not.
    #[test]
    fn a_test_agrees_with_what_was_made_or_does_not() {
        let run = |hold, slowed| {
            let first = Some(CopyHolder { hold, stage: None, share: 0.9 });
            TruthRun::Named { first, faster: Some(2.0), slowed }
        };
        let [answers, slack] = [CopySlowAnswer::Answers, CopySlowAnswer::Slack].map(Some);
        let mut score = score("source-quota", &[]);
        let (right, wrong) = (CopyHold::SourceQuota, CopyHold::TargetProcessor);
        score.runs = vec![run(right, answers), run(wrong, slack), run(right, slack), run(wrong, answers)];
        score.runs.extend([run(right, None), run(right, Some(CopySlowAnswer::NotTested))]);
        assert_eq!(score.tested(), [4, 2]);
        assert!(!is_enough(8, 9, AGREES) && is_enough(9, 10, AGREES));
    }

    #[test]
    fn a_median_has_an_interval_by_ranks() {
        let shares: Vec<f64> = (1..=20).map(|number| f64::from(number) / 50.0).collect();
        // Ranks 6 and 15 of 20.
        assert_eq!(median_words(&shares), "0.21 [0.12, 0.30]");
        assert_eq!(median_words(&[0.5]), "0.50 [0.50, 0.50]");
        assert_eq!(median_words(&[]), "-");
    }
}
