//! Checks of readiness: what poll, select and epoll report, and calls that do not block.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use super::ends::counts;
use super::sys::{
    ALL, accept, call, comes, connect, drain, error, events_said, fill, get, home, joined, listener, pair,
    pair_of, poll, recv, report, send, send_all, settle, sleep, tcp, waits_not,
};

pub(crate) fn polling() {
    let pair = pair();
    report("new", poll(&pair.client, ALL, 0));
    send_all(&pair.client, b"x");
    comes(&pair.server);
    report("with-data", poll(&pair.server, ALL, 0));
    recv(&pair.server, 64, 0);
    report("without", poll(&pair.server, ALL, 0));
    call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_WR)).ok();
    settle();
    report("peer-shut", poll(&pair.server, ALL, 0));
    report("own-shut", poll(&pair.client, ALL, 0));
    call!(shutdown(pair.server.as_raw_fd(), libc::SHUT_WR)).ok();
    settle();
    report("both-shut", poll(&pair.client, ALL, 0));
    drop(pair.server);
    settle();
    report("closed", poll(&pair.client, ALL, 0));
}

pub(crate) fn selecting() {
    let pair = pair();
    report("new", select(&pair.server));
    send_all(&pair.client, b"x");
    comes(&pair.server);
    report("with-data", select(&pair.server));
    send(&pair.client, b"!", libc::MSG_OOB).ok();
    settle();
    report("urgent", select(&pair.server));
    drop(pair.client);
    settle();
    report("closed", select(&pair.server));
}

/// Returns the three sets of select(2).
fn select(fd: &impl AsRawFd) -> String {
    let number = fd.as_raw_fd();
    let set = || {
        // SAFETY: all zeros are an empty set, and a descriptor of these programs is a low number.
        unsafe {
            let mut set: libc::fd_set = std::mem::zeroed();
            libc::FD_SET(number, &raw mut set);
            set
        }
    };
    let mut sets = [set(), set(), set()];
    let [reads, writes, excepts] = &mut sets;
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let (reads, writes, excepts) = (&raw mut *reads, &raw mut *writes, &raw mut *excepts);
    let count = call!(select(number + 1, reads, writes, excepts, &raw mut time));
    // SAFETY: as above.
    let is_in = sets.map(|set| unsafe { libc::FD_ISSET(number, &raw const set) });
    format!("{count} {is_in:?}").replace(", ", ",")
}

/// Returns an epoll set with one descriptor.
fn watches(fd: RawFd, events: i32) -> OwnedFd {
    let set = call!(epoll_create1(libc::EPOLL_CLOEXEC)).fd();
    watch(&set, fd, (libc::EPOLL_CTL_ADD, events));
    set
}

fn watch(set: &OwnedFd, fd: RawFd, (does, events): (i32, i32)) {
    let mut event = libc::epoll_event { events: events as u32, u64: 7 };
    call!(epoll_ctl(set.as_raw_fd(), does, fd, &raw mut event)).ok();
}

fn events(set: &OwnedFd, milliseconds: i32) -> String {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    match call!(epoll_wait(set.as_raw_fd(), &raw mut event, 1, milliseconds)).ok() {
        0 => "none".to_owned(),
        _ => events_said(event.events as i32),
    }
}

const IN: i32 = libc::EPOLLIN;
const OUT: i32 = libc::EPOLLOUT;
const RDHUP: i32 = libc::EPOLLRDHUP;
const EDGE: i32 = libc::EPOLLET;

pub(crate) fn epoll_by_level() {
    let pair = pair();
    let set = watches(pair.server.as_raw_fd(), IN | RDHUP);
    report("new", events(&set, 0));
    send_all(&pair.client, b"ab");
    report("comes", events(&set, 1000));
    recv(&pair.server, 1, 0);
    report("rest", events(&set, 0));
    recv(&pair.server, 1, 0);
    report("empty", events(&set, 0));
    watch(&set, pair.server.as_raw_fd(), (libc::EPOLL_CTL_MOD, OUT));
    report("writes", events(&set, 0));
}

pub(crate) fn epoll_by_edge() {
    let pair = pair();
    let set = watches(pair.server.as_raw_fd(), IN | OUT | EDGE);
    report("new", events(&set, 0));
    report("new-again", events(&set, 0));
    send_all(&pair.client, b"ab");
    report("comes", events(&set, 1000));
    report("comes-again", events(&set, 0));
    send_all(&pair.client, b"cd");
    report("more", events(&set, 1000));
    report("reads", recv(&pair.server, 64, 0));
    settle();
    report("empty", events(&set, 0));
    send_all(&pair.client, b"e");
    report("next", events(&set, 1000));
}

pub(crate) fn epoll_by_edge_of_writing() {
    let pair = pair();
    let set = watches(pair.client.as_raw_fd(), OUT | EDGE);
    events(&set, 0);
    let filled = fill(&pair.client);
    events(&set, 0);
    report("full", events(&set, 0));
    drain(&pair.server, filled);
    report("drained", events(&set, 1000));
    report("once", events(&set, 0));
}

pub(crate) fn epoll_of_a_half_closed_one() {
    let pair = pair();
    let set = watches(pair.server.as_raw_fd(), IN | RDHUP | EDGE);
    call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_WR)).ok();
    report("half-closed", events(&set, 1000));
    drop(pair.client);
    settle();
    report("closed", events(&set, 0));
}

pub(crate) fn epoll_once() {
    let pair = pair();
    let set = watches(pair.server.as_raw_fd(), IN | libc::EPOLLONESHOT);
    send_all(&pair.client, b"a");
    report("comes", events(&set, 1000));
    send_all(&pair.client, b"b");
    settle();
    report("again", events(&set, 0));
    watch(&set, pair.server.as_raw_fd(), (libc::EPOLL_CTL_MOD, IN | libc::EPOLLONESHOT));
    report("armed", events(&set, 1000));
}

pub(crate) fn epoll_exclusively() {
    let pair = pair();
    let sets = [(); 2].map(|()| watches(pair.server.as_raw_fd(), IN | libc::EPOLLEXCLUSIVE));
    let woken = std::thread::scope(|threads| {
        let waiting = sets.each_ref().map(|set| threads.spawn(|| events(set, 300)));
        settle();
        send_all(&pair.client, b"x");
        waiting.map(|one| one.join().expect("a thread")).iter().filter(|events| *events == "IN").count()
    });
    report("woken", woken);
}

/// Checks that an epoll set keeps a closed descriptor's socket as long as a duplicate is open.
pub(crate) fn epoll_of_a_duplicate() {
    let pair = pair();
    let set = watches(pair.server.as_raw_fd(), IN);
    let other = call!(dup(pair.server.as_raw_fd())).fd();
    drop(pair.server);
    send_all(&pair.client, b"x");
    report("comes", events(&set, 1000));
    report("reads", recv(&other, 64, 0));
    drop(other);
    report("gone", events(&set, 0));
}

/// Checks a socket that joins an epoll set before it connects, as in event loops.
pub(crate) fn epoll_before_connect() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, libc::SOCK_NONBLOCK);
    let set = watches(client.as_raw_fd(), OUT | EDGE);
    connect(&client, at);
    let server = accept(&listening).fd();
    settle();
    report("connected", events(&set, 1000).contains("OUT"));
    watch(&set, client.as_raw_fd(), (libc::EPOLL_CTL_MOD, IN));
    send_all(&server, b"x");
    report("comes", events(&set, 1000));
}

pub(crate) fn connect_without_waiting() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, libc::SOCK_NONBLOCK);
    let server = std::thread::scope(|threads| {
        let accepts = threads.spawn(|| accept(&listening).fd());
        report("connect", connect(&client, at));
        report("writable", poll(&client, libc::POLLOUT, 1000));
        report("so-error", get(&client, libc::SOL_SOCKET, libc::SO_ERROR));
        accepts.join().expect("a thread")
    });
    report("again", connect(&client, at));
    report("recv", recv(&client, 1, 0));
    send_all(&server, b"x");
    comes(&client);
    report("reads", recv(&client, 64, 0));
}

/// Returns a port whose only listener has just been closed.
fn closed_port() -> u16 {
    listener(home(0), 1).1.port()
}

pub(crate) fn refused() {
    let client = tcp(libc::AF_INET, 0);
    report("connect", connect(&client, home(closed_port())));
    report("so-error", get(&client, libc::SOL_SOCKET, libc::SO_ERROR));
    report("events", poll(&client, ALL, 0));
    report("send", send(&client, b"x", 0));
    let (listening, at) = listener(home(0), 4);
    let server = joined(&listening, &client, at);
    report("elsewhere", send(&client, b"x", 0));
    report("reads", recv(&server, 64, 0));
}

pub(crate) fn refused_without_waiting() {
    let client = tcp(libc::AF_INET, libc::SOCK_NONBLOCK);
    let at = home(closed_port());
    let got = connect(&client, at);
    report("connect", got);
    report("writable", poll(&client, libc::POLLOUT, 1000));
    let code: i32 = get(&client, libc::SOL_SOCKET, libc::SO_ERROR).parse().expect("a number");
    report("so-error", if code == 0 { "0".to_owned() } else { error(code) });
    // The program learns of the refusal in one of the two ways.
    report("told", code == libc::ECONNREFUSED || got.to_string() == "ECONNREFUSED");
}

pub(crate) fn without_waiting_by_ioctl() {
    let pair = pair();
    let yes = 1_i32;
    report("set", call!(ioctl(pair.client.as_raw_fd(), libc::FIONBIO, &raw const yes)));
    report("recv", recv(&pair.client, 64, 0));
    report("flag", call!(fcntl(pair.client.as_raw_fd(), libc::F_GETFL)).ok() as i32 & libc::O_NONBLOCK != 0);
}

pub(crate) fn flags_set_before_stay() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, libc::SOCK_NONBLOCK);
    let _server = std::thread::scope(|threads| {
        let accepts = threads.spawn(|| accept(&listening).fd());
        connect(&client, at);
        poll(&client, libc::POLLOUT, 1000);
        accepts.join().expect("a thread")
    });
    report("recv", recv(&client, 64, 0));
    report("flags", call!(fcntl(client.as_raw_fd(), libc::F_GETFL)).ok() as i32 & libc::O_NONBLOCK != 0);
    report("closes", call!(fcntl(client.as_raw_fd(), libc::F_GETFD)));
}

fn wants_signals(fd: &impl AsRawFd) {
    call!(fcntl(fd.as_raw_fd(), libc::F_SETOWN, libc::getpid())).ok();
    let flags = call!(fcntl(fd.as_raw_fd(), libc::F_GETFL)).ok() as i32;
    call!(fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_ASYNC)).ok();
}

/// Returns true if a signal arrives for a byte.
fn signal_of(server: &OwnedFd, before: i32) -> bool {
    let signals = counts(libc::SIGIO, libc::SA_RESTART);
    send_all(server, b"x");
    (0..50).any(|_| {
        sleep(2);
        signals.load(Ordering::SeqCst) > before
    })
}

pub(crate) fn signal_of_input() {
    let signals = counts(libc::SIGIO, libc::SA_RESTART);
    let pair = pair();
    wants_signals(&pair.client);
    settle();
    report("comes", signal_of(&pair.server, signals.load(Ordering::SeqCst)));
    report("owner", call!(fcntl(pair.client.as_raw_fd(), libc::F_GETOWN)).0 == i64::from(std::process::id()));
}

pub(crate) fn signal_of_input_asked_before() {
    let signals = counts(libc::SIGIO, libc::SA_RESTART);
    let pair = pair_of(home(0), |_| {}, wants_signals);
    settle();
    report("comes", signal_of(&pair.server, signals.load(Ordering::SeqCst)));
}

pub(crate) fn signal_of_urgent_data() {
    let signals = counts(libc::SIGURG, libc::SA_RESTART);
    let pair = pair();
    call!(fcntl(pair.server.as_raw_fd(), libc::F_SETOWN, libc::getpid())).ok();
    send(&pair.client, b"!", libc::MSG_OOB).ok();
    settle();
    report("comes", signals.load(Ordering::SeqCst) > 0);
}

pub(crate) fn accept_without_waiting() {
    let (listening, at) = listener(home(0), 4);
    waits_not(&listening);
    report("none", accept(&listening));
    report("events", poll(&listening, libc::POLLIN, 0));
    let client = tcp(libc::AF_INET, 0);
    let server = std::thread::scope(|threads| {
        let accepts = threads.spawn(|| {
            comes(&listening);
            accept(&listening).fd()
        });
        connect(&client, at).ok();
        accepts.join().expect("a thread")
    });
    report(
        "accepted-waits",
        call!(fcntl(server.as_raw_fd(), libc::F_GETFL)).ok() as i32 & libc::O_NONBLOCK == 0,
    );
    report("none-again", accept(&listening));
}

pub(crate) fn poll_is_woken() {
    let pair = pair();
    std::thread::scope(|threads| {
        let waits = threads.spawn(|| poll(&pair.server, libc::POLLIN | libc::POLLRDHUP, 5000));
        settle();
        drop(pair.client);
        report("events", waits.join().expect("a thread").contains("RDHUP"));
    });
}
