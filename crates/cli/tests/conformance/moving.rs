//! Checks of data that the kernel moves: files, pipes, and io_uring.

use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

use io_uring::{IoUring, opcode, squeue, types::Fd};

use super::sys::{
    CallResult, accept, call, comes, connect, error, home, joined, listener, pair, pattern, raw, recv,
    recv_all, report, send_all, settle, tcp, waits_not,
};

fn pipe() -> [OwnedFd; 2] {
    let mut ends: [RawFd; 2] = [0; 2];
    call!(pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC)).ok();
    ends.map(|end| {
        let own = call!(fcntl(end, libc::F_DUPFD_CLOEXEC, 0)).fd();
        call!(close(end)).ok();
        own
    })
}

/// Returns a file without a name, positioned at its beginning.
fn file(bytes: &[u8]) -> std::fs::File {
    let mut file = std::fs::File::from(call!(memfd_create(c"file".as_ptr(), libc::MFD_CLOEXEC)).fd());
    file.write_all(bytes).expect("written");
    file.seek(SeekFrom::Start(0)).expect("a file");
    file
}

pub(crate) fn sendfile() {
    let pair = pair();
    let bytes = pattern(300_000);
    let file = file(&bytes);
    let (mut sent, mut calls) = (0, 0);
    let (came, end) = std::thread::scope(|threads| {
        let reads = threads.spawn(|| recv_all(&pair.server));
        while sent < bytes.len() && calls < 1000 {
            sent +=
                call!(sendfile(pair.client.as_raw_fd(), file.as_raw_fd(), null_mut(), 300_000)).ok() as usize;
            calls += 1;
        }
        report("at-end", call!(sendfile(pair.client.as_raw_fd(), file.as_raw_fd(), null_mut(), 10)));
        call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_WR)).ok();
        reads.join().expect("a thread")
    });
    report("same-bytes", format_args!("{} {} {end}", came.len(), came == bytes));
}

fn splice(from: &impl AsRawFd, to: &impl AsRawFd, most: usize, flags: u32) -> CallResult {
    call!(splice(from.as_raw_fd(), null_mut(), to.as_raw_fd(), null_mut(), most, flags))
}

pub(crate) fn splice_both_ways() {
    let pair = pair();
    let [reads, writes] = pipe();
    call!(write(writes.as_raw_fd(), b"from a pipe".as_ptr().cast(), 11)).ok();
    report("out", splice(&reads, &pair.client, 64, 0));
    comes(&pair.server);
    report("in", splice(&pair.server, &writes, 64, 0));
    let mut bytes = [0_u8; 11];
    report("read", call!(read(reads.as_raw_fd(), bytes.as_mut_ptr().cast(), 11)));
    report("bytes", String::from_utf8_lossy(&bytes));
    waits_not(&pair.server);
    report("in-of-nothing", splice(&pair.server, &writes, 64, 0));
    call!(shutdown(pair.client.as_raw_fd(), libc::SHUT_WR)).ok();
    comes(&pair.server);
    report("in-at-end", splice(&pair.server, &writes, 64, 0));
}

pub(crate) fn splice_from_socket_to_socket() {
    let (one, other) = (pair(), pair());
    let [reads, writes] = pipe();
    let bytes = pattern(1 << 20);
    let (came, moved) = std::thread::scope(|threads| {
        threads.spawn(|| {
            send_all(&one.client, &bytes);
            call!(shutdown(one.client.as_raw_fd(), libc::SHUT_WR)).ok();
        });
        let came = threads.spawn(|| recv_all(&other.server).0);
        let mut moved = 0;
        loop {
            let mut inside = splice(&one.server, &writes, 65_536, 0).ok();
            if inside == 0 {
                break;
            }
            moved += inside;
            while inside > 0 {
                inside -= splice(&reads, &other.client, inside as usize, libc::SPLICE_F_MORE).ok();
            }
        }
        call!(shutdown(other.client.as_raw_fd(), libc::SHUT_WR)).ok();
        (came.join().expect("a thread"), moved)
    });
    report("moved", moved);
    report("same-bytes", came == bytes);
}

pub(crate) fn vmsplice() {
    let pair = pair();
    let [reads, writes] = pipe();
    let part = libc::iovec { iov_base: b"from memory".as_ptr().cast_mut().cast(), iov_len: 11 };
    report("into-pipe", call!(vmsplice(writes.as_raw_fd(), &raw const part, 1, 0)));
    report("out", splice(&reads, &pair.client, 11, 0));
    report("reads", recv(&pair.server, 64, 0));
}

pub(crate) fn tee() {
    let pair = pair();
    let ([reads, writes], [other_reads, other_writes]) = (pipe(), pipe());
    send_all(&pair.client, b"two readers");
    comes(&pair.server);
    report("in", splice(&pair.server, &writes, 64, 0));
    report("tee", call!(tee(reads.as_raw_fd(), other_writes.as_raw_fd(), 64, 0)));
    report("back", splice(&other_reads, &pair.server, 64, 0));
    report("back-too", splice(&reads, &pair.server, 64, 0));
    settle();
    report("reads", recv(&pair.client, 64, 0));
}

pub(crate) fn sendfile_from_a_socket() {
    let pair = pair();
    send_all(&pair.client, b"x");
    comes(&pair.server);
    let file = file(b"");
    report("into-file", call!(sendfile(file.as_raw_fd(), pair.server.as_raw_fd(), null_mut(), 1)));
}

/// Runs an operation and returns its result in the form of the equivalent system call.
fn done(ring: &mut IoUring, entry: &squeue::Entry) -> String {
    // SAFETY: the memory of the entry outlives the wait below.
    unsafe { ring.submission().push(entry).expect("room") };
    ring.submit_and_wait(1).expect("done");
    let result = ring.completion().next().expect("a result").result();
    if result < 0 { error(-result) } else { result.to_string() }
}

/// Returns an io_uring and reports whether there is one, with the same line over both paths.
fn ring() -> Option<IoUring> {
    let ring = IoUring::new(8).ok();
    report("io-uring", ring.is_some());
    ring
}

pub(crate) fn io_uring_sends_and_receives() {
    let Some(mut ring) = ring() else { return };
    let pair = pair();
    let (client, server) = (Fd(pair.client.as_raw_fd()), Fd(pair.server.as_raw_fd()));
    report("send", done(&mut ring, &opcode::Send::new(client, b"hello".as_ptr(), 5).build()));
    let mut bytes = [0_u8; 16];
    report("recv", done(&mut ring, &opcode::Recv::new(server, bytes.as_mut_ptr(), 16).build()));
    report("bytes", String::from_utf8_lossy(&bytes[..5]));
    report("write", done(&mut ring, &opcode::Write::new(server, b"back".as_ptr(), 4).build()));
    report("read", done(&mut ring, &opcode::Read::new(client, bytes.as_mut_ptr(), 16).build()));
    report("bytes-back", String::from_utf8_lossy(&bytes[..4]));
    report("poll", done(&mut ring, &opcode::PollAdd::new(client, libc::POLLOUT as u32).build()) != "0");
    report("shutdown", done(&mut ring, &opcode::Shutdown::new(client, libc::SHUT_WR).build()));
    report("at-end", done(&mut ring, &opcode::Recv::new(server, bytes.as_mut_ptr(), 16).build()));
    report(
        "close",
        done(&mut ring, &opcode::Send::new(client, b"x".as_ptr(), 1).flags(libc::MSG_NOSIGNAL).build()),
    );
}

pub(crate) fn io_uring_connects() {
    let Some(mut ring) = ring() else { return };
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    let (to, length) = raw(at);
    let entry = opcode::Connect::new(Fd(client.as_raw_fd()), (&raw const to).cast(), length).build();
    report("connect", done(&mut ring, &entry));
    let server = accept(&listening).fd();
    send_all(&client, b"hello");
    report("reads", recv(&server, 64, 0));
}

pub(crate) fn io_uring_accepts() {
    let Some(mut ring) = ring() else { return };
    let (listening, at) = listener(home(0), 4);
    let client = tcp(libc::AF_INET, 0);
    connect(&client, at).ok();
    let entry = opcode::Accept::new(Fd(listening.as_raw_fd()), null_mut(), null_mut()).build();
    let number: RawFd = done(&mut ring, &entry).parse().expect("a descriptor");
    let server = call!(fcntl(number, libc::F_DUPFD_CLOEXEC, 0)).fd();
    call!(close(number)).ok();
    send_all(&client, b"hello");
    report("reads", recv(&server, 64, 0));
    // The listener still serves both kinds of accept.
    let next = tcp(libc::AF_INET, 0);
    let server = joined(&listening, &next, at);
    send_all(&next, b"again");
    report("reads-again", recv(&server, 64, 0));
}
