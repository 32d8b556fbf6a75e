//! The queue of candidates: what is still to be tried, in which order, and what is tried again.

use std::collections::BTreeSet;

use landspeed_record::{Candidate, Cell, StepPrediction};

use super::advice::KnobHint;

/// The largest number of times that a rejected candidate is tried again.
const MOST_REOPENINGS: usize = 2;
/// The rank below which candidates are decisive according to the literature.
const DECISIVE: u32 = 100;

#[derive(Debug, Clone)]
pub(crate) struct CandidateTask {
    pub(crate) candidate: Candidate,
    /// True for a placebo, which goes through the full write path and changes nothing.
    pub(crate) placebo: bool,
    /// The ids of the kept steps that reopened the candidate.
    pub(crate) reopened_by: BTreeSet<String>,
    /// The candidate's place in the order of the verdict on the current setting, and the advice itself; `None` if the
    /// verdict does not name it.
    pub(crate) advised: Option<(usize, StepPrediction)>,
}

impl CandidateTask {
    pub(crate) fn new(candidate: Candidate, placebo: bool) -> Self {
        CandidateTask { candidate, placebo, reopened_by: BTreeSet::new(), advised: None }
    }

    pub(crate) fn reopened(&self) -> bool {
        !self.reopened_by.is_empty()
    }
}

/// Returns true if the effects of two candidates depend on each other, that is, if either lists a knob that the other
/// changes.
pub(crate) fn interact(one: &Candidate, other: &Candidate) -> bool {
    let names = |list: &[String], change: &Candidate| list.iter().any(|name| turns(change, name));
    names(&one.interacts, other) || names(&other.interacts, one)
}

/// Returns true if `candidate` changes the knob `name`, itself or as a prerequisite.
fn turns(candidate: &Candidate, name: &str) -> bool {
    let Cell { a, b, flow } = &candidate.change;
    candidate.knob == name || [a, b, flow].iter().any(|settings| settings.contains_key(name))
}

/// The candidates that wait and those that were rejected.
#[derive(Debug, Default)]
pub(crate) struct CandidateQueue {
    waiting: Vec<CandidateTask>,
    rejected: Vec<CandidateTask>,
    /// Knob and value of each candidate that ever waited in the queue and was not removed as idle.
    seen: BTreeSet<(String, String)>,
    /// Knob and former value of each kept step. A verdict cannot bring such a value back, because the step's
    /// measurement is better evidence.
    replaced: BTreeSet<(String, String)>,
}

fn name(candidate: &Candidate) -> (String, String) {
    (candidate.knob.clone(), candidate.value.clone())
}

impl CandidateQueue {
    pub(crate) fn new(candidates: Vec<Candidate>) -> Self {
        let mut queue = CandidateQueue::default();
        queue.renew(candidates, &[]);
        queue
    }

    /// Updates the queue for a changed setting: adds the candidates of `open` that are new, replaces those that wait by
    /// their version in `open`, and removes those that are in `idle`.
    pub(crate) fn renew(&mut self, open: Vec<Candidate>, idle: &[Candidate]) {
        let idle: BTreeSet<_> = idle.iter().map(name).collect();
        for task in self.waiting.extract_if(.., |task| idle.contains(&name(&task.candidate))) {
            self.seen.remove(&name(&task.candidate));
        }
        for candidate in open {
            let known = self.waiting.iter_mut().find(|task| name(&task.candidate) == name(&candidate));
            match known {
                Some(task) => task.candidate = candidate,
                None if self.seen.insert(name(&candidate)) => {
                    self.waiting.push(CandidateTask::new(candidate, false));
                }
                None => {}
            }
        }
        self.sort();
    }

    /// Sorts by the verdict's order, then by rank. Equals keep their order.
    fn sort(&mut self) {
        let place = |task: &CandidateTask| task.advised.map_or(usize::MAX, |(place, _)| place);
        self.waiting.sort_by_key(|task| (place(task), task.candidate.rank));
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Candidate> {
        self.waiting.iter().map(|task| &task.candidate)
    }

    /// Removes the candidates that the verdict on the current setting did not name. Returns those of them that were
    /// never tried.
    pub(crate) fn take_unadvised(&mut self) -> Vec<CandidateTask> {
        let taken = self.waiting.extract_if(.., |task| task.advised.is_none());
        taken.filter(|task| !task.reopened()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Moves the candidates that a verdict's hints name to the front, in their order, until a step is kept. If several
    /// hints name one candidate, the first hint decides its place, and the first hint with an expected ratio is
    /// recorded as its advice.
    pub(crate) fn advise(&mut self, findings: &[Vec<KnobHint>]) {
        self.forget_advice();
        let named: Vec<_> = findings.iter().flat_map(|hints| self.named_in(hints)).collect();
        for (place, (at, why)) in named.into_iter().enumerate() {
            let (_, said) = self.waiting[at].advised.get_or_insert((place, why));
            if said.expected_ratio.is_none() && why.expected_ratio.is_some() {
                *said = why;
            }
        }
        self.sort();
    }

    /// Returns the indices of the waiting candidates that a finding's remedies name, in order, with their predictions.
    /// If the change of a later candidate includes the change of the first candidate (segmentation offload includes its
    /// checksums), the later candidate comes first and takes over the expected ratio, because the gain is expected of
    /// the complete change.
    fn named_in(&self, hints: &[KnobHint]) -> Vec<(usize, StepPrediction)> {
        let mut named: Vec<(usize, StepPrediction)> =
            hints.iter().filter_map(|hint| Some((self.named_by(hint)?, hint.why))).collect();
        let Some(&(first, why)) = named.first() else { return named };
        let wider = |&(at, _): &(usize, StepPrediction)| {
            let (narrow, wide) = (&self.waiting[first].candidate.change, &self.waiting[at].candidate.change);
            narrow != wide && wide.with(narrow) == *wide
        };
        if let Some(at) = named.iter().position(wider) {
            named[..=at].rotate_right(1);
            let replaced = named[0].1.expected_ratio;
            named[0].1.expected_ratio = why.expected_ratio.or(replaced);
            named[1].1.expected_ratio = None;
        }
        named
    }

    /// Returns the index of the waiting candidate for a hint: the one with the hint's value or, if the hint has none,
    /// the knob's candidate of the lowest rank. If a value of the knob was tried before, the candidate of the lowest
    /// rank is returned only if it is decisive. A value that a kept step replaced is not returned, because a
    /// measurement is better evidence than a verdict.
    fn named_by(&self, hint: &KnobHint) -> Option<usize> {
        let waiting = || self.waiting.iter().enumerate();
        if !hint.value.is_empty() {
            let named = (hint.knob.clone(), hint.value.clone());
            if self.replaced.contains(&named) {
                return None;
            }
            return waiting().find(|(_, task)| name(&task.candidate) == named).map(|(at, _)| at);
        }
        let of_knob = || waiting().filter(|(_, task)| task.candidate.knob == hint.knob);
        let known = self.seen.iter().filter(|(knob, _)| *knob == hint.knob).count();
        let untried = of_knob().filter(|(_, task)| !task.reopened()).count();
        let (at, first) = of_knob().min_by_key(|(_, task)| task.candidate.rank)?;
        (known == untried || first.candidate.rank < DECISIVE).then_some(at)
    }

    fn forget_advice(&mut self) {
        for task in &mut self.waiting {
            task.advised = None;
        }
    }

    pub(crate) fn knows(&self, candidate: &Candidate) -> bool {
        self.seen.contains(&name(candidate))
    }

    /// Returns the next candidate to try: first those that a verdict named, then by ascending rank. A reopened
    /// candidate waits while a decisive candidate that it interacts with is untried, so that its few second chances
    /// are not spent too early. A verdict does not change that, because a measured step is better evidence.
    pub(crate) fn pop(&mut self) -> Option<CandidateTask> {
        let at = self.waiting.iter().position(|task| !self.should_wait(task))?;
        Some(self.waiting.remove(at))
    }

    fn should_wait(&self, task: &CandidateTask) -> bool {
        let first = |other: &&CandidateTask| !other.reopened() && other.candidate.rank < DECISIVE;
        task.reopened()
            && self.waiting.iter().filter(first).any(|other| interact(&task.candidate, &other.candidate))
    }

    pub(crate) fn replace(&mut self, knob: &str, from: &str) {
        self.replaced.insert((knob.to_owned(), from.to_owned()));
    }

    /// Remembers a candidate that was tried and not kept.
    pub(crate) fn reject(&mut self, task: CandidateTask) {
        self.rejected.push(CandidateTask { advised: None, ..task });
    }

    /// Reopens the rejected candidates that interact with a kept step: once for each kept step, and at most twice in
    /// all. Returns their names. Removes the verdict's advice, because it was about the former setting and the
    /// bottleneck may have moved.
    pub(crate) fn reopen(&mut self, kept: &Candidate, id: &str) -> Vec<String> {
        let (reopened, rejected): (Vec<CandidateTask>, Vec<CandidateTask>) = self
            .rejected
            .drain(..)
            .partition(|t| t.reopened_by.len() < MOST_REOPENINGS && interact(&t.candidate, kept));
        self.rejected = rejected;
        let names = reopened.iter().map(|t| format!("{}={}", t.candidate.knob, t.candidate.value)).collect();
        self.waiting.extend(reopened.into_iter().map(|mut task| {
            task.reopened_by.insert(id.to_owned());
            task
        }));
        self.forget_advice();
        self.sort();
        names
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
