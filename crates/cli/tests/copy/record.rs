//! The record that a copy leaves.

use super::*;

/// Runs `landspeed show last ARGS`, and returns what it prints.
pub(super) fn shown(hosts: &TestHosts, args: &[&str]) -> String {
    let output = hosts.landspeed(&[&["show", "last"], args].concat()).output().expect("it runs");
    let (out, err) = text(&output);
    assert!(output.status.success(), "{args:?}: {out}{err}");
    out
}

/// Returns the kind and the state of all records, newest first.
fn records(hosts: &TestHosts) -> Vec<[Value; 2]> {
    let output = hosts.landspeed(&["records", "--json"]).output().expect("it runs");
    let (out, _) = text(&output);
    let document: Value = serde_json::from_str(&out).expect("a document");
    let rows = document["records"].as_array().expect("a list").iter();
    rows.map(|row| [row["kind"].clone(), row["state"].clone()]).collect()
}

#[test]
fn a_record_shows_what_the_command_has_printed() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    // The name contains a terminal control sequence.
    let source = at("src\u{1b}[2J/");
    tree(Path::new(&source));
    let to = format!("root@10.99.0.3:{}", at("to"));
    let done = document(&hosts, &[&source, &to]);
    assert_eq!(checked("copy", &shown(&hosts, &["--json"])), done);
    for facts in ["source_facts", "target_facts"] {
        let conditions = &done[facts]["conditions"];
        assert!(conditions["mtu"]["mtu"].is_string() && conditions["windows"].is_object(), "{facts}: {done}");
    }
    assert!(done["controls"].as_array().is_some_and(|controls| !controls.is_empty()), "{done}");
    assert_eq!(records(&hosts), [[Value::from("copy"), Value::from("done")]]);
    let (brief, page) = (shown(&hosts, &[]), at("page.html"));
    assert!(brief.contains("held by: ") && brief.contains("files copied"), "{brief}");
    assert!(brief.contains("conditions found on "), "{brief}");
    assert!(!brief.contains('\u{1b}') && brief.contains("src\\u{1b}[2J"), "{brief}");
    shown(&hosts, &["--full", "--md", "--html", &page]);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("held by") && page.contains("conditions found on "));
    document(&hosts, &[&source, &to, "--no-record"]);
    ended(&hosts, &["--dry-run", &source, &to], "copy-dry-run", 0);
    assert_eq!(records(&hosts).len(), 1);
}

/// A file system in memory is on no disk.
#[test]
fn a_record_has_what_the_disk_under_a_copy_did() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::write(hosts.file("src"), vec![7; 8 << 20]).unwrap();
    let to_memory = format!("root@10.99.0.3:{}/", memory.path().display());
    let done = document(&hosts, &[&at("src"), &to_memory]);
    assert!(done["target_disk"].is_null() && done["stages"]["target_disk"].is_null(), "{done}");
    let done = document(&hosts, &[&at("src"), &format!("root@10.99.0.3:{}", at("to"))]);
    let (disk, times) = (&done["target_disk"], &done["stages"]["target_disk"]);
    if times.is_null() {
        return eprintln!("SKIP: the temporary folder is on no single disk");
    }
    assert!(times["written_bytes"].as_u64() >= Some(8 << 20), "the file is on stable storage: {times}");
    assert!(disk["device"] == times["device"] && disk["written_bytes_per_s"].as_f64() > Some(0.0), "{disk}");
    let shown = shown(&hosts, &["--full"]);
    assert!(shown.contains("Disks of the hosts"), "{shown}");
}

/// The records lie in the copied folder. A record that grew during the copy would be a changing file.
#[test]
fn the_folder_of_the_records_is_copied_as_any_other() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    document(&hosts, &[&at("src"), &format!("root@10.99.0.3:{}", at("to"))]);
    let done = document(&hosts, &[&at("data/"), &format!("root@10.99.0.3:{}", at("backup"))]);
    assert_eq!((&done["copied"], &done["failed"]), (&Value::from(2), &Value::from(0)), "{done}");
    assert_eq!(records(&hosts).len(), 2);
}

#[test]
fn a_copy_is_done_although_no_record_can_be_kept() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::write(hosts.file("one"), "1").unwrap();
    let output = copy(&hosts, &["--data-dir", &at("one/below"), &at("one"), &at("two")]);
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    assert!(err.contains("no record of this copy is kept: cannot keep a record in"), "{err}");
    assert_eq!(fs::read(hosts.file("two")).unwrap(), b"1");
}
