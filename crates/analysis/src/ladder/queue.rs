//! What is still to be tried, in which order, and what is tried again.

use std::collections::BTreeSet;

use landspeed_record::{Advised, Candidate, Cell};

use super::advice::Hint;

/// How often a rejected candidate is tried again at most.
const MOST_REOPENINGS: usize = 2;
/// Candidates below this rank are what the literature calls decisive.
const DECISIVE: u32 = 100;

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) candidate: Candidate,
    /// A full write path that changes nothing.
    pub(crate) placebo: bool,
    /// Ids of the kept steps that reopened it.
    pub(crate) reopened_by: BTreeSet<String>,
    /// Its place in the order of a verdict that speaks of what stands now, and what was said of it.
    pub(crate) advised: Option<(usize, Advised)>,
}

impl Task {
    pub(crate) fn new(candidate: Candidate, placebo: bool) -> Self {
        Task { candidate, placebo, reopened_by: BTreeSet::new(), advised: None }
    }

    pub(crate) fn reopened(&self) -> bool {
        !self.reopened_by.is_empty()
    }
}

/// Whether the effect of one depends on the other: either names a knob that the other turns.
pub(crate) fn interact(one: &Candidate, other: &Candidate) -> bool {
    let names = |list: &[String], change: &Candidate| list.iter().any(|name| turns(change, name));
    names(&one.interacts, other) || names(&other.interacts, one)
}

/// Whether `candidate` turns the knob `name`, itself or as a prerequisite.
fn turns(candidate: &Candidate, name: &str) -> bool {
    let Cell { a, b, flow } = &candidate.change;
    candidate.knob == name || [a, b, flow].iter().any(|settings| settings.contains_key(name))
}

/// The candidates in waiting and those that were rejected.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Vec<Task>,
    rejected: Vec<Task>,
    /// Knob and value of all that ever waited here and were not taken out again.
    seen: BTreeSet<(String, String)>,
    /// Knob and value that kept steps replaced: a measurement spoke against them.
    replaced: BTreeSet<(String, String)>,
}

fn name(candidate: &Candidate) -> (String, String) {
    (candidate.knob.clone(), candidate.value.clone())
}

impl Queue {
    pub(crate) fn new(candidates: Vec<Candidate>) -> Self {
        let mut queue = Queue::default();
        queue.renew(candidates, &[]);
        queue
    }

    /// What is worth trying has changed with what stands: takes in what is new among `open`, takes over
    /// the changes of those that wait, and takes out those that are now `idle`.
    pub(crate) fn renew(&mut self, open: Vec<Candidate>, idle: &[Candidate]) {
        let idle: BTreeSet<_> = idle.iter().map(name).collect();
        for task in self.waiting.extract_if(.., |task| idle.contains(&name(&task.candidate))) {
            self.seen.remove(&name(&task.candidate));
        }
        for candidate in open {
            let known = self.waiting.iter_mut().find(|task| name(&task.candidate) == name(&candidate));
            match known {
                Some(task) => task.candidate = candidate,
                None if self.seen.insert(name(&candidate)) => self.waiting.push(Task::new(candidate, false)),
                None => {}
            }
        }
        self.sort();
    }

    /// Those that a verdict named first, in its order; then by rank. Equals stay as they came.
    fn sort(&mut self) {
        let place = |task: &Task| task.advised.map_or(usize::MAX, |(place, _)| place);
        self.waiting.sort_by_key(|task| (place(task), task.candidate.rank));
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Candidate> {
        self.waiting.iter().map(|task| &task.candidate)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Brings what a verdict's hints name to the front, in their order, until a step is kept. Of several findings
    /// that name one candidate the first decides its place, and the first with an expected ratio what is said of it.
    pub(crate) fn advise(&mut self, findings: &[Vec<Hint>]) {
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

    /// What waits of a finding's remedies, in order. The gain is expected of the whole cure: where a later change
    /// brings the first one along (segmentation offload its checksums), it goes before that and takes the figure.
    fn named_in(&self, hints: &[Hint]) -> Vec<(usize, Advised)> {
        let mut named: Vec<(usize, Advised)> =
            hints.iter().filter_map(|hint| Some((self.named_by(hint)?, hint.why))).collect();
        let Some(&(first, why)) = named.first() else { return named };
        let wider = |&(at, _): &(usize, Advised)| {
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

    /// The candidate that a hint means: the value that it names, else the knob's first by the table. Where that
    /// one was tried, the knob's other values are worth a place in front only if they are decisive. A value that a
    /// kept step replaced waits for its turn: a measurement knows better than a look.
    fn named_by(&self, hint: &Hint) -> Option<usize> {
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

    /// The next to try: what a verdict named, then lowest rank first. One that is tried again waits until no
    /// decisive candidate that it interacts with is left untried, or its few second chances would be spent too
    /// early; a verdict does not change that, for the step that was measured knows better.
    pub(crate) fn pop(&mut self) -> Option<Task> {
        let at = self.waiting.iter().position(|task| !self.should_wait(task))?;
        Some(self.waiting.remove(at))
    }

    fn should_wait(&self, task: &Task) -> bool {
        let first = |other: &&Task| !other.reopened() && other.candidate.rank < DECISIVE;
        task.reopened()
            && self.waiting.iter().filter(first).any(|other| interact(&task.candidate, &other.candidate))
    }

    pub(crate) fn replace(&mut self, knob: &str, from: &str) {
        self.replaced.insert((knob.to_owned(), from.to_owned()));
    }

    /// Remembers a candidate that was tried and not kept.
    pub(crate) fn reject(&mut self, task: Task) {
        self.rejected.push(Task { advised: None, ..task });
    }

    /// A step was kept: what was rejected and interacts with it is tried again, once for each kept
    /// step and twice in all. Gives back the names of those. What a verdict said of the setting before is
    /// forgotten: the bottleneck may have moved.
    pub(crate) fn reopen(&mut self, kept: &Candidate, id: &str) -> Vec<String> {
        let (reopened, rejected): (Vec<Task>, Vec<Task>) = self
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
