//! One file tree under two paths. Mounts are made in a mount namespace that ends with the command (ip-netns(8)).

use super::refusals::script;
use super::*;

/// Copies while one folder is also mounted at another path. Returns the exit status and the output.
fn copy_with_mount(hosts: &TestHosts, [folder, point]: [&str; 2], args: &[&str]) -> (Option<i32>, String) {
    let run = "set -e; mount --bind \"$1\" \"$2\"; shift 2; exec \"$0\" copy \"$@\" 2>&1";
    let [folder, point] = [folder, point].map(|name| hosts.file(name).display().to_string());
    let output = script(hosts, run, &[&[folder.as_str(), point.as_str()], args].concat());
    let (out, _) = text(&output);
    (output.status.code(), out)
}

#[test]
fn a_folder_that_a_mount_shows_twice_is_copied_neither_into_itself_nor_deleted() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    for folder in ["mount", "dst/deep", "dst/src", "src/a/mount"] {
        fs::create_dir_all(hosts.file(folder)).unwrap();
    }
    fs::write(hosts.file("dst/deep/only here"), "x").unwrap();
    let before = [listing(&hosts.file("src")), listing(&hosts.file("dst"))];
    let (into_itself, deletes, below) = (
        "the target is this folder or lies in it",
        "--delete would delete this folder",
        "a mount leads from it into the target or the reverse",
    );
    let namespace = format!("netns:{}", hosts.ns("a"));
    let [src, dst, mount, new] = ["src/", "dst", "mount", "mount/new/deeper"].map(at);
    let within = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    for (mounted, args, says) in [
        (["src", "mount"], within(&[&src, &mount]), into_itself),
        (["src", "mount"], within(&["--delete", &src, &mount]), into_itself),
        (
            ["src", "mount"],
            within(&["--dry-run", "--from", &namespace, "--to", &namespace, &src, &mount]),
            into_itself,
        ),
        (["src", "dst/src"], within(&[src.trim_end_matches('/'), &dst]), into_itself),
        // No parent of the mount is the source.
        (["src/a", "mount"], within(&[&src, &new]), into_itself),
        (["dst/deep", "mount"], within(&["--delete", &format!("{mount}/"), &dst]), deletes),
        (["dst/deep", "src/a/mount"], within(&["--delete", &src, &dst]), below),
        (["src/a/b", "dst/deep"], within(&["--delete", &src, &dst]), below),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (code, out) = copy_with_mount(&hosts, mounted, &args);
        assert_eq!(code, Some(1), "{mounted:?} {args:?}: {out}");
        assert!(out.contains(says) && out.contains("name another target"), "{mounted:?} {args:?}: {out}");
    }
    assert_eq!([listing(&hosts.file("src")), listing(&hosts.file("dst"))], before, "nothing is changed");
    // Copies of the target folder's own content are permitted, and so are mounts without relation to the copy.
    let (code, out) = copy_with_mount(&hosts, ["dst/deep", "mount"], &[&format!("{mount}/"), &dst]);
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(fs::read(hosts.file("dst/only here")).unwrap(), b"x");
    let (code, out) = copy_with_mount(&hosts, ["src", "mount"], &["--delete", &src, &at("other")]);
    assert_eq!(code, Some(0), "{out}");
    is_same(&hosts.file("src"), &hosts.file("other"));
}

/// The source is a mount point without a mount.
#[test]
fn an_empty_source_deletes_nothing_unless_a_bound_is_given() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    let (from, to) = (at("src/"), format!("root@10.99.0.3:{}", at("dst")));
    fs::create_dir(hosts.file("src")).unwrap();
    tree(&hosts.file("dst"));
    let before = listing(&hosts.file("dst/a"));
    let says = format!("{from} is empty, and 4 of the target's entries would go: mount what belongs there");
    for (args, schema) in [(&["--dry-run"][..], "copy-dry-run"), (&[], "copy")] {
        let report = ended(&hosts, &[args, &["--delete", &from, &to]].concat(), schema, 6);
        let why = report["not_deleted"].as_str().expect("a reason");
        assert!(why.contains(&says) && why.ends_with("--max-delete 4"), "{report}");
        assert_eq!(listing(&hosts.file("dst/a")), before, "nothing is deleted");
    }
    let output = copy(&hosts, &["--delete", &from, &to]);
    let (_, err) = text(&output);
    assert!(err.lines().last().is_some_and(|line| line.contains(&says)), "{err}");
    let done = ended(&hosts, &["--delete", "--max-delete", "4", &from, &to], "copy", 0);
    assert_eq!(&done["deleted"], &Value::from(4), "{done}");
}
