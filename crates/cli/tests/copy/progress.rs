//! The progress of a copy, on a terminal and as JSON Lines.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use super::support::full_pipe;
use super::support::terminal::Terminal;
use super::*;

/// Returns the JSON Lines in a command's standard error. All of them match their schema.
fn lines(err: &str) -> Vec<Value> {
    let objects = err.lines().filter(|line| line.starts_with('{'));
    objects.map(|line| checked("copy-progress", line)).collect()
}

/// Creates a long file and a slow path to host b. Returns the paths of a copy that takes seconds.
fn slow_copy(hosts: &TestHosts, rate: &str) -> [String; 2] {
    fs::write(hosts.file("long"), long_content()).unwrap();
    slow_path(hosts, rate);
    let [from, to] = ["long", "dst"].map(|name| hosts.file(name).display().to_string());
    [from, format!("{B}:{to}")]
}

/// Standard output still has only the one document.
#[test]
fn json_lines_say_where_files_land_and_how_far_the_copy_is() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, to] = slow_copy(&hosts, "40mbit");
    let (out, err) = text(&copy(&hosts, &["--json", "--progress", "json", &from, &to]));
    let (document, lines) = (checked("copy", &out), lines(&err));
    assert_eq!(document["copied"], 1, "{document}");
    let (begin, progress) = lines.split_first().expect("lines");
    let target = hosts.file("dst").display().to_string();
    assert_eq!((&begin["line"], &begin["to"]), (&json!("begin"), &json!(B)), "{begin}");
    assert_eq!(begin["sources"], json!([{ "text": from }]), "{begin}");
    assert_eq!(begin["target"], json!({ "text": target }), "{begin}");
    assert!(progress.len() > 1 && progress.iter().all(|line| line["line"] == "progress"), "{progress:?}");
    for pair in progress.windows(2) {
        for member in ["at_ns", "found", "found_bytes", "settled", "moved_bytes", "moved_share"] {
            let [before, now] = [&pair[0], &pair[1]].map(|line| line[member].as_f64());
            assert!(before <= now, "{member}: {progress:?}");
        }
    }
    let last = progress.last().expect("a line");
    assert_eq!((&last["is_walked"], &last["found_bytes"]), (&json!(true), &json!(40_000_000)), "{last}");
    assert!(last["moved_share"].as_f64() > Some(0.0) && last["left_ns"].is_u64(), "{last}");
    assert!(last["rate_bps"].as_f64() > Some(0.0) && !last["held"]["by"][0].is_null(), "{last}");
    assert!(last["at_ns"].as_u64() <= document["duration_ns"].as_u64(), "{last} {document}");
}

#[test]
fn without_being_asked_for_there_are_no_json_lines() {
    needs_root!();
    let hosts = TestHosts::new();
    fs::write(hosts.file("one"), "1").unwrap();
    let [from, to] = ["one", "dst"].map(|name| hosts.file(name).display().to_string());
    for (form, number) in
        [(None, 0), (Some("--progress=text"), 0), (Some("--progress=off"), 0), (Some("--progress=json"), 1)]
    {
        let all: Vec<&str> = form.into_iter().chain(["--json", &from, &to]).collect();
        let (out, err) = text(&copy(&hosts, &all));
        checked("copy", &out);
        // There is at least the first line. Progress lines come only once a second.
        assert_eq!(lines(&err).len().min(1), number, "{form:?}: {err}");
        assert_eq!(err.contains(&format!("{from} -> {to}")), number == 0, "{form:?}: {err}");
    }
    let refused = copy(&hosts, &["--progress", "json", "--clean", &to]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused).1);
}

#[test]
fn a_reader_that_stops_reading_stops_no_copy() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, to] = slow_copy(&hosts, "20mbit");
    let mut command = command(&hosts, &["--progress", "json", &from, &to]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut err = BufReader::new(run.stderr.take().expect("a pipe"));
    // The pipe holds fewer lines than the copy takes seconds.
    rustix::pipe::fcntl_setpipe_size(err.get_ref(), 4096).unwrap();
    assert!(err.by_ref().lines().map_while(Result::ok).any(|line| line.contains("\"begin\"")));
    let ended = std::thread::spawn(move || run.wait().expect("a child"));
    assert!(within(Duration::from_secs(120), || ended.is_finished()), "it waits for the reader");
    assert!(ended.join().expect("no panic").success());
}

/// The test reads nothing after the line with the destination.
#[test]
fn unread_output_stops_no_copy() {
    needs_root!();
    let hosts = TestHosts::new();
    fs::write(hosts.file("one"), "1").unwrap();
    let [from, to] = ["one", "dst"].map(|name| hosts.file(name).display().to_string());
    let (_reader, full) = full_pipe();
    let mut command = command(&hosts, &[&from, &to]);
    let mut run = command.stdout(Stdio::null()).stderr(full).spawn().expect("it runs");
    let ended = std::thread::spawn(move || run.wait().expect("a child"));
    assert!(within(Duration::from_secs(120), || ended.is_finished()), "it waits for the reader");
    assert!(ended.join().expect("no panic").success());
}

#[test]
fn an_error_waits_for_a_reader_until_the_copy_is_done() {
    needs_root!();
    let hosts = TestHosts::new();
    fs::write(hosts.file("one"), "1").unwrap();
    let [from, to, no_folder] =
        ["one", "dst", "one/below"].map(|name| hosts.file(name).display().to_string());
    let (mut reader, full) = full_pipe();
    let mut command = command(&hosts, &["--data-dir", &no_folder, &from, &to]);
    let mut run = command.stdout(Stdio::null()).stderr(full).spawn().expect("it runs");
    // The pipe ends once no process may write to it.
    drop(command);
    assert!(within(Duration::from_secs(120), || hosts.file("dst").exists()), "it waits for the reader");
    std::thread::sleep(Duration::from_secs(2));
    let mut err = String::new();
    reader.read_to_string(&mut err).expect("text");
    assert!(run.wait().expect("a child").success(), "{err}");
    assert!(err.contains("no record of this copy is kept: cannot keep a record in"), "{err}");
}

#[test]
fn a_name_that_is_not_utf8_comes_as_its_bytes() {
    needs_root!();
    let hosts = TestHosts::new();
    let (odd, target) = (hosts.file("").join(OsStr::from_bytes(b"odd\xff")), hosts.file("dst"));
    fs::write(&odd, "odd").unwrap();
    let hex: String = odd.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    for also in ["--dry-run", "--no-record", "--verify"] {
        let mut command = command(&hosts, &["--progress", "json", also]);
        let output = command.arg(&odd).arg(&target).output().expect("it runs");
        let (out, err) = text(&output);
        assert!(output.status.success(), "{also}: {out}{err}");
        let lines = lines(&err);
        assert_eq!(lines[0]["sources"], json!([{ "bytes_hex": hex }]), "{also}: {err}");
        assert_eq!(lines[0]["target"], json!({ "text": target.display().to_string() }), "{also}: {err}");
    }
}

#[test]
fn a_terminal_of_80_columns_shows_what_holds_the_copy() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, to] = slow_copy(&hosts, "40mbit");
    let (code, shown) = Terminal::start(&command(&hosts, &[&from, &to])).end();
    assert_eq!(code, Some(0), "{shown}");
    let drawn = shown.split("\r\u{1b}[J").filter_map(|drawn| drawn.split('\r').next());
    let lines: Vec<&str> = drawn.filter(|line| line.contains(" of 38.1 MiB (")).collect();
    for says in [" %)", "iB/s", " left", "held by: "] {
        assert!(lines.iter().any(|line| line.contains(says)), "{says}: {lines:?}");
    }
    assert!(lines.iter().all(|line| line.chars().count() < 80), "{lines:?}");
}
