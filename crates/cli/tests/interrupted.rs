//! Tests of Ctrl-C, SIGTERM and a closed terminal. A command with nothing to finish removes its lab and exits with
//! 128 plus the signal's number; one with something to report ends in order.

mod support;

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use support::ours::{RunningProcess, TestHome, processes, signal, within};
use support::{needs_controls, needs_root, text};

const SOON: Duration = Duration::from_millis(700);

/// Starts a command, signals it some time after agents run in its lab, and returns its exit code, its output, and
/// what is left when it has exited. Its keeper may outlive it, to check for labs once more.
fn interrupted(args: &[&str], by: Signal, after: Duration) -> (Option<i32>, String, Vec<String>) {
    let place = TestHome::new();
    let mut command = place.landspeed(args);
    let child: Child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("landspeed starts");
    let is_agent = |one: &RunningProcess| one.line.contains("landspeed agent --stdio");
    let agents = || processes(place.path()).iter().filter(|one| is_agent(one)).count();
    assert!(within(Duration::from_secs(20), || agents() == 2), "{args:?} starts no agents");
    std::thread::sleep(after);
    let ids = place.labs_of(child.id());
    assert_eq!(ids.len(), 1, "{args:?} has one lab");
    signal(child.id() as i32, by);
    let output = child.wait_with_output().expect("it ends");
    let mut left = place.left(&ids, &[]);
    left.retain(|line| !line.contains("landspeed keeper"));
    let keeper_ends = within(Duration::from_secs(10), || processes(place.path()).is_empty());
    assert!(keeper_ends, "{:?}", processes(place.path()));
    let (out, err) = text(&output);
    (output.status.code(), out + &err, left)
}

fn ends_at_once(args: &[&str], by: Signal) {
    let (code, said, left) = interrupted(args, by, SOON);
    assert!(left.is_empty(), "{args:?} left:\n{}", left.join("\n"));
    assert_eq!(code, Some(128 + by.as_raw()), "{args:?}: {said}");
    assert!(!said.contains("landspeed: "), "what follows from the signal is no error: {said}");
}

#[test]
fn measure_and_explain_take_their_lab_down_and_end() {
    needs_root!();
    std::thread::scope(|scope| {
        scope.spawn(|| ends_at_once(&["measure", "stream", "-t", "60s"], Signal::INT));
        scope.spawn(|| {
            ends_at_once(&["measure", "pingpong", "lab:wan:rate=20M,rtt=10ms", "-t", "60s"], Signal::HUP);
        });
        scope.spawn(|| ends_at_once(&["explain", "-t", "60s"], Signal::TERM));
    });
}

#[test]
fn compare_takes_its_lab_down_and_reports() {
    needs_controls!();
    let args = ["compare", "lab:wan:rate=20M,rtt=10ms,queue=2bdp", "-p", "htcp", "--repeats", "9"];
    // Before the study begins there is nothing to report, and it ends immediately.
    let (code, said, left) = interrupted(&args, Signal::INT, Duration::from_secs(5));
    assert!(left.is_empty(), "left:\n{}", left.join("\n"));
    assert!(code.is_some(), "it ends in order: {said}");
    assert!(said.contains("htcp"), "{said}");
}

#[test]
fn tune_takes_its_lab_down_and_reports_what_is_known() {
    needs_root!();
    let (_, said, left) = interrupted(&["tune", "--json"], Signal::INT, Duration::from_secs(7));
    assert!(left.is_empty(), "left:\n{}", left.join("\n"));
    assert!(said.contains("\"restored\": true"), "no summary, or not everything put back: {said}");
}
