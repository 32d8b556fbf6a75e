//! Checks of how connections end.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use super::sys::{
    ALL, call, comes, connect, error, get, home, linger, listener, notes, pair, peer, poll, recv, recv_all,
    report, send, send_all, set, settle, sleeps, tcp,
};

pub(crate) fn half_close_of_client() {
    let pair = pair();
    half_close(&pair.client, &pair.server);
}

pub(crate) fn half_close_of_server() {
    let pair = pair();
    half_close(&pair.server, &pair.client);
}

/// Shuts down sending at one end, while the other end still sends.
fn half_close(one: &impl AsRawFd, other: &impl AsRawFd) {
    send_all(one, b"question");
    report("shutdown", call!(shutdown(one.as_raw_fd(), libc::SHUT_WR)));
    report("other-reads", recv(other, 64, libc::MSG_WAITALL));
    report("other-at-end", recv(other, 64, 0));
    report("other-events", poll(other, ALL, 0));
    report("one-sends", send(one, b"x", 0));
    send_all(other, b"answer");
    comes(one);
    report("one-events", poll(one, ALL, 0));
    report("one-reads", recv(one, 64, 0));
    report("other-shuts", call!(shutdown(other.as_raw_fd(), libc::SHUT_WR)));
    report("one-at-end", recv(one, 64, 0));
}

pub(crate) fn shutdown_of_reading() {
    let pair = pair();
    report("shutdown", call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_RD)));
    report("own-read", recv(&pair.client, 64, libc::MSG_DONTWAIT));
    settle();
    report("peer-sends", send(&pair.server, b"late", 0));
    settle();
    report("own-read-late", recv(&pair.client, 64, libc::MSG_DONTWAIT));
    report("own-send", send(&pair.client, b"out", 0));
    report("peer-reads", recv(&pair.server, 64, libc::MSG_DONTWAIT));
}

pub(crate) fn shutdown_of_both() {
    let pair = pair();
    send_all(&pair.client, b"last");
    report("shutdown", call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_RDWR)));
    report("own-read", recv(&pair.client, 64, 0));
    report("own-send", send(&pair.client, b"x", 0));
    report("peer-reads", recv(&pair.server, 64, 0));
    report("peer-at-end", recv(&pair.server, 64, 0));
    drop(pair.server);
    settle();
    report("own-events", poll(&pair.client, ALL, 0));
}

pub(crate) fn shutdown_without_connection() {
    let fd = tcp(libc::AF_INET, 0);
    report("shutdown", call!(shutdown(fd.as_raw_fd(), libc::SHUT_WR)));
    report("send", send(&fd, b"x", 0));
    report("recv", recv(&fd, 1, 0));
}

pub(crate) fn peer_closes() {
    let pair = pair();
    send_all(&pair.server, b"goodbye");
    drop(pair.server);
    settle();
    report("events", poll(&pair.client, ALL, 0));
    report("reads", recv(&pair.client, 64, 0));
    report("at-end", recv(&pair.client, 64, 0));
    report("first-send", send(&pair.client, b"x", 0));
    settle();
    report("second-send", send(&pair.client, b"x", 0));
    report("at-end-again", recv(&pair.client, 64, 0));
}

static SIGNALS: AtomicI32 = AtomicI32::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
}

/// Starts counting a signal.
pub(crate) fn counts(signal: libc::c_int, flags: libc::c_int) -> &'static AtomicI32 {
    // SAFETY: all zeros are an action without a mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = count as *const () as usize;
    action.sa_flags = flags;
    call!(sigaction(signal, &raw const action, std::ptr::null_mut())).ok();
    &SIGNALS
}

pub(crate) fn sigpipe() {
    let signals = counts(libc::SIGPIPE, 0);
    let pair = pair();
    let fd = pair.client.as_raw_fd();
    call!(shutdown(fd, libc::SHUT_WR)).ok();
    report("quiet", send(&pair.client, b"x", libc::MSG_NOSIGNAL));
    report("signals-of-quiet", signals.load(Ordering::SeqCst));
    report("write", call!(write(fd, b"x".as_ptr().cast(), 1)));
    report("send", call!(send(fd, b"x".as_ptr().cast(), 1, 0)));
    report("signals", signals.load(Ordering::SeqCst));
}

pub(crate) fn close_with_unread_data() {
    let pair = pair();
    send_all(&pair.client, b"never read");
    send_all(&pair.server, b"said");
    settle();
    drop(pair.server);
    settle();
    report("events", poll(&pair.client, ALL, 0));
    report("reads", recv(&pair.client, 64, 0));
    report("then", recv(&pair.client, 64, 0));
    report("and-then", recv(&pair.client, 64, 0));
    report("sends", send(&pair.client, b"x", 0));
}

pub(crate) fn linger_of_zero() {
    let pair = pair();
    report("set", linger(&pair.server, 0));
    drop(pair.server);
    settle();
    report("reads", recv(&pair.client, 64, 0));
    report("sends", send(&pair.client, b"x", 0));
}

pub(crate) fn linger_of_a_second() {
    let pair = pair();
    report("set", linger(&pair.client, 1));
    send_all(&pair.client, b"all of it");
    drop(pair.client);
    let (bytes, end) = recv_all(&pair.server);
    report("reads", format_args!("{} {end}", String::from_utf8_lossy(&bytes)));
}

fn so_error(fd: &impl AsRawFd) -> String {
    get(fd, libc::SOL_SOCKET, libc::SO_ERROR)
        .parse()
        .map_or_else(|text| format!("{text}"), |number: i32| error(number))
}

pub(crate) fn so_error_after_a_reset() {
    let pair = pair();
    report("before", so_error(&pair.client));
    send_all(&pair.client, b"never read");
    settle();
    drop(pair.server);
    settle();
    report("after", so_error(&pair.client));
    report("read-once", so_error(&pair.client));
    report("reads", recv(&pair.client, 64, 0));
}

pub(crate) fn names_after_the_end() {
    let pair = pair();
    drop(pair.server);
    settle();
    report("peer-of-half-closed", peer(&pair.client).is_ok());
    send(&pair.client, b"x", 0);
    settle();
    report("peer-of-closed", peer(&pair.client).err().map_or("known".to_owned(), |error| error.to_string()));
}

pub(crate) fn close_while_another_thread_reads() {
    let pair = pair();
    let (fd, server) = (pair.client.as_raw_fd(), pair.server);
    let thread = AtomicI64::new(0);
    std::thread::scope(|threads| {
        let reads = threads.spawn(|| {
            notes(&thread);
            recv(&fd, 64, 0)
        });
        sleeps(&thread);
        drop(pair.client);
        settle();
        report("reader-goes-on", !reads.is_finished());
        report("peer-sends", send(&server, b"late", 0));
        report("reader-gets", reads.join().expect("a thread"));
    });
    settle();
    report("peer-reads", recv(&server, 64, 0));
}

pub(crate) fn shutdown_while_another_thread_reads() {
    let pair = pair();
    let fd = pair.client.as_raw_fd();
    let thread = AtomicI64::new(0);
    std::thread::scope(|threads| {
        let reads = threads.spawn(|| {
            notes(&thread);
            recv(&fd, 64, 0)
        });
        sleeps(&thread);
        report("shutdown", call!(shutdown(fd, libc::SHUT_RDWR)));
        report("reader-gets", reads.join().expect("a thread"));
    });
    report("peer-reads", recv(&pair.server, 64, 0));
}

/// Checks that connect(2) to an address without a family ends a connection.
pub(crate) fn disconnect() {
    let pair = pair();
    // SAFETY: all zeros are an address without a family.
    let nowhere: libc::sockaddr = unsafe { std::mem::zeroed() };
    report(
        "disconnect",
        call!(connect(pair.client.as_raw_fd(), &raw const nowhere, size_of_val(&nowhere) as u32)),
    );
    report("peer-of-it", peer(&pair.client).err().map_or("known".to_owned(), |error| error.to_string()));
    settle();
    report("other-reads", recv(&pair.server, 64, libc::MSG_DONTWAIT));
}

pub(crate) fn connect_twice() {
    let pair = pair();
    let (listening, at) = listener(home(0), 4);
    report("again", connect(&pair.client, at));
    report("elsewhere", connect(&pair.client, home(1)));
    report("of-accepted", connect(&pair.server, at));
    report("listen", call!(listen(pair.client.as_raw_fd(), 4)));
    report("send", send(&pair.client, b"x", 0));
    report("works", recv(&pair.server, 64, 0));
    report("reuse", set(&listening, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1));
}
