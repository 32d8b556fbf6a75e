//! Checks of one socket in several descriptors and several processes.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::{Command, Stdio};

use super::sys::{
    CallResult, accept, call, connect, home, joined, leave, listener, own, pair, peer, recv, recv_all,
    report, send, send_all, settle, tcp,
};

/// Runs a child that only makes system calls, and waits until it has exited.
fn in_child(does: impl FnOnce()) {
    let child = call!(fork()).ok();
    if child == 0 {
        does();
        leave();
    }
    call!(waitpid(child as i32, std::ptr::null_mut(), 0)).ok();
}

pub(crate) fn fork_with_both_at_work() {
    let pair = pair();
    in_child(|| {
        send(&pair.client, b"child ", 0);
    });
    send_all(&pair.client, b"parent");
    settle();
    report("reads", recv(&pair.server, 64, 0));
    send_all(&pair.server, b"for the child");
    settle();
    in_child(|| {
        let mut bytes = [0_u8; 64];
        let got = call!(recv(pair.client.as_raw_fd(), bytes.as_mut_ptr().cast(), 64, 0));
        send(&pair.client, &bytes[..got.0.max(0) as usize], 0);
    });
    report("child-echoes", recv(&pair.server, 64, 0));
    drop(pair.client);
    report("ends", recv(&pair.server, 64, 0));
}

/// Checks that the connection ends once both processes have closed it.
pub(crate) fn fork_and_close() {
    let pair = pair();
    let (reads, writes) = pipe();
    let child = call!(fork()).ok();
    if child == 0 {
        call!(close(writes.as_raw_fd()));
        call!(close(pair.server.as_raw_fd()));
        let mut byte = 0_u8;
        call!(read(reads.as_raw_fd(), (&raw mut byte).cast(), 1));
        send(&pair.client, b"child", 0);
        leave();
    }
    drop(pair.client);
    settle();
    report("still-open", recv(&pair.server, 64, libc::MSG_DONTWAIT));
    drop(writes);
    call!(waitpid(child as i32, std::ptr::null_mut(), 0)).ok();
    let (bytes, end) = recv_all(&pair.server);
    report("reads", format_args!("{} {end}", String::from_utf8_lossy(&bytes)));
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends: [RawFd; 2] = [0; 2];
    call!(pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC)).ok();
    let [reads, writes] = ends.map(|end| call!(fcntl(end, libc::F_DUPFD_CLOEXEC, 0)).fd());
    ends.iter().for_each(|end| {
        call!(close(*end)).ok();
    });
    (reads, writes)
}

/// Checks a child that inherited the socket before it was connected.
pub(crate) fn fork_before_connect() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    let (reads, writes) = pipe();
    let child = call!(fork()).ok();
    if child == 0 {
        call!(close(writes.as_raw_fd()));
        let mut byte = 0_u8;
        call!(read(reads.as_raw_fd(), (&raw mut byte).cast(), 1));
        send(&client, b"child", 0);
        leave();
    }
    let server = joined(&listening, &client, at);
    send_all(&client, b"parent ");
    drop(writes);
    call!(waitpid(child as i32, std::ptr::null_mut(), 0)).ok();
    settle();
    report("reads", recv(&server, 64, libc::MSG_DONTWAIT));
}

/// Checks a child that connects its parent's socket.
pub(crate) fn connected_by_a_child() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    let child = call!(fork()).ok();
    if child == 0 {
        connect(&client, at);
        send(&client, b"child ", 0);
        leave();
    }
    let server = accept(&listening).fd();
    call!(waitpid(child as i32, std::ptr::null_mut(), 0)).ok();
    report("parent-sends", send(&client, b"parent", 0));
    settle();
    report("reads", recv(&server, 64, libc::MSG_DONTWAIT));
}

pub(crate) fn duplicated_after() {
    let pair = pair();
    let fd = pair.client.as_raw_fd();
    let all = [
        call!(dup(fd)).fd(),
        call!(fcntl(fd, libc::F_DUPFD, 100)).fd(),
        call!(fcntl(fd, libc::F_DUPFD_CLOEXEC, 200)).fd(),
        call!(dup2(fd, 300)).fd(),
        call!(dup3(fd, 301, libc::O_CLOEXEC)).fd(),
    ];
    let named = peer(&pair.client).ok();
    drop(pair.client);
    for one in &all {
        send_all(one, b"x");
        report("peer", peer(one).ok() == named && own(one).is_ok());
    }
    report("reads", recv(&pair.server, 5, libc::MSG_WAITALL));
    drop(all);
    report("ends", recv(&pair.server, 5, 0));
}

pub(crate) fn duplicated_before() {
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    let other = call!(dup(client.as_raw_fd())).fd();
    let server = joined(&listening, &client, at);
    send_all(&other, b"other ");
    send_all(&client, b"one");
    settle();
    report("reads", recv(&server, 64, 0));
    report("same-peer", peer(&other).ok() == peer(&client).ok());
}

pub(crate) fn replaced_by_another() {
    let one = pair();
    let other = pair();
    report("dup2", call!(dup2(other.client.as_raw_fd(), one.client.as_raw_fd())).0 >= 0);
    report("ends", recv(&one.server, 64, 0));
    send_all(&one.client, b"to the other");
    report("reads", recv(&other.server, 64, 0));
}

pub(crate) fn executed() {
    let pair = pair();
    let fd = call!(fcntl(pair.client.as_raw_fd(), libc::F_DUPFD, 5)).fd();
    drop(pair.client);
    let number = fd.as_raw_fd();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("echo from a shell >&{number}; read line <&{number}; echo $line >&{number}"));
    let mut child = shell.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a shell");
    drop(fd);
    report("reads", recv(&pair.server, 13, libc::MSG_WAITALL));
    send_all(&pair.server, b"a line\n");
    report("echo", recv(&pair.server, 64, 0));
    child.wait().expect("a child");
    report("ends", recv(&pair.server, 64, 0));
}

/// Checks a program whose standard input and output are the connection, as under inetd.
pub(crate) fn as_standard_input() {
    let pair = pair();
    let out = call!(dup(pair.server.as_raw_fd())).fd();
    let mut cat = Command::new("cat").stdin(pair.server).stdout(out).spawn().expect("cat");
    send_all(&pair.client, b"there and back");
    call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_WR)).ok();
    let (bytes, end) = recv_all(&pair.client);
    report("comes", format_args!("{} {end}", String::from_utf8_lossy(&bytes)));
    cat.wait().expect("a child");
}

pub(crate) fn passed_over() {
    let pair = pair();
    let mut ends: [RawFd; 2] = [0; 2];
    call!(socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr())).ok();
    give(ends[0], pair.client.as_raw_fd());
    let named = peer(&pair.client).ok();
    drop(pair.client);
    let got = take(ends[1]);
    report("peer", peer(&got).ok() == named && named.is_some());
    send_all(&got, b"passed");
    report("reads", recv(&pair.server, 64, 0));
    drop(got);
    report("ends", recv(&pair.server, 64, 0));
    ends.iter().for_each(|end| {
        call!(close(*end)).ok();
    });
}

/// Aligned space for one descriptor.
type ControlBuffer = [u64; 3];

fn with_control(control: &mut ControlBuffer, byte: &mut u8, does: impl FnOnce(*mut libc::msghdr)) {
    let mut part = libc::iovec { iov_base: std::ptr::from_mut(byte).cast(), iov_len: 1 };
    // SAFETY: all zeros are an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<ControlBuffer>() as _;
    does(&raw mut message);
}

fn give(over: RawFd, fd: RawFd) {
    // struct cmsghdr: length 20, then SOL_SOCKET and SCM_RIGHTS, then the descriptor's number.
    let level_and_type = u64::from(libc::SOL_SOCKET as u32) | u64::from(libc::SCM_RIGHTS as u32) << 32;
    let mut control = [20, level_and_type, fd as u64];
    with_control(&mut control, &mut 0, |message| {
        call!(sendmsg(over, message, 0)).ok();
    });
}

fn take(over: RawFd) -> OwnedFd {
    let mut control = [0; 3];
    with_control(&mut control, &mut 0, |message| {
        call!(recvmsg(over, message, 0)).ok();
    });
    CallResult::from(control[2] as i32).fd()
}
