//! Compares sockets over paths with sockets over TCP: small programs whose output must be the same.
//!
//! A check is a function that prints what it observed. It runs once over `kernel` and once over a path, each time in
//! a separate process. Differences must be listed in the table of docs/reference/paths.md, and listed ones must
//! occur.

#[path = "conformance/bytes.rs"]
mod bytes;
#[path = "conformance/ends.rs"]
mod ends;
#[path = "conformance/listening.rs"]
mod listening;
#[path = "conformance/many.rs"]
mod many;
#[path = "conformance/moving.rs"]
mod moving;
#[path = "conformance/names.rs"]
mod names;
#[path = "conformance/options.rs"]
mod options;
#[path = "conformance/processes.rs"]
mod processes;
#[path = "conformance/ready.rs"]
mod ready;
mod support;
#[path = "conformance/sys.rs"]
mod sys;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::Value;
use support::LANDSPEED;
use support::ours::signal;

/// Paths that are compared with TCP: all of the table but `kernel`.
const PATHS: &[&str] = &["local", "mptcp", "smc", "rsocket"];
/// The user documentation of the differences.
const PAGE: &str = include_str!("../../../docs/reference/paths.md");
/// Environment variable that makes the test binary run the check of this name.
const PROGRAM: &str = "LANDSPEED_CONFORMANCE";
/// Time limit of a check, longer than any needs.
const LIMIT: Duration = Duration::from_secs(30);
/// Tries of a check: on a busy machine a connection may stay on TCP.
const TRIES: usize = 3;

/// A check, and the number of connection ends that the path must carry in it.
type ConformanceCheck = (&'static str, fn(), u64);

const CHECKS: &[ConformanceCheck] = &[
    ("half-close-of-client", ends::half_close_of_client, 2),
    ("half-close-of-server", ends::half_close_of_server, 2),
    ("shutdown-of-reading", ends::shutdown_of_reading, 2),
    ("shutdown-of-both", ends::shutdown_of_both, 2),
    ("shutdown-without-connection", ends::shutdown_without_connection, 0),
    ("peer-closes", ends::peer_closes, 2),
    ("sigpipe", ends::sigpipe, 2),
    ("close-with-unread-data", ends::close_with_unread_data, 2),
    ("linger-of-zero", ends::linger_of_zero, 2),
    ("linger-of-a-second", ends::linger_of_a_second, 2),
    ("so-error-after-a-reset", ends::so_error_after_a_reset, 2),
    ("names-after-the-end", ends::names_after_the_end, 2),
    ("close-while-another-thread-reads", ends::close_while_another_thread_reads, 2),
    ("shutdown-while-another-thread-reads", ends::shutdown_while_another_thread_reads, 2),
    ("disconnect", ends::disconnect, 2),
    ("connect-twice", ends::connect_twice, 2),
    ("peek", bytes::peek, 2),
    ("out-of-band", bytes::out_of_band, 2),
    ("out-of-band-inline", bytes::out_of_band_inline, 2),
    ("wait-for-all", bytes::wait_for_all, 2),
    ("low-water", bytes::low_water, 2),
    ("receive-time-out", bytes::receive_time_out, 2),
    ("send-time-out", bytes::send_time_out, 4),
    ("do-not-wait", bytes::do_not_wait, 2),
    ("a-full-buffer-goes-on", bytes::a_full_buffer_goes_on, 2),
    ("truncate", bytes::truncate, 2),
    ("messages-of-parts", bytes::messages_of_parts, 2),
    ("many-messages", bytes::many_messages, 2),
    ("vectors", bytes::vectors, 2),
    ("with-addresses", bytes::with_addresses, 2),
    ("nothing", bytes::nothing, 2),
    ("no-such-memory", bytes::no_such_memory, 2),
    ("more-to-come", bytes::more_to_come, 2),
    ("cork", bytes::cork, 2),
    ("queues", bytes::queues, 2),
    ("queue-of-errors", bytes::queue_of_errors, 2),
    ("small-pieces-join", bytes::small_pieces_join, 2),
    ("large-transfer", bytes::large_transfer, 2),
    ("a-write-longer-than-the-buffer", bytes::a_write_longer_than_the_buffer, 2),
    ("polling", ready::polling, 2),
    ("selecting", ready::selecting, 2),
    ("epoll-by-level", ready::epoll_by_level, 2),
    ("epoll-by-edge", ready::epoll_by_edge, 2),
    ("epoll-by-edge-of-writing", ready::epoll_by_edge_of_writing, 2),
    ("epoll-of-a-half-closed-one", ready::epoll_of_a_half_closed_one, 2),
    ("epoll-once", ready::epoll_once, 2),
    ("epoll-exclusively", ready::epoll_exclusively, 2),
    ("epoll-of-a-duplicate", ready::epoll_of_a_duplicate, 2),
    ("epoll-before-connect", ready::epoll_before_connect, 0),
    ("connect-without-waiting", ready::connect_without_waiting, 2),
    ("refused", ready::refused, 2),
    ("refused-without-waiting", ready::refused_without_waiting, 0),
    ("without-waiting-by-ioctl", ready::without_waiting_by_ioctl, 2),
    ("flags-set-before-stay", ready::flags_set_before_stay, 2),
    ("signal-of-input", ready::signal_of_input, 2),
    ("signal-of-input-asked-before", ready::signal_of_input_asked_before, 0),
    ("signal-of-urgent-data", ready::signal_of_urgent_data, 2),
    ("accept-without-waiting", ready::accept_without_waiting, 2),
    ("poll-is-woken", ready::poll_is_woken, 2),
    ("names-of-ipv4", names::of_ipv4, 2),
    ("names-of-ipv6", names::of_ipv6, 2),
    ("names-of-both-families", names::of_both_families, 2),
    ("names-mapped", names::mapped, 2),
    ("names-unspecified", names::unspecified, 2),
    ("names-of-ipv6-alone", names::ipv6_alone, 2),
    ("bound-to-a-port", names::bound_to_a_port, 2),
    ("bound-to-an-address", names::bound_to_an_address, 2),
    ("a-port-is-taken-while-connected", names::a_port_is_taken_while_connected, 2),
    ("names-short-of-room", names::short_of_room, 2),
    ("names-without-connection", names::without_connection, 0),
    ("told-by-accept", names::told_by_accept, 2),
    ("accepted-without-flags", names::accepted_without_flags, 2),
    ("no-delay", options::no_delay, 2),
    ("no-delay-before", options::no_delay_before, 2),
    ("keep-alive", options::keep_alive, 2),
    ("keep-alive-before", options::keep_alive_before, 2),
    ("buffers-before", options::buffers_before, 2),
    ("buffers-after", options::buffers_after, 2),
    ("buffers-unset", options::buffers_unset, 2),
    ("options-taken-over", options::taken_over, 2),
    ("options-of-ip", options::of_ip, 2),
    ("options-of-tcp", options::of_tcp, 2),
    ("info", options::info, 2),
    ("congestion-control", options::congestion_control, 2),
    ("options-of-a-listener", options::of_a_listener, 0),
    ("fork-with-both-at-work", processes::fork_with_both_at_work, 2),
    ("fork-and-close", processes::fork_and_close, 2),
    ("fork-before-connect", processes::fork_before_connect, 0),
    ("connected-by-a-child", processes::connected_by_a_child, 0),
    ("duplicated-after", processes::duplicated_after, 2),
    ("duplicated-before", processes::duplicated_before, 0),
    ("replaced-by-another", processes::replaced_by_another, 4),
    ("executed", processes::executed, 2),
    ("as-standard-input", processes::as_standard_input, 2),
    ("passed-over", processes::passed_over, 2),
    ("sendfile", moving::sendfile, 2),
    ("sendfile-from-a-socket", moving::sendfile_from_a_socket, 2),
    ("splice-both-ways", moving::splice_both_ways, 2),
    ("splice-from-socket-to-socket", moving::splice_from_socket_to_socket, 4),
    ("vmsplice", moving::vmsplice, 2),
    ("tee", moving::tee, 2),
    ("io-uring-sends-and-receives", moving::io_uring_sends_and_receives, 2),
    ("io-uring-connects", moving::io_uring_connects, 0),
    ("io-uring-accepts", moving::io_uring_accepts, 2),
    ("several-on-one-port", listening::several_on_one_port, 80),
    ("a-full-backlog", listening::a_full_backlog, 0),
    ("accepted-after-the-end", listening::accepted_after_the_end, 0),
    ("accepted-after-a-reset", listening::accepted_after_a_reset, 0),
    ("listener-shut-down", listening::shut_down, 0),
    ("listener-closed-with-connections", listening::closed_with_connections, 0),
    ("the-next-on-a-port", listening::the_next_on_a_port, 4),
    ("bound-by-listening", listening::bound_by_listening, 0),
    ("accept-interrupted-by-a-signal", listening::interrupted_by_a_signal, 0),
    ("accept-restarted-after-a-signal", listening::restarted_after_a_signal, 2),
    ("accept-in-signals", listening::accept_in_signals, 400),
    ("accept-time-out", listening::time_out, 2),
    ("what-does-not-listen", listening::what_does_not_listen, 0),
    ("bytes-before-accept", listening::bytes_before_accept, 0),
    ("threads-at-once", many::threads_at_once, 320),
    ("one-after-another", many::one_after_another, 400),
    ("open-at-once", many::open_at_once, 1_000),
];

/// Runs a check as a program. Without the variable it does nothing.
#[test]
fn program() {
    let Ok(name) = std::env::var(PROGRAM) else { return };
    let (_, check, _) = CHECKS.iter().find(|(other, ..)| *other == name).expect("a check");
    check();
    std::process::exit(0);
}

/// The output of a check, by line, and the counts of the path.
#[derive(Debug, Default, Clone, PartialEq)]
struct CheckOutcome {
    lines: Vec<(String, String)>,
    carried: u64,
    left: Value,
    failed: Option<String>,
}

fn run(path: &str, check: &ConformanceCheck) -> CheckOutcome {
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new(LANDSPEED);
    command.args(["exec", "--json", "--path", path, "--"]).arg(own);
    command.args(["--exact", "program", "--nocapture", "--quiet"]).env(PROGRAM, check.0);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let (mut out, mut err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let texts = std::thread::spawn(move || {
        let mut texts = [String::new(), String::new()];
        let _ = out.read_to_string(&mut texts[0]);
        let _ = err.read_to_string(&mut texts[1]);
        texts
    });
    let status = ended(&mut child);
    let [out, err] = texts.join().expect("a thread");
    let line = |line: &str| {
        line.strip_prefix("saw ")?.split_once(' ').map(|(name, saw)| (name.to_owned(), saw.to_owned()))
    };
    let lines = out.lines().filter_map(line).collect();
    let counts = err
        .lines()
        .find(|line| line.starts_with("{\"path\""))
        .and_then(|line| serde_json::from_str(line).ok());
    let counts: Value = counts.unwrap_or_default();
    let failed = match status {
        None => Some("it hangs".to_owned()),
        Some(status) => (!status.success()).then(|| format!("{status}: {out}{err}")),
    };
    CheckOutcome {
        lines,
        carried: counts["carried"].as_u64().unwrap_or(0),
        left: counts["left"].clone(),
        failed,
    }
}

impl CheckOutcome {
    /// Returns the number of connection ends that stayed on TCP because the listener did not accept in time. On a busy
    /// machine, some connections of a burst are accepted too late (docs/reference/paths.md). The server then treats the
    /// client as one that does not run over the path.
    fn late(&self) -> u64 {
        2 * self.left["not-accepted"].as_u64().unwrap_or(0)
    }
}

/// Returns the exit status, or `None` if the process had to be ended after the limit.
fn ended(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    signal(child.id() as i32, Signal::TERM);
    let _ = child.wait();
    None
}

/// Returns the outcome over a path, with retries until it carried as many ends as the check requires.
fn carried(path: &str, check: &ConformanceCheck) -> CheckOutcome {
    let mut last = CheckOutcome::default();
    for _ in 0..TRIES {
        last = run(path, check);
        if last.carried + last.late() >= check.2 || last.failed.is_some() {
            break;
        }
    }
    last
}

/// Returns the rows of the page's table for a path: check and line, then the values over TCP and over the path.
fn differences(path: &str) -> BTreeMap<(String, String), (String, String)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [of, check, line, tcp, other, _] = cells.as_slice() else { return None };
        (*of == path).then(|| (((*check).into(), (*line).into()), ((*tcp).into(), (*other).into())))
    };
    PAGE.lines().filter(|line| line.starts_with('|')).filter_map(row).collect()
}

/// Returns the lines that differ, as rows of the table.
fn compared(
    name: &str,
    tcp: &CheckOutcome,
    other: &CheckOutcome,
) -> Vec<((String, String), (String, String))> {
    let most = tcp.lines.len().max(other.lines.len());
    let at = |of: &CheckOutcome, line: usize| {
        of.lines.get(line).cloned().unwrap_or_else(|| (format!("line-{line}"), "nothing".to_owned()))
    };
    let line = |line: usize| {
        let ((one, over_tcp), (_, over_path)) = (at(tcp, line), at(other, line));
        (over_tcp != over_path)
            .then(|| ((name.to_owned(), one), (over_tcp.trim().to_owned(), over_path.trim().to_owned())))
    };
    (0..most).filter_map(line).collect()
}

/// Returns what is wrong with a check over a path, or nothing.
fn wrong(path: &str, check: &ConformanceCheck) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..TRIES {
        found = wrong_once(path, check);
        if found.is_empty() {
            break;
        }
        // If other work delays a thread for long, events may occur in an order that the check does not intend.
        eprintln!("once more, because of:\n{}", found.join("\n"));
    }
    found
}

fn wrong_once(path: &str, check: &ConformanceCheck) -> Vec<String> {
    let (tcp, other) = (run("kernel", check), carried(path, check));
    let mut wrong: Vec<String> = Vec::new();
    for (over, failed) in [("kernel", &tcp.failed), (path, &other.failed)] {
        wrong.extend(failed.iter().map(|failed| format!("{} over {over} failed: {failed}", check.0)));
    }
    if other.carried + other.late() < check.2 || other.carried < check.2 / 2 {
        wrong.push(format!(
            "{}: {path} carried {} of {} ends, left {}",
            check.0, other.carried, check.2, other.left
        ));
    }
    let mut known = differences(path);
    known.retain(|(name, _), _| name == check.0);
    for (key, differs) in compared(check.0, &tcp, &other) {
        if known.remove(&key).as_ref() != Some(&differs) {
            wrong.push(format!("| {path} | {} | {} | {} | {} |  |", key.0, key.1, differs.0, differs.1));
        }
    }
    wrong.extend(
        known
            .keys()
            .map(|(name, line)| format!("{name} {line}: the page tells of a difference that is none")),
    );
    wrong
}

/// Returns true if the path works on this kernel; otherwise reports a skipped test. SMC and rsockets work only where an
/// RDMA device carries loopback, and rsockets only with a library that takes the checks' sockets (SOCK_CLOEXEC).
fn carries(path: &str) -> bool {
    let out = Command::new(LANDSPEED).args(["exec", "--path", path, "--", "true"]).output().expect("it runs");
    if !out.status.success() {
        support::skip(&format!("{path} does not work here: {}", String::from_utf8_lossy(&out.stderr)));
        return false;
    }
    let is_rdma = ["smc", "rsocket"].contains(&path);
    let on_loopback = !is_rdma || run(path, &CHECKS[0]).carried > 0;
    if !on_loopback {
        support::skip(&format!("{path} carries nothing on loopback"));
    }
    on_loopback
}

/// Enters a new network namespace if the user is root. The checks use up to ten thousand ports, and other tests must
/// not take one of them.
fn in_a_namespace_of_its_own() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // SAFETY: the call takes a number only. Threads and processes that this thread starts from now on are in its
    // namespace.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "{}", std::io::Error::last_os_error());
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip runs");
    assert!(up.success(), "{up}");
}

#[test]
fn sockets_over_a_path_do_what_sockets_over_tcp_do() {
    in_a_namespace_of_its_own();
    for path in PATHS.iter().filter(|path| carries(path)) {
        let (next, all) = (Mutex::new(CHECKS.iter()), Mutex::new(Vec::new()));
        let work = || {
            loop {
                let Some(check) = next.lock().next() else { return };
                let found = wrong(path, check);
                all.lock().extend(found);
            }
        };
        // The checks mostly wait, so they run in parallel.
        std::thread::scope(|threads| (0..4).for_each(|_| drop(threads.spawn(work))));
        let all = all.into_inner();
        assert!(all.is_empty(), "{path}:\n{}", all.join("\n"));
        eprintln!(
            "{path}: {} checks as over TCP, {} named differences",
            CHECKS.len(),
            differences(path).len()
        );
    }
}

#[test]
fn every_difference_on_the_page_is_of_a_check_that_exists() {
    for path in PATHS {
        for (check, line) in differences(path).keys() {
            assert!(CHECKS.iter().any(|(name, ..)| name == check), "{check} {line}");
        }
    }
}
