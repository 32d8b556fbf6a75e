//! The runs of the study, and which are missing.

use std::path::Path;

use anyhow::Result;
use landspeed_record::CopyArm;
use landspeed_stats::Random;
use serde::{Deserialize, Serialize};

use super::Options;
use super::links::{ChoiceLink, LinkQuestion, settings, words};
use crate::kept::KeptRuns;

/// What a copy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ChoiceWork {
    /// A short copy with the setting of this number.
    Look(u32),
    /// A long copy with the best setting.
    Beside,
    /// A long copy that chooses.
    Chooses,
}

/// A copy that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ChoiceRun {
    pub(super) link: String,
    /// The time for which its content fills the link.
    pub(super) seconds: u64,
    pub(super) work: ChoiceWork,
    /// The number of the round.
    pub(super) number: u32,
    pub(super) goodput_bps: f64,
    /// The setting that it kept in the place of the default; `None` for the default.
    pub(super) kept: Option<CopyArm>,
}

impl ChoiceRun {
    /// Returns what was copied and how fast, in words.
    pub(super) fn words(&self) -> String {
        let work = match self.work {
            ChoiceWork::Look(setting) => {
                settings().get(setting as usize).map_or_else(|| "another setting".to_owned(), words)
            }
            ChoiceWork::Beside => "the best setting".to_owned(),
            ChoiceWork::Chooses => {
                let kept = self.kept.as_ref().map_or_else(|| "the default".to_owned(), words);
                format!("chose {kept}")
            }
        };
        format!("round {}: {work}: {:.1} Mb/s", self.number + 1, self.goodput_bps / 1e6)
    }
}

/// All runs so far, which a file keeps.
pub(super) struct ChoiceRuns(KeptRuns<ChoiceRun>);

impl ChoiceRuns {
    /// Reads the runs that a file has. Makes the file if it is not there.
    pub(super) fn open(path: &Path) -> Result<ChoiceRuns> {
        Ok(ChoiceRuns(KeptRuns::open(path)?))
    }

    pub(super) fn add(&mut self, run: ChoiceRun) -> Result<()> {
        self.0.add(run)
    }

    /// Returns the copy that is to be made next over a link; `None` once all are made.
    pub(super) fn next(&self, link: &ChoiceLink, options: &Options) -> Option<(ChoiceWork, u32)> {
        let is_missing =
            |(work, number): &(ChoiceWork, u32)| self.found(link, options, *work, *number).is_none();
        planned(link, options).into_iter().find(is_missing)
    }

    /// Returns a run.
    pub(super) fn found(
        &self,
        link: &ChoiceLink,
        options: &Options,
        work: ChoiceWork,
        number: u32,
    ) -> Option<&ChoiceRun> {
        let seconds = match work {
            ChoiceWork::Look(_) => options.look_seconds,
            ChoiceWork::Beside | ChoiceWork::Chooses => options.seconds,
        };
        let is_it = |run: &&ChoiceRun| {
            run.link == link.name && run.seconds == seconds && run.work == work && run.number == number
        };
        self.0.made().iter().find(is_it)
    }

    /// Returns the mean goodput of the short copies with each setting, in bits per second; `None` while some are
    /// missing.
    pub(super) fn looks(&self, link: &ChoiceLink, options: &Options) -> Option<Vec<(CopyArm, f64)>> {
        let mean = |(setting, arm): (u32, CopyArm)| {
            let looks = (0..options.looks).map(|number| {
                Some(self.found(link, options, ChoiceWork::Look(setting), number)?.goodput_bps)
            });
            let all = looks.collect::<Option<Vec<f64>>>()?;
            Some((arm, all.iter().sum::<f64>() / all.len() as f64))
        };
        (0..).zip(settings()).map(mean).collect()
    }

    /// Returns the setting that was the fastest in the short copies. Where settings are to be equal, or the default
    /// to be best, that is the default.
    pub(super) fn best(&self, link: &ChoiceLink, options: &Options) -> Option<CopyArm> {
        match link.asks {
            LinkQuestion::Equal | LinkQuestion::Default => Some(link.default_setting()),
            LinkQuestion::Better => {
                let looks = self.looks(link, options)?;
                looks.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).map(|(arm, _)| arm)
            }
        }
    }
}

/// Returns the copies of a link, in the order in which they are made: first the short ones, each round in an order of
/// its own, then the long ones by turns.
fn planned(link: &ChoiceLink, options: &Options) -> Vec<(ChoiceWork, u32)> {
    let mut all = Vec::new();
    for round in 0..options.looks {
        let mut looks: Vec<u32> = (0..settings().len() as u32).collect();
        Random::new(round.into()).shuffle(&mut looks);
        all.extend(looks.into_iter().map(|setting| (ChoiceWork::Look(setting), round)));
    }
    for number in 0..options.copies(link) {
        let mut pair = vec![ChoiceWork::Chooses, ChoiceWork::Beside];
        if link.asks == LinkQuestion::Equal {
            pair.truncate(1);
        } else if !number.is_multiple_of(2) {
            pair.reverse();
        }
        all.extend(pair.into_iter().map(|work| (work, number)));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::links::LINKS;
    use super::*;

    #[test]
    fn a_study_makes_what_is_missing_and_knows_the_best_setting_after_all_looks() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::small(folder.path().join("choice.jsonl"));
        let link = &LINKS[1];
        let mut runs = ChoiceRuns::open(&options.state).unwrap();
        let mut made = Vec::new();
        while let Some((work, number)) = runs.next(link, &options) {
            let is_look = matches!(work, ChoiceWork::Look(_));
            assert_eq!(runs.best(link, &options).is_none(), is_look, "{work:?}");
            let goodput_bps = if work == ChoiceWork::Look(7) { 9e7 } else { 5e7 };
            let seconds = if is_look { 30 } else { 300 };
            let link = link.name.to_owned();
            runs.add(ChoiceRun { link, seconds, work, number, goodput_bps, kept: None }).unwrap();
            made.push(work);
            // A study that was ended goes on.
            runs = ChoiceRuns::open(&options.state).unwrap();
        }
        use ChoiceWork::{Beside, Chooses};
        assert_eq!((made.len(), &made[24..]), (28, &[Chooses, Beside, Beside, Chooses][..]));
        assert_eq!(runs.best(link, &options), settings().get(7).cloned());
        assert_eq!(runs.next(link, &Options { seconds: 60, ..options }), Some((Chooses, 0)), "another study");
    }

    #[test]
    fn equal_settings_are_compared_with_nothing() {
        let options = Options::small(PathBuf::new());
        let works: Vec<ChoiceWork> = planned(&LINKS[0], &options).into_iter().map(|(work, _)| work).collect();
        assert_eq!((works.len(), works.contains(&ChoiceWork::Beside)), (24 + 4, false));
    }
}
