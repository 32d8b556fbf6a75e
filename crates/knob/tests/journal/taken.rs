//! Tests in which another program removes or replaces a journal during a run, or leaves no space for it, and every
//! process is killed shortly after. Afterwards everything is restored, or the journal exists and undo lists what is not
//! restored.
//!
//! `LANDSPEED_TAKEN` is the number of rounds (default 4; `make undo` makes 50).

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::host::{AgentProcess, TestHost, assert_same, can_run, started};
use super::interleavings::RandomSource;
use super::kills::{KILL, guardian_pid, signal, wait_for_end, wait_until_no_journal, wait_until_stopped};

/// What another program does to the state folder, in words and as a function of its path.
type JournalHarm = (&'static str, fn(&Path));

const HARM: [JournalHarm; 4] = [
    ("the state folder is removed", |state| drop(fs::remove_dir_all(state))),
    ("the journal is replaced by an empty file", |state| {
        for journal in journals(state) {
            let _ = fs::remove_file(&journal);
            let _ = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&journal);
        }
    }),
    ("the journal is removed", |state| {
        journals(state).iter().for_each(|journal| drop(fs::remove_file(journal)));
    }),
    ("the disk is full", |state| {
        let filled = fs::File::create(state.join("../fill"));
        let _ = filled.and_then(|mut file| std::io::copy(&mut std::io::repeat(1), &mut file));
    }),
];

fn journals(state: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(state.join("journal")).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// A small disk for the state folder.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn of(host: &TestHost) -> SmallDisk {
        let path = host.state().parent().unwrap().to_owned();
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), c"size=256k,mode=700").unwrap();
        SmallDisk(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Starts more writes than there is time for, and takes the journal away during them.
fn harmed(host: &TestHost, harm: fn(&Path), random: &mut RandomSource) -> Option<(AgentProcess, u32)> {
    let mut agent = host.agent(5000);
    agent.tell("start");
    for n in 0..10 {
        agent.tell(["turn mtu 1200", "turn sack 0", "turn down on", "turn mtu 9000", "turn down off"][n % 5]);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while guardian_pid(host).is_none() {
        assert!(Instant::now() < deadline, "no guardian begins");
        std::thread::sleep(Duration::from_millis(1));
    }
    let guardian = guardian_pid(host)?;
    std::thread::sleep(Duration::from_micros(random.below(150_000) as u64));
    if random.below(2) == 0 {
        // Agent and guardian are stopped, so that neither notices the harm before it dies.
        for pid in [agent.pid(), guardian] {
            signal(pid, rustix::process::Signal::STOP);
        }
        harm(&host.state());
        return Some((agent, guardian));
    }
    harm(&host.state());
    let is_back = || journals(&host.state()).iter().any(|j| fs::metadata(j).is_ok_and(|j| j.len() > 0));
    let ends = Instant::now() + Duration::from_secs(20);
    while !is_back() && Path::new(&format!("/proc/{guardian}")).exists() {
        assert!(Instant::now() < ends, "the journal does not come back");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_micros(random.below(100_000) as u64));
    Some((agent, guardian))
}

#[test]
fn a_journal_that_is_taken_away_before_everything_dies_loses_nothing() {
    if !can_run() {
        return;
    }
    let fresh = || {
        let host = TestHost::new();
        (SmallDisk::of(&host), host)
    };
    let (mut disk, mut host) = fresh();
    let mut before = host.picture();
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let (rounds, seed) = (number("LANDSPEED_TAKEN").unwrap_or(4), u64::from(std::process::id()));
    println!("seed {seed}");
    let mut random = RandomSource(seed);
    for round in 0..rounds {
        let (what, harm) = HARM[round % HARM.len()];
        let Some((agent, guardian)) = harmed(&host, harm, &mut random) else { continue };
        // The agent is stopped first, so that neither has time to restore for the other.
        signal(agent.pid(), rustix::process::Signal::STOP);
        signal(guardian, KILL);
        agent.kill();
        wait_for_end(guardian);
        let _ = fs::remove_file(disk.0.join("fill"));
        let report = host.undo();
        let when = format!("round {round}: {what}: {report:?}");
        if report.clean {
            assert_same(&host.picture(), &before, &when);
            continue;
        }
        // The journal's content is lost, but undo reports that something is missing.
        assert!(!journals(&host.state()).is_empty(), "{when}");
        println!("kept: {when}");
        (disk, host) = fresh();
        before = host.picture();
    }
}

#[test]
fn a_journal_that_goes_in_the_instant_in_which_everything_is_killed_is_brought_back() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    for (what, harm) in &HARM[..3] {
        let mut agent = host.started(60_000);
        for turn in ["mtu 1200", "sack 0", "down on", "mtu 9000"] {
            agent.ask(&format!("turn {turn}")).unwrap();
        }
        let guardian = guardian_pid(&host).unwrap();
        for pid in [agent.pid(), guardian] {
            signal(pid, rustix::process::Signal::STOP);
            wait_until_stopped(pid);
        }
        harm(&host.state());
        signal(guardian, KILL);
        agent.kill();
        wait_for_end(guardian);
        let refused = host.agent(5000).ask("start").unwrap();
        assert!(refused.contains("an earlier run left changes"), "{what}: {refused}");
        harm(&host.state());
        let report = host.undo();
        assert!(report.clean, "{what}: {report:?}");
        let says = |line: &String| line.contains("its second copy has taken its place");
        assert!(report.lines.iter().any(says), "{what}: {report:?}");
        assert_same(&host.picture(), &before, what);
        assert_eq!((host.journals(), host.copies()), (Vec::new(), Vec::new()), "{what}");
        assert_eq!(host.undo().lines, ["nothing to undo"]);
    }
}

#[test]
fn a_run_without_a_place_for_second_copies_continues_and_reports_it_once() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    let mut agent = host.agent_with_run_dir("/proc/nowhere");
    assert_eq!(agent.ask("start").unwrap(), "ok");
    agent.ask("turn mtu 1200");
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("true"), "{restored}");
    assert_eq!(restored.matches("no second copy of the journal was kept").count(), 1, "{restored}");
    assert_same(&host.picture(), &before, "afterwards");
}

#[test]
fn a_run_ends_when_its_journal_is_taken_away_and_everything_is_put_back() {
    for (what, harm) in &HARM[..3] {
        let Some((host, before, mut agent)) = started(60_000) else { return };
        agent.ask("turn mtu 1200");
        agent.ask("turn sack 0");
        harm(&host.state());
        let refused = agent.ask("turn mtu 9000").unwrap();
        assert!(refused.contains("another program removed or changed the journal"), "{what}: {refused}");
        let restored = agent.ask("restore").unwrap();
        assert!(restored.starts_with("true"), "{what}: {restored}");
        assert_same(&host.picture(), &before, what);
        wait_until_no_journal(&host);
    }
}

#[test]
fn an_agent_whose_guardian_dies_beside_a_removed_journal_puts_everything_back() {
    let Some((host, before, mut agent)) = started(60_000) else { return };
    agent.ask("turn mtu 1200");
    let guardian = guardian_pid(&host).unwrap();
    signal(guardian, rustix::process::Signal::STOP);
    fs::remove_dir_all(host.state()).unwrap();
    signal(guardian, KILL);
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("true the guardian died: the agent put everything back"), "{restored}");
    assert_same(&host.picture(), &before, "afterwards");
}
