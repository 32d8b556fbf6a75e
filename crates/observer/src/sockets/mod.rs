//! Which sockets a [`WatchTarget`] means, and which processes hold them: what the rows that look at flows
//! share. Each row asks for itself, so that each can run without the others.

mod found;
mod own;
mod owners;
mod top;
mod wanted;

use landspeed_netlink::SockDiag;
use landspeed_record::WatchTarget;

pub(crate) use found::{Found, canonical};
pub(crate) use owners::{Owners, inodes_of};
pub(crate) use wanted::{Wanted, covers};

use crate::{Error, Scene};

/// Most flows that are watched at once: beyond it a record grows without telling more.
pub(crate) const MOST_FLOWS: usize = 64;

/// The sockets that a scene's target means now.
pub(crate) struct Selection {
    /// How to tell them, now and later.
    pub(crate) wanted: Wanted,
    /// Those that are there, at most [`MOST_FLOWS`]: in the order of the workload's flows, else those that moved most
    /// first.
    pub(crate) found: Vec<Found>,
    /// What a reader must know about the choice.
    pub(crate) notes: Vec<String>,
}

/// Finds them. Takes [`top::BETWEEN`] for [`WatchTarget::Top`], else as long as the kernel's lists.
pub(crate) fn select(diag: &SockDiag, scene: &Scene<'_>) -> Result<Selection, Error> {
    let mut notes = Vec::new();
    let (wanted, found) = match scene.target {
        WatchTarget::Top => top::most_active(diag, &mut notes)?,
        WatchTarget::Workload => listed(diag, Wanted::Sockets(own::sockets(scene.sockets)?), &mut notes)?,
        WatchTarget::Flow { at } => listed(diag, Wanted::end(at), &mut notes)?,
        WatchTarget::Pid { pid } => listed(diag, Wanted::process(pid)?, &mut notes)?,
    };
    Ok(Selection { found: most(found, &wanted, &mut notes), wanted, notes })
}

fn listed(diag: &SockDiag, wanted: Wanted, notes: &mut Vec<String>) -> Result<(Wanted, Vec<Found>), Error> {
    let found = wanted.list(diag, notes)?;
    Ok((wanted, found))
}

/// Puts them in order and leaves out what is too much.
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
