//! Checks of socket options, set before and after the connection and read at both ends.

use std::os::fd::{AsRawFd, OwnedFd};

use super::sys::{CallResult, call, get, home, linger, listener, pair, pair_of, report, set, set_time, tcp};

const SOCKET: i32 = libc::SOL_SOCKET;
const TCP: i32 = libc::IPPROTO_TCP;

/// Sets an option and reports its value after that.
fn set_and_get(name: &str, fd: &OwnedFd, (level, option): (i32, i32), value: i32) {
    report(name, format_args!("{} {}", set(fd, level, option, value), get(fd, level, option)));
}

pub(crate) fn no_delay() {
    let pair = pair();
    report("new", get(&pair.client, TCP, libc::TCP_NODELAY));
    set_and_get("on", &pair.client, (TCP, libc::TCP_NODELAY), 1);
    set_and_get("off", &pair.client, (TCP, libc::TCP_NODELAY), 0);
    set_and_get("of-server", &pair.server, (TCP, libc::TCP_NODELAY), 1);
}

pub(crate) fn no_delay_before() {
    let on = |fd: &OwnedFd| {
        set(fd, TCP, libc::TCP_NODELAY, 1).ok();
    };
    let pair = pair_of(home(0), on, on);
    report("client", get(&pair.client, TCP, libc::TCP_NODELAY));
    report("server", get(&pair.server, TCP, libc::TCP_NODELAY));
}

const KEPT_ALIVE: [(&str, i32); 4] = [
    ("idle", libc::TCP_KEEPIDLE),
    ("interval", libc::TCP_KEEPINTVL),
    ("count", libc::TCP_KEEPCNT),
    ("user-timeout", libc::TCP_USER_TIMEOUT),
];

pub(crate) fn keep_alive() {
    let pair = pair();
    set_and_get("on", &pair.client, (SOCKET, libc::SO_KEEPALIVE), 1);
    for (name, option) in KEPT_ALIVE {
        set_and_get(name, &pair.client, (TCP, option), 30);
    }
}

pub(crate) fn keep_alive_before() {
    let sets = |fd: &OwnedFd| {
        set(fd, SOCKET, libc::SO_KEEPALIVE, 1).ok();
        for (_, option) in KEPT_ALIVE {
            set(fd, TCP, option, 40);
        }
    };
    let pair = pair_of(home(0), sets, sets);
    for (of, end) in [("client", &pair.client), ("server", &pair.server)] {
        report(&format!("{of}-on"), get(end, SOCKET, libc::SO_KEEPALIVE));
        for (name, option) in KEPT_ALIVE {
            report(&format!("{of}-{name}"), get(end, TCP, option));
        }
    }
}

pub(crate) fn buffers_before() {
    let small = |fd: &OwnedFd| {
        set(fd, SOCKET, libc::SO_SNDBUF, 20_000).ok();
        set(fd, SOCKET, libc::SO_RCVBUF, 30_000).ok();
    };
    let pair = pair_of(home(0), small, small);
    for (name, end) in [("client", &pair.client), ("server", &pair.server)] {
        report(
            name,
            format_args!("{} {}", get(end, SOCKET, libc::SO_SNDBUF), get(end, SOCKET, libc::SO_RCVBUF)),
        );
    }
}

pub(crate) fn buffers_after() {
    let pair = pair();
    set_and_get("send", &pair.client, (SOCKET, libc::SO_SNDBUF), 50_000);
    set_and_get("receive", &pair.client, (SOCKET, libc::SO_RCVBUF), 60_000);
}

/// Checks the buffer sizes that a program reads without setting them: only that they are plausible numbers.
pub(crate) fn buffers_unset() {
    let pair = pair();
    let number = |option| get(&pair.client, SOCKET, option).parse::<i32>().is_ok_and(|bytes| bytes > 10_000);
    report("send", number(libc::SO_SNDBUF));
    report("receive", number(libc::SO_RCVBUF));
}

pub(crate) fn taken_over() {
    let sets = |fd: &OwnedFd| {
        linger(fd, 7).ok();
        set_time(fd, libc::SO_RCVTIMEO, 2_500).ok();
        set(fd, SOCKET, libc::SO_OOBINLINE, 1);
        set(fd, SOCKET, libc::SO_RCVLOWAT, 3).ok();
        set(fd, SOCKET, libc::SO_REUSEADDR, 1).ok();
        set(fd, SOCKET, libc::SO_PRIORITY, 4).ok();
        set(fd, SOCKET, libc::SO_MARK, 0).ok();
    };
    let pair = pair_of(home(0), sets, sets);
    for (name, end) in [("client", &pair.client), ("server", &pair.server)] {
        report(&format!("{name}-linger"), two(end, libc::SO_LINGER));
        report(&format!("{name}-time-out"), four(end, libc::SO_RCVTIMEO));
        for option in [libc::SO_OOBINLINE, libc::SO_RCVLOWAT, libc::SO_REUSEADDR, libc::SO_PRIORITY] {
            report(&format!("{name}-{option}"), get(end, SOCKET, option));
        }
    }
}

fn read<const N: usize>(fd: &OwnedFd, option: i32, value: &mut [i32; N]) -> CallResult {
    let mut length = size_of_val(value) as u32;
    call!(getsockopt(fd.as_raw_fd(), SOCKET, option, value.as_mut_ptr().cast(), &raw mut length))
}

fn two(fd: &OwnedFd, option: i32) -> String {
    let mut value = [0; 2];
    read(fd, option, &mut value).ok();
    format!("{value:?}").replace(' ', "")
}

fn four(fd: &OwnedFd, option: i32) -> String {
    let mut value = [0; 4];
    read(fd, option, &mut value).ok();
    format!("{value:?}").replace(' ', "")
}

pub(crate) fn of_ip() {
    let pair = pair();
    set_and_get("tos", &pair.client, (libc::IPPROTO_IP, libc::IP_TOS), 0x10);
    set_and_get("ttl", &pair.client, (libc::IPPROTO_IP, libc::IP_TTL), 9);
    set_and_get("mtu-discover", &pair.client, (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER), 2);
}

pub(crate) fn of_tcp() {
    let pair = pair();
    set_and_get("quick-ack", &pair.client, (TCP, libc::TCP_QUICKACK), 1);
    set_and_get("no-such", &pair.client, (TCP, 9999), 1);
    report("short", super::sys::set_bytes(&pair.client, TCP, libc::TCP_NODELAY, &[1]));
    set_and_get("lowat", &pair.client, (TCP, libc::TCP_NOTSENT_LOWAT), 16_384);
    let segment = get(&pair.client, TCP, libc::TCP_MAXSEG).parse::<i32>();
    report("segment", segment.is_ok_and(|bytes| bytes > 500));
}

pub(crate) fn info() {
    let pair = pair();
    let (mut value, mut length) = ([0_u8; 256], 256_u32);
    let fd = pair.client.as_raw_fd();
    report("info", call!(getsockopt(fd, TCP, libc::TCP_INFO, value.as_mut_ptr().cast(), &raw mut length)));
    report("state", value[0]);
}

pub(crate) fn congestion_control() {
    let pair = pair();
    let (mut value, mut length) = ([0_u8; 16], 16_u32);
    let fd = pair.client.as_raw_fd();
    report(
        "get",
        call!(getsockopt(fd, TCP, libc::TCP_CONGESTION, value.as_mut_ptr().cast(), &raw mut length)),
    );
    report("set", super::sys::set_bytes(&pair.client, TCP, libc::TCP_CONGESTION, b"reno"));
}

pub(crate) fn of_a_listener() {
    let listening = listener(home(0), 4).0;
    set_and_get("defer", &listening, (TCP, libc::TCP_DEFER_ACCEPT), 0);
    set_and_get("fast-open", &listening, (TCP, libc::TCP_FASTOPEN), 5);
    set_and_get("no-delay", &listening, (TCP, libc::TCP_NODELAY), 1);
    set_and_get("reuse-port", &tcp(libc::AF_INET, 0), (SOCKET, libc::SO_REUSEPORT), 1);
}
