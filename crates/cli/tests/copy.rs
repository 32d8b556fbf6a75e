//! `landspeed copy` between hosts that are reached by ssh.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use support::hosts::TestHosts;
use support::schema::checked;
use support::{LANDSPEED, needs_root, text};

/// Runs `landspeed copy ARGS` in the controller's namespace.
fn copy(hosts: &TestHosts, args: &[&str]) -> Output {
    let options = hosts.ssh_options();
    let mut all = vec!["copy", "--remote-path", LANDSPEED];
    for option in &options {
        all.extend(["--ssh-option", option]);
    }
    all.extend(args);
    hosts.landspeed(&all).output().expect("it runs")
}

/// Copies, and returns the JSON document.
fn document(hosts: &TestHosts, args: &[&str]) -> Value {
    let output = copy(hosts, &[args, &["--json"]].concat());
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    checked("copy", &out)
}

/// Makes a small tree with a long file in it.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/short"), "short").unwrap();
    let long: Vec<u8> = (0..3_500_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(root.join("a/b/long"), long).unwrap();
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
    is_same(&hosts.file("src"), &hosts.file("between/src"));
    let to = document(&hosts, &[&at("src/"), &format!("{b}:{}", at("to"))]);
    assert_eq!((&to["copied"], &to["failed"]), (&Value::from(2), &Value::from(0)), "{to}");
    is_same(&hosts.file("src"), &hosts.file("to"));
    let from = document(&hosts, &[&format!("{a}:{}", at("src/")), &at("from")]);
    assert_eq!(from["copied"], 2, "{from}");
    is_same(&hosts.file("src"), &hosts.file("from"));
    // Nothing is sent twice, and nothing is left.
    let again = document(&hosts, &[&at("src/"), &format!("{b}:{}", at("to"))]);
    assert_eq!((&again["copied"], &again["unchanged"]), (&Value::from(0), &Value::from(5)), "{again}");
    assert!(!hosts.file("to/.landspeed-copy").exists());
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
    assert!(out.starts_with("copied 1 files, 1 B, in "), "{out}");
    assert!(err.contains(&format!("local:{} -> root@10.99.0.3:{}\n", at("one"), at("two"))), "{err}");
    assert_eq!(fs::read(hosts.file("two")).unwrap(), b"1");
}

#[test]
fn what_cannot_be_copied_is_named_with_its_exit_status() {
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
        (vec![at("missing"), there("dst")], 1, "missing: there is no such file or folder"),
        (vec![at("src"), there("file")], 1, "file: is a file: name a folder"),
        (vec![at("src"), there("no/such/dst")], 1, "cannot create it: No such file or directory"),
        (vec![at("src/"), there("dst")], 6, "taken: cannot be opened: Is a directory"),
        (vec!["a:x".to_owned(), "b:x".to_owned(), at("dst")], 2, "sources are on a and on b"),
    ] {
        let output = copy(&hosts, &args.iter().map(String::as_str).collect::<Vec<_>>());
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{err}");
        assert!(format!("{out}{err}").contains(says), "{args:?}: {out}{err}");
    }
    assert_eq!(fs::read(hosts.file("dst/fine")).unwrap(), b"fine", "the others are there");
}
