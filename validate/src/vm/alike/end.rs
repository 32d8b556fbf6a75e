//! One end of the program, and what its checks share. It opens sockets without flags and calls libc for all that it does
//! with them, because older rsockets take nothing else.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// The time within which the other end must do something that a check polls for.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// One end of the program's connections.
pub(super) struct End {
    /// The server's socket that listens; `None` at the client.
    listener: Option<Socket>,
    at: SocketAddr,
    /// What the present check saw.
    saw: RefCell<Vec<(&'static str, String)>>,
}

impl End {
    pub(super) fn client(at: SocketAddr) -> End {
        End { listener: None, at, saw: RefCell::default() }
    }

    pub(super) fn server(at: SocketAddr) -> io::Result<End> {
        let socket = unconnected(at)?;
        socket.set_reuse_address(true)?;
        socket.bind(&at.into())?;
        socket.listen(64)?;
        Ok(End { listener: Some(socket), ..End::client(at) })
    }

    /// Opens the next connection of the check: the server accepts it, and the client connects.
    pub(super) fn open(&self) -> io::Result<Socket> {
        if let Some(listener) = &self.listener {
            return Ok(listener.accept_raw()?.0);
        }
        let socket = self.unconnected()?;
        socket.connect(&self.at.into())?;
        Ok(socket)
    }

    pub(super) fn unconnected(&self) -> io::Result<Socket> {
        unconnected(self.at)
    }

    /// Returns the server's address.
    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }

    /// Notes something that must be the same over all paths.
    pub(super) fn saw(&self, what: &'static str, value: impl Display) {
        self.saw.borrow_mut().push((what, value.to_string()));
    }

    /// Takes what was noted.
    pub(super) fn taken(&self) -> Vec<(&'static str, String)> {
        self.saw.take()
    }
}

/// What an end does in a check.
pub(super) type Half = fn(&End) -> io::Result<()>;

/// A check, with a half for either end.
pub(super) struct AlikeCheck {
    pub(super) name: &'static str,
    pub(super) server: Half,
    pub(super) client: Half,
}

pub(super) const fn check(name: &'static str, server: Half, client: Half) -> AlikeCheck {
    AlikeCheck { name, server, client }
}

fn unconnected(at: SocketAddr) -> io::Result<Socket> {
    Socket::new_raw(Domain::for_address(at), Type::STREAM, None)
}

/// Returns the result of a call in words: the count, or the name of the error.
pub(super) fn told(result: io::Result<usize>) -> String {
    match result {
        Ok(count) => count.to_string(),
        Err(error) => named(&error),
    }
}

/// Returns the name of an error, such as "ECONNRESET".
pub(super) fn named(error: &io::Error) -> String {
    let names = [
        (libc::EAGAIN, "EAGAIN"),
        (libc::EPIPE, "EPIPE"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ECONNABORTED, "ECONNABORTED"),
        (libc::EINPROGRESS, "EINPROGRESS"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENOTSUP, "ENOTSUP"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
    ];
    let known = names.iter().find(|(errno, _)| error.raw_os_error() == Some(*errno));
    known.map_or_else(|| error.to_string(), |(_, name)| (*name).to_owned())
}

/// Waits until poll(2) tells one of `events`, IN or OUT, or an end, for `limit` at most. Returns what it tells, such as
/// "IN+OUT".
pub(super) fn polled(socket: &Socket, events: libc::c_short, limit: Duration) -> io::Result<String> {
    let mut one = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    let limit = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: poll reads and writes one pollfd, which outlives the call.
    let count = unsafe { libc::poll(&raw mut one, 1, limit) };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    let names =
        [(libc::POLLIN, "IN"), (libc::POLLOUT, "OUT"), (libc::POLLERR, "ERR"), (libc::POLLHUP, "HUP")];
    let told: Vec<&str> =
        names.iter().filter(|(bit, _)| one.revents & bit != 0).map(|(_, name)| *name).collect();
    Ok(if told.is_empty() { "none".to_owned() } else { told.join("+") })
}

/// Reads exactly `count` bytes, as text.
pub(super) fn text(mut socket: &Socket, count: usize) -> io::Result<String> {
    let mut bytes = vec![0; count];
    socket.read_exact(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads what is left, until the other end has closed.
pub(super) fn at_its_end(mut socket: &Socket) -> io::Result<()> {
    socket.read_to_end(&mut Vec::new()).map(drop)
}

pub(super) fn wrong(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}
