//! Which test programs run beside which, and in which order.

use parking_lot::{Condvar, Mutex};

use super::TestProgram;

/// Number of test programs that run at the same time.
pub(super) const LANES: usize = 3;
/// The most of these that are not in [`WAITING`], [`DOCUMENTED`] included.
const BUSY: usize = 2;
/// Programs that run beside the first ones, and keep cores busy as they do.
pub(super) const DOCUMENTED: &str = "the documentation's examples";

/// The programs that load congestion controls, as "CRATE TARGET". No two of them run at the same time, because a
/// kernel has one table of controls. They also do not run beside the tests of [`READERS`], which check that the table
/// is unchanged.
const LOADERS: &[&str] =
    &["cli kills", "cli compare", "cli interrupted", "congestion kernel", "agent controls", "cli cc"];
const READERS: &str = "cli ";

/// Programs whose tests mostly wait, for logins, for a cut path or for settings to be put back, and none of which must
/// be done within seconds. Where there are few cores, [`WAIT_TOGETHER`] of their tests still run at the same time.
const WAITING: &[&str] = &["cli copy", "cli groups", "cli stalls"];
const WAIT_TOGETHER: usize = 3;

/// Programs whose tests run one after the other: some of them keep every core busy, and others wait for the product's own
/// time limits.
const ONE_BY_ONE: &[&str] = &["cli path"];

/// The programs that judge what else runs on the machine, measure its maximum, or hold many ends of traffic to time limits.
/// They run alone.
const ALONE: &[&str] = &["cli capacity", "cli explain", "workload conformance"];

/// The programs that take longest, the longest first. They begin before the others, so that no lane waits for one at the end.
const LONGEST: &[&str] = &[
    "cli copy",
    "knob journal",
    "cli tune_lab",
    "cli grid",
    "cli groups",
    "cli real_hosts",
    "report it",
    "engine fake_hosts",
    "mover it",
    "transport conformance",
    "workload it",
    "cli path",
    "simulator response",
    "cli conformance",
    "transport it",
    "cli explain_sizes",
];

/// Returns true if every list names programs of `all`.
pub(super) fn names_programs(all: &[TestProgram]) -> bool {
    let lists = [LOADERS, WAITING, ONE_BY_ONE, ALONE, LONGEST];
    lists.iter().copied().flatten().all(|name| all.iter().any(|program| program.name() == *name))
}

/// Returns the programs that run alone, and the others.
pub(super) fn parted(all: Vec<TestProgram>) -> (Vec<TestProgram>, Vec<TestProgram>) {
    all.into_iter().partition(|program| ALONE.contains(&program.name().as_str()))
}

/// Returns the number of tests of a program that run at the same time; `None` for one on each core.
pub(super) fn threads(name: &str) -> Option<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match name {
        _ if ONE_BY_ONE.contains(&name) => Some(1),
        _ if WAITING.contains(&name) => Some(cores.max(WAIT_TOGETHER)),
        _ => None,
    }
}

/// The test programs that wait for a lane, and those that run.
pub(super) struct TestQueue {
    state: Mutex<QueueState>,
    /// The condition that is notified when a program has ended.
    ended: Condvar,
}

struct QueueState {
    waiting: Vec<TestProgram>,
    /// Names of the programs that run.
    running: Vec<String>,
}

impl TestQueue {
    /// Returns the queue of these programs, while [`DOCUMENTED`] runs.
    pub(super) fn new(mut waiting: Vec<TestProgram>) -> TestQueue {
        waiting.sort_by_key(|program| rank(&program.name()));
        let state = QueueState { waiting, running: vec![DOCUMENTED.to_owned()] };
        TestQueue { state: Mutex::new(state), ended: Condvar::new() }
    }

    /// Waits until a program may run beside the running ones, and removes it from the queue; `None` if no program is
    /// left.
    pub(super) fn take(&self) -> Option<TestProgram> {
        let mut state = self.state.lock();
        loop {
            let QueueState { waiting, running } = &mut *state;
            let names: Vec<String> = waiting.iter().map(TestProgram::name).collect();
            if let Some(next) = next(&names, running) {
                let program = waiting.remove(next);
                running.push(program.name());
                return Some(program);
            }
            if waiting.is_empty() {
                return None;
            }
            self.ended.wait(&mut state);
        }
    }

    /// Lets other programs run after one has ended.
    pub(super) fn end(&self, name: &str) {
        self.state.lock().running.retain(|running| running != name);
        self.ended.notify_all();
    }
}

/// Returns the place of a program in the order. Those that may not run beside others come first, so that no lane waits at
/// the end.
fn rank(name: &str) -> (bool, usize) {
    let place = LONGEST.iter().position(|long| *long == name).unwrap_or(LONGEST.len());
    (!LOADERS.contains(&name), place)
}

/// Returns the number of the program that runs next; `None` if none may run now. A loader comes first. Of programs that wait,
/// there is one among the running ones as long as there are others too.
fn next(waiting: &[String], running: &[String]) -> Option<usize> {
    let is_one_waiting = running.iter().any(|name| waits(name));
    let is_due = |name: &String| LOADERS.contains(&name.as_str()) || waits(name) != is_one_waiting;
    let is_wanted = |name: &String| is_due(name) && may_run(name, running);
    waiting.iter().position(is_wanted).or_else(|| waiting.iter().position(|name| may_run(name, running)))
}

fn waits(name: &str) -> bool {
    WAITING.contains(&name)
}

fn may_run(name: &str, running: &[String]) -> bool {
    let has_core = waits(name) || running.iter().filter(|other| !waits(other)).count() < BUSY;
    has_core && running.iter().all(|other| suit(name, other))
}

/// Returns true if two programs may run at the same time.
fn suit(one: &str, other: &str) -> bool {
    let touches = |name: &str| LOADERS.contains(&name) || name.starts_with(READERS);
    let collide = |one: &str, other: &str| LOADERS.contains(&one) && touches(other);
    !collide(one, other) && !collide(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn nothing_compares_the_table_of_controls_while_it_changes() {
        assert!(suit("cli life", "cli records") && suit("cli cc", "stats power"));
        assert!(!suit("cli cc", "cli life") && !suit("cli life", "cli cc"));
        assert!(!suit("congestion kernel", "agent controls"));
    }

    #[test]
    fn tests_that_wait_wait_together() {
        assert!(threads("cli copy") >= Some(WAIT_TOGETHER));
        assert_eq!([threads("cli path"), threads("stats power")], [Some(1), None]);
    }

    #[test]
    fn a_program_that_waits_runs_beside_two_that_do_not() {
        let waiting = names(&["cli copy", "cli groups", "cli grid", "cli tune_lab"]);
        let next = |running: &[&str]| next(&waiting, &names(running)).map(|number| waiting[number].as_str());
        assert_eq!(next(&[]), Some("cli copy"));
        assert_eq!(next(&["cli stalls"]), Some("cli grid"));
        assert_eq!(next(&["report it", "workload it"]), Some("cli copy"));
        // No third one that keeps cores busy; a second one that waits may be beside the first.
        assert_eq!(next(&["report it", "workload it", "cli stalls"]), Some("cli copy"));
        assert_eq!(next(&[DOCUMENTED, "report it", "cli stalls"]), Some("cli copy"));
        assert_eq!(next(&["cli cc"]), None);
    }

    #[test]
    fn what_loads_controls_is_not_kept_waiting() {
        let waiting = names(&["cli compare", "cli kills", "cli copy", "knob journal", "report it"]);
        assert_eq!(next(&waiting, &[]), Some(0));
        assert_eq!(next(&waiting[1..], &names(&["cli compare"])), Some(2));
        assert_eq!(next(&waiting[1..], &names(&["report it"])), Some(0));
    }

    #[test]
    fn what_takes_longest_begins_first_after_what_loads_controls() {
        let mut order = ["stats power", "cli grid", "cli copy", "cli cc"];
        order.sort_by_key(|name| rank(name));
        assert_eq!(order, ["cli cc", "cli copy", "cli grid", "stats power"]);
    }
}
