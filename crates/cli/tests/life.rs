//! Tests of interaction before and during long work: questions, refusals, Ctrl-C.

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::Signal;

use support::ours::{TestHome, freeze, signal, within};
use support::terminal::{CTRL_C, CTRL_D, Terminal};
use support::{LANDSPEED, needs_root, output, sh, text};

/// Two namespaces with a path between them that landspeed did not create.
struct NamespacePair {
    id: String,
    folder: tempfile::TempDir,
}

impl NamespacePair {
    fn new(test: &str) -> NamespacePair {
        let pair = NamespacePair {
            id: format!("ll{}{test}", std::process::id()),
            folder: tempfile::tempdir().unwrap(),
        };
        let (a, b) = (pair.ns('a'), pair.ns('b'));
        sh(&format!(
            "set -e
            ip netns add {a}; ip netns add {b}
            ip -n {a} link add data type veth peer name data netns {b}
            ip -n {a} addr add 192.0.2.1/24 dev data; ip -n {b} addr add 192.0.2.2/24 dev data
            for n in {a} {b}; do ip -n $n link set lo up; ip -n $n link set data up; done"
        ));
        pair
    }

    fn ns(&self, end: char) -> String {
        format!("{}{end}", self.id)
    }

    fn landspeed(&self, args: &[&str]) -> Command {
        let mut command = self.in_its_place(LANDSPEED);
        command.args(args);
        command
    }

    /// Returns a command for a program, with the folders of this pair of namespaces as landspeed's.
    fn in_its_place(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("XDG_DATA_HOME", self.folder.path()).env("TERM", "xterm");
        command.env("LANDSPEED_STATE_DIR", self.folder.path().join("state"));
        command.env("LANDSPEED_RUN_DIR", self.folder.path().join("run"));
        command
    }

    /// Returns the command `landspeed tune` between the two.
    fn tune(&self, args: &[&str]) -> Command {
        let hosts = ['a', 'b'].map(|end| format!("netns:{}", self.ns(end)));
        let mut command = self.landspeed(&["tune"]);
        command.args(hosts).args(args);
        command
    }

    fn records(&self) -> usize {
        let all = std::fs::read_dir(self.folder.path().join("landspeed")).into_iter().flatten().flatten();
        all.filter(|entry| entry.path().extension().is_some()).count()
    }
}

impl Drop for NamespacePair {
    fn drop(&mut self) {
        let _ = output(&format!("ip netns del {}; ip netns del {}", self.ns('a'), self.ns('b')));
    }
}

const QUESTION: &str = "Continue? [y/N] ";
/// Time limit of commands that need no time of their own. The runs that it ends would take minutes.
const AT_ONCE: Duration = Duration::from_secs(30);

#[test]
fn a_question_is_short_and_ctrl_c_or_no_answer_ends_it_at_once() {
    needs_root!();
    let pair = NamespacePair::new("q");
    for (key, code, says) in [(CTRL_C, 130, "nothing was changed"), (CTRL_D, 1, "nothing was changed")] {
        let mut run = Terminal::start(&pair.tune(&[]));
        run.await_text(QUESTION);
        let shown = support::without_busy(&run.shown);
        let head: Vec<&str> = shown.lines().collect();
        assert_eq!(head.len(), 4, "{}", run.shown);
        assert!(head[0].contains("(data) -> ") && head[0].contains("RTT ") && head[0].contains("Linux "));
        assert!(head[1].contains(" settings can matter; time for about "), "{}", head[1]);
        assert!(head.iter().all(|line| line.chars().count() <= 80), "{}", run.shown);
        // The first run has reserved the hosts, so another run is refused before it measures or asks.
        let second = pair.tune(&["--yes"]).stdin(Stdio::null()).output().unwrap();
        let (_, said) = text(&second);
        assert!(said.contains("another run is tuning here") && !second.status.success(), "{said}");
        run.press(key);
        let pressed = Instant::now();
        let (ended, said) = run.end();
        assert!(pressed.elapsed() < AT_ONCE, "{:?}", pressed.elapsed());
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains(says), "{said}");
        assert_eq!(pair.records(), 0, "an empty record is left");
    }
}

/// A lock that tests hold while they tune, because two simultaneous runs would take all cores from each other's agents.
static TUNES: Mutex<()> = Mutex::new(());

#[test]
fn ctrl_c_says_at_once_that_the_run_ends_and_shows_it_as_unfinished() {
    needs_root!();
    let _alone = TUNES.lock();
    let pair = NamespacePair::new("c");
    let mut run = Terminal::start(&pair.tune(&["--yes", "--seed", "7", "--exit-code"]));
    run.await_text("block 1/");
    run.press(CTRL_C);
    let pressed = Instant::now();
    run.await_text("ending: everything is restored");
    assert!(pressed.elapsed() < AT_ONCE, "{:?}", pressed.elapsed());
    let (code, said) = run.end();
    assert!(said.contains("unfinished: stopped after 0 of "), "{said}");
    assert_eq!(code, Some(1), "the run is void: {said}");
    assert_eq!(pair.records(), 1);
    // The progress line always starts at the start of a line, and the rest is cleared.
    for drawn in
        said.split("\r\u{1b}[J").skip(1).filter(|drawn| drawn.contains('━') && drawn.contains("left"))
    {
        let line = drawn.lines().last().unwrap_or_default().split('\r').next().unwrap_or_default();
        assert!(line.chars().count() < 80, "{line}");
    }
}

/// Tests that settings that `undo` cannot write are named and stay in the journal, for a later `undo`.
#[test]
fn undo_that_cannot_restore_ends_with_3_and_the_next_one_restores() {
    needs_root!();
    let _alone = TUNES.lock();
    let pair = NamespacePair::new("u");
    let windows = || sh(&format!("ip netns exec {} sysctl -n net.ipv4.tcp_rmem", pair.ns('b')));
    let before = windows();
    let mut run = pair.tune(&["--yes", "--baseline", "sc03"]);
    let mut run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let changed = within(Duration::from_secs(60), || windows() != before);
    // The guardian is killed too, so that no process restores the hosts.
    freeze(pair.folder.path(), |_| true).iter().for_each(|one| signal(one.pid, Signal::KILL));
    run.wait().unwrap();
    assert!(changed, "tune never set its baseline");
    let read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$@\"";
    let mut undo = pair.in_its_place("unshare");
    let refused = undo.args(["-m", "sh", "-c", read_only, "-", LANDSPEED, "undo"]).output().unwrap();
    let (out, err) = text(&refused);
    assert_eq!(refused.status.code(), Some(3), "{out}{err}");
    assert!(out.contains("NOT PUT BACK: ") && out.contains("tcp-rmem"), "{out}{err}");
    assert_ne!(windows(), before);
    let there = format!("netns:{}", pair.ns('b'));
    let shown = pair.landspeed(&["undo", &there, "--dry-run"]).output().unwrap();
    let (out, err) = text(&shown);
    assert!(shown.status.success() && out.contains("tcp-rmem"), "{out}{err}");
    assert_ne!(windows(), before, "a dry run changes nothing");
    let done = pair.landspeed(&["undo", "--unsure"]).output().unwrap();
    assert_eq!((done.status.code(), windows()), (Some(0), before), "{done:?}");
}

#[test]
fn two_names_of_one_namespace_are_refused_and_nothing_is_reserved() {
    needs_root!();
    let pair = NamespacePair::new("o");
    let (name, other) = (pair.ns('a'), format!("{}2", pair.ns('a')));
    sh(&format!("touch /run/netns/{other}; mount --bind /run/netns/{name} /run/netns/{other}"));
    let refused = [&name, &other].map(|second| {
        let ends = [format!("netns:{name}"), format!("netns:{second}")];
        pair.landspeed(&["tune", &ends[0], &ends[1], "--yes"]).stdin(Stdio::null()).output().unwrap()
    });
    sh(&format!("umount /run/netns/{other}; rm /run/netns/{other}"));
    for output in refused {
        let (_, said) = text(&output);
        assert!(output.status.code() == Some(2) && said.contains(" are one host"), "{said}");
    }
    let journals = std::fs::read_dir(pair.folder.path().join("state/journal")).map_or(0, Iterator::count);
    assert_eq!((journals, pair.records()), (0, 0));
}

/// Returns the least budget that an error message names.
fn least(said: &str) -> String {
    let budget = said.split("try --budget ").nth(1).unwrap_or_else(|| panic!("no budget in: {said}"));
    budget.split_whitespace().next().expect("a time").to_owned()
}

fn lab(args: &[&str]) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(LANDSPEED);
    command.arg("tune").args(args).env("XDG_DATA_HOME", folder.path()).stdin(Stdio::null());
    command.output().expect("landspeed runs")
}

#[test]
fn a_budget_without_an_answer_is_refused_before_anything_is_measured() {
    needs_root!();
    let (out, said) = text(&lab(&["--only", "mtu", "--budget", "15s"]));
    assert!(said.contains("--budget 15s is too short to answer about mtu"), "{out}{said}");
    let refused = lab(&["--budget", "3s"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).1.contains("to answer about any setting"), "{}", text(&refused).1);
    if std::env::var_os("LANDSPEED_SLOW").is_some() {
        let budget = least(&said);
        let ran = lab(&["--only", "mtu", "--budget", &budget, "--json"]);
        let (out, said) = text(&ran);
        let summary: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{said}"));
        let steps = summary["steps"].as_array().expect("steps");
        let of_mtu: Vec<_> =
            steps.iter().filter(|step| step["knob"] == "mtu" && step["placebo"] != true).collect();
        assert!(of_mtu.iter().any(|step| step["blocks"].as_u64() > Some(0)), "{out}");
        assert!(summary["final"]["rate_bps"].as_f64() > Some(0.0), "{out}");
    }
}

#[test]
fn measure_prints_each_interval_and_on_ctrl_c_the_goodput_so_far() {
    needs_root!();
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(LANDSPEED);
    command.args(["measure", "stream", "-t", "60s", "-i", "200ms"]).env("XDG_DATA_HOME", place.path());
    let mut run = Terminal::start(&command);
    // A machine that is busy at the start prints fewer and longer intervals, whose times are not guaranteed.
    (0..3).for_each(|_| run.await_text("b/s "));
    run.press(CTRL_C);
    let (code, said) = run.end();
    assert_eq!(code, Some(130), "{said}");
    let intervals: Vec<(f64, f64)> = said.lines().filter_map(interval).collect();
    assert!(intervals.len() >= 3 && said.contains("retransmits"), "{said}");
    assert!(
        intervals[0].0 == 0.0 && intervals.windows(2).all(|two| two[0].1 == two[1].0),
        "no gap: {intervals:?}"
    );
    // Without -i, an interval would be one second long. A busy machine lengthens some; the last one may be a part.
    let whole = &intervals[..intervals.len() - 1];
    assert!(whole.iter().any(|(from, to)| to - from < 0.9), "{intervals:?}");
    assert!(said.contains("unfinished: "), "{said}");
}

/// Parses "0.4-0.6 s" in a line of an interval.
fn interval(line: &str) -> Option<(f64, f64)> {
    let (times, _) = line.split_once(" s  ").filter(|_| line.contains("b/s"))?;
    let (from, to) = times.rsplit(' ').next()?.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

#[test]
fn the_live_screen_gives_the_terminal_back_however_it_ends() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(LANDSPEED);
    command.args(["explain", "--top"]).env("XDG_DATA_HOME", place.path()).env("TERM", "xterm");
    for (key, code) in [("q", 0), (CTRL_C, 130)] {
        let mut run = Terminal::start(&command);
        run.await_text("flows of TCP");
        run.press(key);
        let (ended, said) = run.end();
        assert_eq!(ended, Some(code), "{said}");
        let (on, off) = (said.rfind("\u{1b}[?1049h"), said.rfind("\u{1b}[?1049l"));
        assert!(on < off && said.contains("\u{1b}[?25h"), "{said}");
    }
}

/// Tests that a lab of `lab up` lives until `lab down`, and then leaves nothing.
#[test]
fn a_lab_is_held_until_it_is_taken_down() {
    needs_root!();
    let home = TestHome::new();
    let run = |args: &[&str]| home.landspeed(args).output().expect("landspeed runs");
    let up = run(&["lab", "up", "mine", "lab:wan:rate=100M,rtt=2ms"]);
    let (out, err) = text(&up);
    assert!(
        up.status.success() && out.contains("198.18.0.1") && out.contains("lab enter mine"),
        "{out}{err}"
    );
    let again = text(&run(&["lab", "up", "mine"]));
    assert!(again.1.contains("lab mine is up already"), "{again:?}");
    // None of these commands may remove the lab.
    for other in [&["undo"][..], &["lab", "down"], &["measure", "pingpong", "-t", "100ms", "--sizes", "1"]] {
        let ended = run(other);
        assert!(ended.status.success(), "{other:?}: {ended:?}");
    }
    let inside = text(&run(&["lab", "enter", "mine", "b", "--", "ip", "-br", "address"]));
    assert!(inside.0.contains("198.18.0.2"), "{inside:?}");
    let pinged = run(&["lab", "enter", "a", "--", "ping", "-c1", "-W5", "198.18.0.2"]);
    assert!(pinged.status.success(), "the only lab, and its link: {pinged:?}");
    for (program, code) in [("no-such-program", 127), ("/etc/passwd", 126)] {
        let refused = run(&["lab", "enter", "mine", "b", "--", program]);
        let line = format!("landspeed: cannot run {program}: ");
        let is_told = text(&refused).1.starts_with(&line);
        assert!(refused.status.code() == Some(code) && is_told, "{refused:?}");
    }
    let mut within =
        home.landspeed(&["lab", "enter", "mine", "b", "--", "sleep", "600"]).spawn().expect("it runs");
    let listed = text(&run(&["lab", "list"])).0;
    assert!(listed.contains("up, as mine"), "{listed}");
    let id =
        listed.lines().find(|line| line.contains("mine")).and_then(|line| line.split_whitespace().next());
    let id = id.expect("an id").to_owned();
    let is_in = || !sh(&format!("ip netns pids ls-{id}-b")).trim().is_empty();
    assert!(support::ours::within(Duration::from_secs(60), is_in), "sleep does not start");
    let (out, err) = text(&run(&["lab", "down", "mine"]));
    assert!(out.contains("1 process ended"), "{out}{err}");
    assert!(within.wait().is_ok_and(|status| !status.success()), "sleep is ended");
    assert!(!sh("ip netns list").contains(&id), "a namespace is left");
    let none = || support::ours::processes(home.path()).is_empty();
    assert!(support::ours::within(Duration::from_secs(60), none), "a process is left");
    assert!(text(&run(&["lab", "list"])).1.contains("no labs"));
}
