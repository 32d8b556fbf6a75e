//! Tests that one run at a time works in a network namespace, and tests with guardians that hang.

use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

use super::host::{TestHost, undo_with};
use super::kills::{guardian_pid, signal, wait_until_stopped};
use super::knobs::lookup;

#[test]
fn a_namespace_has_one_lock_whatever_the_state_folder() {
    let Some(host) = TestHost::try_new() else { return };
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join("state");
    let mut first = host.started(60_000);
    assert_eq!(first.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    // Every agent of these tests also has a separate mount namespace.
    let mut second = host.agent_with_state(&other);
    let refused = second.ask("start").unwrap();
    assert!(refused.contains(&format!("another run is tuning here (pid {})", first.pid())), "{refused}");
    // Another namespace is another host.
    let stranger = TestHost::new();
    assert_eq!(stranger.agent(5000).ask("start").unwrap(), "ok");
    first.ask("restore");
    assert_eq!(second.ask("start").unwrap(), "ok");
    drop(second);

    // The error names any other holder, here this test.
    let held: OwnedFd = host.inside(|| std::fs::File::open("/proc/thread-self/ns/net").unwrap().into());
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    let refused = host.agent(60_000).ask("start").unwrap();
    assert!(refused.contains(&format!("(pid {})", std::process::id())), "{refused}");
    drop(held);
    assert_eq!(host.agent(60_000).ask("start").unwrap(), "ok");
}

#[test]
fn undo_of_another_state_folder_waits_for_the_run() {
    let Some(host) = TestHost::try_new() else { return };
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join("state");
    let mut first = host.agent_with_state(&other);
    assert_eq!(first.ask("start").unwrap(), "ok");
    assert_eq!(first.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    let cookie = host.inside(|| landspeed_kernel::netlink::netns_cookie().unwrap());
    let guardian = guardian_of(&other, cookie);
    signal(first.pid(), Signal::STOP);
    signal(guardian, Signal::KILL);
    first.kill();

    let mut second = host.started(60_000);
    let undo = || host.inside(|| undo_with(false, &other, lookup)).unwrap();
    let report = undo();
    let line = format!("a run is in progress (pid {})", second.pid());
    assert!(!report.clean && report.lines[0].contains(&line), "{report:?}");
    assert!(host.picture().contains("mtu 9000"), "nothing was touched");
    second.ask("restore");
    let report = undo();
    assert!(report.clean && report.lines.contains(&"mtu of v0: 9000 -> 3000".to_owned()), "{report:?}");
}

/// Returns the process id of the guardian in a journal.
fn guardian_of(state: &std::path::Path, cookie: u64) -> u32 {
    let text = std::fs::read_to_string(state.join(format!("journal/net-{cookie}.jsonl"))).unwrap();
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    u32::try_from(header["guardian"]["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn undo_and_a_new_run_name_the_remedy_for_a_stopped_guardian() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    for end in [Signal::CONT, Signal::KILL] {
        let mut agent = host.started(60_000);
        assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
        let guardian = guardian_pid(&host).unwrap();
        signal(guardian, Signal::STOP);
        wait_until_stopped(guardian);
        agent.kill();
        let says = |line: &str| {
            let both = [format!("kill -CONT {guardian}"), format!("kill -KILL {guardian}")];
            assert!(both.iter().all(|command| line.contains(command)), "{line}");
        };
        let report = host.undo();
        assert!(!report.clean, "{report:?}");
        says(&report.lines[0]);
        says(&host.agent(60_000).ask("start").unwrap());
        assert_eq!(host.journals().len(), 1);

        signal(guardian, end);
        if end == Signal::KILL {
            let report = host.undo();
            assert!(report.clean, "{report:?}");
        }
        host.comes_back(&before);
    }
}

#[test]
fn a_guardian_that_hangs_does_not_hang_its_agent() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    // A guardian that lives answers within this also on a busy machine.
    let mut agent = host.impatient_agent(3000);
    assert_eq!(agent.ask("start").unwrap(), "ok");
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    let guardian = guardian_pid(&host).unwrap();
    signal(guardian, Signal::STOP);
    wait_until_stopped(guardian);
    // More messages than the socket between the two can hold.
    for _ in 0..3000 {
        assert_eq!(agent.ask("beat").unwrap(), "ok");
    }
    let refused = agent.ask("turn mtu 8000").unwrap();
    assert!(refused.contains("the guardian did not answer"), "{refused}");
    host.comes_back(&before);
    assert!(agent.ask("restore").unwrap().starts_with("true the guardian died"));
}
