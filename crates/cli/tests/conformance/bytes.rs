//! Checks of sent and received bytes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicI64;
use std::time::Instant;

use super::sys::{
    CallResult, call, comes, drain, fill, get, home, notes, pair, pair_of, pattern, poll, raw, recv,
    recv_all, report, send, send_all, set, set_time, settle, sleep, sleeps,
};

pub(crate) fn peek() {
    let pair = pair();
    send_all(&pair.client, b"hello");
    comes(&pair.server);
    report("peek", recv(&pair.server, 64, libc::MSG_PEEK));
    report("peek-part", recv(&pair.server, 2, libc::MSG_PEEK));
    report("read-part", recv(&pair.server, 2, 0));
    report("peek-rest", recv(&pair.server, 64, libc::MSG_PEEK));
    report("read-rest", recv(&pair.server, 64, 0));
    report("peek-nothing", recv(&pair.server, 64, libc::MSG_PEEK | libc::MSG_DONTWAIT));
}

const SIOCATMARK: libc::c_ulong = 0x8905;

fn at_mark(fd: &impl AsRawFd) -> String {
    let mut mark = 0_i32;
    let got = call!(ioctl(fd.as_raw_fd(), SIOCATMARK, &raw mut mark));
    if got.0 < 0 { got.to_string() } else { mark.to_string() }
}

/// Sets a receive timeout, so that a read returns even if no more data arrive. That is the case if urgent data are
/// treated like other data.
fn ends(fd: &impl AsRawFd) {
    set_time(fd, libc::SO_RCVTIMEO, 500).ok();
}

pub(crate) fn out_of_band() {
    let pair = pair();
    ends(&pair.server);
    send_all(&pair.client, b"ab");
    report("send", send(&pair.client, b"!", libc::MSG_OOB));
    send_all(&pair.client, b"cd");
    settle();
    report("events", poll(&pair.server, libc::POLLIN | libc::POLLPRI, 0));
    report("mark", at_mark(&pair.server));
    report("before", recv(&pair.server, 64, 0));
    report("mark-there", at_mark(&pair.server));
    report("urgent", recv(&pair.server, 1, libc::MSG_OOB));
    report("after", recv(&pair.server, 64, 0));
    report("no-more", recv(&pair.server, 1, libc::MSG_OOB));
}

pub(crate) fn out_of_band_inline() {
    let pair = pair();
    ends(&pair.server);
    report("set", set(&pair.server, libc::SOL_SOCKET, libc::SO_OOBINLINE, 1));
    send_all(&pair.client, b"ab");
    send(&pair.client, b"!", libc::MSG_OOB).ok();
    send_all(&pair.client, b"cd");
    settle();
    report("before", recv(&pair.server, 64, 0));
    report("mark", at_mark(&pair.server));
    report("after", recv(&pair.server, 64, 0));
    report("as-urgent", recv(&pair.server, 1, libc::MSG_OOB));
}

pub(crate) fn wait_for_all() {
    let pair = pair();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for part in [&b"one"[..], b"two", b"three", b"end"] {
                send_all(&pair.client, part);
                sleep(5);
            }
            call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_WR)).ok();
        });
        report("all", recv(&pair.server, 11, libc::MSG_WAITALL));
        report("rest", recv(&pair.server, 64, libc::MSG_WAITALL));
    });
    report("end", recv(&pair.server, 64, libc::MSG_WAITALL));
}

pub(crate) fn low_water() {
    let pair = pair();
    report("set", set(&pair.server, libc::SOL_SOCKET, libc::SO_RCVLOWAT, 5));
    report("get", get(&pair.server, libc::SOL_SOCKET, libc::SO_RCVLOWAT));
    send_all(&pair.client, b"abc");
    settle();
    report("events-below", poll(&pair.server, libc::POLLIN, 0));
    let thread = AtomicI64::new(0);
    std::thread::scope(|threads| {
        let reads = threads.spawn(|| {
            notes(&thread);
            recv(&pair.server, 64, 0)
        });
        sleeps(&thread);
        report("waits", !reads.is_finished());
        // TCP wakes the reader once enough new bytes have arrived.
        send_all(&pair.client, b"defgh");
        report("reads", reads.join().expect("a thread"));
    });
}

/// Reports whether an operation took about the given time.
fn about(milliseconds: u128, does: impl FnOnce() -> String) -> String {
    let began = Instant::now();
    let result = does();
    let took = began.elapsed().as_millis();
    format!("{result} in-time {}", (milliseconds - 10..milliseconds + 15_000).contains(&took))
}

pub(crate) fn receive_time_out() {
    let pair = pair_of(
        home(0),
        |_| {},
        |client| {
            set_time(client, libc::SO_RCVTIMEO, 60).ok();
        },
    );
    report("set-before", about(60, || recv(&pair.client, 64, 0)));
    report("set", set_time(&pair.server, libc::SO_RCVTIMEO, 50));
    report("recv", about(50, || recv(&pair.server, 64, 0)));
    send_all(&pair.client, b"abc");
    report("waitall", about(50, || recv(&pair.server, 64, libc::MSG_WAITALL)));
}

pub(crate) fn send_time_out() {
    let pair = pair();
    report("set", set_time(&pair.client, libc::SO_SNDTIMEO, 50));
    fill(&pair.client);
    // TCP may enlarge the buffer meanwhile, so the sends are repeated until one fails.
    let until_full = || (0..1000).map(|_| about(50, || send(&pair.client, &[0; 4096], 0).to_string()));
    report("send", until_full().find(|sent| sent.starts_with('E')).unwrap_or_default());
    let more = vec![0; 64 << 20];
    let filled = super::sys::pair();
    set_time(&filled.client, libc::SO_SNDTIMEO, 50).ok();
    report("part", send(&filled.client, &more, 0).0 > 0);
}

pub(crate) fn do_not_wait() {
    let pair = pair();
    report("recv", recv(&pair.client, 64, libc::MSG_DONTWAIT));
    fill(&pair.client);
    // TCP may enlarge the buffer meanwhile, so the sends are repeated until one fails.
    let sent =
        (0..1000).map(|_| send(&pair.client, &[0; 65_536], libc::MSG_DONTWAIT)).find(|sent| sent.0 < 0);
    report("send", sent.map_or(String::new(), |sent| sent.to_string()));
    report("recv-of-none", recv(&pair.client, 0, libc::MSG_DONTWAIT));
}

pub(crate) fn a_full_buffer_goes_on() {
    let pair = pair();
    let filled = fill(&pair.client);
    report("filled", filled > 0);
    report("events-full", poll(&pair.client, libc::POLLOUT, 0));
    drain(&pair.server, filled);
    report("events-empty", poll(&pair.client, libc::POLLOUT, 1000));
    report("send", send(&pair.client, b"x", libc::MSG_DONTWAIT));
    report("reads", recv(&pair.server, 64, 0));
}

/// Checks that MSG_TRUNC discards bytes of a stream (tcp(7)).
pub(crate) fn truncate() {
    let pair = pair();
    send_all(&pair.client, b"hello");
    comes(&pair.server);
    let mut bytes = *b"........";
    let flags = libc::MSG_TRUNC;
    report("count", call!(recv(pair.server.as_raw_fd(), bytes.as_mut_ptr().cast(), 3, flags)));
    report("copied", String::from_utf8_lossy(&bytes));
    report("rest", recv(&pair.server, 64, 0));
}

fn slices<'a>(of: &'a [&'a [u8]]) -> Vec<IoSlice<'a>> {
    of.iter().map(|one| IoSlice::new(one)).collect()
}

fn message(slices: *const IoSlice<'_>, count: usize) -> libc::msghdr {
    // SAFETY: all zeros are an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // An IoSlice is ABI-compatible with an iovec by definition.
    message.msg_iov = slices.cast_mut().cast();
    message.msg_iovlen = count as _;
    message
}

pub(crate) fn messages_of_parts() {
    let pair = pair();
    let (parts, empty): ([&[u8]; 4], [&[u8]; 1]) = ([b"ab", b"", b"cde", b"f"], [b""]);
    let (all, none) = (slices(&parts), slices(&empty));
    let mut sent = message(all.as_ptr(), all.len());
    report("sendmsg", call!(sendmsg(pair.client.as_raw_fd(), &raw const sent, 0)));
    sent = message(none.as_ptr(), none.len());
    report("sendmsg-of-nothing", call!(sendmsg(pair.client.as_raw_fd(), &raw const sent, 0)));
    comes(&pair.server);
    let (mut one, mut other, mut control, mut from) = ([b'.'; 4], [b'.'; 4], [0_u8; 64], raw(home(7)).0);
    let room = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
    let mut got = message(room.as_ptr().cast(), room.len());
    got.msg_control = control.as_mut_ptr().cast();
    got.msg_controllen = control.len() as _;
    got.msg_name = (&raw mut from).cast();
    got.msg_namelen = size_of_val(&from) as u32;
    report("recvmsg", call!(recvmsg(pair.server.as_raw_fd(), &raw mut got, 0)));
    report(
        "lengths",
        format_args!("name {} control {} flags {}", got.msg_namelen, got.msg_controllen, got.msg_flags),
    );
    report(
        "parts",
        format_args!("{} {}", String::from_utf8_lossy(&room[0]), String::from_utf8_lossy(&room[1])),
    );
}

pub(crate) fn many_messages() {
    let pair = pair();
    let parts: [&[u8]; 3] = [b"one", b"two", b"three"];
    let all = slices(&parts);
    let header = |one| libc::mmsghdr { msg_hdr: message(one, 1), msg_len: 0 };
    let mut sent: Vec<libc::mmsghdr> = all.iter().map(|one| header(one)).collect();
    report("sendmmsg", call!(sendmmsg(pair.client.as_raw_fd(), sent.as_mut_ptr(), 3, 0)));
    report("sent", format_args!("{} {} {}", sent[0].msg_len, sent[1].msg_len, sent[2].msg_len));
    settle();
    let (mut one, mut other) = ([0; 4], [0; 64]);
    let room = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
    let mut got: Vec<libc::mmsghdr> = room.iter().map(|one| header(std::ptr::from_ref(one).cast())).collect();
    let fd = pair.server.as_raw_fd();
    report("recvmmsg", call!(recvmmsg(fd, got.as_mut_ptr(), 2, libc::MSG_DONTWAIT, null_mut())));
    report("got", format_args!("{} {}", got[0].msg_len, got[1].msg_len));
    report(
        "bytes",
        format_args!("{} {}", String::from_utf8_lossy(&room[0]), String::from_utf8_lossy(&room[1][..7])),
    );
}

pub(crate) fn vectors() {
    let pair = pair();
    let parts: [&[u8]; 3] = [b"abc", b"", b"defg"];
    let all = slices(&parts);
    report("writev", call!(writev(pair.client.as_raw_fd(), all.as_ptr().cast(), 3)));
    comes(&pair.server);
    let (mut one, mut other) = ([0; 2], [0; 16]);
    let room = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
    report("readv", call!(readv(pair.server.as_raw_fd(), room.as_ptr().cast(), 2)));
    report(
        "bytes",
        format_args!("{} {}", String::from_utf8_lossy(&room[0]), String::from_utf8_lossy(&room[1][..5])),
    );
    report("preadv", call!(preadv(pair.server.as_raw_fd(), room.as_ptr().cast(), 0, 0)).0);
}

pub(crate) fn with_addresses() {
    let pair = pair();
    let (to, length) = raw(home(9));
    let fd = pair.client.as_raw_fd();
    report("sendto-nowhere", call!(sendto(fd, b"ab".as_ptr().cast(), 2, 0, null(), 0)));
    report("sendto", call!(sendto(fd, b"cd".as_ptr().cast(), 2, 0, (&raw const to).cast(), length)));
    settle();
    let (mut bytes, mut from, mut length) = ([0_u8; 8], to, 128);
    let fd = pair.server.as_raw_fd();
    report(
        "recvfrom",
        call!(recvfrom(fd, bytes.as_mut_ptr().cast(), 2, 0, (&raw mut from).cast(), &raw mut length)),
    );
    report("length-of-address", length);
}

pub(crate) fn nothing() {
    let pair = pair();
    report("send", send(&pair.client, b"", 0));
    report("write", call!(write(pair.client.as_raw_fd(), b"".as_ptr().cast(), 0)));
    settle();
    report("events", poll(&pair.server, libc::POLLIN, 0));
    report("recv", recv(&pair.server, 0, libc::MSG_DONTWAIT));
    report("read", call!(read(pair.server.as_raw_fd(), [0_u8; 1].as_mut_ptr().cast(), 0)));
}

pub(crate) fn no_such_memory() {
    let pair = pair();
    send_all(&pair.client, b"abc");
    comes(&pair.server);
    report("recv", call!(recv(pair.server.as_raw_fd(), 8 as *mut libc::c_void, 3, 0)));
    report("send", call!(send(pair.client.as_raw_fd(), 8 as *const libc::c_void, 3, 0)));
    report("still-there", recv(&pair.server, 64, 0));
}

pub(crate) fn more_to_come() {
    let pair = pair();
    report("send", send(&pair.client, b"head ", libc::MSG_MORE));
    settle();
    report("held", poll(&pair.server, libc::POLLIN, 0));
    report("send-rest", send(&pair.client, b"body", 0));
    settle();
    report("reads", recv(&pair.server, 64, 0));
}

pub(crate) fn cork() {
    let pair = pair();
    report("set", set(&pair.client, libc::IPPROTO_TCP, libc::TCP_CORK, 1));
    send_all(&pair.client, b"head ");
    settle();
    report("held", poll(&pair.server, libc::POLLIN, 0));
    send_all(&pair.client, b"body");
    report("unset", set(&pair.client, libc::IPPROTO_TCP, libc::TCP_CORK, 0));
    settle();
    report("reads", recv(&pair.server, 64, 0));
}

const SIOCOUTQ: libc::c_ulong = 0x5411;

fn queued(fd: &impl AsRawFd, which: libc::c_ulong) -> i32 {
    let mut count = 0_i32;
    call!(ioctl(fd.as_raw_fd(), which, &raw mut count)).ok();
    count
}

pub(crate) fn queues() {
    let pair = pair();
    report("in-empty", queued(&pair.server, libc::FIONREAD));
    report("out-empty", queued(&pair.client, SIOCOUTQ));
    send_all(&pair.client, b"hello");
    send_all(&pair.client, b"world");
    settle();
    report("in", queued(&pair.server, libc::FIONREAD));
    report("out-unread", queued(&pair.client, SIOCOUTQ) > 0);
    report("reads", recv(&pair.server, 7, 0));
    report("in-rest", queued(&pair.server, libc::FIONREAD));
    report("reads-rest", recv(&pair.server, 64, 0));
    settle();
    report("out-read", queued(&pair.client, SIOCOUTQ));
}

pub(crate) fn queue_of_errors() {
    let pair = pair();
    report("empty", recv(&pair.client, 64, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT));
    report("zero-copy", set(&pair.client, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1));
    report("timestamps", set(&pair.client, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0x12));
}

pub(crate) fn small_pieces_join() {
    let pair = pair();
    for byte in b'a'..=b'z' {
        send_all(&pair.client, &[byte]);
    }
    settle();
    report("reads", recv(&pair.server, 26, libc::MSG_WAITALL));
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Sends 16 MiB in each direction simultaneously.
pub(crate) fn large_transfer() {
    let pair = pair();
    let sent = pattern(16 << 20);
    let goes = |out: &std::os::fd::OwnedFd| {
        send_all(out, &sent);
        call!(shutdown(out.as_raw_fd(), libc::SHUT_WR)).ok();
    };
    let (there, back) = std::thread::scope(|threads| {
        threads.spawn(|| goes(&pair.client));
        threads.spawn(|| goes(&pair.server));
        let there = threads.spawn(|| recv_all(&pair.server));
        (there.join().expect("a thread"), recv_all(&pair.client))
    });
    for (name, (came, end)) in [("there", there), ("back", back)] {
        report(name, format_args!("{} {:016x} {end}", came.len(), hash(&came)));
        assert!(came == sent, "other bytes");
    }
}

/// Checks the result of a write longer than the buffer. SIGURG and SIGIO have separate checks.
pub(crate) fn a_write_longer_than_the_buffer() {
    let pair = pair();
    let long = vec![b'l'; 8 << 20];
    std::thread::scope(|threads| {
        let sends = threads.spawn(|| send(&pair.client, &long, 0));
        drain(&pair.server, long.len());
        let sent: CallResult = sends.join().expect("a thread");
        report("send", sent);
    });
}
