//! Tests of Ctrl-C, SIGTERM and a closed terminal. A command with nothing to finish removes its lab and exits with 128
//! plus the signal's number; one with something to report ends in order. Further tests lose a host during a run.

mod support;

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use support::hosts::TestHosts;
use support::ours::{RunningProcess, TestHome, processes, signal, within};
use support::{full_pipe, needs_controls, needs_root, sh, text};

const SOON: Duration = Duration::from_millis(700);

/// Returns true once a record has a line of this kind.
fn has_line(place: &TestHome, kind: &str) -> bool {
    let begin = format!(r#"{{"line":"{kind}""#);
    let records = std::fs::read_dir(place.path().join("data/landspeed")).into_iter().flatten().flatten();
    let mut records = records.filter_map(|record| std::fs::read_to_string(record.path()).ok());
    records.any(|record| record.contains(&begin))
}

/// Starts a command, and returns once agents run in its lab.
fn started(place: &TestHome, args: &[&str], stderr: impl Into<Stdio>) -> Child {
    let mut command = place.landspeed(args);
    let child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("landspeed starts");
    let is_agent = |one: &RunningProcess| one.line.contains("landspeed agent --stdio");
    let agents = || processes(place.path()).iter().filter(|one| is_agent(one)).count();
    assert!(within(Duration::from_secs(60), || agents() == 2), "{args:?} starts no agents");
    child
}

/// Starts a command, signals it some time after agents run in its lab and `is_under_way`, and returns its exit code, its
/// output, and what is left when it has exited. Its keeper may outlive it, to check for labs once more.
fn interrupted(
    args: &[&str],
    by: Signal,
    is_under_way: impl Fn(&TestHome) -> bool,
    after: Duration,
) -> (Option<i32>, String, Vec<String>) {
    let place = TestHome::new();
    let child = started(&place, args, Stdio::piped());
    assert!(within(Duration::from_secs(60), || is_under_way(&place)), "{args:?} does not begin");
    std::thread::sleep(after);
    let ids = place.labs_of(child.id());
    assert_eq!(ids.len(), 1, "{args:?} has one lab");
    signal(child.id() as i32, by);
    let output = child.wait_with_output().expect("it ends");
    let mut left = place.left(&ids, &[]);
    left.retain(|line| !line.contains("landspeed keeper"));
    let keeper_ends = within(Duration::from_secs(60), || processes(place.path()).is_empty());
    assert!(keeper_ends, "{:?}", processes(place.path()));
    let (out, err) = text(&output);
    (output.status.code(), out + &err, left)
}

fn ends_at_once(args: &[&str], by: Signal) {
    let (code, said, left) = interrupted(args, by, |_| true, SOON);
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

/// The signal's handler takes the lock that is held while figures are printed.
#[test]
fn ctrl_c_ends_a_measurement_whose_figures_have_no_room() {
    needs_root!();
    let (place, (_reader, full)) = (TestHome::new(), full_pipe());
    let mut run = started(&place, &["measure", "stream", "-t", "60s", "--interval", "200ms"], full);
    // By then it has figures to print.
    std::thread::sleep(Duration::from_secs(4));
    signal(run.id() as i32, Signal::INT);
    let ended = std::thread::spawn(move || run.wait().expect("a child").code());
    assert!(within(Duration::from_secs(20), || ended.is_finished()), "it waits for the reader");
    assert_eq!(ended.join().expect("no panic"), Some(128 + Signal::INT.as_raw()));
}

#[test]
fn compare_takes_its_lab_down_and_reports() {
    needs_controls!();
    let args = ["compare", "lab:wan:rate=20M,rtt=10ms,queue=2bdp", "-p", "htcp", "--repeats", "9"];
    // The command ends immediately if the study has not begun, which takes its time on a slow machine, otherwise with its
    // report.
    let has_begun = |place: &TestHome| has_line(place, "path");
    let (code, said, left) = interrupted(&args, Signal::INT, has_begun, Duration::from_secs(5));
    assert!(left.is_empty(), "left:\n{}", left.join("\n"));
    assert!(code.is_some(), "it ends in order: {said}");
    assert!(said.contains("htcp") || said.contains("H-TCP"), "{said}");
}

#[test]
fn tune_takes_its_lab_down_and_reports_what_is_known() {
    needs_root!();
    let has_trial = |place: &TestHome| has_line(place, "trial");
    let (_, said, left) = interrupted(&["tune", "--json"], Signal::INT, has_trial, SOON);
    assert!(left.is_empty(), "left:\n{}", left.join("\n"));
    assert!(said.contains("\"restored\": true"), "no summary, or not everything put back: {said}");
}

/// Tests the next step that the error of a lost host names.
#[test]
fn a_lost_host_is_restored_by_the_command_that_the_error_names() {
    needs_root!();
    let hosts = TestHosts::new();
    let before = hosts.snapshot();
    let windows = || sh(&format!("ip netns exec {} sysctl -n net.ipv4.tcp_rmem", hosts.ns("b")));
    let own = windows();
    let reach = hosts.reach();
    let mut args = vec!["tune", "--yes", "--baseline", "sc03", "--budget", "90s"];
    args.extend(reach.iter().map(String::as_str));
    let run = hosts.landspeed(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let is_set = within(Duration::from_secs(60), || windows() != own);
    // Agent and guardian end at the same time, so that neither restores the host.
    let victims = ["landspeed agent", "landspeed guardian"].map(|name| hosts.pids("b", name)).concat();
    victims.iter().for_each(|pid| signal(*pid, Signal::STOP));
    victims.iter().for_each(|pid| signal(*pid, Signal::KILL));
    let (out, err) = text(&run.wait_with_output().expect("it ends"));
    assert!(is_set, "{out}{err}");
    let said = format!("{out}{err}").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("root@10.99.0.3 was lost: "), "{out}{err}");
    assert!(said.contains("When it is back: landspeed undo root@10.99.0.3"), "{out}{err}");
    let undo = |more: &[&str]| {
        let how = reach.iter().skip_while(|word| *word != "--ssh-option").map(String::as_str);
        let args: Vec<&str> =
            ["undo", "root@10.99.0.3"].into_iter().chain(how).chain(more.iter().copied()).collect();
        hosts.landspeed(&args).output().expect("undo runs")
    };
    let shown = undo(&["--dry-run"]);
    let (out, err) = text(&shown);
    assert!(
        shown.status.success() && out.contains("root@10.99.0.3: ") && out.contains("tcp-rmem"),
        "{out}{err}"
    );
    assert_ne!(windows(), own, "a dry run changes nothing");
    let (out, err) = text(&undo(&["--unsure"]));
    assert_eq!(windows(), own, "{out}{err}");
    assert!(hosts.quiet(Duration::from_secs(60)), "a process is left");
    assert_eq!(hosts.differences(&before), Vec::<String>::new());
    assert!(text(&undo(&["--json"])).0.contains("nothing to undo"));
}
