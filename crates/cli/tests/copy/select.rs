//! Copies of a selection, and copies that delete extra entries of the target.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::refusals::script;
use super::*;

/// Creates files, and folders for names with a slash at the end.
fn make(root: &Path, names: &[&[u8]]) {
    for name in names {
        let path = root.join(OsStr::from_bytes(name));
        match name.ends_with(b"/") {
            true => fs::create_dir_all(path).unwrap(),
            false => fs::write(path, name).unwrap(),
        }
    }
}

/// Returns the names below a folder, as find(1) sees them.
fn names(folder: &Path) -> Vec<String> {
    let listed = sh(&format!(
        "cd {} && find . -mindepth 1 -printf '%P\\0' | tr '\\n\\0' '?\\n' | sort",
        folder.display()
    ));
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn ignored_entries_are_neither_copied_nor_deleted() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let src = hosts.file("src");
    fs::create_dir_all(src.join("a")).unwrap();
    make(&src, &[b"a/f", b"a/x.o", b"a/keep.o", b"build/", b"build/f", b"b.tmp\xff"]);
    fs::write(hosts.file("rules"), b"# what is made anew\n*.o\n/build/\n*.tmp\xff\n").unwrap();
    let (from, to) = (at("src/"), format!("root@10.99.0.3:{}", at("dst")));
    let rules = ["--ignore-from", &at("rules"), "--ignore", "!keep.o"].map(str::to_owned);
    let with = |more: &[&str]| {
        let all = rules.iter().map(String::as_str).chain(more.iter().copied());
        all.chain([from.as_str(), to.as_str()]).map(str::to_owned).collect::<Vec<String>>()
    };
    let run = |more: &[&str], schema, code| {
        let args = with(more);
        ended(&hosts, &args.iter().map(String::as_str).collect::<Vec<_>>(), schema, code)
    };
    let done = run(&[], "copy", 0);
    assert_eq!((&done["copied"], &done["failed"]), (&Value::from(2), &Value::from(0)), "{done}");
    assert_eq!(names(&hosts.file("dst")), ["a", "a/f", "a/keep.o"]);
    run(&["--verify"], "copy-verify", 0);
    // Ignored entries stay at the target too.
    make(&hosts.file("dst"), &[b"a/theirs.o", b"build/", b"build/theirs", b"old/", b"old/f"]);
    let done = run(&["--delete"], "copy", 0);
    assert_eq!((&done["deleted"], &done["not_deleted"]), (&Value::from(2), &Value::from("")), "{done}");
    assert_eq!(names(&hosts.file("dst")), ["a", "a/f", "a/keep.o", "a/theirs.o", "build", "build/theirs"]);
    let output = copy(&hosts, &["--ignore", "[a", &from, &to]);
    let (_, err) = text(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("the ignore rule \"[a\" is no pattern"), "{err}");
}

#[test]
fn extra_entries_of_the_target_are_listed_counted_and_deleted() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let (from, to) = (at("src"), format!("root@10.99.0.3:{}", at("dst")));
    tree(&hosts.file("src"));
    fs::create_dir(hosts.file("dst")).unwrap();
    document(&hosts, &[&from, &to]);
    // Entries beside the copied folder do not belong to the copy.
    make(&hosts.file("dst"), &[b"beside", b"src/old/", b"src/old/f\n\xff", b"src/a/new"]);
    fs::create_dir(hosts.file("outside")).unwrap();
    make(&hosts.file("outside"), &[b"victim"]);
    symlink(hosts.file("outside"), hosts.file("dst/src/link")).unwrap();
    let (before, all) = (listing(&hosts.file("dst")), names(&hosts.file("dst")));
    let dry = ended(&hosts, &["--dry-run", "--delete", &from, &to], "copy-dry-run", 0);
    assert_eq!((&dry["deleted"], &dry["files"]), (&Value::from(4), &Value::from(0)), "{dry}");
    let output = copy(&hosts, &["--dry-run", "--delete", &from, &to]);
    let (out, _) = text(&output);
    assert!(out.contains("would delete 4 entries that only the target has\n"), "{out}");
    assert!(out.contains("\n  delete   src/link\n") && out.contains("\n  delete   src/old\n"), "{out}");
    assert_eq!(listing(&hosts.file("dst")), before, "a dry run changes nothing");
    let few = ["--delete", "--max-delete", "3", &from, &to];
    let refused = ended(&hosts, &few, "copy", 6);
    assert_eq!(&refused["deleted"], &Value::from(0), "{refused}");
    let why = refused["not_deleted"].as_str().expect("a reason");
    assert!(why.contains("--max-delete allows fewer than the 4 that only"), "{why}");
    assert_eq!(names(&hosts.file("dst")), all, "nothing is deleted");
    let done = ended(&hosts, &["--delete", "--max-delete", "4", &from, &to], "copy", 0);
    assert_eq!(&done["deleted"], &Value::from(4), "{done}");
    assert_eq!(
        names(&hosts.file("dst")),
        ["beside", "src", "src/a", "src/a/b", "src/a/b/long", "src/a/short"]
    );
    assert!(hosts.file("outside/victim").exists(), "a link is not followed");
    // Within one host, the source could lie among the entries to delete.
    let (_, err) = text(&copy(&hosts, &["--delete", &at("src/a/b/"), &at("src/a")]));
    assert!(err.contains("--delete would delete this folder"), "{err}");
    assert!(hosts.file("src/a/b/long").exists());
    for (args, says) in [
        (vec!["--delete", "--verify", &from, &to], "cannot be used with"),
        (vec!["--max-delete", "3", &from, &to], "--delete"),
        (vec!["--delete", &at("src/a/short"), &to], "--delete needs folders"),
    ] {
        let output = copy(&hosts, &args);
        let (_, err) = text(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.contains(says), "{args:?}: {err}");
    }
}

/// If a user may not read a folder of the source, its entries are unknown.
#[test]
fn nothing_is_deleted_where_a_folder_cannot_be_read() {
    needs_root!();
    let hosts = TestHosts::new();
    tree(&hosts.file("src"));
    fs::create_dir(hosts.file("src/shut")).unwrap();
    fs::set_permissions(hosts.file("src/shut"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(hosts.file("dst")).unwrap();
    fs::create_dir(hosts.file("dst/shut")).unwrap();
    make(&hosts.file("dst"), &[b"extra", b"shut/f"]);
    sh(&format!("chown -R 65534:65534 {}", hosts.file("dst").display()));
    let run = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" copy --delete --json \"$@\"";
    let [from, to] = ["src/", "dst"].map(|name| hosts.file(name).display().to_string());
    let output = script(&hosts, run, &[&from, &to]);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(6), "{out}{err}");
    let done = checked("copy", &out);
    assert_eq!((&done["deleted"], &done["failed"]), (&Value::from(0), &Value::from(1)), "{done}");
    assert_eq!(&done["not_deleted"], "nothing was deleted, because entries failed");
    assert!(hosts.file("dst/extra").exists() && hosts.file("dst/shut/f").exists());
}

/// The digest of empty content, as b3sum(1) prints it.
const OF_NOTHING: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

#[test]
fn the_manifest_has_what_was_copied() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let (from, to) = (at("src"), format!("root@10.99.0.3:{}", at("dst")));
    let with = ["--manifest", &at("sums"), &from, &to].map(str::to_owned);
    let run = |code| ended(&hosts, &with.each_ref().map(String::as_str), "copy", code);
    tree(&hosts.file("src"));
    for name in [&b"nothing"[..], b"a/new\nline", b"a/back\\slash", b"odd\xff"] {
        fs::write(hosts.file("src").join(OsStr::from_bytes(name)), "").unwrap();
    }
    fs::create_dir(hosts.file("dst")).unwrap();
    let done = run(0);
    assert_eq!(done["manifest"], serde_json::json!({"files": 5, "left_out": 1, "with_holes": 0}), "{done}");
    let written = fs::read_to_string(hosts.file("sums")).unwrap();
    let mut lines: Vec<&str> = written.lines().filter(|line| line.contains(OF_NOTHING)).collect();
    lines.sort();
    let expected = [
        format!("\\{OF_NOTHING}  src/a/back\\\\slash"),
        format!("\\{OF_NOTHING}  src/a/new\\nline"),
        format!("{OF_NOTHING}  src/nothing"),
    ];
    assert_eq!(lines, expected);
    assert_eq!(written.lines().count(), 5, "{written}");
    if support::output("command -v b3sum").status.success() {
        sh(&format!("cd {} && b3sum --check {}", at("dst"), at("sums")));
    }
    // Files that the target has already are not read.
    assert_eq!(run(0)["manifest"], serde_json::json!({"files": 0, "left_out": 0, "with_holes": 0}));
    assert_eq!(fs::read(hosts.file("sums")).unwrap(), b"");
    let none = copy(&hosts, &["--manifest", &at("none/sums"), &from, &to]);
    let (_, err) = text(&none);
    assert!(err.contains("none/sums: cannot write a manifest there"), "{err}");
}

/// The copy is complete, and its report says so.
#[test]
fn a_manifest_that_cannot_be_written_is_reported_beside_the_copied_files() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    ["src", "sums"].into_iter().for_each(|name| fs::create_dir(hosts.file(name)).unwrap());
    (0..200).for_each(|n| fs::write(hosts.file(&format!("src/{n}")), "").unwrap());
    let run = "mount -t tmpfs -o size=4k none \"$3\"; exec \"$0\" copy --manifest \"$3/sums\" \"$1\" \"$2\"";
    let output = script(&hosts, run, &[&at("src/"), &at("dst"), &at("sums")]);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(
        out.starts_with("copied 200 files") && err.contains("/sums: cannot write the manifest"),
        "{out}{err}"
    );
    assert_eq!(fs::read_dir(hosts.file("dst")).unwrap().count(), 200);
}

#[test]
fn only_what_a_file_names_is_copied() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let (from, to) = (at("src/"), format!("root@10.99.0.3:{}", at("dst")));
    tree(&hosts.file("src"));
    make(&hosts.file("src"), &[b"b/", b"b/inner/", b"b/inner/f", b"b/x.o", b"odd\xff\n", b"top"]);
    fs::write(hosts.file("list"), b"./a/short\0b/\0odd\xff\n\0").unwrap();
    let list = at("list");
    let args = ["--files-from", &list, "--null", "--ignore", "*.o", &from, &to];
    let dry = ended(&hosts, &[&["--dry-run"], &args[..]].concat(), "copy-dry-run", 0);
    assert_eq!(&dry["files"], &Value::from(3), "{dry}");
    let done = ended(&hosts, &args, "copy", 0);
    assert_eq!((&done["copied"], &done["failed"]), (&Value::from(3), &Value::from(0)), "{done}");
    let there = names(&hosts.file("dst"));
    assert_eq!(there.len(), 6, "{there:?}");
    assert_eq!(there[..5], ["a", "a/short", "b", "b/inner", "b/inner/f"]);
    ended(&hosts, &[&["--verify"], &args[..]].concat(), "copy-verify", 0);
    // Some names are missing, and some lead out of the folder.
    fs::write(hosts.file("list"), "top\nnone\n").unwrap();
    let missing = ended(&hosts, &["--files-from", &list, &from, &to], "copy", 6);
    assert_eq!(by_name(&missing, "failures", "why").keys().collect::<Vec<_>>(), ["none"], "{missing}");
    fs::write(hosts.file("list"), "../outside\n").unwrap();
    for (args, says) in [
        (
            vec!["--files-from", &list, &from, &to],
            "\"../outside\" in --files-from leads out of the source folder",
        ),
        (vec!["--files-from", &list, "--delete", &from, &to], "cannot be used with"),
        (vec!["--files-from", &list, &at("src/top"), &to], "--files-from takes one source"),
    ] {
        let output = copy(&hosts, &args);
        let (_, err) = text(&output);
        assert!(!output.status.success() && err.contains(says), "{args:?}: {err}");
    }
}

#[test]
fn files_are_compared_by_content_and_sent_at_a_limited_rate() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let (from, to) = (at("src/"), format!("root@10.99.0.3:{}", at("dst")));
    tree(&hosts.file("src"));
    document(&hosts, &[&from, &to]);
    // One file has another byte and the same time, and one has another time and the same bytes.
    sh(&format!(
        "set -e; cd {}/a; touch -r b/long time; printf x | dd of=b/long bs=1 seek=3000000 conv=notrunc 2>/dev/null
        touch -r time b/long; rm time; touch -d @1000000000 short",
        at("dst")
    ));
    let sums = at("sums");
    let args = ["--checksum", &from, &to];
    let dry = ended(&hosts, &[&["--dry-run"], &args[..]].concat(), "copy-dry-run", 0);
    let actions = by_name(&dry, "entries", "action");
    assert_eq!(
        (actions["a/b/long"], actions["a/short"]),
        (&Value::from("replace"), &Value::from("set")),
        "{dry}"
    );
    let begun = std::time::Instant::now();
    let limited = ["--manifest", sums.as_str(), "--limit-rate", "8MB/s"];
    let done = ended(&hosts, &[&limited, &args[..]].concat(), "copy", 0);
    assert_eq!((&done["copied"], &done["sent_bytes"]), (&Value::from(1), &Value::from(1 << 20)), "{done}");
    assert_eq!(done["manifest"]["files"], 2, "what was compared is proven too: {done}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    is_same(&hosts.file("src"), &hosts.file("dst"));
    ended(&hosts, &["--verify", &from, &to], "copy-verify", 0);
    for name in ["--limit-rate", "--limit"] {
        let (_, err) = text(&copy(&hosts, &[name, "1", &from, &to]));
        assert!(err.contains("a limit is at least 64 kb/s"), "{err}");
    }
}
