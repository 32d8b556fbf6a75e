//! Bad input: each a one-line error that names the thing and the remedy, a non-zero exit, and nothing
//! changed.

mod support;

use std::process::{Command, Output, Stdio};

use support::{LANDSPEED, needs_root, sh, text};

fn landspeed(args: &[&str]) -> Output {
    let data = tempfile::tempdir().expect("a folder");
    Command::new(LANDSPEED)
        .args(args)
        .env("XDG_DATA_HOME", data.path())
        .stdin(Stdio::null())
        .output()
        .expect("landspeed runs")
}

/// One line on standard error that contains all of `words`, and failure.
fn refused(output: &Output, words: &[&str]) {
    let (out, err) = text(output);
    assert!(!output.status.success(), "succeeded: {out}{err}");
    assert_eq!(err.trim_end().lines().count(), 1, "not one line: {err}");
    for word in words {
        assert!(err.contains(word), "no '{word}' in: {err}");
    }
}

#[test]
fn unknown_names_are_refused_by_name() {
    refused(&landspeed(&["tune", "--only", "warp-drive"]), &["warp-drive", "landspeed knobs"]);
    refused(&landspeed(&["tune", "--against", "mtu=9"]), &["mtu", "9"]);
    refused(&landspeed(&["tune", "--against", "mtu"]), &["mtu", "="]);
    refused(&landspeed(&["measure", "stream", "lab:ring"]), &["lab:ring", "lab:back-to-back"]);
    refused(&landspeed(&["measure", "stream", "one-host-only"]), &["one-host-only", "A B"]);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    refused(&landspeed(&["explain", "--top", "--sizes"]), &["--sizes", "--top"]);
    // Nothing loses a segment on purpose but a link of our own.
    for hosts in [&[][..], &["lab"], &["lab:switch:3"], &["a.example", "b.example"]] {
        let args = [&["tune", "--record-run", "--recovery", "--yes"], hosts].concat();
        refused(&landspeed(&args), &["--recovery", "lab:wan:"]);
    }
}

#[test]
fn a_wrong_flag_gets_the_usage() {
    let output = landspeed(&["tune", "--fast"]);
    let (_, err) = text(&output);
    assert!(!output.status.success() && err.contains("--fast") && err.contains("--help"), "{err}");
}

#[test]
fn host_names_that_are_options_never_reach_ssh() {
    refused(
        &landspeed(&["measure", "stream", "--", "-oProxyCommand=touch /tmp/pwned", "local"]),
        &["-oProxyCommand"],
    );
    refused(&landspeed(&["measure", "stream", "a b", "local"]), &["a b"]);
}

#[test]
fn an_unreachable_host_is_named() {
    let output = landspeed(&["measure", "stream", "no-such-host.invalid", "local"]);
    refused(&output, &["no-such-host.invalid"]);
}

#[test]
fn a_lab_without_root_says_so() {
    needs_root!();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", LANDSPEED, "tune"])
        .env("XDG_DATA_HOME", "/tmp")
        .stdin(Stdio::null())
        .output()
        .expect("setpriv runs");
    refused(&output, &["root"]);
}

#[test]
fn real_hosts_are_not_touched_without_a_yes() {
    needs_root!();
    // Both ends on this machine, over loopback: reachable, and nobody to ask.
    let output = landspeed(&["tune", "local", "local", "--address", "127.0.0.1"]);
    refused(&output, &["--yes"]);
}

#[test]
fn a_full_disk_ends_the_run_and_leaves_no_lab() {
    needs_root!();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().display().to_string();
    // A file system of its own, so small that a few trials fill it; in a mount namespace that ends
    // with the command.
    let script = format!(
        "mount -t tmpfs -o size=64k none {dir} && {LANDSPEED} tune --budget 20s --data-dir {dir} --only mtu; code=$?; exit $code"
    );
    let output = Command::new("unshare")
        .args(["-m", "bash", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    let (_, err) = text(&output);
    assert!(!output.status.success(), "{err}");
    let last = err.lines().last().unwrap_or_default();
    assert!(last.contains("record") && last.contains("--data-dir"), "{err}");
}

#[test]
fn records_of_strangers_are_refused_by_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.jsonl");
    std::fs::write(&path, "\u{1b}[31mnot a record\n").expect("written");
    let name = path.display().to_string();
    refused(&landspeed(&["show", &name]), &["x.jsonl", "header"]);
    refused(&landspeed(&["show", "/nonexistent.jsonl"]), &["/nonexistent.jsonl"]);
    refused(&landspeed(&["persist", &name]), &["x.jsonl"]);
}

#[test]
fn help_and_version_work_for_anybody_and_pipe() {
    for args in [&["--help"][..], &["--version"], &["tune", "--help"], &["knobs", "--help"]] {
        assert!(landspeed(args).status.success(), "{args:?}");
    }
    assert_eq!(sh(&format!("{LANDSPEED} knobs | head -1 >/dev/null; echo ok")).trim(), "ok");
}
