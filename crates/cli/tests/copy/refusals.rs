//! Messages of copies that cannot be made: one line with the path and the remedy.

use super::*;

/// Runs a script in the controller's namespace, with the program as `$0`.
pub(super) fn script(hosts: &TestHosts, script: &str, args: &[&str]) -> Output {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &hosts.ns("ctl"), "sh", "-c", script, LANDSPEED]).args(args);
    command.stdin(Stdio::null()).output().expect("sh runs")
}

#[test]
fn a_host_that_cannot_be_reached_is_reported_in_one_line_with_the_remedy() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::write(hosts.file("one"), "1").unwrap();
    let strict =
        ["StrictHostKeyChecking=yes", "UserKnownHostsFile=/dev/null", "GlobalKnownHostsFile=/dev/null"];
    let strict: Vec<&str> = strict.iter().flat_map(|option| ["--ssh-option", option]).collect();
    let no_key = ["--ssh-option", "IdentityFile=/dev/null", "--ssh-option", "IdentitiesOnly=yes"];
    let any_host =
        ["--ssh-option", "StrictHostKeyChecking=no", "--ssh-option", "UserKnownHostsFile=/dev/null"];
    let no_login = [no_key, any_host].concat();
    for (options, host, says, remedy) in [
        (&strict, "root@10.99.0.3", "Host key verification failed", "run ssh to it once by hand"),
        (&no_login, "root@10.99.0.3", "Permission denied (", "name another user"),
        (&Vec::new(), "no-such-host.invalid", "Could not resolve hostname", "check its name"),
    ] {
        let (one, target) = (at("one"), format!("{host}:{}", at("to")));
        let all = [&["copy"][..], options.as_slice(), &[one.as_str(), target.as_str()]].concat();
        let output = hosts.landspeed(&all).output().expect("it runs");
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        assert!(err.starts_with(&format!("landspeed: {host}: ")) && err.lines().count() == 1, "{err}");
        assert!(err.contains(says) && err.contains(remedy), "{err}");
    }
    assert!(!hosts.file("to").exists());
}

#[test]
fn a_path_that_a_user_may_not_read_or_write_is_named() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    for (name, mode) in [("shut", 0o700), ("others", 0o755), ("own", 0o777)] {
        fs::create_dir(hosts.file(name)).unwrap();
        fs::set_permissions(hosts.file(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let run = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" copy \"$@\"";
    for (args, says, remedy) in [
        (
            [at("shut"), at("own")],
            format!("landspeed: {}: permission denied", at("shut")),
            "log in as a user who may read it",
        ),
        (
            [at("src"), at("shut")],
            format!("landspeed: {}: permission denied", at("shut")),
            "log in as a user who may read and write there",
        ),
        (
            [at("src"), at("others")],
            format!("local: {}/.landspeed-copy: cannot create it: Permission denied", at("others")),
            "name another place",
        ),
    ] {
        let output = script(&hosts, run, &args.each_ref().map(String::as_str));
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        let last = err.lines().last().unwrap_or_default();
        assert!(last.contains(&says) && last.contains(remedy), "{args:?}: {err}");
    }
    assert_eq!(fs::read_dir(hosts.file("own")).unwrap().count(), 0, "nothing half done");
    assert_eq!(fs::read_dir(hosts.file("others")).unwrap().count(), 0, "nothing half done");
}

/// At the limited rate, the file system would be full only half a minute later.
#[test]
fn a_file_that_does_not_fit_is_reported_before_the_target_is_full() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::write(hosts.file("large"), vec![7; 192 << 20]).unwrap();
    fs::create_dir(hosts.file("small")).unwrap();
    let run = "mount -t tmpfs -o size=32m none \"$2\"; \"$0\" copy --limit-rate 8M \"$1\" \"$2\" 2>&1
        echo \"ended with $?\"; du -sk \"$2\" | cut -f 1";
    let (out, err) = text(&script(&hosts, run, &[&at("large"), &at("small")]));
    let (before, after) = out.split_once("ended with ").expect("a copy");
    assert!(before.contains("cannot be created: No space left on device"), "{out}{err}");
    assert!(
        before.contains(" has no room left: free some there, and the same command goes on"),
        "{out}{err}"
    );
    let (code, taken) = after.trim().split_once('\n').expect("a status and a size");
    let taken: u64 = taken.trim().parse().expect("KiB");
    assert!(code == "1" && taken < 28 << 10, "{after}");
}

#[test]
fn a_full_target_is_reported_once_and_the_same_command_continues() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    (0..50_u8).for_each(|n| fs::write(hosts.file(&format!("src/a/b/{n}")), vec![n; 50_000]).unwrap());
    fs::create_dir(hosts.file("small")).unwrap();
    let run = "mount -t tmpfs -o size=2m none \"$2\"; \"$0\" copy \"$1\" \"$2\" 2>&1; echo \"ended with $?\"
        mount -o remount,size=64m \"$2\"; \"$0\" copy \"$1\" \"$2\" 2>&1; echo \"ended with $?\"
        diff -r \"$1\" \"$2\" && ls -A \"$2\"";
    let (out, err) = text(&script(&hosts, run, &[&at("src/"), &at("small")]));
    let (full, after) = out.split_once("ended with ").expect("two copies");
    let remedy = format!(
        "\n{} has no room left: free some there, and the same command goes on; where others free it meanwhile, add \
         --no-room-check\n",
        at("small")
    );
    assert!(full.contains(&remedy) && full.contains("No space left on device"), "{out}{err}");
    assert!(full.matches("No space left").count() < 4, "the reason is not said for each file: {full}");
    assert!(after.starts_with('6') || after.starts_with('1'), "{after}");
    assert!(after.ends_with("ended with 0\na\n"), "the same, and nothing is left: {after}{err}");
}
