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

/// In flow order; those of another family than the internet's are nowhere among what the kernel lists of this one.
pub(super) fn sockets(sockets: &[(u32, BorrowedFd<'_>)]) -> Result<Vec<Own>, Error> {
    sockets.iter().filter_map(|(flow, socket)| own(*flow, socket).transpose()).collect()
}

fn own(flow: u32, socket: &BorrowedFd<'_>) -> Result<Option<Own>, Error> {
    let failed = |operation| {
        move |errno: rustix::io::Errno| {
            Error::io(operation, format!("the socket of flow {flow}"), errno.into())
        }
    };
    let cookie = socket_cookie(socket).map_err(failed("ask the cookie of"))?;
    let local = getsockname(socket).map_err(failed("ask the address of"))?;
    Ok(SocketAddr::try_from(local).ok().map(|local| Own { cookie, port: local.port() }))
}
