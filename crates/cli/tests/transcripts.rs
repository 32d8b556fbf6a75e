//! Tests of the output of a record and of a run: on terminals of two widths, in a pipe, without colours and in ASCII.

mod support;

use std::process::{Command, Stdio};

use landspeed_lab::topology::{HostSet, ReachMethod};

use support::terminal::{Terminal, lasting};
use support::{LANDSPEED, needs_root, sh, text};

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records/tune.jsonl");

/// Returns the output of a command with `setting` in its environment, on a terminal of `columns` or in a pipe.
fn shown(columns: Option<u16>, setting: (&str, &str), command: &mut Command) -> String {
    for name in ["LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.env(setting.0, setting.1);
    let (code, text) = match columns {
        Some(columns) => {
            let mut terminal = Terminal::of_columns(columns, command);
            if command.get_args().any(|word| word == "tune") {
                terminal.await_text("Continue? [y/N] ");
                terminal.type_line("y");
            }
            terminal.end()
        }
        None => {
            let output = command.stdin(Stdio::null()).output().expect("it runs");
            let (out, err) = text(&output);
            (output.status.code(), err + &out)
        }
    };
    assert_eq!(code, Some(0), "{text}");
    text
}

fn shown_record(columns: Option<u16>, setting: (&str, &str)) -> String {
    let text = shown(columns, setting, Command::new(LANDSPEED).args(["show", RECORD]));
    // The output must not depend on the folder of the project.
    text.replace("\r\n", "\n").replace(RECORD, "tune.jsonl")
}

const UTF_8: (&str, &str) = ("LC_ALL", "C.UTF-8");

#[test]
fn a_record_on_a_terminal_and_elsewhere() {
    let [at_80, at_120] = [80, 120].map(|columns| shown_record(Some(columns), UTF_8));
    insta::assert_snapshot!("show_at_80_columns", lasting(&at_80));
    insta::assert_snapshot!("show_at_120_columns", lasting(&at_120));
    let ascii = lasting(&shown_record(Some(80), ("LC_ALL", "C")));
    assert!(ascii.is_ascii());
    insta::assert_snapshot!("show_in_ascii", ascii);
    assert!(at_80.contains("\u{1b}["), "a terminal gets colours");
    assert_eq!(shown_record(Some(80), ("NO_COLOR", "1")), lasting(&at_80));
    let piped = shown_record(None, UTF_8);
    insta::assert_snapshot!("show_in_a_pipe", piped);
    for text in [&lasting(&at_80), &lasting(&at_120), &piped] {
        let (first, rest) = text.split_once('\n').expect("lines");
        assert!(first.starts_with("tune ") && first.ends_with(" UTC · for rate"), "{text}");
        assert!(rest.starts_with("RESULT   "), "{text}");
        assert!(text.lines().count() <= 45, "{text}");
        assert!(text.lines().all(|line| line == line.trim_end()), "spaces at the end: {text}");
    }
}

/// A slow link with a receive window that is much too small. A larger window helps greatly in each run, whatever the
/// processor and chance do.
struct NarrowWindowLab {
    hosts: Box<dyn HostSet>,
    folder: tempfile::TempDir,
}

impl NarrowWindowLab {
    fn new() -> NarrowWindowLab {
        let hosts = landspeed_lab::topology::open(&["lab:wan:rate=100M,rtt=2ms".to_owned()]).expect("a lab");
        let narrow = NarrowWindowLab { hosts, folder: tempfile::tempdir().expect("a folder") };
        let [_, b] = narrow.namespaces();
        sh(&format!("ip netns exec {b} sysctl -qw net.ipv4.tcp_rmem='4096 8192 16384'"));
        narrow
    }

    fn namespaces(&self) -> [&str; 2] {
        [0, 1].map(|end| match &self.hosts.hosts()[end].reach {
            ReachMethod::Namespace(name) => name.as_str(),
            other => panic!("{other:?}"),
        })
    }

    /// Returns `landspeed tune ARGS` between its hosts, as if landspeed had not created them.
    fn tune(&self, args: &[&str]) -> Command {
        let mut command = Command::new(LANDSPEED);
        command.arg("tune").args(self.namespaces().map(|name| format!("netns:{name}"))).args(args);
        command.env("XDG_DATA_HOME", self.folder.path());
        command.env("LANDSPEED_STATE_DIR", self.folder.path().join("state"));
        command
    }
}

/// Masks the figures of a transcript, so that all runs have the same text.
fn masked(seen: &str, narrow: &NarrowWindowLab) -> String {
    let [a, b] = narrow.namespaces();
    let seen = lasting(seen).replace(a, "dtn1").replace(b, "dtn2");
    // In a pipe, the progress line is printed now and then.
    let lines = without_doubts(&seen).into_iter().filter(|line| !line.contains(" left  "));
    lines.map(|line| line_masked(line) + "\n").collect()
}

/// Returns the lines without those on doubts, which depend on the noise of a run: the line of a doubt, and the
/// following lines with a greater indent.
fn without_doubts(seen: &str) -> Vec<&str> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut doubt = None;
    let keep = |line: &&str| {
        let is_doubt = line.trim_start().starts_with("- beware: ");
        doubt = doubt.filter(|at| depth(line) > *at).or(is_doubt.then(|| depth(line)));
        doubt.is_none()
    };
    seen.lines().filter(keep).collect()
}

/// Replaces figures and their units by #, and separates columns by two spaces, because widths depend on the figures.
fn line_masked(line: &str) -> String {
    const UNITS: [&str; 10] = ["Gb/s", "Mb/s", "kb/s", "GB", "MB", "kB", "ms", "\u{b5}s", "us", "%"];
    // The effect of a larger window on these figures may be clear or not.
    const SIDES: [&str; 3] = ["  bytes/CPU-sec", "  idle RTT", "  RTT under load"];
    let text = line.trim_start();
    // Either of two causes may be named for a window this small.
    if text.starts_with("bottleneck: ") {
        return "  bottleneck: VERDICT".to_owned();
    }
    let figures = |column: &str| {
        let mut words: Vec<String> = Vec::new();
        for word in column.split(' ').filter(|word| !word.is_empty()) {
            let figure = word.trim_matches(|c: char| !c.is_ascii_digit());
            let word = if figure.is_empty() { word.to_owned() } else { word.replace(figure, "#") };
            let is_unit =
                UNITS.contains(&word.as_str()) && words.last().is_some_and(|last| last.ends_with('#'));
            if !is_unit {
                words.push(word);
            }
        }
        words.join(" ")
    };
    let is_rule = |column: &str| column.chars().all(|c| c == '-' || c == '\u{2500}');
    let mut columns: Vec<String> =
        text.split("  ").filter(|column| !column.trim().is_empty()).map(figures).collect();
    columns.iter_mut().filter(|column| is_rule(column)).for_each(|rule| rule.truncate(3));
    if let (true, Some(last)) = (SIDES.iter().any(|side| line.starts_with(side)), columns.last_mut()) {
        "VERDICT".clone_into(last);
    }
    line[..line.len() - text.len()].to_owned() + &columns.join("  ")
}

/// Tests the five forms of one run, each on its own path. They run in parallel, because they mostly wait.
#[test]
fn a_run_on_terminals_and_elsewhere() {
    if std::env::var_os("LANDSPEED_SLOW").is_none() {
        eprintln!("SKIP: two minutes on a machine left alone: make budgets");
        return;
    }
    needs_root!();
    let forms = [
        ("at_80_columns", Some(80), UTF_8),
        ("at_120_columns", Some(120), UTF_8),
        ("without_colours", Some(80), ("NO_COLOR", "1")),
        ("in_ascii", Some(80), ("LC_ALL", "C")),
        ("in_a_pipe", None, UTF_8),
    ];
    let live = |(columns, setting): (Option<u16>, (&str, &str))| {
        let narrow = NarrowWindowLab::new();
        let asked = ["--only", "tcp-rmem", "--budget", "2m", "--seed", "7"];
        let answer: &[&str] = if columns.is_none() { &["--yes"] } else { &[] };
        let seen = shown(columns, setting, &mut narrow.tune(&[&asked, answer].concat()));
        (masked(&seen, &narrow), seen)
    };
    let seen = std::thread::scope(|scope| {
        let runs = forms.map(|(_, columns, setting)| scope.spawn(move || live((columns, setting))));
        runs.map(|run| run.join().expect("a run"))
    });
    for ((name, columns, (variable, _)), (masked, seen)) in forms.iter().zip(&seen) {
        insta::assert_snapshot!(format!("tune_{name}"), masked);
        let colours = seen.replace("\r\u{1b}[J", "").contains("\u{1b}[");
        assert_eq!(colours, columns.is_some() && *variable != "NO_COLOR", "{seen}");
        assert!(name != &"in_ascii" || seen.is_ascii(), "{seen}");
        assert!(lasting(seen).lines().count() <= 45, "{seen}");
    }
}
