//! Tests of connections that are left to the kernel before a path sees them.

use std::process::Command;

use crate::run::{PATIENT, TestServer, behind, can, carries, client, command, counts, run};
use crate::support::{self, text};

/// Returns a shell command that sends a byte and reads its echo.
fn shell(port: u16) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo x >&3; head -c 2 <&3")
}

/// Runs a program over the path `local`, started by the command `before`.
fn within_limits(before: &[&str], does: &str) -> (String, String) {
    let out = behind(before, &command(Some("local"), does)).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    (said, err)
}

#[test]
fn a_program_that_forbids_itself_connections_makes_none_nor_do_its_children() {
    for path in ["kernel", "local", "mptcp", "smc"].into_iter().filter(|path| can(path)) {
        let server = TestServer::start(Some(path), 1);
        let out = run(Some(path), &format!("ask-restricted {}", server.port));
        let (said, err) = text(&out);
        if said.contains("no Landlock") {
            return support::skip("this kernel has no Landlock that knows of TCP (Linux 6.7)");
        }
        assert!(said.contains("own Err(PermissionDenied)"), "{path}: {said}{err}");
        assert!(said.contains("child Err(PermissionDenied)"), "{path}: {said}{err}");
        if path != "kernel" {
            assert_eq!(counts(&err)["left"], serde_json::json!({"sandboxed": 2}), "{path}");
        }
    }
}

#[test]
fn a_process_with_other_rights_is_left_to_the_kernel_and_counted() {
    if !support::root() || !carries() {
        return;
    }
    for change in [
        "setpriv --reuid 41006 --regid 41006 --clear-groups",
        "unshare --uts",
        "setpriv --bounding-set -chown --inh-caps -chown",
    ] {
        let server = TestServer::start(Some("local"), 1);
        let mut exec = Command::new(support::LANDSPEED);
        exec.args(["exec", "--json", "--path", "local", "--"]).args(change.split(' '));
        let out = exec.args(["bash", "-c", &shell(server.port)]).output().expect("it runs");
        let (said, err) = text(&out);
        assert_eq!(said, "x\n", "{change}: {err}");
        assert_eq!(counts(&err)["left"], serde_json::json!({"sandboxed": 1}), "{change}");
    }
    // Connections of a program that does not change its rights are carried.
    let server = TestServer::start(Some("local"), 1);
    let mut exec = Command::new(support::LANDSPEED);
    exec.args(["exec", "--json", "--path"]).args(PATIENT.split(' '));
    let out = exec.args(["--", "setpriv", "--reuid", "0", "bash", "-c"]);
    let (_, err) = text(&out.arg(shell(server.port)).output().expect("it runs"));
    assert_eq!(counts(&err)["carried"], 1, "{err}");
}

#[test]
fn connections_of_a_program_that_may_not_be_looked_into_are_counted() {
    if !support::root() || !carries() {
        return;
    }
    let server = TestServer::start(Some("local"), 1);
    let does = format!("ask-undumpable {}", server.port);
    // Without this capability, root may inspect no more programs than other users.
    let without = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"];
    let (_, err) = within_limits(&without, &does);
    assert_eq!(counts(&err)["left"], serde_json::json!({"undumpable": 1}), "{err}");
}

#[test]
fn more_calls_than_may_wait_go_on_in_the_kernel_and_none_is_lost() {
    if !carries() {
        return;
    }
    // Landspeed needs several of these descriptors for each waiting call.
    let (said, err) = within_limits(&["prlimit", "--nofile=80:100"], "wait-for 40");
    assert!(said.contains("accepted 40") && said.contains("limit Some(80)"), "{said}{err}");
    let seen = counts(&err);
    assert!(seen["left"]["too-many-at-once"].as_u64() > Some(0), "{seen}");
    // With enough descriptors, none stays on TCP for that reason.
    let seen = client(Some("local"), "wait-for 40");
    assert_eq!(seen["left"].get("too-many-at-once"), None, "{seen}");
    // The calls outnumber the threads that a supervisor may have.
    let seen = client(Some("local"), "wait-for 1100");
    assert!(seen["left"]["too-many-at-once"].as_u64() > Some(0), "{seen}");
}

#[test]
fn without_threads_calls_continue_in_the_kernel() {
    if !support::root() || !carries() {
        return;
    }
    // RLIMIT_NPROC counts the threads of a user and does not hold for root (setrlimit(2)).
    const USER: u32 = 41003;
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::chown(folder.path(), Some(USER), Some(USER)).expect("this is root");
    let ours = command(Some("local"), "wait-for 10");
    let (mut whole, mut scarce) = (0, 0);
    for threads in (20..=40).step_by(2) {
        let limits =
            format!("15 setpriv --clear-groups --reuid={USER} --regid={USER} prlimit --nproc={threads}");
        let words: Vec<&str> = ["timeout"].into_iter().chain(limits.split(' ')).collect();
        let mut limited = behind(&words, &ours);
        limited.env("HOME", folder.path()).env("XDG_RUNTIME_DIR", folder.path());
        let out = limited.output().expect("it runs");
        let (said, err) = text(&out);
        assert_ne!(out.status.code(), Some(124), "it hangs with {threads} threads: {said}{err}");
        if said.contains("accepted 10") {
            whole += 1;
            scarce += u32::from(counts(&err)["left"].get("too-many-at-once").is_some());
        }
    }
    assert!(
        whole > scarce && scarce > 0,
        "{whole} of the limits let all connections be made, {scarce} of them late"
    );
}
