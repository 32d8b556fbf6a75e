//! System calls as a program in C makes them, and their results as text.

use std::ffi::{c_int, c_long};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The result of a call: its number, or the name of its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallResult(pub(crate) i64, c_int);

impl CallResult {
    pub(crate) fn of(code: i64) -> Self {
        CallResult(code, if code < 0 { io::Error::last_os_error().raw_os_error().unwrap_or(0) } else { 0 })
    }

    /// Returns the result for a number that a call wrote to memory instead of returning it.
    pub(crate) fn from(number: c_int) -> Self {
        CallResult(number.into(), 0)
    }

    /// Returns the number of a call that must not fail.
    pub(crate) fn ok(self) -> i64 {
        assert!(self.0 >= 0, "{self}");
        self.0
    }

    /// Returns the descriptor that the call returned.
    pub(crate) fn fd(self) -> OwnedFd {
        let fd = self.ok() as RawFd;
        // SAFETY: a call has just created it, and each check takes it once.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }
}

impl fmt::Display for CallResult {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 { to.write_str(&error(self.1)) } else { write!(to, "{}", self.0) }
    }
}

/// Makes a system call by its name in libc.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: all checks pass descriptors, numbers, and memory that outlives the call.
        $crate::sys::CallResult::of(unsafe { libc::$name($($argument),*) } as i64)
    };
}
pub(crate) use call;

/// Returns the name of an error (errno(3)).
pub(crate) fn error(number: c_int) -> String {
    let names = [
        (libc::EAGAIN, "EAGAIN"),
        (libc::EBADF, "EBADF"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::EINPROGRESS, "EINPROGRESS"),
        (libc::EALREADY, "EALREADY"),
        (libc::EINTR, "EINTR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EISCONN, "EISCONN"),
        (libc::ENOPROTOOPT, "ENOPROTOOPT"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::ENOTSOCK, "ENOTSOCK"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EPIPE, "EPIPE"),
        (libc::EFAULT, "EFAULT"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EDESTADDRREQ, "EDESTADDRREQ"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
    ];
    let known = names.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("errno {number}"), |(_, name)| (*name).to_owned())
}

/// Prints what a check observed.
pub(crate) fn report(name: &str, result: impl fmt::Display) {
    println!("\nsaw {name} {result}");
}

/// Exits a child without the cleanup of its parent.
pub(crate) fn leave() -> ! {
    // SAFETY: _exit(2) takes a number and does not return.
    unsafe { libc::_exit(0) }
}

pub(crate) fn sleep(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Waits until the thread whose number is in `thread` sleeps in its call.
pub(crate) fn sleeps(thread: &AtomicI64) {
    let is_asleep = || {
        let number = thread.load(Ordering::SeqCst);
        let stat = std::fs::read_to_string(format!("/proc/self/task/{number}/stat")).unwrap_or_default();
        number != 0 && stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    };
    let mut seen = 0;
    for _ in 0..2000 {
        seen = if is_asleep() { seen + 1 } else { 0 };
        if seen == 5 {
            break;
        }
        sleep(2);
    }
    settle();
}

/// Stores the number of this thread.
pub(crate) fn notes(thread: &AtomicI64) {
    thread.store(call!(gettid()).ok(), Ordering::SeqCst);
}

/// Waits longer than data need to arrive on an idle host.
pub(crate) fn settle() {
    sleep(20);
}

pub(crate) fn home(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Converts an address to the kernel's form.
pub(crate) fn raw(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zeros are an address without a family.
    let mut all: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let to: *mut libc::sockaddr_storage = &raw mut all;
    let length = match address {
        SocketAddr::V4(v4) => {
            let one = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage has room for addresses of any family.
            unsafe { to.cast::<libc::sockaddr_in>().write(one) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let one = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { to.cast::<libc::sockaddr_in6>().write(one) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (all, length as libc::socklen_t)
}

/// Converts an address from the kernel's form.
pub(crate) fn address(all: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let from: *const libc::sockaddr_storage = all;
    match c_int::from(all.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family determines the type.
            let one = unsafe { from.cast::<libc::sockaddr_in>().read() };
            Some((Ipv4Addr::from(u32::from_be(one.sin_addr.s_addr)), u16::from_be(one.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let one = unsafe { from.cast::<libc::sockaddr_in6>().read() };
            let port = u16::from_be(one.sin6_port);
            Some(SocketAddrV6::new(one.sin6_addr.s6_addr.into(), port, 0, one.sin6_scope_id).into())
        }
        _ => None,
    }
}

pub(crate) fn tcp(family: c_int, flags: c_int) -> OwnedFd {
    call!(socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags, 0)).fd()
}

pub(crate) fn bind(fd: &impl AsRawFd, at: SocketAddr) -> CallResult {
    let (all, length) = raw(at);
    call!(bind(fd.as_raw_fd(), (&raw const all).cast(), length))
}

pub(crate) fn connect(fd: &impl AsRawFd, to: SocketAddr) -> CallResult {
    let (all, length) = raw(to);
    call!(connect(fd.as_raw_fd(), (&raw const all).cast(), length))
}

/// Returns a listening socket and its address.
pub(crate) fn listener(at: SocketAddr, backlog: c_int) -> (OwnedFd, SocketAddr) {
    let family = if at.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let fd = tcp(family, 0);
    bind(&fd, at).ok();
    call!(listen(fd.as_raw_fd(), backlog)).ok();
    let at = own(&fd).expect("an address");
    (fd, at)
}

pub(crate) fn accept(fd: &impl AsRawFd) -> CallResult {
    call!(accept4(fd.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC))
}

/// Calls getpeername(2) if `of_peer`, otherwise getsockname(2).
fn name(fd: &impl AsRawFd, of_peer: bool) -> Result<SocketAddr, CallResult> {
    // SAFETY: all zeros are an address without a family.
    let mut all: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&all) as libc::socklen_t;
    let fd = fd.as_raw_fd();
    let got = match of_peer {
        true => call!(getpeername(fd, (&raw mut all).cast(), &raw mut length)),
        false => call!(getsockname(fd, (&raw mut all).cast(), &raw mut length)),
    };
    if got.0 < 0 { Err(got) } else { address(&all).ok_or(got) }
}

pub(crate) fn own(fd: &impl AsRawFd) -> Result<SocketAddr, CallResult> {
    name(fd, false)
}

pub(crate) fn peer(fd: &impl AsRawFd) -> Result<SocketAddr, CallResult> {
    name(fd, true)
}

pub(crate) fn set(fd: &impl AsRawFd, level: c_int, name: c_int, value: c_int) -> CallResult {
    set_bytes(fd, level, name, &value.to_ne_bytes())
}

pub(crate) fn set_bytes(fd: &impl AsRawFd, level: c_int, name: c_int, value: &[u8]) -> CallResult {
    call!(setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), value.len() as u32))
}

/// Returns the number of an option, or the error.
pub(crate) fn get(fd: &impl AsRawFd, level: c_int, name: c_int) -> String {
    let (mut value, mut length) = (0_i32, 4_u32);
    let got = call!(getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length));
    if got.0 < 0 { got.to_string() } else { value.to_string() }
}

/// Sets an option that takes a struct timeval.
pub(crate) fn set_time(fd: &impl AsRawFd, name: c_int, milliseconds: i64) -> CallResult {
    let time = [milliseconds / 1000, milliseconds % 1000 * 1000];
    let bytes: Vec<u8> = time.iter().flat_map(|number: &c_long| number.to_ne_bytes()).collect();
    set_bytes(fd, libc::SOL_SOCKET, name, &bytes)
}

pub(crate) fn linger(fd: &impl AsRawFd, seconds: c_int) -> CallResult {
    let bytes = [1_i32.to_ne_bytes(), seconds.to_ne_bytes()].concat();
    set_bytes(fd, libc::SOL_SOCKET, libc::SO_LINGER, &bytes)
}

/// Sends data without ever raising SIGPIPE.
pub(crate) fn send(fd: &impl AsRawFd, bytes: &[u8], flags: c_int) -> CallResult {
    call!(send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags | libc::MSG_NOSIGNAL))
}

pub(crate) fn send_all(fd: &impl AsRawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        bytes = &bytes[send(fd, bytes, 0).ok() as usize..];
    }
}

/// Receives up to `most` bytes, and returns their number and content.
pub(crate) fn recv(fd: &impl AsRawFd, most: usize, flags: c_int) -> String {
    let mut bytes = vec![0; most];
    let got = call!(recv(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), most, flags));
    match usize::try_from(got.0) {
        Ok(0) | Err(_) => got.to_string(),
        Ok(count) => {
            format!("{got} {}", String::from_utf8_lossy(&bytes[..count.min(most)]).replace(['\0', '\n'], "."))
        }
    }
}

/// Receives all bytes until the end of the stream or an error, which is returned as well.
pub(crate) fn recv_all(fd: &impl AsRawFd) -> (Vec<u8>, CallResult) {
    let (mut all, mut bytes) = (Vec::new(), vec![0_u8; 65_536]);
    loop {
        let got = call!(recv(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0));
        match usize::try_from(got.0) {
            Ok(0) | Err(_) => return (all, got),
            Ok(count) => all.extend(&bytes[..count]),
        }
    }
}

/// Returns the events that poll(2) reports within a time, such as "IN+OUT".
pub(crate) fn poll(fd: &impl AsRawFd, events: i16, milliseconds: c_int) -> String {
    let mut one = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    call!(poll(&raw mut one, 1, milliseconds)).ok();
    events_said(i32::from(one.revents))
}

/// Returns the names of events, which have the same bits in poll(2) and epoll(7).
pub(crate) fn events_said(events: c_int) -> String {
    let names = [
        (libc::POLLIN, "IN"),
        (libc::POLLPRI, "PRI"),
        (libc::POLLOUT, "OUT"),
        (libc::POLLERR, "ERR"),
        (libc::POLLHUP, "HUP"),
        (libc::POLLRDHUP, "RDHUP"),
    ];
    let set = names.iter().filter(|(bit, _)| events & i32::from(*bit) != 0).map(|(_, name)| *name);
    let all: Vec<&str> = set.collect();
    if all.is_empty() { "none".to_owned() } else { all.join("+") }
}

/// All events that a socket may have.
pub(crate) const ALL: i16 = libc::POLLIN | libc::POLLPRI | libc::POLLOUT | libc::POLLRDHUP;

/// Waits until there is data to read.
pub(crate) fn comes(fd: &impl AsRawFd) {
    let events = poll(fd, libc::POLLIN, 5_000);
    assert!(events != "none", "nothing comes");
}

/// The two ends of a connection.
pub(crate) struct SocketPair {
    pub(crate) client: OwnedFd,
    pub(crate) server: OwnedFd,
}

pub(crate) fn pair() -> SocketPair {
    pair_of(home(0), |_| {}, |_| {})
}

/// Returns a pair connected over `at`. `listens` and `connects` prepare the listening and the connecting socket.
pub(crate) fn pair_of(at: SocketAddr, listens: impl Fn(&OwnedFd), connects: impl Fn(&OwnedFd)) -> SocketPair {
    let (listening, at) = listener(at, 16);
    listens(&listening);
    let client = tcp(if at.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }, 0);
    connects(&client);
    let server = joined(&listening, &client, at);
    SocketPair { client, server }
}

/// Connects while another thread accepts, and returns the accepted socket.
pub(crate) fn joined(listening: &OwnedFd, client: &OwnedFd, to: SocketAddr) -> OwnedFd {
    std::thread::scope(|threads| {
        let accepts = threads.spawn(|| accept(listening).fd());
        connect(client, to).ok();
        accepts.join().expect("a connection")
    })
}

/// Makes a socket non-blocking.
pub(crate) fn waits_not(fd: &impl AsRawFd) {
    let flags = call!(fcntl(fd.as_raw_fd(), libc::F_GETFL)).ok() as c_int;
    call!(fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)).ok();
}

/// Sends until the connection takes no more, and returns the number of bytes.
pub(crate) fn fill(fd: &impl AsRawFd) -> usize {
    let (bytes, mut sent) = (vec![b'f'; 65_536], 0);
    loop {
        match send(fd, &bytes, libc::MSG_DONTWAIT).0 {
            count if count > 0 => sent += count as usize,
            // TCP still moves data in the background.
            _ if poll(fd, libc::POLLOUT, 30) == "none" => return sent,
            _ => {}
        }
    }
}

/// Receives `count` bytes.
pub(crate) fn drain(fd: &impl AsRawFd, mut count: usize) {
    let mut bytes = vec![0_u8; 65_536];
    while count > 0 {
        let most = bytes.len().min(count);
        count -= call!(recv(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), most, 0)).ok() as usize;
    }
}

/// Returns bytes whose values depend on their position.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}
