//! The attributes that a copy keeps, and its report on those that it cannot keep.

use rustix::fs::XattrFlags;

use super::refusals::script;
use super::*;
use crate::support::skip;

/// Sets an extended attribute of a file. Returns false if the file system has none.
fn set(path: &Path, name: &str) -> bool {
    rustix::fs::setxattr(path, name, b"value", XattrFlags::empty()).is_ok()
}

#[test]
fn owners_and_attributes_are_kept_where_the_far_end_is_root() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    let has_attributes = set(&hosts.file("src/a/short"), "user.note");
    let fifo = hosts.file("src/fifo");
    sh(&format!("mkfifo {0} && chown -R 1234:1235 {1} && chmod 4750 {1}/a/short", fifo.display(), at("src")));
    let (from, to) = (at("src/"), format!("root@10.99.0.3:{}", at("dst")));
    let done = document(&hosts, &[&from, &to]);
    assert_eq!((&done["failed"], &done["lost"]), (&Value::from(0), &Value::Array(Vec::new())), "{done}");
    let seen = fs::metadata(hosts.file("dst/a/short")).unwrap();
    assert_eq!((seen.uid(), seen.gid(), seen.mode() & 0o7777), (1234, 1235, 0o4750));
    let mut room = [0_u8; 64];
    let read = rustix::fs::getxattr(hosts.file("dst/a/short"), "user.note", &mut room);
    assert_eq!(read.is_ok(), has_attributes);
    ended(&hosts, &["--verify", &from, &to], "copy-verify", 0);
    sh(&format!("chown 7:8 {0}/a/b && rm {0}/fifo && mkfifo -m 600 {0}/fifo", at("dst")));
    let differing = ended(&hosts, &["--verify", &from, &to], "copy-verify", 6);
    let differs = by_name(&differing, "entries", "differs");
    assert_eq!(differs["a/b"].to_string(), "[\"owner\"]", "{differing}");
    let only = ended(&hosts, &["--verify", "--keep", "mode,times", &from, &to], "copy-verify", 6);
    assert!(!by_name(&only, "entries", "differs").contains_key("a/b"), "{only}");
    document(&hosts, &[&from, &to]);
    ended(&hosts, &["--verify", &from, &to], "copy-verify", 0);
}

/// ramfs has no attributes.
#[test]
fn attributes_that_the_target_refuses_are_reported_and_can_be_left_out() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    fs::create_dir(hosts.file("dst")).unwrap();
    if !set(&hosts.file("src/a/short"), "user.note") {
        return skip("the file system has no extended attributes");
    }
    let run = "mount -t ramfs none \"$2\" || exit 77; \"$0\" copy \"$1\" \"$2\" 2>&1; echo \"ended with $?\"
        \"$0\" copy --keep mode,times,owner,acls \"$1\" \"$2\" 2>&1; echo \"ended with $?\"
        cat \"$2/a/short\"";
    let output = script(&hosts, run, &[&at("src/"), &at("dst")]);
    let (out, err) = text(&output);
    if output.status.code() == Some(77) {
        return skip("no ramfs can be mounted");
    }
    let (with, without) = out.split_once("ended with 6\n").expect("an incomplete copy");
    let lost = "NOT kept: extended attributes of 1 entry, for example of a/short: ";
    assert!(with.contains(lost) && with.contains("--keep"), "{out}{err}");
    assert!(with.contains("the target did not take extended attributes of 1 entry"), "{out}{err}");
    assert!(!without.contains("NOT kept") && without.ends_with("ended with 0\nshort"), "{out}{err}");
}

#[test]
fn an_acl_is_not_kept_without_the_mode() {
    let output =
        Command::new(LANDSPEED).args(["copy", "--keep", "acls", "a", "b"]).output().expect("it runs");
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("--keep acls needs mode"), "{err}");
}
