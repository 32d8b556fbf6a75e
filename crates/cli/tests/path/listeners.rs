//! Tests of listeners from which several processes or a process with other rights accept, and of deferred accepts.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::Stdio;

use rustix::io::{FdFlags, fcntl_setfd};

use crate::LIMIT;
use crate::programs::{answer, at};
use crate::run::{TestServer, behind, carries, client, command};
use crate::support;
use crate::support::ours::{TestHome, processes, within};

/// The number of processes that accept from one listener.
const CHILDREN: usize = 3;
const CONNECTIONS: usize = 30;

fn listening() -> TcpListener {
    let listener = TcpListener::bind(at(0)).expect("a port");
    println!("\nport {}", listener.local_addr().expect("an address").port());
    listener
}

/// Starts processes that accept from one inherited listener, and end with this process. `before` is the command that
/// runs each of them; empty for none.
pub(crate) fn serve_from_children(before: &[&str]) {
    let listener = listening();
    fcntl_setfd(&listener, FdFlags::empty()).expect("a flag");
    let word = format!("accept-on {}", listener.as_raw_fd());
    let start = |_| behind(before, &command(None, &word)).stdin(Stdio::piped()).spawn().expect("a child");
    let mut children: Vec<_> = (0..CHILDREN).map(start).collect();
    drop(listener);
    // Taken out of the children, because `wait` would close them.
    let _inputs: Vec<_> = children.iter_mut().map(|child| child.stdin.take()).collect();
    children.into_iter().for_each(|mut child| drop(child.wait()));
}

/// Accepts from an inherited descriptor, and echoes what arrives, until its input ends.
pub(crate) fn accept_on(fd: i32) {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    // SAFETY: the parent process left the descriptor open for this process, and nothing else here uses the descriptor.
    echo(&unsafe { TcpListener::from_raw_fd(fd) });
}

/// Accepts connections only once their data has arrived (TCP_DEFER_ACCEPT in tcp(7)), and echoes it, until killed.
pub(crate) fn serve_deferred() {
    let listener = listening();
    let seconds: libc::c_int = 5;
    // SAFETY: the kernel reads an int.
    let set = unsafe {
        let value = (&raw const seconds).cast();
        libc::setsockopt(listener.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, value, 4)
    };
    assert_eq!(set, 0);
    echo(&listener);
}

fn echo(listener: &TcpListener) {
    for stream in listener.incoming() {
        let stream: TcpStream = stream.expect("a connection");
        std::thread::spawn(move || answer(stream));
    }
}

/// Runs the server `serves` and clients over the path. All bytes must come back, each connection must be counted, and
/// no process may be left. Returns the number of carried connections.
fn every_byte_comes_back(serves: &str) -> u64 {
    let home = TestHome::new();
    let mut serve = command(Some("local"), serves);
    serve.env("OF", home.path());
    let server = TestServer::of(serve);
    let mut all = 0;
    for (connections, bytes) in [(CONNECTIONS, 20_000), (CONNECTIONS, 1)] {
        let seen = client(Some("local"), &format!("ask {} {connections} {bytes}", server.port));
        let left: u64 = seen["left"].as_object().expect("counts").values().filter_map(|n| n.as_u64()).sum();
        let carried = seen["carried"].as_u64().expect("a count");
        assert_eq!(carried + left, connections as u64, "{seen}");
        eprintln!("{serves}: {seen}");
        all += carried;
    }
    drop(server);
    let none = || processes(home.path()).is_empty();
    assert!(within(LIMIT, none), "{serves}: {:?}", processes(home.path()));
    all
}

#[test]
fn processes_that_share_a_listener_lose_no_byte() {
    if carries() {
        assert!(every_byte_comes_back("serve-from-children") > 0);
    }
}

#[test]
fn a_listener_that_was_passed_to_a_program_with_other_rights_loses_no_byte() {
    if support::root() && carries() {
        // The kernel executes accept(2) for a process with other rights, so the path carries no connection to it.
        assert_eq!(every_byte_comes_back("serve-from-children unshare --uts"), 0);
    }
}

#[test]
fn a_server_that_accepts_only_with_data_loses_no_byte() {
    if carries() {
        // accept(2) waits for the client's data, and the client's connect(2) waits for accept(2), until it gives up and
        // continues over TCP.
        every_byte_comes_back("serve-deferred");
    }
}
