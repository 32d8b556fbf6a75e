//! Tests of how a program over a path starts and ends, and of what a shell sees of it.

use std::io::{BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;

use crate::run::{PATIENT, TestServer, can, carries, client, command, said, within_mut};
use crate::support::ours::{TestHome, processes, signal, within};
use crate::support::{self, LANDSPEED, text};
use crate::{LIMIT, PROGRAM};

const PATHS: [&str; 5] = ["kernel", "local", "mptcp", "smc", "rsocket"];

fn exec(options: &[&str], program: &[&str]) -> Command {
    let mut exec = Command::new(LANDSPEED);
    exec.arg("exec").args(options).arg("--").args(program);
    take_signals(&mut exec);
    exec
}

/// Lets a command take signals: background jobs of a shell inherit an ignored SIGINT, and programs under nohup(1) an
/// ignored SIGHUP.
fn take_signals(command: &mut Command) {
    let takes_signals = || {
        // SAFETY: signal(2) takes numbers.
        let defaults =
            [libc::SIGINT, libc::SIGHUP].map(|number| unsafe { libc::signal(number, libc::SIG_DFL) });
        if defaults.contains(&libc::SIG_ERR) { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: signal(2) is async-signal-safe (signal-safety(7)).
    unsafe { command.pre_exec(takes_signals) };
}

fn output(options: &[&str], program: &[&str]) -> Output {
    exec(options, program).output().expect("it runs")
}

#[test]
fn signals_that_a_process_sends_reach_the_program_over_every_path() {
    for path in PATHS.into_iter().filter(|path| can(path)) {
        for (name, number) in [("TERM", Signal::TERM), ("INT", Signal::INT), ("HUP", Signal::HUP)] {
            let does =
                format!("trap 'exit 42' {name}; echo; echo ready; for _ in $(seq 1000); do sleep 0.02; done");
            // Not bash(1): it loses about one SIGINT in two hundred where the signal arrives as its child ends.
            let mut started = exec(&["--path", path], &["sh", "-c", &does]);
            let mut started = started.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
            said(&mut BufReader::new(started.stdout.take().expect("a pipe")), "ready");
            signal(started.id() as i32, number);
            assert_eq!(started.wait().expect("a child").code(), Some(42), "{path}: {name}");
        }
    }
}

/// Returns true if a thread of the process waits in accept4(2) (proc_pid_syscall(5)).
fn accepts(pid: i32) -> bool {
    let accept = format!("{} ", libc::SYS_accept4);
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut calls = threads.map(|thread| std::fs::read_to_string(thread.path().join("syscall")));
    calls.any(|call| call.is_ok_and(|call| call.starts_with(&accept)))
}

#[test]
fn a_program_that_waits_for_a_connection_ends_by_a_signal_and_landspeed_with_it() {
    // rsockets wait in their library, and not in accept.
    for path in PATHS.into_iter().filter(|path| *path != "rsocket" && can(path)) {
        let home = TestHome::new();
        let mut serve = command(Some(path), "serve 1 0");
        serve.env("OF", home.path());
        let mut server = TestServer::of(serve);
        let waits = || processes(home.path()).iter().any(|one| accepts(one.pid));
        assert!(within(LIMIT, waits), "{path}: {:?}", processes(home.path()));
        signal(server.child.id() as i32, Signal::TERM);
        assert!(within_mut(|| server.child.try_wait().expect("a child").is_some()), "{path}: it goes on");
        let code = server.child.wait().expect("a child").code();
        assert_eq!(code, Some(128 + Signal::TERM.as_raw()), "{path}");
        let none = || processes(home.path()).is_empty();
        assert!(within(LIMIT, none), "{path}: {:?}", processes(home.path()));
    }
}

/// Tests the session of `ssh -t HOST landspeed exec ...` when the connection breaks. The kernel signals only the leader
/// of the session, which is landspeed.
#[test]
fn a_program_ends_with_the_terminal_of_a_session_that_landspeed_leads() {
    for path in PATHS.into_iter().filter(|path| can(path)) {
        let home = TestHome::new();
        let line = format!("exec {LANDSPEED} exec --path {path} -- sh -c 'echo ready; exec sleep 60'");
        let mut script = Command::new("script");
        script.args(["-qfec", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("OF", home.path());
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        take_signals(&mut script);
        let mut script = script.spawn().expect("script runs");
        said(&mut BufReader::new(script.stdout.take().expect("a pipe")), "ready");
        script.kill().and_then(|()| script.wait()).expect("it runs");
        let none = || processes(home.path()).is_empty();
        assert!(within(LIMIT, none), "{path}: {:?}", processes(home.path()));
    }
}

#[test]
fn the_exit_code_is_the_programs_where_nothing_can_be_printed() {
    if !carries() {
        return;
    }
    for options in [&["--path", "local"][..], &["--path", "local", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device of Linux");
        let status = exec(options, &["sh", "-c", "exit 7"]).stderr(full).status().expect("it runs");
        assert_eq!(status.code(), Some(7), "{options:?}");
    }
}

#[test]
fn a_program_that_cannot_be_run_has_the_exit_status_of_a_shell() {
    for path in PATHS.into_iter().filter(|path| can(path)) {
        let code = |program| output(&["--path", path], &[program]).status.code();
        assert_eq!((code("/no/such"), code("/etc/passwd")), (Some(127), Some(126)), "{path}");
    }
}

#[test]
fn a_program_that_goes_into_the_background_is_carried_there() {
    if !carries() {
        return;
    }
    let home = TestHome::new();
    let own = std::env::current_exe().expect("this program");
    let own = own.to_str().expect("text");
    let words = ["sh", "-c", "\"$@\" 2>/dev/null &", "sh", own, "--exact", "program", "--nocapture"];
    let mut starts = exec(&["--path", "local"], &words);
    starts.env(PROGRAM, "serve 3 0").env("OF", home.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut started = starts.spawn().expect("it runs");
    let mut out = BufReader::new(started.stdout.take().expect("a pipe"));
    assert!(started.wait().expect("a child").success());
    let mut err = String::new();
    started.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
    assert!(err.contains("it goes on in the background"), "{err}");
    let port = said(&mut out, "port ");
    let seen = client(Some(PATIENT), &format!("ask {port} 3 1000"));
    assert_eq!(seen["carried"], 3, "{seen}");
    // The process that carries the connections ends with the program.
    out.read_to_string(&mut err).expect("it ends");
}

#[test]
fn one_path_inside_of_another_says_so_and_refuses_where_it_is_required() {
    if !carries() {
        return;
    }
    let server = TestServer::start(Some("local"), 1);
    let inner = command(Some("local"), &format!("ask {} 1 1000", server.port));
    let inner: Vec<&str> = inner.get_args().map(|word| word.to_str().expect("text")).collect();
    let words: Vec<&str> = [LANDSPEED].into_iter().chain(inner).collect();
    let does = format!("ask {} 1 1000", server.port);
    let options: Vec<&str> = ["--json", "--path"].into_iter().chain(PATIENT.split(' ')).collect();
    let out = exec(&options, &words).env(PROGRAM, does).output().expect("it runs");
    let (_, err) = text(&out);
    assert!(out.status.success() && err.contains("answers its system calls already"), "{err}");
    // The outer path carries the connection.
    let outer: serde_json::Value =
        serde_json::from_str(err.lines().last().expect("a line")).expect("what the outer one counted");
    assert_eq!(outer["carried"], 1, "{err}");
    let inner = [LANDSPEED, "exec", "--path", "local", "--require", "--", "echo", "ran"];
    let (said, err) = text(&output(&["--path", "local"], &inner));
    assert_eq!(said, "");
    assert!(err.contains("cannot put local below this program: another program answers"), "{err}");
}

#[test]
fn without_proc_a_program_runs_over_tcp_and_the_remedy_is_printed() {
    if !support::root() || !carries() {
        return;
    }
    let without = |require: &str| {
        let line =
            format!("mount -t tmpfs none /proc && exec {LANDSPEED} exec --path local {require} -- echo ran");
        text(&Command::new("unshare").args(["-m", "sh", "-c", &line]).output().expect("it runs"))
    };
    let (said, err) = without("");
    assert!(said == "ran\n" && err.contains("run `mount -t proc proc /proc`"), "{said}{err}");
    let (said, err) = without("--require");
    assert!(said.is_empty() && err.contains("cannot put local below this program"), "{said}{err}");
}
