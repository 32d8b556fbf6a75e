//! Tests that text from hostile hosts cannot control a terminal. The crates record and report test hostile records.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::hosts::TestHosts;
use support::terminal::Terminal;
use support::{LANDSPEED, needs_root, output, text};

/// Returns the hostile agent. Cargo builds the examples of a package with its tests, but not if only this test target
/// is requested.
fn hostile_agent() -> PathBuf {
    let agent = Path::new(LANDSPEED).with_file_name("examples").join("hostile_agent");
    assert!(agent.exists(), "build it first: cargo build -p landspeed --examples");
    agent
}

/// Panics on control characters other than the line's end, and on characters that are invisible or change the writing
/// direction.
fn check_harmless(shown: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{200b}'..='\u{202e}').contains(&c);
    assert!(!shown.contains(bad), "{shown:?}");
}

/// Returns a shell command for `tune ARGS` between two hosts whose agents forge their answers.
fn tune(hosts: &TestHosts, args: &[&str]) -> String {
    let mut reach = hosts.reach();
    let path = reach.iter().position(|word| word == "--remote-path").expect("a path") + 1;
    reach[path] = hostile_agent().display().to_string();
    let words = ["tune"].iter().chain(args).copied().chain(reach.iter().map(String::as_str));
    let command = hosts.landspeed(&words.collect::<Vec<_>>());
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_str().expect("plain text")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_hostile_host_cannot_redraw_what_the_user_agrees_to() {
    needs_root!();
    let hosts = TestHosts::new();
    let before = hosts.snapshot();
    let (out, err) = text(&output(&tune(&hosts, &["--dry-run"])));
    check_harmless(&out);
    check_harmless(&err);
    assert!(out.contains(r"data\u{1b}[2J\r\u{202e}") && out.contains("congestion-control"), "{out}{err}");
    // The prompt: only standard input is a terminal, so that the output can be captured.
    let said = hosts.file("said");
    let command = format!("{} >/dev/null 2>{}", tune(&hosts, &["--budget", "3m"]), said.display());
    let mut run = Command::new("bash");
    let mut run = Terminal::start(run.args(["-c", &command]));
    run.type_line("n");
    let (_, run) = run.end();
    let asked = std::fs::read_to_string(&said).expect("what was said");
    check_harmless(&asked);
    assert!(asked.contains("Continue? [y/N]") && asked.contains("nothing was changed"), "{asked} {run:?}");
    assert!(asked.contains(r"\u{1b}[2J\r\u{202e}"), "{asked}");
    assert_eq!(hosts.differences(&before), Vec::<String>::new());
}
