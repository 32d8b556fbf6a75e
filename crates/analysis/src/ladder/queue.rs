//! What is still to be tried, in which order, and what is tried again.

use std::collections::BTreeSet;

use landspeed_record::{Candidate, Cell};

/// How often a rejected candidate is tried again at most.
const MOST_REOPENINGS: usize = 2;
/// Candidates below this rank are what the literature calls decisive.
const DECISIVE: u32 = 100;

/// A candidate with its history.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) candidate: Candidate,
    /// A full write path that changes nothing.
    pub(crate) placebo: bool,
    /// Ids of the kept steps that reopened it.
    pub(crate) reopened_by: BTreeSet<String>,
}

impl Task {
    pub(crate) fn new(candidate: Candidate, placebo: bool) -> Self {
        Task { candidate, placebo, reopened_by: BTreeSet::new() }
    }

    /// Whether it was tried before.
    pub(crate) fn reopened(&self) -> bool {
        !self.reopened_by.is_empty()
    }

    /// Whether the effect of one depends on the other: either names a knob that the other turns.
    pub(crate) fn interacts(&self, other: &Candidate) -> bool {
        let names = |list: &[String], change: &Candidate| list.iter().any(|name| turns(change, name));
        names(&self.candidate.interacts, other) || names(&other.interacts, &self.candidate)
    }
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
        self.waiting.sort_by_key(|task| task.candidate.rank);
    }

    /// Whether this one waits, or was tried.
    pub(crate) fn knows(&self, candidate: &Candidate) -> bool {
        self.seen.contains(&name(candidate))
    }

    /// The next to try: lowest rank first. One that is tried again waits until no decisive candidate
    /// that it interacts with is left untried, or its few second chances would be spent too early.
    pub(crate) fn pop(&mut self) -> Option<Task> {
        let at = self.waiting.iter().position(|task| !self.should_wait(task))?;
        Some(self.waiting.remove(at))
    }

    fn should_wait(&self, task: &Task) -> bool {
        let first = |other: &&Task| !other.reopened() && other.candidate.rank < DECISIVE;
        task.reopened() && self.waiting.iter().filter(first).any(|other| task.interacts(&other.candidate))
    }

    /// Remembers a candidate that was tried and not kept.
    pub(crate) fn reject(&mut self, task: Task) {
        self.rejected.push(task);
    }

    /// A step was kept: what was rejected and interacts with it is tried again, once for each kept
    /// step and twice in all. Gives back the names of those.
    pub(crate) fn reopen(&mut self, kept: &Candidate, id: &str) -> Vec<String> {
        let (reopened, rejected): (Vec<Task>, Vec<Task>) =
            self.rejected.drain(..).partition(|t| t.reopened_by.len() < MOST_REOPENINGS && t.interacts(kept));
        self.rejected = rejected;
        let names = reopened.iter().map(|t| format!("{}={}", t.candidate.knob, t.candidate.value)).collect();
        self.waiting.extend(reopened.into_iter().map(|mut task| {
            task.reopened_by.insert(id.to_owned());
            task
        }));
        self.waiting.sort_by_key(|task| task.candidate.rank);
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(knob: &str, rank: u32, interacts: &[&str]) -> Candidate {
        let interacts = interacts.iter().map(|s| (*s).to_owned()).collect();
        Candidate { knob: knob.into(), rank, interacts, ..Candidate::default() }
    }

    #[test]
    fn lowest_rank_first_and_ties_in_the_order_given() {
        let mut queue =
            Queue::new(vec![candidate("c", 5, &[]), candidate("a", 1, &[]), candidate("b", 1, &[])]);
        let order: Vec<String> = std::iter::from_fn(|| queue.pop()).map(|t| t.candidate.knob).collect();
        assert_eq!(order, ["a", "b", "c"]);
    }

    #[test]
    fn what_stands_decides_what_is_worth_trying() {
        let mut queue = Queue::new(vec![candidate("tso", 1, &[]), candidate("mtu", 2, &[])]);
        queue.pop().unwrap();
        let bigger = candidate("gso-max-size", 3, &[]);
        // With TSO kept, larger packets come to matter and the MTU ceases to; TSO is not tried again.
        queue.renew(vec![candidate("tso", 1, &[]), bigger.clone()], &[candidate("mtu", 2, &[])]);
        assert_eq!(queue.pop().unwrap().candidate, bigger);
        assert!(queue.pop().is_none());
        queue.renew(vec![candidate("mtu", 2, &[])], &[]);
        assert_eq!(queue.pop().unwrap().candidate.knob, "mtu", "it was never tried");
    }

    #[test]
    fn reopened_twice_at_most_and_after_the_decisive() {
        let window = candidate("window", 1, &["tso", "mtu", "csum"]);
        let mut queue = Queue::new(vec![window, candidate("tso", 50, &[])]);
        let first = queue.pop().unwrap();
        queue.reject(first);
        assert_eq!(queue.reopen(&candidate("mtu", 2, &[]), "1").len(), 1);
        assert_eq!(queue.pop().unwrap().candidate.knob, "tso", "windows wait for it");
        let again = queue.pop().unwrap();
        assert!(again.reopened());
        queue.reject(again);
        assert_eq!(queue.reopen(&candidate("rings", 3, &[]), "2").len(), 0, "no interaction");
        assert_eq!(queue.reopen(&candidate("csum", 3, &[]), "3").len(), 1);
        let last = queue.pop().unwrap();
        queue.reject(last);
        assert_eq!(queue.reopen(&candidate("tso", 3, &[]), "4").len(), 0, "twice in all");
    }
}
