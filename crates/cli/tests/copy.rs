//! `landspeed copy` between hosts that are reached by ssh.

#[path = "copy/against.rs"]
mod against;
#[path = "copy/choose.rs"]
mod choose;
#[path = "copy/conditions.rs"]
mod conditions;
#[path = "copy/keep.rs"]
mod keep;
#[path = "copy/links_and_holes.rs"]
mod links_and_holes;
#[path = "copy/meeting.rs"]
mod meeting;
#[path = "copy/mounts.rs"]
mod mounts;
#[path = "copy/progress.rs"]
mod progress;
#[path = "copy/record.rs"]
mod record;
#[path = "copy/refusals.rs"]
mod refusals;
#[path = "copy/select.rs"]
mod select;
mod support;
#[path = "copy/transports.rs"]
mod transports;
#[path = "copy/tuned.rs"]
mod tuned;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::hosts::TestHosts;
use support::ours::within;
use support::schema::checked;
use support::{LANDSPEED, needs_root, sh, text};

const A: &str = "root@10.99.0.2";
const B: &str = "root@10.99.0.3";

/// Runs `landspeed copy ARGS` in the controller's namespace.
fn copy(hosts: &TestHosts, args: &[&str]) -> Output {
    command(hosts, args).output().expect("it runs")
}

fn command(hosts: &TestHosts, args: &[&str]) -> Command {
    let options = hosts.ssh_options();
    let mut all = vec!["copy", "--remote-path", LANDSPEED];
    for option in &options {
        all.extend(["--ssh-option", option]);
    }
    all.extend(args);
    hosts.landspeed(&all)
}

/// Copies, and returns the JSON document.
fn document(hosts: &TestHosts, args: &[&str]) -> Value {
    ended(hosts, args, "copy", 0)
}

/// Runs a copy that ends with this exit status, and returns its JSON document, which has the schema `schema`.
fn ended(hosts: &TestHosts, args: &[&str], schema: &str, code: i32) -> Value {
    let output = copy(hosts, &[args, &["--json"]].concat());
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
    checked(schema, &out)
}

/// Returns each entry below a folder, with its type, length, mode and times in nanoseconds, as find(1) sees them.
fn listing(folder: &Path) -> String {
    let (root, format) = (folder.display(), "%P %y %s %m %T@ %C@ %l\\n");
    sh(&format!("[ ! -e {root} ] || find {root} -printf '{format}' | sort"))
}

/// Maps the name of each entry of a list in a document to the value of its `member`.
fn by_name<'d>(document: &'d Value, list: &str, member: &str) -> BTreeMap<String, &'d Value> {
    let entries = document[list].as_array().expect("a list").iter();
    let name = |entry: &Value| {
        let digits = entry["name_hex"].as_str().expect("digits").as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).unwrap();
        String::from_utf8(digits.chunks(2).map(byte).collect()).expect("text")
    };
    entries.map(|entry| (name(entry), &entry[member])).collect()
}

/// Makes a small tree with a long file in it.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/short"), "short").unwrap();
    let long: Vec<u8> = (0..3_500_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(root.join("a/b/long"), long).unwrap();
}

/// Returns content that takes some time to copy.
fn long_content() -> Vec<u8> {
    (0..40_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Makes the path from this machine to host b slow.
fn slow_path(hosts: &TestHosts, rate: &str) {
    sh(&format!("tc -n {} qdisc add dev pb root tbf rate {rate} burst 100k latency 50ms", hosts.ns("ctl")));
}

/// Returns true if a copy has left, in a folder, an incomplete file of more than this many blocks of 512 bytes.
fn has_part(folder: &Path, blocks: u64) -> bool {
    let entries = fs::read_dir(folder.join(".landspeed-copy")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).any(|seen| seen.blocks() > blocks)
}

/// Checks that both trees have the same content and modes.
fn is_same(one: &Path, other: &Path) {
    for name in ["a/short", "a/b/long"] {
        assert_eq!(fs::read(one.join(name)).unwrap(), fs::read(other.join(name)).unwrap(), "{name}");
        let [mode, mode_there] = [one, other].map(|root| fs::metadata(root.join(name)).unwrap().mode());
        assert_eq!(mode, mode_there, "{name}");
    }
}

#[test]
fn a_folder_is_copied_between_hosts_to_one_and_from_one() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    let [a, b] = ["root@10.99.0.2", "root@10.99.0.3"];
    let between = document(&hosts, &[&format!("{a}:{}", at("src")), &format!("{b}:{}", at("between"))]);
    assert_eq!(between["copied"], 2, "{between}");
    // Both hosts report the times of their stages.
    for (end, stage) in [("source", "hash"), ("target", "sync")] {
        let stages = between["stages"][end].as_array().expect("a list");
        assert!(stages.iter().any(|of| of["stage"] == stage), "{end}: {between}");
    }
    is_same(&hosts.file("src"), &hosts.file("between/src"));
    let to = document(&hosts, &[&at("src/"), &format!("{b}:{}", at("to"))]);
    assert_eq!((&to["copied"], &to["failed"]), (&Value::from(2), &Value::from(0)), "{to}");
    is_same(&hosts.file("src"), &hosts.file("to"));
    let from = document(&hosts, &[&format!("{a}:{}", at("src/")), &at("from")]);
    assert_eq!(from["copied"], 2, "{from}");
    is_same(&hosts.file("src"), &hosts.file("from"));
    // No data is sent twice, and no incomplete file is left.
    let again = document(&hosts, &[&at("src/"), &format!("{b}:{}", at("to"))]);
    assert_eq!((&again["copied"], &again["unchanged"]), (&Value::from(0), &Value::from(5)), "{again}");
    assert!(!hosts.file("to/.landspeed-copy").exists());
}

/// The paths are on this host, in a namespace, and on a host that ssh reaches.
#[test]
fn a_folder_is_copied_within_a_host_and_not_into_itself() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    let namespace = format!("netns:{}", hosts.ns("a"));
    for (number, host) in ["", "root@10.99.0.3:"].into_iter().enumerate() {
        let (from, to) = (format!("{host}{}", at("src/")), format!("{host}{}", at(&format!("to{number}"))));
        let done = document(&hosts, &[&from, &to]);
        assert_eq!((&done["copied"], &done["failed"]), (&Value::from(2), &Value::from(0)), "{done}");
        is_same(&hosts.file("src"), &hosts.file(&format!("to{number}")));
        ended(&hosts, &["--verify", &from, &to], "copy-verify", 0);
    }
    let done = document(&hosts, &["--from", &namespace, "--to", &namespace, &at("src/a"), &at("to")]);
    assert_eq!(
        (&done["from"], &done["copied"]),
        (&Value::from(namespace.as_str()), &Value::from(2)),
        "{done}"
    );
    let before = listing(&hosts.file("src"));
    symlink("src/a", hosts.file("link")).unwrap();
    for (from, to) in [("src", "src/a/new"), ("src/", "src"), ("src", "link")] {
        let output = copy(&hosts, &[&at(from), &at(to)]);
        let (_, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{from} {to}: {err}");
        assert!(err.contains("the target is this folder or lies in it"), "{from} {to}: {err}");
    }
    assert_eq!(listing(&hosts.file("src")), before, "nothing is changed");
}

#[test]
fn a_file_takes_the_targets_name_and_the_summary_says_where_it_is() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::write(hosts.file("one"), "1").unwrap();
    let output = copy(&hosts, &[&at("one"), &format!("root@10.99.0.3:{}", at("two"))]);
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    assert!(out.starts_with("copied 1 file, 1 B, in ") && out.contains("\nheld by: "), "{out}");
    assert!(out.contains("\nconditions found on ") && !out.contains("unchanged"), "{out}");
    assert!(err.contains(&format!("{} -> root@10.99.0.3:{}\n", at("one"), at("two"))), "{err}");
    assert_eq!(fs::read(hosts.file("two")).unwrap(), b"1");
    // The target's folder exists before the copied entries, and is not one of the entries that the walk found.
    tree(&hosts.file("src"));
    let output = copy(&hosts, &[&at("src/"), &format!("root@10.99.0.3:{}", at("dst"))]);
    let (out, err) = text(&output);
    assert!(out.contains("\nmade 2 folders, links and FIFOs\n"), "{out}{err}");
}

#[test]
fn entries_that_cannot_be_copied_are_named_and_set_the_exit_status() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let there = |name: &str| format!("root@10.99.0.3:{}", at(name));
    fs::create_dir(hosts.file("src")).unwrap();
    fs::write(hosts.file("src/fine"), "fine").unwrap();
    fs::write(hosts.file("src/taken"), "taken").unwrap();
    fs::create_dir_all(hosts.file("dst/taken")).unwrap();
    fs::write(hosts.file("file"), "file").unwrap();
    for (args, code, says) in [
        (vec![at("missing"), there("dst")], 1, "missing: there is no such file or folder: check the path"),
        (vec![at("src"), there("file")], 1, "file: is a file: name a folder"),
        (vec![at("src"), there("no/such/dst")], 1, "; create the folder above it first"),
        (vec![at("src/"), there("dst")], 6, "taken: at the target: cannot be opened: Is a directory"),
        (vec!["a:x".to_owned(), "b:x".to_owned(), at("dst")], 2, "sources are on a and on b"),
    ] {
        let output = copy(&hosts, &args.iter().map(String::as_str).collect::<Vec<_>>());
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
        assert!(format!("{out}{err}").contains(says), "{args:?}: {out}{err}");
    }
    assert_eq!(fs::read(hosts.file("dst/fine")).unwrap(), b"fine", "the others are there");
}

#[test]
fn a_dry_run_says_what_a_copy_does_and_changes_nothing() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let (from, to) = (at("src/"), format!("root@10.99.0.3:{}", at("dst")));
    let dry = |args: &[&str], code| ended(&hosts, &[&["--dry-run"], args].concat(), "copy-dry-run", code);
    tree(&hosts.file("src"));
    symlink("a/short", hosts.file("src/link")).unwrap();
    let all = dry(&[&from, &to], 0);
    assert_eq!((&all["files"], &all["file_bytes"]), (&Value::from(2), &Value::from(3_500_005)), "{all}");
    assert_eq!((&all["made"], &all["unchanged"]), (&Value::from(6), &Value::from(0)), "{all}");
    assert!(!hosts.file("dst").exists(), "not even the folder is created");
    document(&hosts, &[&from, &to]);
    let before = listing(&hosts.file("dst"));
    let none = dry(&[&from, &to], 0);
    assert_eq!((&none["files"], &none["unchanged"]), (&Value::from(0), &Value::from(6)), "{none}");
    assert_eq!(listing(&hosts.file("dst")), before, "nothing is changed");

    fs::write(hosts.file("src/a/short"), "longer").unwrap();
    fs::write(hosts.file("src/new"), "new").unwrap();
    fs::set_permissions(hosts.file("src/a/b/long"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(hosts.file("dst/taken")).unwrap();
    fs::write(hosts.file("src/taken"), "taken").unwrap();
    let before = listing(&hosts.file("dst"));
    let some = dry(&[&from, &to], 6);
    let actions = by_name(&some, "entries", "action");
    assert_eq!(actions["a/short"], "replace", "{some}");
    assert_eq!((actions["new"], actions["a/b/long"]), (&Value::from("make"), &Value::from("set")), "{some}");
    let why = by_name(&some, "failures", "why");
    assert!(why["taken"].as_str().is_some_and(|why| why.contains("Is a directory")), "{some}");
    let output = copy(&hosts, &["--dry-run", &from, &to]);
    let (out, err) = text(&output);
    assert!(out.starts_with("would send 2 files, 9 B\nwould make 1 entry, replace 1, "), "{out}{err}");
    assert!(out.contains("\n  replace  a/short\n") && out.contains("\n  make     new\n"), "{out}");
    assert!(err.contains("ends with 6: 1 entry could not be copied"), "{err}");
    assert_eq!(listing(&hosts.file("dst")), before, "nothing is changed");
    // The copy makes the changes that the dry run predicted.
    let done = ended(&hosts, &[&from, &to], "copy", 6);
    assert_eq!((&done["copied"], &done["copied_bytes"]), (&some["files"], &some["file_bytes"]), "{done}");
}

/// A user who may not read some files of the source.
#[test]
fn a_dry_run_names_what_the_copy_cannot_read_and_ends_as_it_does() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::create_dir(hosts.file("src")).unwrap();
    fs::create_dir(hosts.file("dst")).unwrap();
    let names = ["fine", "shut", "empty", "there"];
    names.iter().for_each(|name| fs::write(hosts.file("src").join(name), &name[..name.len() % 5]).unwrap());
    let shut = fs::Permissions::from_mode(0o600);
    names[1..]
        .iter()
        .for_each(|name| fs::set_permissions(hosts.file("src").join(name), shut.clone()).unwrap());
    // Files that exist at the target are not read.
    sh(&format!("cp -p {} {dst} && chown -R 65534:65534 {dst}", at("src/there"), dst = at("dst")));
    let run = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" copy --json \"$@\"";
    let ended = |args: &[&str], schema, code| {
        let output = refusals::script(&hosts, run, args);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
        checked(schema, &out)
    };
    let before = listing(&hosts.file("dst"));
    let (from, to, one) = (at("src/"), at("dst"), at("src/shut"));
    let dry = ended(&["--dry-run", &from, &to], "copy-dry-run", 6);
    let dry_of_one = ended(&["--dry-run", &one, &to], "copy-dry-run", 1);
    assert_eq!(listing(&hosts.file("dst")), before, "nothing is changed");
    assert_eq!((&dry["failed"], &dry["made"]), (&Value::from(2), &Value::from(1)), "{dry}");
    for (tried, done) in
        [(dry, ended(&[&from, &to], "copy", 6)), (dry_of_one, ended(&[&one, &to], "copy", 1))]
    {
        let failures = by_name(&tried, "failures", "why");
        assert_eq!(failures, by_name(&done, "failures", "why"), "{tried} {done}");
        assert!(failures["shut"].as_str().is_some_and(|why| why.contains("Permission denied")), "{tried}");
    }
}

#[test]
fn a_dry_run_fails_where_a_copy_does() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::create_dir(hosts.file("src")).unwrap();
    let output = copy(&hosts, &["--dry-run", &at("src"), &format!("root@10.99.0.3:{}", at("no/such"))]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("no/such: cannot create it: No such file or directory"), "{err}");
}

#[test]
fn a_verification_names_each_difference_and_sends_no_content() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let (from, to) = (at("src/"), format!("root@10.99.0.3:{}", at("dst")));
    let verify = |code| ended(&hosts, &["--verify", &from, &to], "copy-verify", code);
    tree(&hosts.file("src"));
    ["link", "relinked"].iter().for_each(|name| symlink("a/short", hosts.file("src").join(name)).unwrap());
    ["gone", "mode", "time", "size", "kind"]
        .iter()
        .for_each(|name| fs::write(hosts.file("src").join(name), *name).unwrap());
    document(&hosts, &[&from, &to]);
    let sent = || hosts.link_bytes("ctl", "pb", "tx");
    let before = sent();
    let equal = verify(0);
    let bytes = sent() - before;
    assert!(bytes < 1_000_000, "{bytes} bytes were sent, and the files have 3.5 MB");
    assert_eq!((&equal["compared"], &equal["differing"]), (&Value::from(12), &Value::from(0)), "{equal}");
    let disk = ended(&hosts, &["--verify=disk", &from, &to], "copy-verify", 0);
    assert_eq!((&disk["compared"], &disk["differing"]), (&Value::from(12), &Value::from(0)), "{disk}");

    // One byte differs, while length and time are as before.
    let dst = |name: &str| hosts.file("dst").join(name);
    let times = at("dst/a/b/long");
    sh(&format!("set -e; touch -r {times} {times}.time; printf x | dd of={times} bs=1 seek=3000000 conv=notrunc 2>/dev/null
        touch -r {times}.time {times}; rm {times}.time; touch -r {}/a/b {}/a/b", at("src"), at("dst")));
    fs::remove_file(dst("gone")).unwrap();
    fs::set_permissions(dst("mode"), fs::Permissions::from_mode(0o600)).unwrap();
    sh(&format!("touch -d @1000000000 {}", at("dst/time")));
    fs::write(dst("size"), "longer").unwrap();
    fs::remove_file(dst("kind")).and_then(|()| fs::create_dir(dst("kind"))).unwrap();
    sh(&format!(
        "ln -sfn elsewhere {0}/relinked && touch -h -r {1}/relinked {0}/relinked",
        at("dst"),
        at("src")
    ));
    let before = listing(&hosts.file("dst"));
    let differing = verify(6);
    let found = by_name(&differing, "entries", "differs");
    let found: Vec<String> = found.into_iter().map(|(name, differs)| format!("{name} {differs}")).collect();
    let expected = [
        "a/b/long [\"content\"]",
        "gone [\"missing\"]",
        "kind [\"kind\"]",
        "mode [\"mode\"]",
        "relinked [\"link\"]",
        "size [\"size\",\"time\"]",
        "time [\"time\"]",
    ];
    assert_eq!(found, expected, "{differing}");
    let output = copy(&hosts, &["--verify", &from, &to]);
    let (out, err) = text(&output);
    assert!(out.starts_with("NOT equal: 7 of 12 entries, "), "{out}{err}");
    assert!(out.contains("\n  a/b/long: content\n") && out.contains("\n  size: size, time\n"), "{out}");
    assert!(err.contains("ends with 6: not equal: 7 of 12 entries"), "{err}");
    assert_eq!(listing(&hosts.file("dst")), before, "nothing is changed");
}

#[test]
fn files_of_an_interrupted_copy_are_listed_and_removed() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let to = format!("root@10.99.0.3:{}", at("dst"));
    let clean = |more: &[&str]| ended(&hosts, &[&["--clean", &to], more].concat(), "copy-clean", 0);
    fs::create_dir(hosts.file("src")).unwrap();
    fs::write(hosts.file("src/long"), long_content()).unwrap();
    // The copy takes many seconds.
    slow_path(&hosts, "20mbit");
    let mut copying = command(&hosts, &[&at("src/"), &to]).stderr(Stdio::null()).spawn().expect("it runs");
    let own = hosts.file("dst/.landspeed-copy");
    let has_begun = || has_part(&hosts.file("dst"), 2_048);
    assert!(within(Duration::from_secs(60), has_begun), "the copy does not begin");
    let refused = copy(&hosts, &["--clean", &to]);
    let (out, err) = text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("another copy writes here (process ") && err.contains("wait for its end"), "{err}");
    copying.kill().and_then(|()| copying.wait()).expect("it runs");
    assert!(hosts.quiet(Duration::from_secs(30)), "the agents end");
    let listed = clean(&["--dry-run"]);
    assert_eq!(
        (&listed["number"], &listed["is_removed"]),
        (&Value::from(1), &Value::from(false)),
        "{listed}"
    );
    assert!(listed["bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{listed}");
    assert!(has_begun(), "a list removes nothing");
    let output = copy(&hosts, &["--clean", &to]);
    let (out, err) = text(&output);
    assert!(output.status.success() && out.starts_with("removed 1 incomplete file, "), "{out}{err}");
    assert!(out.contains(" old: ") && out.contains(".part\n"), "{out}");
    assert!(!own.exists() && hosts.file("dst").exists());
    assert_eq!(clean(&[])["number"], 0);
    let (_, err) = text(&copy(&hosts, &["--clean", &to, &to]));
    assert!(err.contains("--clean takes one path"), "{err}");
}
