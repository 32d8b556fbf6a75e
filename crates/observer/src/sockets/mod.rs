//! The sockets that a [`WatchTarget`] means, and the processes that hold them. Several observers use this; each
//! selects for itself, so that it can run without the others.

mod found;
mod owners;
mod top;
mod wanted;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use landspeed_netlink::SockDiag;
use landspeed_record::WatchTarget;
use rustix::net::{getsockname, sockopt::socket_cookie};

pub(crate) use found::{Found, canonical};
pub(crate) use owners::{Owners, inodes_of};
pub(crate) use wanted::{Wanted, covers};

use crate::{Error, Scene};

/// The most flows that are watched together: more would enlarge a record without adding information.
pub(crate) const MOST_FLOWS: usize = 64;

/// The sockets that a scene's target means now.
pub(crate) struct Selection {
    /// The rule that identifies them, now and later.
    pub(crate) wanted: Wanted,
    /// The existing sockets, at most [`MOST_FLOWS`]: in the order of the workload's flows, otherwise those with the
    /// most bytes first.
    pub(crate) found: Vec<Found>,
    /// Notes on the selection that a reader must know.
    pub(crate) notes: Vec<String>,
}

/// Selects the sockets. Takes [`top::BETWEEN`] for [`WatchTarget::Top`], otherwise as long as the kernel takes to
/// list them.
pub(crate) fn select(diag: &SockDiag, scene: &Scene<'_>) -> Result<Selection, Error> {
    let mut notes = Vec::new();
    let (wanted, found) = match scene.target {
        WatchTarget::Top => top::most_active(diag, &mut notes)?,
        WatchTarget::Workload => listed(diag, Wanted::Sockets(own_sockets(scene)?), &mut notes)?,
        WatchTarget::Programs => listed(diag, Wanted::programs(), &mut notes)?,
        WatchTarget::Flow { at } => listed(diag, Wanted::address(at), &mut notes)?,
        WatchTarget::Pid { pid } => listed(diag, Wanted::process(pid)?, &mut notes)?,
    };
    Ok(Selection { found: most(found, &wanted, &mut notes), wanted, notes })
}

fn listed(diag: &SockDiag, wanted: Wanted, notes: &mut Vec<String>) -> Result<(Wanted, Vec<Found>), Error> {
    let found = wanted.list(diag, notes)?;
    Ok((wanted, found))
}

/// Sorts the sockets and drops those beyond the limit.
fn most(mut found: Vec<Found>, wanted: &Wanted, notes: &mut Vec<String>) -> Vec<Found> {
    match wanted {
        Wanted::Sockets(own) => found.sort_by_key(|f| own.iter().position(|o| o.cookie == f.cookie())),
        _ => found.sort_by_key(|f| std::cmp::Reverse(f.moved_bytes())),
    }
    if found.len() > MOST_FLOWS {
        notes.push(format!("{} sockets match; {MOST_FLOWS} of them are watched", found.len()));
        found.truncate(MOST_FLOWS);
    }
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Own {
    /// SO_COOKIE of the socket.
    pub(crate) cookie: u64,
    pub(crate) port: u16,
}

/// Returns the workload's internet sockets in flow order; the kernel's lists contain no sockets of other families.
fn own_sockets(scene: &Scene<'_>) -> Result<Vec<Own>, Error> {
    scene.sockets.iter().filter_map(|(flow, socket)| own(*flow, socket).transpose()).collect()
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
