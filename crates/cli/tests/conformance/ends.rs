//! Checks of how connections end.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use super::sys::{
    ALL, call, comes, connect, error, get, home, linger, listener, notes, pair, peer, poll, recv, recv_all,
    said, send, send_all, set, settle, sleeps, tcp,
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
    said("shutdown", call!(shutdown(one.as_raw_fd(), libc::SHUT_WR)));
    said("other-reads", recv(other, 64, libc::MSG_WAITALL));
    said("other-at-end", recv(other, 64, 0));
    said("other-events", poll(other, ALL, 0));
    said("one-sends", send(one, b"x", 0));
    send_all(other, b"answer");
    comes(one);
    said("one-events", poll(one, ALL, 0));
    said("one-reads", recv(one, 64, 0));
    said("other-shuts", call!(shutdown(other.as_raw_fd(), libc::SHUT_WR)));
    said("one-at-end", recv(one, 64, 0));
}

pub(crate) fn shutdown_of_reading() {
    let pair = pair();
    said("shutdown", call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_RD)));
    said("own-read", recv(&pair.client, 64, libc::MSG_DONTWAIT));
    settle();
    said("peer-sends", send(&pair.server, b"late", 0));
    settle();
    said("own-read-late", recv(&pair.client, 64, libc::MSG_DONTWAIT));
    said("own-send", send(&pair.client, b"out", 0));
    said("peer-reads", recv(&pair.server, 64, libc::MSG_DONTWAIT));
}

pub(crate) fn shutdown_of_both() {
    let pair = pair();
    send_all(&pair.client, b"last");
    said("shutdown", call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_RDWR)));
    said("own-read", recv(&pair.client, 64, 0));
    said("own-send", send(&pair.client, b"x", 0));
    said("peer-reads", recv(&pair.server, 64, 0));
    said("peer-at-end", recv(&pair.server, 64, 0));
    drop(pair.server);
    settle();
    said("own-events", poll(&pair.client, ALL, 0));
}

pub(crate) fn shutdown_without_connection() {
    let fd = tcp(libc::AF_INET, 0);
    said("shutdown", call!(shutdown(fd.as_raw_fd(), libc::SHUT_WR)));
    said("send", send(&fd, b"x", 0));
    said("recv", recv(&fd, 1, 0));
}

pub(crate) fn peer_closes() {
    let pair = pair();
    send_all(&pair.server, b"goodbye");
    drop(pair.server);
    settle();
    said("events", poll(&pair.client, ALL, 0));
    said("reads", recv(&pair.client, 64, 0));
    said("at-end", recv(&pair.client, 64, 0));
    said("first-send", send(&pair.client, b"x", 0));
    settle();
    said("second-send", send(&pair.client, b"x", 0));
    said("at-end-again", recv(&pair.client, 64, 0));
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
    said("quiet", send(&pair.client, b"x", libc::MSG_NOSIGNAL));
    said("signals-of-quiet", signals.load(Ordering::SeqCst));
    said("write", call!(write(fd, b"x".as_ptr().cast(), 1)));
    said("send", call!(send(fd, b"x".as_ptr().cast(), 1, 0)));
    said("signals", signals.load(Ordering::SeqCst));
}

pub(crate) fn close_with_unread_data() {
    let pair = pair();
    send_all(&pair.client, b"never read");
    send_all(&pair.server, b"said");
    settle();
    drop(pair.server);
    settle();
    said("events", poll(&pair.client, ALL, 0));
    said("reads", recv(&pair.client, 64, 0));
    said("then", recv(&pair.client, 64, 0));
    said("and-then", recv(&pair.client, 64, 0));
    said("sends", send(&pair.client, b"x", 0));
}

pub(crate) fn linger_of_zero() {
    let pair = pair();
    said("set", linger(&pair.server, 0));
    drop(pair.server);
    settle();
    said("reads", recv(&pair.client, 64, 0));
    said("sends", send(&pair.client, b"x", 0));
}

pub(crate) fn linger_of_a_second() {
    let pair = pair();
    said("set", linger(&pair.client, 1));
    send_all(&pair.client, b"all of it");
    drop(pair.client);
    let (bytes, end) = recv_all(&pair.server);
    said("reads", format_args!("{} {end}", String::from_utf8_lossy(&bytes)));
}

fn so_error(fd: &impl AsRawFd) -> String {
    get(fd, libc::SOL_SOCKET, libc::SO_ERROR)
        .parse()
        .map_or_else(|text| format!("{text}"), |number: i32| error(number))
}

pub(crate) fn so_error_after_a_reset() {
    let pair = pair();
    said("before", so_error(&pair.client));
    send_all(&pair.client, b"never read");
    settle();
    drop(pair.server);
    settle();
    said("after", so_error(&pair.client));
    said("read-once", so_error(&pair.client));
    said("reads", recv(&pair.client, 64, 0));
}

pub(crate) fn names_after_the_end() {
    let pair = pair();
    drop(pair.server);
    settle();
    said("peer-of-half-closed", peer(&pair.client).is_ok());
    send(&pair.client, b"x", 0);
    settle();
    said("peer-of-closed", peer(&pair.client).err().map_or("known".to_owned(), |error| error.to_string()));
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
        said("reader-goes-on", !reads.is_finished());
        said("peer-sends", send(&server, b"late", 0));
        said("reader-gets", reads.join().expect("a thread"));
    });
    settle();
    said("peer-reads", recv(&server, 64, 0));
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
        said("shutdown", call!(shutdown(fd, libc::SHUT_RDWR)));
        said("reader-gets", reads.join().expect("a thread"));
    });
    said("peer-reads", recv(&pair.server, 64, 0));
}

/// Checks that connect(2) to an address without a family ends a connection.
pub(crate) fn disconnect() {
    let pair = pair();
    // SAFETY: all zeros are an address without a family.
    let nowhere: libc::sockaddr = unsafe { std::mem::zeroed() };
    said(
        "disconnect",
        call!(connect(pair.client.as_raw_fd(), &raw const nowhere, size_of_val(&nowhere) as u32)),
    );
    said("peer-of-it", peer(&pair.client).err().map_or("known".to_owned(), |error| error.to_string()));
    settle();
    said("other-reads", recv(&pair.server, 64, libc::MSG_DONTWAIT));
}

pub(crate) fn connect_twice() {
    let pair = pair();
    let (listening, at) = listener(home(0), 4);
    said("again", connect(&pair.client, at));
    said("elsewhere", connect(&pair.client, home(1)));
    said("of-accepted", connect(&pair.server, at));
    said("listen", call!(listen(pair.client.as_raw_fd(), 4)));
    said("send", send(&pair.client, b"x", 0));
    said("works", recv(&pair.server, 64, 0));
    said("reuse", set(&listening, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1));
}
