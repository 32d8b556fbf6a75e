//! What the copies show, beside what is promised.

use landspeed_record::CopyArm;
use landspeed_stats::{mean_and_deviation, mean_interval};

use super::Options;
use super::links::{ChoiceLink, LinkQuestion, words};
use super::runs::{ChoiceRuns, ChoiceWork};
use crate::table::{self, BrokenPromises};

/// A setting counts as the best one if it is no slower than this share of it.
const NEAR: f64 = 0.97;

/// The copies over a link.
struct LinkScore<'a> {
    link: &'a ChoiceLink,
    /// The goodput of the short copies with each setting; empty while some are missing.
    looks: Vec<(CopyArm, f64)>,
    /// What each copy that chooses had in force at its end, and its goodput.
    chosen: Vec<(CopyArm, f64)>,
    /// The shares by which copies that choose were slower than those beside them.
    losses: Vec<f64>,
    /// The number of copies that choose.
    planned: u32,
}

impl<'a> LinkScore<'a> {
    fn of(link: &'a ChoiceLink, options: &Options, runs: &ChoiceRuns) -> Self {
        let (mut chosen, mut losses) = (Vec::new(), Vec::new());
        let planned = options.copies(link);
        for number in 0..planned {
            let found = |work| runs.found(link, options, work, number);
            let Some(one) = found(ChoiceWork::Chooses) else { continue };
            let arm = one.kept.clone().unwrap_or_else(|| link.default_setting());
            chosen.push((arm, one.goodput_bps));
            losses.extend(found(ChoiceWork::Beside).map(|beside| 1.0 - one.goodput_bps / beside.goodput_bps));
        }
        LinkScore { link, looks: runs.looks(link, options).unwrap_or_default(), chosen, losses, planned }
    }

    /// Returns the number of copies that are missing.
    fn missing(&self) -> u32 {
        let made = if self.link.asks == LinkQuestion::Equal { self.chosen.len() } else { self.losses.len() };
        self.planned.saturating_sub(made as u32)
    }

    fn best(&self) -> Option<&(CopyArm, f64)> {
        self.looks.iter().max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// Returns the goodput of the short copies with a setting. Whether the target wrote past its page cache is not
    /// among them.
    fn look(&self, arm: &CopyArm) -> Option<f64> {
        let is_it = |look: &&(CopyArm, f64)| look.0.flows == arm.flows && look.0.control == arm.control;
        self.looks.iter().find(is_it).map(|look| look.1)
    }

    /// Returns how many times as fast the best setting is as the default.
    fn gain(&self) -> Option<f64> {
        Some(self.best()?.1 / self.look(&self.link.default_setting())?)
    }

    /// Returns true if a setting is the best one, or nearly.
    fn is_near_best(&self, arm: &CopyArm) -> bool {
        let (found, best) = (self.look(arm), self.best().map(|best| best.1));
        found.zip(best).is_some_and(|(found, best)| found >= NEAR * best)
    }

    fn kept_words(&self) -> String {
        table::counts(self.chosen.iter().map(|(arm, _)| words(arm)))
    }

    fn row(&self) {
        let megabits = |bps: Option<f64>| bps.map_or("-".to_owned(), |bps| format!("{:.1}", bps / 1e6));
        let best =
            self.best().map_or("-".to_owned(), |(arm, bps)| format!("{}: {:.1}", words(arm), bps / 1e6));
        let goodputs: Vec<f64> = self.chosen.iter().map(|(_, goodput)| *goodput).collect();
        let mean = (!goodputs.is_empty()).then(|| mean_and_deviation(&goodputs).0);
        table::row(&[
            &self.link.name,
            &self.link.about,
            &megabits(self.look(&self.link.default_setting())),
            &best,
            &format!("{} of {}", self.chosen.len(), self.planned),
            &self.kept_words(),
            &megabits(mean),
            &mean_words(&self.losses),
        ]);
    }
}

/// A promise about all links that ask for one thing.
struct ChoicePromise {
    about: &'static str,
    asks: LinkQuestion,
    /// Returns what was found, and whether the promise is kept.
    judge: fn(&[&LinkScore<'_>]) -> (String, bool),
}

static PROMISES: [ChoicePromise; 6] = [
    ChoicePromise {
        about: "equal settings: a change kept in at most 4 of 40",
        asks: LinkQuestion::Equal,
        judge: |scores| {
            counted(scores, |score, arm| *arm != score.link.default_setting(), |share| share <= 0.1)
        },
    },
    ChoicePromise {
        about: "the best setting is 30 % better than the default on each link, or the study asks nothing",
        asks: LinkQuestion::Better,
        judge: |scores| gains(scores, |gain| gain >= 1.3),
    },
    ChoicePromise {
        about: "mean regret over the whole copy: at most 8 %",
        asks: LinkQuestion::Better,
        judge: |scores| mean_loss(scores, 0.08),
    },
    ChoicePromise {
        about: "the best setting, or one within 3 % of it, kept in at least 26 of 40",
        asks: LinkQuestion::Better,
        judge: |scores| counted(scores, |score, arm| score.is_near_best(arm), |share| share >= 0.65),
    },
    ChoicePromise {
        about: "the default is best, within 3 %, or the study asks nothing",
        asks: LinkQuestion::Default,
        judge: |scores| gains(scores, |gain| gain <= 1.0 / NEAR),
    },
    ChoicePromise {
        about: "mean loss where the default is best: at most 2 %",
        asks: LinkQuestion::Default,
        judge: |scores| mean_loss(scores, 0.02),
    },
];

/// Prints what the copies over these links show. A promise that lacks copies is neither kept nor broken.
pub(super) fn report(
    options: &Options,
    links: &[&ChoiceLink],
    runs: &ChoiceRuns,
    broken: &mut BrokenPromises,
) {
    let scores: Vec<LinkScore<'_>> = links.iter().map(|link| LinkScore::of(link, options, runs)).collect();
    table::head(
        "link | what it is | default, Mb/s | best of twelve settings, Mb/s | copies that choose | \
         in force at their end | goodput, Mb/s | lost beside the best setting, with the 95 % interval",
    );
    scores.iter().for_each(LinkScore::row);
    println!(
        "\nThe settings: short copies of {} s, {} each. The copies that choose would take {} s at the link's rate.\n",
        options.look_seconds, options.looks, options.seconds
    );
    table::head("promise | copies | found, with the 95 % interval | answer");
    PROMISES.iter().for_each(|promise| promise.row(&scores, broken));
}

impl ChoicePromise {
    fn row(&self, scores: &[LinkScore<'_>], broken: &mut BrokenPromises) {
        let own: Vec<&LinkScore<'_>> = scores.iter().filter(|score| score.link.asks == self.asks).collect();
        if own.is_empty() {
            return;
        }
        let missing: u32 = own.iter().map(|score| score.missing()).sum();
        let copies: usize = own.iter().map(|score| score.chosen.len()).sum();
        let (found, is_kept) = (self.judge)(&own);
        let answer = match missing {
            0 => broken.check(is_kept).to_owned(),
            missing => format!("{missing} copies are missing: the same command makes them"),
        };
        table::row(&[&self.about, &copies, &found, &answer]);
    }
}

/// Counts copies by the setting that they had at their end.
fn counted(
    scores: &[&LinkScore<'_>],
    counts: fn(&LinkScore<'_>, &CopyArm) -> bool,
    is_kept: fn(f64) -> bool,
) -> (String, bool) {
    let of_link = |score: &&LinkScore<'_>| score.chosen.iter().filter(|(arm, _)| counts(score, arm)).count();
    let hits = scores.iter().map(of_link).sum::<usize>() as u32;
    let of = scores.iter().map(|score| score.chosen.len()).sum::<usize>() as u32;
    (format!("{hits} of {of} [{}]", table::interval(hits, of)), is_kept(table::share(hits, of)))
}

fn gains(scores: &[&LinkScore<'_>], is_kept: fn(f64) -> bool) -> (String, bool) {
    let all: Option<Vec<f64>> = scores.iter().map(|score| score.gain()).collect();
    let all = all.unwrap_or_default();
    let words: Vec<String> = all.iter().map(|gain| format!("{gain:.2}×")).collect();
    (words.join(", "), !all.is_empty() && all.iter().all(|gain| is_kept(*gain)))
}

fn mean_loss(scores: &[&LinkScore<'_>], most: f64) -> (String, bool) {
    let all: Vec<f64> = scores.iter().flat_map(|score| score.losses.iter().copied()).collect();
    (mean_words(&all), !all.is_empty() && mean_and_deviation(&all).0 <= most)
}

/// Returns a mean of shares with Student's interval, in percent.
fn mean_words(shares: &[f64]) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    match mean_interval(shares, 0.95) {
        Some((low, high)) => {
            format!("{} % [{}, {}]", percent(mean_and_deviation(shares).0), percent(low), percent(high))
        }
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::links::{LINKS, settings};
    use super::super::runs::ChoiceRun;
    use super::*;

    /// Returns whether all promises are kept if the default has 50 Mb/s, the best setting 100, and the copies that
    /// choose `chosen` with the setting `kept`.
    fn is_kept(link: usize, chosen: f64, kept: Option<CopyArm>, lacks: u32) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { share: 100, ..Options::small(PathBuf::new()) };
        let link = &LINKS[link];
        let mut runs = ChoiceRuns::open(&folder.path().join("choice.jsonl")).unwrap();
        while let Some((work, number)) = runs.next(link, &options) {
            if work == ChoiceWork::Chooses && number + lacks >= options.copies(link) {
                break;
            }
            let (seconds, goodput_bps, kept) = match work {
                ChoiceWork::Look(setting) => {
                    let is_default = settings()[setting as usize] == link.default_setting();
                    let is_best = if link.asks == LinkQuestion::Better { setting == 7 } else { is_default };
                    (options.look_seconds, if is_best { 1e8 } else { 5e7 }, None)
                }
                ChoiceWork::Beside => (options.seconds, 1e8, None),
                ChoiceWork::Chooses => (options.seconds, chosen, kept.clone()),
            };
            let link = link.name.to_owned();
            runs.add(ChoiceRun { link, seconds, work, number, goodput_bps, kept }).unwrap();
        }
        let mut broken = BrokenPromises::default();
        report(&options, &[link], &runs, &mut broken);
        broken.sum_up().is_ok()
    }

    #[test]
    fn regret_loss_and_what_is_kept_decide() {
        let best = || settings().get(7).cloned();
        let [equal, better, default] = [0, 1, 3];
        assert!(is_kept(equal, 1e8, None, 0) && !is_kept(equal, 1e8, best(), 0));
        assert!(is_kept(better, 9.3e7, best(), 0));
        assert!(!is_kept(better, 9.1e7, best(), 0), "it lost 9 %");
        assert!(!is_kept(better, 9.3e7, None, 0), "it did not find the best one");
        assert!(is_kept(default, 9.9e7, None, 0) && !is_kept(default, 9.7e7, None, 0));
        assert!(is_kept(default, 9.7e7, None, 2), "too few copies decide nothing");
    }

    #[test]
    fn a_mean_has_students_interval() {
        assert_eq!(mean_words(&[]), "-");
        // 2 % +- 12.706 / sqrt(2) * 1.414 %.
        assert_eq!(mean_words(&[0.01, 0.03]), "2.0 % [-10.7, 14.7]");
    }
}
