//! Tests of deaths: of the agent, of its guardian, of both, and of leases that end.

use std::path::Path;
use std::time::{Duration, Instant};

use super::host::{TestHost, assert_same, started};
use super::interleavings::RandomSource;

/// Returns the guardian's process id, from the journal's header.
pub(crate) fn guardian_pid(host: &TestHost) -> Option<u32> {
    let text = std::fs::read_to_string(host.journals().first()?).ok()?;
    let header: serde_json::Value = serde_json::from_str(text.lines().next()?).ok()?;
    header["guardian"]["pid"].as_u64()?.try_into().ok()
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    // The process may be dead already.
    let _ = rustix::process::kill_process(pid, signal);
}

/// Waits until a killed process has ended. Until then it may hold the lock of a journal, if it dies in a sync.
pub(crate) fn wait_for_end(pid: u32) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < deadline, "{pid} does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) const KILL: rustix::process::Signal = rustix::process::Signal::KILL;

/// Waits until the host has no journal, because guardian or agent has restored. The time limit is enough for a slow
/// machine.
pub(crate) fn wait_until_no_journal(host: &TestHost) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !host.journals().is_empty() {
        assert!(Instant::now() < deadline, "{:?} is still there", host.journals());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until every thread of a process is stopped, because a signal takes time to reach them all.
pub(crate) fn wait_until_stopped(pid: u32) {
    let stopped = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat"));
        stat.is_ok_and(|s| s.contains(") T "))
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while !std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().all(|task| stopped(task.unwrap())) {
        assert!(Instant::now() < deadline, "{pid} does not stop");
    }
}

/// Returns the session of a process: 0 if the session's leader is outside this PID namespace, as in a container.
/// `getsid` of rustix does not accept 0 as an answer.
fn session_of(pid: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    // State, parent, process group, session: proc_pid_stat(5).
    after_name.split(' ').nth(3).unwrap().parse().unwrap()
}

#[test]
fn the_guardian_ignores_signals_that_end_sessions() {
    use rustix::process::Signal;
    let Some((host, before, mut agent)) = started(60_000) else { return };
    agent.ask("turn mtu 9000");
    let guardian = guardian_pid(&host).unwrap();
    for ending in [Signal::HUP, Signal::INT, Signal::TERM, Signal::QUIT, Signal::PIPE] {
        signal(guardian, ending);
    }
    assert_ne!(session_of(guardian), session_of(agent.pid()));
    let state = host.state();
    // The guardian holds no descriptor of its agent. Its own are the socket to the agent, one for messages about
    // devices, one for notifications about files, journal and folder twice, the journal's copy, locks, and a pidfd.
    for fd in std::fs::read_dir(format!("/proc/{guardian}/fd")).unwrap() {
        let target = std::fs::read_link(fd.unwrap().path()).unwrap();
        let own = [
            "/dev/null",
            "socket:",
            "anon_inode:",
            "pidfd:",
            "net:",
            "/run/landspeed/journal",
            state.to_str().unwrap(),
        ];
        assert!(own.iter().any(|own| target.to_string_lossy().starts_with(own)), "{target:?}");
    }
    let open = std::fs::read_dir(format!("/proc/{guardian}/fd")).unwrap().count();
    assert!(open <= 13, "{open} descriptors");
    assert_eq!(agent.ask("turn mtu 1500").unwrap(), "9000 -> 1500");
    agent.kill();
    host.comes_back(&before);
}

#[test]
fn the_agent_restores_for_a_killed_guardian_and_turns_no_more() {
    // No lease ends here before the guardian dies, however slow the machine is.
    let Some((host, before, mut agent)) = started(60_000) else { return };
    agent.ask("turn rmem 4096 65536 65536");
    agent.ask("turn mtu 1200");
    signal(guardian_pid(&host).unwrap(), KILL);
    host.comes_back(&before);
    let refused = agent.ask("turn mtu 9000").unwrap();
    assert!(refused.contains("the guardian died"), "{refused}");
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("true the guardian died: the agent put everything back"), "{restored}");
    assert_same(&host.picture(), &before, "afterwards");
}

#[test]
fn undo_restores_when_both_are_dead() {
    let Some((host, before, mut agent)) = started(60_000) else { return };
    agent.ask("turn mtu 1200");
    agent.ask("turn sack 0");
    // The agent must not have time to restore for its guardian.
    agent.kill_with_guardian(&host);
    assert_ne!(host.picture(), before);
    let mut second = host.agent(5000);
    let refused = second.ask("start").unwrap();
    assert!(refused.contains("run `landspeed undo`"), "{refused}");

    let report = host.undo();
    assert!(report.clean, "{report:?}");
    assert!(report.lines.contains(&"mtu of v0: 1200 -> 3000".to_owned()), "{report:?}");
    assert_same(&host.picture(), &before, "afterwards");
    assert!(host.journals().is_empty());
    let again = host.undo();
    assert_eq!((again.clean, again.lines), (true, vec!["nothing to undo".to_owned()]));
    assert_eq!(second.ask("start").unwrap(), "ok");
}

#[test]
fn a_lease_that_ends_puts_everything_back_while_the_agent_lives() {
    let Some((host, before, mut agent)) = started(60_000) else { return };
    agent.ask("turn mtu 9000");
    agent.ask("short 200");
    agent.ask("turn rmem 4096 65536 65536");
    host.comes_back(&before);
    let refused = agent.ask("turn mtu 9000").unwrap();
    assert!(refused.contains("stopped answering"), "{refused}");
    assert_same(&host.picture(), &before, "afterwards");
    assert!(agent.ask("restore").unwrap().starts_with("true"));
}

#[test]
fn a_stopped_agent_cannot_write_after_its_lease() {
    let Some((host, before, mut agent)) = started(1000) else { return };
    agent.ask("turn mtu 9000");
    agent.ask("beat");
    signal(agent.pid(), rustix::process::Signal::STOP);
    wait_until_stopped(agent.pid());
    agent.tell("turn mtu 8000");
    wait_until_no_journal(&host);
    signal(agent.pid(), rustix::process::Signal::CONT);
    let refused = agent.ask("lost").unwrap();
    assert!(!refused.contains(" -> "), "{refused}");
    assert_same(&host.picture(), &before, "afterwards");
}

#[test]
fn an_agent_that_hangs_in_a_write_is_killed_and_its_half_written_value_is_put_back() {
    // The write must begin within the lease, which takes its time on a busy machine.
    let Some((host, before, mut agent)) = started(2000) else { return };
    agent.tell("turn slow 9");
    let half = || host.picture().contains("tcp_probe_threshold=7\n");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !half() {
        assert!(Instant::now() < deadline);
    }
    host.comes_back(&before);
    assert_eq!(agent.ask("lost"), None, "the agent is dead");
}

#[test]
fn a_write_that_takes_as_long_as_its_row_says_is_never_cut() {
    // The write begins within the lease, also on a busy machine, and takes longer than it and the grace period together.
    let Some((host, before, mut agent)) = started(1000) else { return };
    // No heartbeat comes. The lease ends while the knob is written, and so would the grace period without the row's
    // time.
    assert_eq!(agent.ask("turn steady 9").as_deref(), Some("8 -> 9"));
    host.comes_back(&before);
    assert!(agent.ask("lost").expect("the agent lives").contains("stopped answering"));
}

#[test]
fn a_value_left_half_way_is_ours_for_undo_too() {
    let Some((host, before, mut agent)) = started(60_000) else { return };
    agent.tell("turn slow 9");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !host.picture().contains("tcp_probe_threshold=7\n") {
        assert!(Instant::now() < deadline);
    }
    agent.kill_with_guardian(&host);
    let report = host.undo();
    assert!(report.clean, "{report:?}");
    assert_same(&host.picture(), &before, "afterwards");
}

/// Kills random victims at random moments. The seed is printed; the machine's own jitter adds to the choice.
#[test]
fn kills_at_random_moments_leave_the_host_as_found() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = RandomSource(seed);
    let rounds = std::env::var("LANDSPEED_TEST_KILLS").ok().and_then(|v| v.parse().ok()).unwrap_or(20);
    // Half of the moments are at the beginning, when journal and lock are created.
    for round in 0..rounds {
        let longest_us = if round % 2 == 0 { 15_000 } else { 150_000 };
        let mut agent = host.agent(5000);
        agent.tell("start");
        // More writes than there is time for: each waits until its effects have settled.
        for n in 0..10 {
            agent.tell(
                ["turn mtu 1200", "turn sack 0", "turn down on", "turn mtu 9000", "turn down off"][n % 5],
            );
        }
        std::thread::sleep(Duration::from_micros(random.below(longest_us) as u64));
        let guardian = guardian_pid(&host);
        let (kill_agent, kill_guardian) = [(true, false), (false, true), (true, true)][random.below(3)];
        if kill_guardian && let Some(guardian) = guardian {
            signal(guardian, KILL);
        }
        if kill_agent {
            signal(agent.pid(), KILL);
        }
        drop(agent);
        if kill_guardian && let Some(guardian) = guardian {
            wait_for_end(guardian);
        }
        let both = kill_agent && kill_guardian && guardian.is_some();
        restore_after(&host, both);
        let when = format!("round {round}: agent {kill_agent}, guardian {kill_guardian}");
        assert_same(&host.picture(), &before, &when);
    }
}

/// Waits for the survivor to restore, then undoes what two simultaneous deaths left.
fn restore_after(host: &TestHost, both: bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !both && !host.journals().is_empty() {
        let left = || {
            host.journals().iter().map(|p| std::fs::read_to_string(p).unwrap_or_default()).collect::<String>()
        };
        assert!(Instant::now() < deadline, "agent and guardian leave {}", left());
        std::thread::sleep(Duration::from_millis(10));
    }
    let report = host.undo();
    assert!(report.clean, "{report:?}");
    // A guardian whose agent died while starting it has an empty journal until it notices that the agent is gone.
    while !host.journals().is_empty() {
        assert!(Instant::now() < deadline, "a journal is left: {:?}", host.journals());
        std::thread::sleep(Duration::from_millis(10));
    }
}
