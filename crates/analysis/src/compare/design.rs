//! The designer of a study. It makes one repeat after the other, each with the contests in a random order of its own,
//! so that drifts of a shared machine affect all contests alike.

use std::collections::{HashSet, VecDeque};

use landspeed_record::units::Nanos;
use landspeed_record::{GridEndReason, Line, Study, StudyRunKey};
use landspeed_stats::Random;

use crate::Designer;

/// Returns every run of a study in the order in which they are made.
pub fn study_order(study: &Study) -> Vec<StudyRunKey> {
    (0..study.repeats).flat_map(|repeat| shuffled(study, repeat)).collect()
}

fn shuffled(study: &Study, repeat: u32) -> Vec<StudyRunKey> {
    let key = |contest: &landspeed_record::Contest| StudyRunKey { contest: contest.name.clone(), repeat };
    let mut runs: Vec<StudyRunKey> = study.contests.iter().map(key).collect();
    Random::stream(study.seed, u64::from(repeat)).shuffle(&mut runs);
    runs
}

/// The runs of a study that are still to come.
#[derive(Debug)]
pub struct StudyDesigner(VecDeque<StudyRunKey>);

impl StudyDesigner {
    /// Returns a designer for a study whose runs `done` were made already.
    pub fn new(study: &Study, done: &HashSet<StudyRunKey>) -> Self {
        StudyDesigner(study_order(study).into_iter().filter(|run| !done.contains(run)).collect())
    }
}

impl Designer for StudyDesigner {
    type Trial = StudyRunKey;

    fn next(&mut self, _: Nanos) -> Result<StudyRunKey, GridEndReason> {
        self.0.pop_front().ok_or(GridEndReason::Blocks)
    }

    fn take(&mut self, _: &Line) {}
}

#[cfg(test)]
mod tests {
    use landspeed_record::Contest;

    use super::*;

    #[test]
    fn each_repeat_holds_every_contest_in_an_order_of_its_own() {
        let names = ["bbr", "bic", "cubic", "htcp", "reno"];
        let contests = names.map(|name| Contest { name: name.into(), ..Contest::default() });
        let study = Study { contests: contests.to_vec(), repeats: 4, seed: 3, ..Study::paper() };
        let order = study_order(&study);
        assert_eq!(order.len(), 20);
        for (repeat, runs) in (0..).zip(order.chunks(5)) {
            let mut contests: Vec<_> = runs.iter().map(|run| run.contest.as_str()).collect();
            assert!(runs.iter().all(|run| run.repeat == repeat));
            contests.sort_unstable();
            assert_eq!(contests, names);
        }
        let of = |n: usize| order[n * 5..][..5].iter().map(|run| run.contest.clone()).collect::<Vec<_>>();
        assert!(of(0) != of(1) || of(1) != of(2));
        assert_eq!(order, study_order(&study), "drawn from the seed");
    }
}
