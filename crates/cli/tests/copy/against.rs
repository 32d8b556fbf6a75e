//! Copies in turn with other programs.

use rustix::process::Signal;

use super::*;
use crate::support::ours::signal;

/// Creates a source, and a target with a file that must stay. Returns their paths; that of the target includes its
/// host.
fn places(hosts: &TestHosts) -> [String; 2] {
    tree(&hosts.file("src"));
    symlink("a/short", hosts.file("src/link")).unwrap();
    fs::create_dir(hosts.file("dst")).unwrap();
    fs::write(hosts.file("dst/kept"), "kept").unwrap();
    [hosts.file("src").display().to_string(), format!("root@10.99.0.3:{}", hosts.file("dst").display())]
}

/// Compares, and returns the JSON document. Source and target do not change.
fn compared(hosts: &TestHosts, args: &[&str], code: i32) -> Value {
    let trees = || ["src", "dst"].map(|name| without_times_of_root(&listing(&hosts.file(name))));
    let before = trees();
    let document = ended(hosts, args, "copy-against", code);
    assert_eq!(trees(), before, "nothing is left, and nothing is changed");
    document
}

/// The time of the target's folder changes when a folder in it is created and removed.
fn without_times_of_root(listing: &str) -> String {
    listing.lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join("\n")
}

fn program<'d>(document: &'d Value, name: &str) -> &'d Value {
    let mut programs = document["programs"].as_array().expect("a list").iter();
    programs.find(|program| program["name"] == name).unwrap_or_else(|| panic!("{name}: {document}"))
}

#[test]
fn other_programs_copy_by_turns_and_one_that_fails_or_is_missing_is_named() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, to] = places(&hosts);
    let fails = "sh -c 'echo first >&2; echo \"broke down\" >&2; exit 3; : {src} {dst}'";
    let fewer = "scp -q {ssh-options} {src}/a/short {dst}/";
    let args =
        ["--against", "scp", "--against", fails, "--against", "no-such {src} {dst}", "--against", fewer];
    let document = compared(&hosts, &[&args[..], &["--turns", "2", from.as_str(), to.as_str()]].concat(), 0);
    let scp = program(&document, "scp");
    assert_eq!(scp["turns"].as_array().map(Vec::len), Some(2), "{document}");
    // Each host has its own sshd, which counts processor time.
    for of in [program(&document, "landspeed"), scp] {
        assert!(
            of["turns"].as_array().unwrap().iter().all(|turn| turn["cpu_ns"].as_u64() > Some(0)),
            "{document}"
        );
    }
    assert!(
        scp["rate"]["ratio"].as_f64() > Some(0.0) && scp["cost"]["ratio"].as_f64() > Some(0.0),
        "{document}"
    );
    assert!(program(&document, "landspeed")["other_copy"].is_null(), "{document}");
    let why = |name: &str| program(&document, name)["left_out"].as_str().unwrap_or_default().to_owned();
    assert!(why("sh").ends_with("exit status: 3: broke down"), "{document}");
    assert_eq!(why("no-such"), "no-such is not installed here");
    assert!(program(&document, "sh")["rate"].is_null() && program(&document, "no-such")["rate"].is_null());
    let fewer = program(&document, "scp (2)");
    assert_eq!(fewer["other_copy"]["file_bytes"], 5, "{document}");
    assert_eq!(document["content"]["file_bytes"], 3_500_005);
    for facts in ["source_facts", "target_facts"] {
        assert!(document[facts]["conditions"]["mtu"]["mtu"].is_string(), "{facts}: {document}");
    }
}

#[test]
fn a_copy_from_a_host_and_one_within_this_machine_are_compared() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, _] = places(&hosts);
    let (there, here) = (format!("root@10.99.0.3:{from}"), hosts.file("dst").display().to_string());
    let scp = compared(&hosts, &["--against", "scp", "--turns", "2", &there, &here], 0);
    assert!(program(&scp, "scp")["rate"]["ratio"].is_f64(), "{scp}");
    let output = copy(&hosts, &["--against", "cp -a {src}/. {dst}/", "--turns", "2", &from, &here]);
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("\ncp: cp -a ") && out.contains(" 2 turns of each, in random order"), "{out}");
    assert!(!out.contains("is not the same") && !out.contains("not compared"), "{out}");
    assert_eq!(fs::read_dir(hosts.file("dst")).unwrap().count(), 1, "nothing is left");
}

#[test]
fn a_sample_is_copied_beside_the_source_and_removed() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, to] = places(&hosts);
    let document = compared(&hosts, &["--against", "scp", "--turns", "2", "--sample", "1M", &from, &to], 0);
    assert_eq!(document["content"]["file_bytes"], 5, "{document}");
    assert_eq!(document["is_sample"], true);
    let beside = fs::read_dir(hosts.file("")).unwrap().flatten().map(|one| one.file_name());
    let left: Vec<_> = beside.filter(|name| name.to_string_lossy().contains("against")).collect();
    assert!(left.is_empty(), "{left:?}");
    let (_, err) = text(&copy(&hosts, &["--against", "scp", "--sample", "1", &from, &to]));
    assert!(err.contains("has no file of 1 B or less"), "{err}");
}

#[test]
fn a_signal_removes_what_was_copied() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, to] = places(&hosts);
    for by in [Signal::INT, Signal::TERM] {
        let slow = "sh -c ': > begun; sleep 1000; : {src} {dst}'";
        let mut command = command(&hosts, &["--against", slow, &from, &to]);
        command.current_dir(hosts.file("ssh")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = command.spawn().expect("it runs");
        let has_begun = || hosts.file("ssh/begun").exists();
        assert!(within(Duration::from_secs(60), has_begun), "no other program begins");
        assert_eq!(fs::read_dir(hosts.file("dst")).unwrap().count(), 2, "it copies beneath the target");
        signal(run.id() as i32, by);
        let output = run.wait_with_output().expect("it ends");
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        assert!(err.contains("stopped"), "{err}");
        assert_eq!(fs::read_dir(hosts.file("dst")).unwrap().count(), 1, "nothing is left: {err}");
        assert_eq!(hosts.pids("ctl", "sleep 1000"), Vec::<i32>::new());
        fs::remove_file(hosts.file("ssh/begun")).unwrap();
    }
    assert_eq!(fs::read(hosts.file("dst/kept")).unwrap(), b"kept");
}

/// The other program fills the target's file system, so that landspeed's later copies are incomplete.
#[test]
fn a_turn_that_copies_less_than_the_first_one_does_not_count() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, _] = places(&hosts);
    fs::create_dir(hosts.file("small")).unwrap();
    let fills = "sh -c ': {src} {dst}; head -c 8388608 /dev/zero > {dst-path}/../../full'";
    let run = "mount -t tmpfs -o size=10m none \"$2\"; \"$0\" copy --against \"$3\" --turns 2 \"$1\" \"$2\"; \
               ended=$?; ls -A \"$2\" >&2; exit $ended";
    let small = hosts.file("small").display().to_string();
    let output = super::refusals::script(&hosts, run, &[from.as_str(), small.as_str(), fills]);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("landspeed: landspeed copy: "), "{out}{err}");
    assert!(out.is_empty() && !err.contains(".landspeed-against-") && err.ends_with("full\n"), "{out}{err}");
}

#[test]
fn a_comparison_that_cannot_be_made_is_refused_before_anything_is_copied() {
    needs_root!();
    let hosts = TestHosts::new();
    let [from, to] = places(&hosts);
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::create_dir(hosts.file("a; b")).unwrap();
    for (rival, from, to, code, says) in [
        ("scp", format!("root@10.99.0.2:{from}"), to.clone(), 2, "run it on one of the two hosts"),
        ("scp", at("a; b"), to.clone(), 2, "name it by a link"),
        ("scp", at("src/a/short"), to.clone(), 1, "look at the folder"),
        (
            "scp",
            from.clone(),
            "root@10.99.0.3:/no/such".to_owned(),
            1,
            "look at the folder root@10.99.0.3:/no/such",
        ),
        ("cp {src} /tmp", from.clone(), to.clone(), 2, "no command with {src} and {dst}"),
        ("no-such {src} {dst}", from.clone(), to.clone(), 1, "no other program was compared"),
    ] {
        let output = copy(&hosts, &["--against", rival, "--turns", "2", &from, &to]);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(code), "{rival} {from}: {out}{err}");
        assert!(err.contains(says), "{rival} {from}: {err}");
    }
    let run = "mount -t tmpfs -o size=1m none \"$2\"; exec \"$0\" copy --against 'cp -a {src}/. {dst}/' \"$1\" \"$2\"";
    fs::create_dir(hosts.file("small")).unwrap();
    let output = super::refusals::script(&hosts, run, &[&from, &at("small")]);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(err.contains(", and a turn needs 3.5"), "{err}");
}
