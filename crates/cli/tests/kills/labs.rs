//! Tests labs whose owner dies: their keeper removes them. If it dies too, `undo`, the next lab and `lab down` do,
//! and touch no other lab.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;

use crate::support::ours::{RunningProcess, TestHome, freeze, processes, signal, within};
use crate::support::{bpf, controls_in_kernel, loads_controls, needs_root, text};
use crate::{CONTROLS, seed, total_kills};

/// Commands that create a lab and stay busy in it until they are killed. The last one loads congestion controls.
const RUNS: [&[&str]; 6] = [
    &["measure", "stream", "-t", "60s"],
    &["explain", "-t", "60s", "--no-limits"],
    &["tune", "--budget", "5m"],
    &["measure", "pingpong", "lab:wan:rate=20M,rtt=10ms", "-t", "60s"],
    &["lab", "faults", "tiny-writes", "slow-writer"],
    &["compare", "lab:wan:rate=20M,rtt=10ms,queue=2bdp", "-p", "htcp", "--repeats", "9"],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillScope {
    Owner,
    AllButKeeper,
    OwnerAndKeeper,
    Everything,
}

use KillScope::{AllButKeeper, Everything, Owner, OwnerAndKeeper};

impl KillScope {
    fn takes(self, one: &RunningProcess, owner: u32) -> bool {
        let is_keeper = one.line.ends_with("landspeed keeper");
        let is_owner = one.pid == owner as i32;
        match self {
            Owner => is_owner,
            AllButKeeper => !is_keeper,
            OwnerAndKeeper => is_owner || is_keeper,
            Everything => true,
        }
    }
}

/// The processes that are killed, in turn. Every second kill ends everything.
const DEATHS: [KillScope; 6] = [Everything, Owner, Everything, AllButKeeper, Everything, OwnerAndKeeper];

/// The command that removes the lab if no keeper survives.
#[derive(Debug, Clone, Copy)]
enum CleanupCommand {
    Undo,
    NextLab,
    LabDown,
}

const CLEANERS: [CleanupCommand; 3] =
    [CleanupCommand::Undo, CleanupCommand::NextLab, CleanupCommand::LabDown];

#[test]
fn every_lab_is_taken_down_whatever_dies() {
    needs_root!();
    let runs = if loads_controls() { &RUNS[..] } else { &RUNS[..RUNS.len() - 1] };
    let mut random = StdRng::seed_from_u64(seed());
    let place = TestHome::new();
    let bystander = BystanderLab::new(&place);
    let before = bpf::unheld();
    let first: usize = random.random_range(0..runs.len());
    let (mut aimed, mut met) = (0, 0);
    for kill in 0..total_kills() as usize {
        // Deaths and runs have the same number, so each further round shifts them against each other.
        let run = runs[(first + kill + kill / runs.len()) % runs.len()];
        let death = DEATHS[kill % DEATHS.len()];
        let cleaner = CLEANERS[(kill / 2 + kill / DEATHS.len()) % CLEANERS.len()];
        // Some kills occur while the lab is being created.
        let while_lab = random.random_bool(0.8);
        let after = Duration::from_millis(random.random_range(0..if while_lab { 2500 } else { 250 }));
        let case = format!("{run:?}: {death:?}, then {cleaner:?}, {after:?} after (lab: {while_lab})");
        println!("{case}");
        let loads = run[0] == "compare";
        let _alone = loads.then(|| CONTROLS.write());
        let owner = start(&place, run, while_lab);
        std::thread::sleep(after);
        let ids = kill_now(&place, owner, death, &bystander.processes);
        aimed += usize::from(while_lab);
        met += usize::from(while_lab && !ids.is_empty());
        clean(&place, death, cleaner, &ids);
        // A surviving keeper may still be removing the lab. The other cleanup commands have finished.
        within(Duration::from_secs(60), || place.left(&ids, &bystander.processes).is_empty());
        let left = place.left(&ids, &bystander.processes);
        assert!(left.is_empty(), "{case} left:\n{}", left.join("\n"));
        let unloaded = || !controls_in_kernel().contains(&"ls_htcp".to_owned());
        assert!(!loads || within(Duration::from_secs(60), unloaded), "{case} left a control loaded");
        bystander.check();
    }
    // A slow machine has no lab yet at the kills that do not wait for one, which are a fifth by chance.
    assert!(met * 2 >= aimed, "most kills met no lab: this test tests nothing");
    bystander.end();
    let left = bpf::left(&before);
    assert!(left.is_empty(), "BPF objects that nothing holds are left: {left:?}");
}

/// A journal gets its name once its first lines are on disk. Until then it is a draft, which a kill can leave behind.
#[test]
fn a_draft_of_a_journal_goes_with_its_lab() {
    needs_root!();
    let place = TestHome::new();
    let folder = place.path().join("state/journal");
    let journals = || -> Vec<_> {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect()
    };
    let owner = start(&place, &["tune", "--yes", "--budget", "5m"], true);
    assert!(within(Duration::from_secs(60), || journals().len() == 2), "no journal: {:?}", journals());
    let ids = kill_now(&place, owner, Everything, &[]);
    for journal in journals() {
        std::fs::rename(&journal, journal.with_extension("jsonl.new")).expect("it is a draft");
    }
    clean(&place, Everything, CleanupCommand::NextLab, &ids);
}

fn start(place: &TestHome, run: &[&str], await_lab: bool) -> Child {
    let log = std::fs::File::create(place.path().join("run.log")).expect("a log");
    let mut command = place.landspeed(run);
    let owner = command.stdout(Stdio::null()).stderr(log).spawn().expect("landspeed starts");
    let has_lab = || !place.labs_of(owner.id()).is_empty();
    if await_lab {
        let log = || std::fs::read_to_string(place.path().join("run.log")).unwrap_or_default();
        assert!(within(Duration::from_secs(60), has_lab), "{run:?} makes no lab: {}", log());
    }
    owner
}

/// Kills the victims as if at one moment, and returns the labs that existed then.
fn kill_now(
    place: &TestHome,
    mut owner: Child,
    death: KillScope,
    others: &[RunningProcess],
) -> BTreeSet<String> {
    let dies = |one: &RunningProcess| !others.contains(one) && death.takes(one, owner.id());
    let victims = freeze(place.path(), dies);
    let ids = place.labs_of(owner.id());
    victims.iter().for_each(|one| signal(one.pid, Signal::KILL));
    owner.wait().expect("it was killed");
    ids
}

fn clean(place: &TestHome, death: KillScope, cleaner: CleanupCommand, ids: &BTreeSet<String>) {
    if matches!(death, Owner | AllButKeeper) {
        return;
    }
    let args: &[&str] = match cleaner {
        CleanupCommand::Undo => &["undo"],
        CleanupCommand::NextLab => &["measure", "connect", "-t", "100ms"],
        CleanupCommand::LabDown => &["lab", "down"],
    };
    let done = place.landspeed(args).output().expect("landspeed runs");
    assert!(done.status.success(), "{args:?}: {:?}", text(&done));
    // Processes do not count: an agent may still be exiting after its controller's death, and so may a cleaner's own
    // keeper.
    let left: Vec<String> = place.left(ids, &processes(place.path()));
    if death == Everything {
        assert!(left.is_empty(), "{args:?} left:\n{}\n{:?}", left.join("\n"), text(&done));
    }
}

/// A lab in the same place whose owner survives all kills and is ended by Ctrl-C.
struct BystanderLab {
    owner: Child,
    ids: BTreeSet<String>,
    processes: Vec<RunningProcess>,
    namespaces: Vec<String>,
}

impl BystanderLab {
    fn new(place: &TestHome) -> BystanderLab {
        let mut command = place.landspeed(&["lab", "faults", "slow-reader"]);
        let mut owner = command.stdout(Stdio::piped()).spawn().expect("landspeed starts");
        let said = BufReader::new(owner.stdout.take().expect("a pipe"));
        let is_up = said.lines().map_while(Result::ok).any(|line| line.contains("Ctrl-C ends it"));
        assert!(is_up, "the bystander's lab is not up");
        let ids = place.labs_of(owner.id());
        let namespaces: Vec<String> = ["a", "b"]
            .iter()
            .flat_map(|host| ids.iter().map(move |id| format!("/run/netns/ls-{id}-{host}")))
            .collect();
        let bystander = BystanderLab { owner, ids, processes: processes(place.path()), namespaces };
        bystander.check();
        bystander
    }

    fn check(&self) {
        assert_eq!(self.ids.len(), 1);
        for path in &self.namespaces {
            assert!(std::fs::exists(path).is_ok_and(|there| there), "{path} of a living owner is gone");
        }
        let gone: Vec<&RunningProcess> = self
            .processes
            .iter()
            .filter(|one| !std::fs::exists(format!("/proc/{}", one.pid)).unwrap())
            .collect();
        assert!(gone.is_empty(), "processes of a living owner's lab ended: {gone:?}");
    }

    fn end(mut self) {
        signal(self.owner.id() as i32, Signal::INT);
        let status = self.owner.wait().expect("it ends");
        assert!(status.success(), "{status}");
        let left: Vec<&String> =
            self.namespaces.iter().filter(|path| std::fs::exists(path).unwrap()).collect();
        assert!(left.is_empty(), "Ctrl-C left {left:?}");
    }
}
