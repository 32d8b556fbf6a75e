//! Checks of addresses: of both ends, of each family, and of bound sockets.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use super::sys::{
    CallResult, SocketPair, address, bind, call, connect, get, home, joined, listener, own, pair, pair_of,
    peer, raw, recv, report, send_all, set, tcp,
};

/// Reports whether both ends return the same two addresses, whatever the ports.
fn agree(pair: &SocketPair) {
    let ip = |address: Result<SocketAddr, CallResult>| {
        address.map_or_else(|error| error.to_string(), |a| a.ip().to_string())
    };
    report("client", format_args!("{} {}", ip(own(&pair.client)), ip(peer(&pair.client))));
    report("server", format_args!("{} {}", ip(own(&pair.server)), ip(peer(&pair.server))));
    let port = |address: Result<SocketAddr, CallResult>| address.map_or(0, |address| address.port());
    report(
        "client-port",
        port(own(&pair.client)) == port(peer(&pair.server)) && port(own(&pair.client)) != 0,
    );
    report("server-port", port(own(&pair.server)) == port(peer(&pair.client)));
    send_all(&pair.client, b"x");
    report("reads", recv(&pair.server, 64, 0));
    for option in [libc::SO_DOMAIN, libc::SO_TYPE, libc::SO_PROTOCOL, libc::SO_ACCEPTCONN] {
        let of = |end| get(end, libc::SOL_SOCKET, option);
        report(&format!("option-{option}"), format_args!("{} {}", of(&pair.client), of(&pair.server)));
    }
}

pub(crate) fn of_ipv4() {
    agree(&pair());
}

pub(crate) fn of_ipv6() {
    agree(&pair_of("[::1]:0".parse().expect("an address"), |_| {}, |_| {}));
}

fn from(listening: &OwnedFd, family: i32, to: SocketAddr) -> SocketPair {
    let client = tcp(family, 0);
    let server = joined(listening, &client, to);
    SocketPair { client, server }
}

/// Connects an IPv4 client to a server that accepts both families.
pub(crate) fn of_both_families() {
    let (listening, at) = listener("[::]:0".parse().expect("an address"), 4);
    agree(&from(&listening, libc::AF_INET, home(at.port())));
}

pub(crate) fn mapped() {
    let (listening, at) = listener(home(0), 4);
    let to = SocketAddr::new("::ffff:127.0.0.1".parse().expect("an address"), at.port());
    agree(&from(&listening, libc::AF_INET6, to));
}

pub(crate) fn unspecified() {
    let (listening, at) = listener(home(0), 4);
    agree(&from(
        &listening,
        libc::AF_INET,
        SocketAddr::new("0.0.0.0".parse().expect("an address"), at.port()),
    ));
}

pub(crate) fn ipv6_alone() {
    let listening = tcp(libc::AF_INET6, 0);
    report("set", set(&listening, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1));
    bind(&listening, "[::]:0".parse().expect("an address")).ok();
    call!(listen(listening.as_raw_fd(), 4)).ok();
    let port = own(&listening).expect("an address").port();
    report("ipv4", connect(&tcp(libc::AF_INET, 0), home(port)));
    agree(&from(&listening, libc::AF_INET6, SocketAddr::new("::1".parse().expect("an address"), port)));
}

pub(crate) fn bound_to_a_port() {
    let free = listener(home(0), 1).1;
    let pair = pair_of(
        home(0),
        |_| {},
        |client| {
            bind(client, free).ok();
        },
    );
    report("own", own(&pair.client).ok() == Some(free));
    report("peer", peer(&pair.server).ok() == Some(free));
    let other = tcp(libc::AF_INET, 0);
    report("taken", bind(&other, peer(&pair.client).expect("an address")));
    agree(&pair);
}

pub(crate) fn bound_to_an_address() {
    let other: SocketAddr = "127.0.0.2:0".parse().expect("an address");
    agree(&pair_of(
        home(0),
        |_| {},
        |client| {
            bind(client, other).ok();
        },
    ));
}

pub(crate) fn a_port_is_taken_while_connected() {
    let pair = pair();
    let bound = own(&pair.client).expect("an address");
    report("bind-to-client's", bind(&tcp(libc::AF_INET, 0), bound));
    report("bind-to-listener's", bind(&tcp(libc::AF_INET, 0), own(&pair.server).expect("an address")));
}

pub(crate) fn short_of_room() {
    let pair = pair();
    let mut all = raw("[ff::ff]:9".parse().expect("an address")).0;
    let mut length: u32 = 6;
    report(
        "getpeername",
        call!(getpeername(pair.client.as_raw_fd(), (&raw mut all).cast(), &raw mut length)),
    );
    report("length", length);
    report("family", all.ss_family);
    length = u32::MAX;
    report("negative", call!(getpeername(pair.client.as_raw_fd(), (&raw mut all).cast(), &raw mut length)));
    length = 128;
    report(
        "no-memory",
        call!(getsockname(pair.client.as_raw_fd(), 8 as *mut libc::sockaddr, &raw mut length)),
    );
}

pub(crate) fn without_connection() {
    let fd = tcp(libc::AF_INET, 0);
    let text = |name: Result<SocketAddr, CallResult>| {
        name.map_or_else(|error| error.to_string(), |name| name.to_string())
    };
    report("own", text(own(&fd)));
    report("peer", text(peer(&fd)));
    let listening = listener(home(0), 1).0;
    report("peer-of-listener", text(peer(&listening)));
    report("accepts", get(&listening, libc::SOL_SOCKET, libc::SO_ACCEPTCONN));
    report("of-a-file", text(own(&std::fs::File::open("/dev/null").expect("a file"))));
    report("of-none", text(own(&-1)));
}

/// Checks the address that accept4(2) writes.
pub(crate) fn told_by_accept() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    let (mut all, mut length) = (raw(at).0, 128_u32);
    let server = std::thread::scope(|threads| {
        let accepts = threads.spawn(|| {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let server = call!(accept4(listening.as_raw_fd(), (&raw mut all).cast(), &raw mut length, flags));
            (server.fd(), address(&all), length)
        });
        connect(&client, at).ok();
        accepts.join().expect("a connection")
    });
    let (server, from, length) = server;
    report("length", length);
    report("from", from == own(&client).ok());
    let flags =
        |fd: &OwnedFd| call!(fcntl(fd.as_raw_fd(), libc::F_GETFL)).ok() as i32 & libc::O_NONBLOCK != 0;
    report("waits-not", flags(&server));
    report("closes", call!(fcntl(server.as_raw_fd(), libc::F_GETFD)));
    report(
        "no-such-flag",
        call!(accept4(listening.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), 1)),
    );
}

/// Checks accept(2), which has no flags.
pub(crate) fn accepted_without_flags() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    let server = std::thread::scope(|threads| {
        let accepts = threads.spawn(|| {
            let null = std::ptr::null_mut();
            call!(accept(listening.as_raw_fd(), null, std::ptr::null_mut())).fd()
        });
        connect(&client, at).ok();
        accepts.join().expect("a connection")
    });
    report("closes", call!(fcntl(server.as_raw_fd(), libc::F_GETFD)));
    report("flags", call!(fcntl(server.as_raw_fd(), libc::F_GETFL)));
}
