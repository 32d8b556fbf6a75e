//! Checks of many connections: in sequence, simultaneously, and from many threads and processes.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::sys::{accept, call, connect, home, leave, listener, recv, report, send, send_all, set_time, tcp};

/// Connects in sixteen threads and accepts in four; each connection echoes its own number.
pub(crate) fn threads_at_once() {
    const EACH: usize = 10;
    let (listening, at) = listener(home(0), 512);
    set_time(&listening, libc::SO_RCVTIMEO, 500).ok();
    let (served, right) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                while served.load(Ordering::SeqCst) < 16 * EACH {
                    let got = accept(&listening);
                    if got.0 >= 0 {
                        served.fetch_add(1, Ordering::SeqCst);
                        echo(&got.fd());
                    }
                }
            });
        }
        for thread in 0..16 {
            let right = &right;
            threads.spawn(move || {
                for number in 0..EACH {
                    let client = tcp(libc::AF_INET, 0);
                    connect(&client, at).ok();
                    let word = format!("{thread}-{number}-word");
                    send_all(&client, word.as_bytes());
                    let came = recv(&client, word.len(), libc::MSG_WAITALL);
                    right.fetch_add(usize::from(came == format!("{} {word}", word.len())), Ordering::SeqCst);
                }
            });
        }
    });
    report("served", served.load(Ordering::SeqCst));
    report("right", right.load(Ordering::SeqCst));
}

pub(crate) fn echo(server: &OwnedFd) {
    let mut bytes = [0_u8; 64];
    let got = call!(recv(server.as_raw_fd(), bytes.as_mut_ptr().cast(), 64, 0)).ok();
    send_all(server, &bytes[..got as usize]);
}

/// Connections per client process. The number is small, because the process searches all of its descriptors.
const OF_A_CLIENT: usize = 100;

/// Returns the number of simultaneous connections: as many as the descriptors of one process allow.
fn connections() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    call!(getrlimit(libc::RLIMIT_NOFILE, &raw mut limit)).ok();
    limit.rlim_cur = limit.rlim_max;
    call!(setrlimit(libc::RLIMIT_NOFILE, &raw const limit)).ok();
    usize::try_from(limit.rlim_max).unwrap_or(usize::MAX).saturating_sub(200).min(10_000)
}

/// Keeps all connections open simultaneously in one server; clients are processes of 100 connections each.
pub(crate) fn open_at_once() {
    let all = connections();
    let (listening, at) = listener(home(0), 4096);
    set_time(&listening, libc::SO_RCVTIMEO, 10_000).ok();
    let mut servers = Vec::new();
    let mut children = Vec::new();
    while servers.len() < all {
        let count = OF_A_CLIENT.min(all - servers.len());
        let child = call!(fork()).ok();
        if child == 0 {
            client(at, count);
        }
        children.push(child as i32);
        servers.extend((0..count).map(|_| accept(&listening).fd()));
    }
    report("open", servers.len());
    let right = servers.iter().filter(|server| recv(*server, 4, libc::MSG_WAITALL).starts_with("4 ")).count();
    report("said-hello", right);
    servers.iter().for_each(|server| send_all(server, b"back"));
    let ended = servers.iter().filter(|server| recv(*server, 4, libc::MSG_WAITALL) == "4 done").count();
    report("had-answers", ended);
    for child in children {
        call!(waitpid(child, std::ptr::null_mut(), 0)).ok();
    }
}

/// Runs a child: it connects, greets, waits for the answer on each connection, and exits.
fn client(at: std::net::SocketAddr, count: usize) -> ! {
    // The child does not need the parent's descriptors.
    call!(close_range(3, u32::MAX, 0));
    let mut all = [-1; OF_A_CLIENT];
    for fd in all.iter_mut().take(count) {
        *fd = call!(socket(libc::AF_INET, libc::SOCK_STREAM, 0)).0 as i32;
        let got = connect(fd, at);
        if got.0 < 0 {
            // The parent notices the failure as EAGAIN in accept.
            eprintln!("connect: {got}");
            leave();
        }
        send(fd, b"helo", 0);
    }
    for fd in all.iter().take(count) {
        let mut bytes = [0_u8; 4];
        let got = call!(recv(*fd, bytes.as_mut_ptr().cast(), 4, libc::MSG_WAITALL)).0;
        if got == 4 && &bytes == b"back" {
            send(fd, b"done", 0);
        }
    }
    leave()
}

/// Makes connections in sequence, each closed before the next.
pub(crate) fn one_after_another() {
    let (listening, at) = listener(home(0), 64);
    let right = std::thread::scope(|threads| {
        threads.spawn(|| (0..200).for_each(|_| echo(&accept(&listening).fd())));
        let ask = |_: &usize| {
            let client = tcp(libc::AF_INET, 0);
            connect(&client, at).ok();
            send_all(&client, b"ask");
            recv(&client, 3, libc::MSG_WAITALL) == "3 ask"
        };
        (0..200).filter(ask).count()
    });
    report("right", right);
}
