//! What a person meets before and during long work: questions, refusals, Ctrl-C.

mod support;

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use support::{LANDSPEED, needs_root, output, sh, text};

/// Two namespaces with a path between them that landspeed did not make.
struct Pair {
    id: String,
    folder: tempfile::TempDir,
}

impl Pair {
    fn new(test: &str) -> Pair {
        let pair =
            Pair { id: format!("ll{}{test}", std::process::id()), folder: tempfile::tempdir().unwrap() };
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
        let mut command = Command::new(LANDSPEED);
        command.args(args).env("XDG_DATA_HOME", self.folder.path()).env("TERM", "xterm");
        command.env("LANDSPEED_STATE_DIR", self.folder.path().join("state"));
        command
    }

    /// `landspeed tune` between them, as the arguments of a shell would name them.
    fn tune(&self, args: &[&str]) -> Command {
        let hosts = ['a', 'b'].map(|end| format!("netns:{}", self.ns(end)));
        let mut command = self.landspeed(&["tune"]);
        command.args(hosts).args(args);
        command
    }

    fn records(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("landspeed")).map_or(0, Iterator::count)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = output(&format!("ip netns del {}; ip netns del {}", self.ns('a'), self.ns('b')));
    }
}

/// A command on a terminal of its own, 80 columns wide.
struct OnTerminal {
    child: Child,
    keys: ChildStdin,
    shown: ChildStdout,
    said: String,
}

impl OnTerminal {
    fn start(command: &Command) -> OnTerminal {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        let line = format!("stty cols 80 rows 24; exec {}", line.join(" "));
        let mut on = Command::new("script");
        on.args(["-qefc", &line, "/dev/null"]);
        on.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = on.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script runs");
        let (keys, shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        OnTerminal { child, keys, shown, said: String::new() }
    }

    fn key(&mut self, key: u8) {
        self.keys.write_all(&[key]).unwrap();
        self.keys.flush().unwrap();
    }

    /// Reads until `word` is said; panics with what was said where it never is.
    fn hear(&mut self, word: &str) {
        while !self.said.contains(word) {
            assert!(self.read(), "no '{word}' in: {}", self.said);
        }
    }

    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = self.shown.read(&mut bytes).unwrap();
        self.said.push_str(&String::from_utf8_lossy(&bytes[..count]));
        count > 0
    }

    /// The exit code, and all that was said.
    fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        (self.child.wait().unwrap().code(), self.said)
    }
}

const QUESTION: &str = "Continue? [y/N] ";
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

#[test]
fn a_question_is_short_and_ctrl_c_or_no_answer_ends_it_at_once() {
    needs_root!();
    let pair = Pair::new("q");
    for (key, code, says) in [(CTRL_C, 130, "nothing was changed"), (CTRL_D, 1, "nothing was changed")] {
        let mut run = OnTerminal::start(&pair.tune(&[]));
        run.hear(QUESTION);
        let head: Vec<&str> = run.said.lines().collect();
        assert_eq!(head.len(), 4, "{}", run.said);
        assert!(head[0].contains("(data) -> ") && head[0].contains("RTT ") && head[0].contains("Linux "));
        assert!(head[1].contains(" settings can matter here; time for about "), "{}", head[1]);
        assert!(head.iter().all(|line| line.chars().count() <= 80), "{}", run.said);
        // Who asks for it first tunes here: another run is refused before it measures, and before it asks.
        let began = Instant::now();
        let second = pair.tune(&["--yes"]).stdin(Stdio::null()).output().unwrap();
        let (_, said) = text(&second);
        assert!(said.contains("another run is tuning here") && !second.status.success(), "{said}");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        run.key(key);
        let pressed = Instant::now();
        let (ended, said) = run.end();
        assert!(pressed.elapsed() < Duration::from_secs(5), "{:?}", pressed.elapsed());
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains(says), "{said}");
        assert_eq!(pair.records(), 0, "an empty record is left");
    }
}

#[test]
fn ctrl_c_says_at_once_that_the_run_ends_and_shows_it_as_unfinished() {
    needs_root!();
    let pair = Pair::new("c");
    let mut run = OnTerminal::start(&pair.tune(&["--yes", "--seed", "7"]));
    run.hear("block 1/");
    run.key(CTRL_C);
    let pressed = Instant::now();
    run.hear("ending: everything is restored");
    assert!(pressed.elapsed() < Duration::from_secs(2), "{:?}", pressed.elapsed());
    let (_, said) = run.end();
    assert!(said.contains("unfinished: stopped after 0 of "), "{said}");
    assert_eq!(pair.records(), 1);
    // The line that is drawn over always starts at the start of its own, and what it leaves is cleared.
    for drawn in
        said.split("\r\u{1b}[J").skip(1).filter(|drawn| drawn.contains('━') && drawn.contains("left"))
    {
        let line = drawn.lines().last().unwrap_or_default().split('\r').next().unwrap_or_default();
        assert!(line.chars().count() < 80, "{line}");
    }
}

/// The least budget that a refusal names.
fn least(said: &str) -> String {
    let told = said.split("try --budget ").nth(1).unwrap_or_else(|| panic!("no budget in: {said}"));
    told.split_whitespace().next().expect("a time").to_owned()
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
fn measure_tells_each_interval_and_on_ctrl_c_what_came_by_then() {
    needs_root!();
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(LANDSPEED);
    command.args(["measure", "stream", "-t", "60s", "-i", "200ms"]).env("XDG_DATA_HOME", place.path());
    let mut run = OnTerminal::start(&command);
    run.hear("0.4-0.6 s");
    run.key(CTRL_C);
    let (code, said) = run.end();
    assert_eq!(code, Some(130), "{said}");
    let told = said.lines().filter(|line| line.contains(" s  ") && line.contains("b/s")).count();
    assert!(told >= 3 && said.contains("retransmits"), "{said}");
    assert!(said.contains("unfinished: "), "{said}");
}

#[test]
fn the_live_screen_gives_the_terminal_back_however_it_ends() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(LANDSPEED);
    command.args(["explain", "--top"]).env("XDG_DATA_HOME", place.path()).env("TERM", "xterm");
    for (key, code) in [(b'q', 0), (CTRL_C, 130)] {
        let mut run = OnTerminal::start(&command);
        run.hear("flows of TCP");
        run.key(key);
        let (ended, said) = run.end();
        assert_eq!(ended, Some(code), "{said}");
        let (on, off) = (said.rfind("\u{1b}[?1049h"), said.rfind("\u{1b}[?1049l"));
        assert!(on < off && said.contains("\u{1b}[?25h"), "{said}");
    }
}
