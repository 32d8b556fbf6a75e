//! Hard links and holes in a copy.

use std::os::unix::fs::FileExt;

use super::*;

#[test]
fn links_and_holes_are_kept_between_hosts() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let there = |name: &str| format!("root@10.99.0.3:{}", at(name));
    tree(&hosts.file("src"));
    for name in ["src/long", "src/a/again"] {
        fs::hard_link(hosts.file("src/a/b/long"), hosts.file(name)).unwrap();
    }
    let done = document(&hosts, &[&at("src/"), &there("dst")]);
    assert_eq!((&done["copied"], &done["made"]), (&Value::from(2), &Value::from(4)), "{done}");
    assert_eq!(done["sent_bytes"], 3_500_005, "the content of a file goes once: {done}");
    is_same(&hosts.file("src"), &hosts.file("dst"));
    let linked =
        ["dst/a/b/long", "dst/long", "dst/a/again"].map(|name| fs::metadata(hosts.file(name)).unwrap());
    assert!(linked.iter().all(|one| (one.ino(), one.nlink()) == (linked[0].ino(), 3)));
    ended(&hosts, &["--verify", &at("src/"), &there("dst")], "copy-verify", 0);
    // One of the links becomes a separate file, with the same content and time.
    sh(&format!("cp -p {0} {0}.own && mv {0}.own {0}", at("dst/long")));
    let split = ended(&hosts, &["--verify", &at("src/"), &there("dst")], "copy-verify", 6);
    let differs = by_name(&split, "entries", "differs");
    let is_split = differs.values().all(|one| **one == serde_json::json!(["split"]));
    assert!(!differs.is_empty() && is_split, "{split}");
    let mended = document(&hosts, &[&at("src/"), &there("dst")]);
    assert_eq!((&mended["copied"], &mended["failed"]), (&Value::from(0), &Value::from(0)), "{mended}");
    ended(&hosts, &["--verify", &at("src/"), &there("dst")], "copy-verify", 0);
}

#[test]
fn a_file_that_is_nearly_all_hole_arrives_so() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::create_dir(hosts.file("src")).unwrap();
    let disk = fs::File::create(hosts.file("src/disk")).unwrap();
    disk.set_len(1 << 40).unwrap();
    let offset = 99_999 * 4_096;
    disk.write_all_at(&[7; 4_096], offset).unwrap();
    disk.sync_all().unwrap();
    if disk.metadata().unwrap().blocks() > 2_048 {
        return eprintln!("this file system has no holes");
    }
    let done = document(&hosts, &[&at("src/"), &format!("root@10.99.0.3:{}", at("dst"))]);
    assert_eq!((&done["copied"], &done["failed"]), (&Value::from(1), &Value::from(0)), "{done}");
    assert!(done["sent_bytes"].as_u64().is_some_and(|bytes| bytes <= 65_536), "{done}");
    let there = fs::File::open(hosts.file("dst/disk")).unwrap();
    let seen = there.metadata().unwrap();
    assert!(seen.len() == 1 << 40 && seen.blocks() <= 4_096, "{} blocks", seen.blocks());
    let mut bytes = [0; 4_098];
    there.read_exact_at(&mut bytes, offset - 1).unwrap();
    assert!(bytes[0] == 0 && bytes[1..4_097].iter().all(|byte| *byte == 7) && bytes[4_097] == 0);
}
