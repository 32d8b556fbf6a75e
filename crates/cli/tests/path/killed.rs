//! Tests of what happens to a program when a process of landspeed is killed.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::LIMIT;
use crate::programs::ask;
use crate::run::{StoppedProcess, TestServer, can, command, said, within_mut};
use crate::support::ours::{RunningProcess, TestHome, processes, signal, state, status_field, within};

#[test]
fn a_program_outlives_its_supervisor_and_what_was_carried_goes_on() {
    ["local", "mptcp", "smc"].into_iter().filter(|path| can(path)).for_each(outlives);
}

fn outlives(path: &str) {
    let mut server = TestServer::start(Some(path), 100);
    let mut asking = command(Some(path), &format!("ask-slowly {}", server.port));
    let mut asking = asking.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut to = asking.stdin.take().expect("a pipe");
    let mut from = BufReader::new(asking.stdout.take().expect("a pipe"));
    let mut ask = |word: &str| {
        writeln!(to, "{word}").expect("a line");
        assert_eq!(said(&mut from, "came "), format!("{word} from {}", server.port));
    };
    ask("before");
    for (number, exec) in [asking.id(), server.child.id()].into_iter().enumerate() {
        let [supervisor, _] = supervisor_and_program(exec);
        signal(supervisor, Signal::KILL);
        ask(&format!("after-{number}"));
    }
    drop(to);
    asking.wait().expect("a child");
    // The server's program still runs. It ends after its 100th connection.
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).is_ok());
    for _ in 0..100 {
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port));
    }
    let gone = || TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).is_err();
    assert!(within(LIMIT, gone), "the server goes on");
    let mut rest = String::new();
    server.out.read_to_string(&mut rest).expect("text");
}

/// Returns the child processes that a process has not waited for.
fn children(parent: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let of = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("children")).unwrap_or_default()
    };
    threads
        .flat_map(|thread| of(thread).split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Returns the supervisor of a `landspeed exec`, and the program that it runs.
pub(crate) fn supervisor_and_program(exec: u32) -> [i32; 2] {
    let is_program = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.starts_with(b"/proc/self/exe"))
    };
    let found = || {
        let supervisor = *children(exec as i32).first()?;
        Some([supervisor, children(supervisor).into_iter().find(is_program)?])
    };
    assert!(within(LIMIT, || found().is_some()), "it has no program");
    found().expect("a program")
}

#[test]
fn any_process_may_be_killed_and_nothing_hangs_and_no_byte_is_lost() {
    ["local", "mptcp", "smc"].into_iter().filter(|path| can(path)).for_each(kills);
}

fn kills(path: &str) {
    // `make kills` runs more of these.
    let count: u64 = std::env::var("LANDSPEED_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    for number in 0..count {
        let mut server = TestServer::start(Some(path), 1_000_000);
        let threads = if path == "local" { 8 } else { 1 };
        let mut asking = command(Some(path), &format!("ask-on {} {threads}", server.port));
        let mut asking = asking.stdin(Stdio::piped()).spawn().expect("it runs");
        let mut from = BufReader::new(asking.stdout.take().expect("a pipe"));
        said(&mut from, "asking");
        let [own, others] = [asking.id(), server.child.id()].map(supervisor_and_program);
        let programs = [own[1], others[1]];
        // Spreads the times of the kills over many connections.
        std::thread::sleep(Duration::from_micros(5_000 + number * 7_919 % 60_000));
        let victim = number % 4;
        let killed = [own[0], others[0], programs[0], programs[1]][victim as usize];
        signal(killed, Signal::KILL);
        std::thread::sleep(Duration::from_millis(60));
        drop(asking.stdin.take());
        if victim == 2 {
            ask(server.port.into(), 5000);
        }
        let mut rest = String::new();
        from.read_to_string(&mut rest).expect("text");
        asking.wait().expect("a child");
        programs.iter().for_each(|pid| signal(*pid, Signal::KILL));
        let mut err = String::new();
        let mut stderr = server.child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut err).expect("text");
        let failed = rest.lines().filter(|line| line.starts_with("failed")).count();
        match victim {
            // A connection that the supervisor had just accepted but not yet noted is reset.
            0 | 1 => assert!(failed <= 1 && rest.contains("\nasked "), "{path}: {victim}: {rest}{err}"),
            _ => assert!(victim == 2 || rest.contains("\nasked "), "{rest}{err}"),
        }
    }
}

/// Returns the processes that answer the calls of a program: its supervisor and the keeper. `exec` is the process that
/// a shell waits for. The environment variable OF of all these processes contains `folder`.
pub(crate) fn supervisor_and_keeper(folder: &Path, exec: i32) -> Vec<i32> {
    let ours = |one: &RunningProcess| one.line.contains(" exec ") || one.line.contains("keep-path");
    let all = processes(folder).into_iter().filter(ours);
    all.map(|one| one.pid).filter(|pid| *pid != exec).collect()
}

#[test]
fn supervisor_and_keeper_start_each_other_again_however_often_one_is_killed() {
    if !can("local") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start(None, 100);
    let mut asking = command(Some("local"), &format!("ask-slowly {}", server.port));
    let mut asking = asking.stdin(Stdio::piped()).env("OF", folder.path()).spawn().expect("it runs");
    let mut to = asking.stdin.take().expect("a pipe");
    let mut from = BufReader::new(asking.stdout.take().expect("a pipe"));
    let mut ask = |word: &str| {
        writeln!(to, "{word}").expect("a line");
        assert_eq!(said(&mut from, "came "), format!("{word} from {}", server.port));
    };
    ask("before");
    let exec = asking.id() as i32;
    let answering = || supervisor_and_keeper(folder.path(), exec);
    for number in 0..8 {
        assert!(within(LIMIT, || answering().len() == 2), "{:?}", processes(folder.path()));
        // On a busy machine programs start late, so this test waits for them and does not check the documented 50 ms.
        std::thread::sleep(Duration::from_millis(100));
        signal(answering()[number / 2 % 2], Signal::KILL);
        ask(&format!("after-{number}"));
    }
    assert!(within(LIMIT, || answering().len() == 2), "{:?}", processes(folder.path()));
    let apart = || {
        let sessions: std::collections::BTreeSet<_> = answering().into_iter().map(session).collect();
        sessions.len() == 2 && !sessions.contains(&session(exec))
    };
    assert!(within(LIMIT, apart), "each is in a session of its own");
    drop(to);
    asking.wait().expect("a child");
    assert!(within(LIMIT, || answering().is_empty()), "they go with the program");
}

/// Kills supervisor and keeper before either can replace the other. Calls that they would have answered fail with
/// ENOSYS, as seccomp(2) defines it, and do not hang.
#[test]
fn if_both_are_killed_at_once_calls_fail_and_none_hangs() {
    if !can("local") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let server = TestServer::start(None, 100);
    let mut asking = command(Some("local"), &format!("ask-on {} 1", server.port));
    let mut asking = asking.stdin(Stdio::piped()).env("OF", folder.path()).spawn().expect("it runs");
    let mut from = BufReader::new(asking.stdout.take().expect("a pipe"));
    said(&mut from, "asking");
    let exec = asking.id() as i32;
    let found = || supervisor_and_keeper(folder.path(), exec);
    assert!(within(LIMIT, || found().len() == 2), "{:?}", processes(folder.path()));
    let both = found();
    for kill in [Signal::STOP, Signal::KILL] {
        both.iter().for_each(|pid| signal(*pid, kill));
    }
    assert!(said(&mut from, "failed: ").contains("Function not implemented"));
    drop(asking.stdin.take());
    let mut rest = String::new();
    from.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("\nasked "), "{rest}");
    asking.wait().expect("a child");
}

/// The report of the program's end never comes from a supervisor that is stopped.
#[test]
fn landspeed_ends_by_a_signal_where_its_supervisor_is_stopped_and_its_program_has_ended() {
    for path in ["local", "mptcp", "smc"].into_iter().filter(|path| can(path)) {
        ends_by_a_signal(path, |server, program| {
            signal(program, Signal::KILL);
            // The supervisor does not wait for it, so it stays a zombie.
            assert!(within(LIMIT, || state(program) == Some('Z')), "{path}: the program goes on");
            assert!(matches!(server.try_wait(), Ok(None)), "{path}: it does not wait for the supervisor");
        });
    }
}

/// The program may not have ended yet when the signal is passed on to it.
#[test]
fn landspeed_ends_by_the_signal_that_ends_its_program_where_its_supervisor_is_stopped() {
    ["local", "mptcp", "smc"].into_iter().filter(|path| can(path)).for_each(|path| {
        ends_by_a_signal(path, |_, _| {});
    });
}

/// Stops the supervisor of a program over a path, calls `before` with landspeed and the program's process ID, and sends
/// SIGTERM to landspeed, which must end by it.
fn ends_by_a_signal(path: &str, before: impl FnOnce(&mut Child, i32)) {
    let home = TestHome::new();
    let mut serve = command(Some(path), "serve 1 0");
    serve.env("OF", home.path());
    let mut server = TestServer::of(serve);
    let [supervisor, program] = supervisor_and_program(server.child.id());
    let stopped = StoppedProcess::of(supervisor);
    before(&mut server.child, program);
    signal(server.child.id() as i32, Signal::TERM);
    assert!(within_mut(|| server.child.try_wait().expect("a child").is_some()), "{path}: it goes on");
    let code = server.child.wait().expect("a child").code();
    assert_eq!(code, Some(128 + Signal::TERM.as_raw()), "{path}");
    drop(stopped);
    let none = || processes(home.path()).is_empty();
    assert!(within(LIMIT, none), "{path}: {:?}", processes(home.path()));
}

/// Returns the session ID of a process; 0 if the session's leader is in an outer PID namespace, as in a container.
fn session(pid: i32) -> Option<i32> {
    status_field(pid, 3)?.parse().ok()
}
