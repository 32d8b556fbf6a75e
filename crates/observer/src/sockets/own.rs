//! The workload's own sockets, by what the kernel calls them.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use rustix::net::{getsockname, sockopt::socket_cookie};

use crate::Error;

/// One socket of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Own {
    /// SO_COOKIE.
    pub(crate) cookie: u64,
    /// Its own port.
    pub(crate) port: u16,
}

/// In flow order.
pub(super) fn sockets(sockets: &[BorrowedFd<'_>]) -> Result<Vec<Own>, Error> {
    sockets.iter().enumerate().map(|(flow, socket)| own(flow, socket)).collect()
}

fn own(flow: usize, socket: &BorrowedFd<'_>) -> Result<Own, Error> {
    let failed = |operation| {
        move |errno: rustix::io::Errno| {
            Error::io(operation, format!("the socket of flow {flow}"), errno.into())
        }
    };
    let cookie = socket_cookie(socket).map_err(failed("ask the cookie of"))?;
    let local = getsockname(socket).map_err(failed("ask the address of"))?;
    let local = SocketAddr::try_from(local).map_err(failed("ask an internet address of"))?;
    Ok(Own { cookie, port: local.port() })
}
