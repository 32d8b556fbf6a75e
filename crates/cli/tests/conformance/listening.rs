//! Checks of listening sockets.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::ends::counts;
use super::many::echo;
use super::sys::{
    ALL, accept, bind, call, comes, connect, home, joined, linger, listener, notes, own, poll, recv,
    recv_all, report, send_all, set, set_time, settle, sleep, sleeps, tcp, waits_not,
};

pub(crate) fn several_on_one_port() {
    let reuse = || {
        let fd = tcp(libc::AF_INET, 0);
        set(&fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1).ok();
        fd
    };
    let one = reuse();
    bind(&one, home(0)).ok();
    let at = own(&one).expect("an address");
    let other = reuse();
    report("bind", bind(&other, at));
    report("bind-without", bind(&tcp(libc::AF_INET, 0), at));
    let all = [one, other];
    for listening in &all {
        waits_not(listening);
        call!(listen(listening.as_raw_fd(), 32)).ok();
    }
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    std::thread::scope(|threads| {
        let accepts = threads.spawn(|| accepted(&all, 40));
        for number in 0..40_u8 {
            let client = tcp(libc::AF_INET, 0);
            connect(&client, at).ok();
            send_all(&client, &[b'a' + number % 26]);
            clients.push(client);
        }
        servers = accepts.join().expect("a thread");
    });
    report("accepted", servers.len());
    let mut letters: Vec<String> = servers.iter().map(|server| recv(server, 1, 0)).collect();
    letters.sort();
    report("letters", letters.concat().replace("1 ", ""));
}

/// Accepts `count` connections, from whichever listener has one.
fn accepted(all: &[OwnedFd], count: usize) -> Vec<OwnedFd> {
    let mut servers = Vec::new();
    while servers.len() < count {
        let mut polled = [0, 1].map(|at: usize| libc::pollfd {
            fd: all[at].as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        });
        assert!(call!(poll(polled.as_mut_ptr(), 2, 5000)).ok() > 0, "{} came", servers.len());
        for one in polled.iter().filter(|one| one.revents != 0) {
            let got = accept(&one.fd);
            servers.extend((got.0 >= 0).then(|| got.fd()));
        }
    }
    servers
}

pub(crate) fn a_full_backlog() {
    let (listening, at) = listener(home(0), 1);
    let clients: Vec<OwnedFd> = (0..5).map(|_| tcp(libc::AF_INET, libc::SOCK_NONBLOCK)).collect();
    for client in &clients {
        connect(client, at);
    }
    sleep(50);
    let made = clients.iter().filter(|client| poll(*client, libc::POLLOUT, 0).contains("OUT")).count();
    report("connected", made);
    let servers: Vec<OwnedFd> = (0..made).map(|_| accept(&listening).fd()).collect();
    for (number, client) in clients.iter().take(made).enumerate() {
        send_all(client, &[b'0' + number as u8]);
    }
    servers.iter().for_each(|server| report("reads", recv(server, 8, 0)));
}

/// Checks that a client's data and its end are kept until the server accepts.
pub(crate) fn accepted_after_the_end() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    report("connect", connect(&client, at));
    send_all(&client, b"early");
    drop(client);
    settle();
    let server = accept(&listening).fd();
    let (bytes, end) = recv_all(&server);
    report("reads", format_args!("{} {end}", String::from_utf8_lossy(&bytes)));
}

pub(crate) fn accepted_after_a_reset() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    connect(&client, at).ok();
    linger(&client, 0).ok();
    drop(client);
    settle();
    let server = accept(&listening).fd();
    report("reads", recv(&server, 8, 0));
}

/// Checks a listener after its shutdown: a waiting accept, further calls, and new connections.
pub(crate) fn shut_down() {
    let (listening, at) = listener(home(0), 4);
    let thread = AtomicI64::new(0);
    std::thread::scope(|threads| {
        let accepts = threads.spawn(|| {
            notes(&thread);
            accept(&listening)
        });
        sleeps(&thread);
        report("shutdown", call!(shutdown(listening.as_raw_fd(), libc::SHUT_RDWR)));
        report("woken", accepts.join().expect("a thread"));
    });
    report("accept", accept(&listening));
    report("events", poll(&listening, ALL, 0));
    report("connect", connect(&tcp(libc::AF_INET, 0), at));
    report("listen-again", call!(listen(listening.as_raw_fd(), 4)));
    let at = own(&listening).expect("an address");
    let client = tcp(libc::AF_INET, 0);
    let server = joined(&listening, &client, at);
    send_all(&client, b"x");
    report("reads", recv(&server, 8, 0));
}

pub(crate) fn closed_with_connections() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    connect(&client, at).ok();
    drop(listening);
    settle();
    report("reads", recv(&client, 8, 0));
    report("connect", connect(&tcp(libc::AF_INET, 0), at));
}

/// Checks that another socket can listen on the port of one that was closed.
pub(crate) fn the_next_on_a_port() {
    let reuse = || {
        let fd = tcp(libc::AF_INET, 0);
        set(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).ok();
        fd
    };
    // Servers set SO_REUSEADDR. Without it, a closing connection occupies the port for longer than a check can wait.
    let first = reuse();
    bind(&first, home(0)).ok();
    let at = own(&first).expect("an address");
    call!(listen(first.as_raw_fd(), 4)).ok();
    let client = tcp(libc::AF_INET, 0);
    let server = joined(&first, &client, at);
    drop((first, client, server));
    let next = reuse();
    report("bind", bind(&next, at).ok());
    report("listen", call!(listen(next.as_raw_fd(), 4)));
    let client = tcp(libc::AF_INET, 0);
    let server = joined(&next, &client, at);
    send_all(&client, b"x");
    report("reads", recv(&server, 8, 0));
}

pub(crate) fn bound_by_listening() {
    let fd = tcp(libc::AF_INET, 0);
    report("listen", call!(listen(fd.as_raw_fd(), 4)));
    let at = home(own(&fd).expect("an address").port());
    report("port", at.port() != 0);
    let client = tcp(libc::AF_INET, 0);
    let server = joined(&fd, &client, at);
    send_all(&client, b"x");
    report("reads", recv(&server, 8, 0));
}

/// Sends a signal to a thread that waits in accept.
fn interrupted(flags: i32) {
    let signals = counts(libc::SIGUSR1, flags);
    let (listening, at) = listener(home(0), 4);
    let thread = AtomicI64::new(0);
    std::thread::scope(|threads| {
        let accepts = threads.spawn(|| {
            notes(&thread);
            accept(&listening)
        });
        sleeps(&thread);
        let process = std::process::id() as i32;
        let to = thread.load(Ordering::SeqCst) as i32;
        call!(syscall(libc::SYS_tgkill, process, to, libc::SIGUSR1)).ok();
        settle();
        report("signals", signals.load(Ordering::SeqCst));
        report("goes-on", !accepts.is_finished());
        let client = tcp(libc::AF_INET, 0);
        if !accepts.is_finished() {
            connect(&client, at).ok();
            send_all(&client, b"x");
        }
        let got = accepts.join().expect("a thread");
        report("accept", if got.0 >= 0 { "a connection".to_owned() } else { got.to_string() });
        if got.0 >= 0 {
            report("reads", recv(&got.fd(), 8, 0));
        }
    });
}

pub(crate) fn interrupted_by_a_signal() {
    interrupted(0);
}

pub(crate) fn restarted_after_a_signal() {
    interrupted(libc::SA_RESTART);
}

/// Checks that signals during calls that are about to accept a connection neither lose nor duplicate it.
pub(crate) fn accept_in_signals() {
    counts(libc::SIGUSR1, libc::SA_RESTART);
    report("unanswered", unanswered_in_signals(|_| {}));
    report("unanswered-without-waiting", unanswered_in_signals(waits_not));
}

/// Returns how many of 100 connections get no answer from a thread that receives signals.
fn unanswered_in_signals(prepare: impl Fn(&OwnedFd)) -> usize {
    let (listening, at) = listener(home(0), 16);
    prepare(&listening);
    let thread = AtomicI64::new(0);
    let ask = || {
        let client = tcp(libc::AF_INET, 0);
        set_time(&client, libc::SO_RCVTIMEO, 500).ok();
        connect(&client, at).ok();
        send_all(&client, b"ask");
        recv(&client, 3, libc::MSG_WAITALL) == "3 ask"
    };
    std::thread::scope(|threads| {
        let serves = threads.spawn(|| {
            notes(&thread);
            (0..100).for_each(|_| echo(&next_of(&listening)));
        });
        let thread = &thread;
        threads.spawn(move || {
            while !serves.is_finished() {
                let to = thread.load(Ordering::SeqCst) as i32;
                call!(syscall(libc::SYS_tgkill, std::process::id() as i32, to, libc::SIGUSR1));
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let unanswered = (0..100).filter(|_| !ask()).count();
        // The serving thread ends after the number of connections that it waits for.
        for _ in 0..unanswered {
            ask();
        }
        unanswered
    })
}

/// Returns the next connection of a socket that may be non-blocking.
fn next_of(listening: &OwnedFd) -> OwnedFd {
    loop {
        let mut one = libc::pollfd { fd: listening.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        call!(poll(&raw mut one, 1, 5000));
        let got = accept(listening);
        if got.0 >= 0 {
            return got.fd();
        }
        assert!(got.to_string() == "EAGAIN", "{got}");
    }
}

pub(crate) fn time_out() {
    let (listening, at) = listener(home(0), 4);
    report("set", set_time(&listening, libc::SO_RCVTIMEO, 50));
    report("none", accept(&listening));
    let client = tcp(libc::AF_INET, 0);
    let server = joined(&listening, &client, at);
    // Connections inherit the listener's setting.
    report("inherited", recv(&server, 8, 0));
}

pub(crate) fn what_does_not_listen() {
    let fd = tcp(libc::AF_INET, 0);
    report("accept", accept(&fd));
    report("accept-of-a-file", accept(&std::fs::File::open("/dev/null").expect("a file")));
    report("accept-of-none", accept(&-1));
    report("connect-of-a-file", connect(&std::fs::File::open("/dev/null").expect("a file"), home(1)));
    report("connect-of-none", connect(&-1, home(1)));
    let (listening, at) = listener(home(0), 4);
    report("connect-of-a-listener", connect(&listening, at));
    let to = 8 as *const libc::sockaddr;
    report("connect-no-memory", call!(connect(fd.as_raw_fd(), to, 16)));
    report("connect-short", call!(connect(fd.as_raw_fd(), to, 0)));
    report("wrong-family", connect(&fd, "[::1]:9".parse().expect("an address")));
    report("recv", recv(&listening, 1, libc::MSG_DONTWAIT));
}

/// Checks that bytes sent before the accept arrive first and only once.
pub(crate) fn bytes_before_accept() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    connect(&client, at).ok();
    send_all(&client, b"early ");
    let server = accept(&listening).fd();
    send_all(&client, b"late");
    settle();
    comes(&server);
    report("reads", recv(&server, 64, 0));
    report("numbers", BTreeSet::from([listening.as_raw_fd(), client.as_raw_fd(), server.as_raw_fd()]).len());
}
