//! Finds the sockets that a [`WatchTarget`] identifies, and the processes that hold them. Each observer selects its
//! sockets itself, so that it can run without other observers.

mod listed_socket;
mod owners;
mod selector;
mod top;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use landspeed_kernel::netlink::SockDiag;
use landspeed_record::WatchTarget;
use rustix::net::{getsockname, sockopt::socket_cookie};

pub(crate) use listed_socket::{ListedSocket, canonical};
pub(crate) use owners::{SocketOwners, inodes_of};
pub(crate) use selector::{SocketSelector, covers};

use crate::family::family;
use crate::{Error, WatchSubject};
use selector::ChosenSocket;

/// The largest number of flows that are watched together. More flows would enlarge a record but add little information.
pub(crate) const MOST_FLOWS: usize = 64;

/// The sockets that a target identifies now.
pub(crate) struct SocketSelection {
    /// The rule that identifies the sockets, now and later.
    pub(crate) selector: SocketSelector,
    /// The existing sockets, at most [`MOST_FLOWS`]. Sockets of the workload are in the order of its flows. Other
    /// sockets are in descending order of the bytes that they have transferred.
    pub(crate) found: Vec<ListedSocket>,
    /// Notes on the selection for a reader of the observations.
    pub(crate) notes: Vec<String>,
}

/// Selects the sockets of `subject`. For [`WatchTarget::Top`] this takes at least [`top::BETWEEN`]; for other targets
/// it takes only as long as the kernel needs to list the sockets.
pub(crate) fn select(diag: &SockDiag, subject: &WatchSubject<'_>) -> Result<SocketSelection, Error> {
    let mut notes = Vec::new();
    let (selector, found) = match subject.target {
        WatchTarget::Top => top::most_active(diag, &mut notes)?,
        WatchTarget::Workload => listed(diag, SocketSelector::Sockets(own_sockets(subject)?), &mut notes)?,
        WatchTarget::Flow { at } => listed(diag, SocketSelector::address(at), &mut notes)?,
        WatchTarget::Programs | WatchTarget::Pid { .. } | WatchTarget::Name { .. } => {
            listed(diag, SocketSelector::processes(subject.target)?, &mut notes)?
        }
    };
    Ok(SocketSelection { found: most(found, &selector, &mut notes), selector, notes })
}

/// Returns the processes of the target of `subject`. If the target names processes, returns these and their
/// descendants; otherwise returns the processes that hold the target's sockets.
pub(crate) fn processes_of(subject: &WatchSubject<'_>) -> Result<BTreeSet<u32>, Error> {
    let named = family(subject.target)?;
    if !named.is_empty() {
        return Ok(named);
    }
    let found = select(&SockDiag::open()?, subject)?.found;
    Ok(SocketOwners::find(found.iter().map(|found| found.socket.inode)).pids())
}

fn listed(
    diag: &SockDiag,
    selector: SocketSelector,
    notes: &mut Vec<String>,
) -> Result<(SocketSelector, Vec<ListedSocket>), Error> {
    let found = selector.list(diag, notes)?;
    Ok((selector, found))
}

/// Sorts the sockets and keeps the first [`MOST_FLOWS`]. Adds a note if it drops some.
fn most(
    mut found: Vec<ListedSocket>,
    selector: &SocketSelector,
    notes: &mut Vec<String>,
) -> Vec<ListedSocket> {
    match selector {
        SocketSelector::Sockets(own) => {
            found.sort_by_key(|f| own.iter().position(|o| o.cookie == f.cookie()))
        }
        _ => found.sort_by_key(|f| std::cmp::Reverse(f.moved_bytes())),
    }
    if found.len() > MOST_FLOWS {
        notes.push(format!("{} sockets match; {MOST_FLOWS} of them are watched", found.len()));
        found.truncate(MOST_FLOWS);
    }
    found
}

/// Returns the workload's IP sockets in the order of the flows. Sockets of other families are left out, because the
/// kernel's lists do not contain them.
fn own_sockets(subject: &WatchSubject<'_>) -> Result<Vec<ChosenSocket>, Error> {
    subject.sockets.iter().filter_map(|(flow, socket)| own(*flow, socket).transpose()).collect()
}

fn own(flow: u32, socket: &BorrowedFd<'_>) -> Result<Option<ChosenSocket>, Error> {
    let failed = |operation| {
        move |errno: rustix::io::Errno| Error::io(operation, format!("the socket of flow {flow}"), errno)
    };
    let cookie = socket_cookie(socket).map_err(failed("ask the cookie of"))?;
    let local = getsockname(socket).map_err(failed("ask the address of"))?;
    Ok(SocketAddr::try_from(local).ok().map(|local| ChosenSocket { cookie, port: local.port() }))
}
