//! Tests of many connections, of late and stopped supervisors, and of few ports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::LIMIT;
use crate::killed::{supervisor_and_keeper, supervisor_and_program};
use crate::namespaces::Namespaces;
use crate::programs::{ask, at, connected};
use crate::run::{StoppedProcess, TestServer, carries, command, counts, run, said, within_mut};
use crate::support::mostly::mostly;
use crate::support::ours::signal;
use crate::support::{self, text};

/// Environment variable with the longest delay of supervisors, in milliseconds. Some of their steps, chosen at random,
/// are delayed. A release build ignores it.
const LATE: &str = "LANDSPEED_PATH_LATE";

/// Accepts in many threads and echoes what arrives, until killed.
pub(crate) fn serve_on() {
    let listener = TcpListener::bind(at(0)).expect("a port");
    println!("\nport {}", listener.local_addr().expect("an address").port());
    let answer = |mut stream: TcpStream| std::io::copy(&mut stream.try_clone()?, &mut stream);
    std::thread::scope(|threads| {
        for _ in 0..16 {
            threads.spawn(|| {
                for stream in listener.incoming() {
                    let stream = stream.expect("a connection");
                    std::thread::spawn(move || answer(stream));
                }
            });
        }
    });
}

/// Sends a greeting on each connection and closes it before the client does, until killed.
pub(crate) fn greet_on() {
    let listener = TcpListener::bind(at(0)).expect("a port");
    println!("\nport {}", listener.local_addr().expect("an address").port());
    for stream in listener.incoming() {
        stream.expect("a connection").write_all(b"220 hello\r\n").expect("sent");
    }
}

pub(crate) fn greeted(port: usize) {
    let mut came = Vec::new();
    connected(port).read_to_end(&mut came).expect("all of it");
    assert_eq!(came, b"220 hello\r\n");
}

/// Opens `connections` connections simultaneously, each with different bytes.
pub(crate) fn burst(port: usize, connections: usize) {
    std::thread::scope(|threads| {
        (0..connections).for_each(|own| drop(threads.spawn(move || ask(port, 20 + own))));
    });
}

/// Opens connections, and prints the time of the slowest in milliseconds.
pub(crate) fn connect_timed(port: usize, connections: usize) {
    let mut all = Vec::new();
    let timed = |_| {
        let began = Instant::now();
        all.push(connected(port));
        began.elapsed()
    };
    let slowest = (0..connections).map(timed).max().expect("some");
    println!("\nslowest {}", slowest.as_millis());
}

/// Returns the number of bursts that `make path-bursts` requests.
fn bursts() -> Option<u64> {
    std::env::var("LANDSPEED_BURSTS").ok().and_then(|text| text.parse().ok())
}

#[test]
fn in_bursts_with_late_supervisors_every_byte_is_equal() {
    if !carries() {
        return;
    }
    let (bursts, connections, late) = bursts().map_or((3, 60, "120"), |count| (count, 200, "500"));
    let over = Some("local");
    let mut serve = command(over, "serve-on");
    serve.env(LATE, late);
    let server = TestServer::of(serve);
    let mut client = command(over, &format!("burst {} {bursts} {connections}", server.port));
    let out = client.env(LATE, late).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    let seen = counts(&err);
    let left: u64 = seen["left"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    let carried = seen["carried"].as_u64().expect("a count");
    assert_eq!(carried + left, bursts * connections, "{seen}");
    eprintln!("{carried} of {} carried, supervisors up to {late} ms late: {}", carried + left, seen["left"]);
}

#[test]
fn a_server_that_speaks_first_is_heard_whole_where_supervisors_are_late() {
    if !carries() {
        return;
    }
    let over = Some("local");
    let mut serve = command(over, "greet-on");
    serve.env(LATE, "120");
    let server = TestServer::of(serve);
    let mut client = command(over, &format!("greeted {} 60", server.port));
    let out = client.env(LATE, "120").output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    eprintln!("server first: {}", counts(&err));
}

/// Returns true once a line that begins with "came" arrives; false if none arrives.
fn comes(lines: &Receiver<String>) -> bool {
    let until = Instant::now() + LIMIT;
    let mut lines =
        std::iter::from_fn(|| lines.recv_timeout(until.saturating_duration_since(Instant::now())).ok());
    lines.any(|line| line.starts_with("came "))
}

/// The bystander makes connections while the supervisor of another client is stopped. The duration of each connection
/// is not checked, because a busy machine delays some.
#[test]
fn a_stopped_supervisor_stalls_no_program_but_its_own() {
    if !carries() {
        return;
    }
    let over = Some("local");
    let server = TestServer::start(over, 1_000_000);
    let mut bystander = command(over, &format!("ask-slowly {}", server.port));
    let mut bystander = bystander.stdin(Stdio::piped()).spawn().expect("it runs");
    let mut to = bystander.stdin.take().expect("a pipe");
    let from = BufReader::new(bystander.stdout.take().expect("a pipe"));
    let (tell, answers) = channel();
    std::thread::spawn(move || from.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line))));
    let mut goes_on = || writeln!(to, "x").is_ok() && comes(&answers);
    assert!(goes_on(), "the bystander does not begin");
    let mut victim = command(over, &format!("ask-on {} 4", server.port));
    let mut victim = victim.env(LATE, "40").stdin(Stdio::piped()).spawn().expect("it runs");
    said(&mut BufReader::new(victim.stdout.take().expect("a pipe")), "asking");
    let [stopped, program] = supervisor_and_program(victim.id());
    for round in 0..5 {
        std::thread::sleep(Duration::from_millis(30 + round * 7));
        let _stopped = StoppedProcess::of(stopped);
        assert!((0..5).all(|_| goes_on()), "the bystander is stalled, in round {round}");
    }
    signal(program, Signal::KILL);
    victim.wait().expect("a child");
    drop(to);
    bystander.wait().expect("a child");

    let [supervisor, _] = supervisor_and_program(server.child.id());
    let _stopped = StoppedProcess::of(supervisor);
    // A connection takes 50 ms, and on a busy machine one of several may take any time.
    let judged = mostly(3, || {
        let (out, err) = text(&run(over, &format!("connect-timed {} 5", server.port)));
        let slowest: u64 = said(&mut out.as_bytes(), "slowest ").parse().expect("a number");
        assert_eq!(counts(&err)["carried"], 0, "{err}");
        if slowest < 1000 { Ok(()) } else { Err(slowest) }
    });
    judged.unwrap_or_else(|slowest| panic!("{slowest} ms"));
}

#[test]
fn a_client_waits_longer_for_a_late_server_where_its_user_says_so() {
    if !carries() {
        return;
    }
    let server = TestServer::start(Some("local"), 1);
    let [supervisor, _] = supervisor_and_program(server.child.id());
    let stopped = StoppedProcess::of(supervisor);
    let client = command(Some("local --patience 20s"), &format!("ask {} 1 1000", server.port)).spawn();
    // The client has come long before, except on a busy machine.
    std::thread::sleep(Duration::from_millis(500));
    drop(stopped);
    let out = client.expect("it runs").wait_with_output().expect("a child");
    assert_eq!(counts(&text(&out).1)["carried"], 1, "{out:?}");
}

#[test]
fn connections_in_a_row_need_few_ports_and_leave_no_time_wait() {
    if !support::root() || !carries() {
        return;
    }
    let count = bursts().map_or(600, |_| 10_000);
    let namespaces = Namespaces::new("ports");
    let name = &namespaces.0[0];
    // `support::sh` splits words at spaces.
    let mut narrow = Command::new("ip");
    narrow.args(["netns", "exec", name, "sysctl", "-qw", "net.ipv4.ip_local_port_range=42000 42199"]);
    assert!(narrow.status().expect("it runs").success());
    for (serves, asks) in [("serve-on", "ask PORT COUNT 10"), ("greet-on", "greeted PORT COUNT")] {
        let server = TestServer::of(namespaces.command(0, "127.0.0.1", Some("local"), serves));
        let does = asks.replace("PORT", &server.port.to_string()).replace("COUNT", &count.to_string());
        let out = namespaces.command(0, "127.0.0.1", Some("local"), &does).output().expect("it runs");
        let (said, err) = text(&out);
        assert!(out.status.success(), "{does}: {said}{err}");
        let sockets = support::sh(&format!("ip netns exec {name} cat /proc/net/tcp"));
        let left = counts(&err)["left"].to_string();
        let waiting = sockets.lines().filter(|line| line.split_whitespace().nth(3) == Some("06")).count();
        assert!(waiting == 0 || left != "{}", "{waiting} in TIME-WAIT, {left}");
        eprintln!("{count} connections ({does}): {waiting} in TIME-WAIT, left on TCP {left}");
    }
}

/// The resources that processes of landspeed use together.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Anonymous memory (RssAnon). Shared memory is not counted: its size is fixed, but its pages are resident only
    /// once they are used.
    memory_kib: u64,
    descriptors: usize,
    threads: usize,
}

impl Held {
    fn by(pids: &[i32]) -> Self {
        let entries =
            |pid: &i32, folder| std::fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count);
        let memory = |pid: &i32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
            line.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).expect("it runs")
        };
        Held {
            memory_kib: pids.iter().map(memory).sum(),
            descriptors: pids.iter().map(|pid| entries(pid, "fd")).sum(),
            threads: pids.iter().map(|pid| entries(pid, "task")).sum(),
        }
    }
}

#[test]
fn many_connections_grow_neither_memory_nor_descriptors_nor_threads() {
    if !carries() {
        return;
    }
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut serve = command(Some("local"), "serve-on");
    serve.env("OF", folders[0].path());
    let server = TestServer::of(serve);
    let mut asking = command(Some("local"), &format!("ask-slowly {}", server.port));
    let mut asking = asking.env("OF", folders[1].path()).stdin(Stdio::piped()).spawn().expect("it runs");
    let ends = [server.child.id(), asking.id()].map(|exec| exec as i32);
    let mut to = asking.stdin.take().expect("a pipe");
    let mut from = BufReader::new(asking.stdout.take().expect("a pipe"));
    // Each line makes a connection.
    let mut after = |connections: usize| {
        for _ in 0..connections {
            writeln!(to, "x").expect("a line");
            said(&mut from, "came x");
        }
        let pids = [0, 1].map(|end| supervisor_and_keeper(folders[end].path(), ends[end]));
        Held::by(&pids.concat())
    };
    let first = after(500);
    let mut last = after(3000);
    // A busy machine has more connections open at once, and closes them when it gets to it. What is not closed for each
    // connection would be 3,000 and stay. A structure of 350 bytes for each would take a mebibyte.
    let is_steady = |last: &Held| {
        last.descriptors < first.descriptors + 100
            && last.threads < first.threads + 100
            && last.memory_kib < first.memory_kib + 1024
    };
    let is_steady = within_mut(|| {
        let steady = is_steady(&last);
        if !steady {
            last = after(1);
        }
        steady
    });
    assert!(is_steady, "{first:?} {last:?}");
    drop(to);
    asking.wait().expect("a child");
}
