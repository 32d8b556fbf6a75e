//! Finds labs, and takes down those that a crash left behind.

use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_kernel::netlink::netns_cookie;
use parking_lot::{RwLock, RwLockReadGuard};

use super::agents;
use super::owner::LabOwner;
use super::plan::LabId;
use super::store::{LabState, LabStore};
use crate::failure::FailureContext;
use crate::topology::error::Error;
use crate::topology::namespace::{self, with_namespace};

/// Held for reading while a lab is being made.
static MAKING: RwLock<()> = RwLock::new(());
/// True if this process ever made a lab.
static MADE: AtomicBool = AtomicBool::new(false);

/// A recorded lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabInfo {
    pub id: LabId,
    /// The words that name such a lab.
    pub label: String,
    /// The name under which a user holds it until `landspeed lab down`; `None` for a lab that one command made for
    /// itself.
    pub name: Option<String>,
    /// Names of its namespaces: those of its hosts, and the one between them.
    pub namespaces: Vec<String>,
    /// The process that made it.
    pub owner_pid: u32,
    /// True if that process still runs; if not, a crash left the lab behind.
    pub alive: bool,
    /// When its creation began, in seconds since 1970.
    pub created_unix_s: u64,
}

impl LabInfo {
    fn new(id: &LabId, state: &LabState) -> Self {
        LabInfo {
            id: id.clone(),
            label: state.label.clone(),
            name: state.name.clone(),
            namespaces: state.namespaces.clone(),
            owner_pid: state.owner.pid,
            alive: state.owner.is_alive(),
            created_unix_s: state.created_unix_s,
        }
    }
}

/// The labs to take down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabSelection {
    /// This lab, whether or not its owner still runs.
    Id(LabId),
    /// Labs whose owner has died.
    Stale,
    /// Labs of this process.
    Own,
    /// All labs, in use or not.
    All,
}

/// A lab that was taken down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedLab {
    pub id: LabId,
    /// Processes in the lab that were ended: landspeed's, and in a lab that a user held all.
    pub ended: Vec<u32>,
    /// Other processes in the lab, which were left alone.
    pub left: Vec<u32>,
    /// The kernel's cookies of its namespaces (SO_NETNS_COOKIE), of those that still existed.
    pub cookies: Vec<u64>,
}

/// Returns all labs on this machine, by ID. Needs root.
pub fn list() -> Result<Vec<LabInfo>, Error> {
    let states = LabStore::open_existing()?.map_or_else(|| Ok(Vec::new()), |store| store.all())?;
    Ok(states.iter().map(|(id, state)| LabInfo::new(id, state)).collect())
}

/// Takes labs down: ends landspeed's own processes in them (all processes in a lab that a user held), removes their
/// namespaces in reverse order, and removes their records. Only the lab's own names are touched, whatever a state file contains. Needs root.
///
/// # Errors
/// Returns an error if there is no lab of that ID, or the kernel refuses something. All labs have been tried by then.
pub fn down(which: &LabSelection) -> Result<Vec<RemovedLab>, Error> {
    let store = LabStore::open_existing()?;
    let labs = store.as_ref().map_or_else(|| Ok(Vec::new()), LabStore::all)?;
    if let LabSelection::Id(id) = which
        && !labs.iter().any(|(known, _)| known == id)
    {
        return Err(Error::NoLab(id.to_string()));
    }
    let Some(store) = store else { return Ok(Vec::new()) };
    let me = LabOwner::me().during(|| "read this process's start time".into())?;
    let chosen = labs.into_iter().filter(|(id, state)| match which {
        LabSelection::Id(chosen) => chosen == id,
        LabSelection::Stale => !state.owner.is_alive(),
        LabSelection::Own => state.owner == me,
        LabSelection::All => true,
    });
    let done: Vec<_> = chosen.map(|(id, state)| take_down(&store, id, &state)).collect();
    done.into_iter().collect()
}

/// Takes down all labs of this process for good: any thread that wants to make one from here on waits forever. For a
/// process that is ended by a signal.
pub fn leave() -> Result<Vec<RemovedLab>, Error> {
    std::mem::forget(MAKING.write());
    if MADE.load(Ordering::Relaxed) { down(&LabSelection::Own) } else { Ok(Vec::new()) }
}

/// Returns the right to make a lab; [`leave`] waits until it is dropped.
pub(super) fn making() -> RwLockReadGuard<'static, ()> {
    let making = MAKING.read();
    MADE.store(true, Ordering::Relaxed);
    making
}

/// Returns true if another process holds the lab for a user.
fn is_held(state: &LabState) -> bool {
    state.name.is_some() && state.owner.is_alive() && state.owner.pid != std::process::id()
}

fn take_down(store: &LabStore, id: LabId, state: &LabState) -> Result<RemovedLab, Error> {
    let namespaces = &state.namespaces;
    let cookie = |name: &String| with_namespace(name, netns_cookie).ok()?.ok();
    let cookies = namespaces.iter().filter_map(cookie).collect();
    let agents::EndedProcesses { ended, left } = match is_held(state) {
        true => agents::end_all_within(namespaces),
        false => agents::end_within(namespaces),
    };
    if is_held(state) {
        // Its process removes the lab as it ends; what it leaves is removed below.
        agents::end_process(state.owner.pid, || state.owner.is_alive());
    }
    namespaces.iter().rev().try_for_each(|name| namespace::delete(name))?;
    store.remove(&id)?;
    Ok(RemovedLab { id, ended, left, cookies })
}
