//! Lists labs, and takes down those that a crash has left.

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

/// A lock that is read-locked while a lab is being created.
static MAKING: RwLock<()> = RwLock::new(());
/// True if this process ever made a lab.
static MADE: AtomicBool = AtomicBool::new(false);

/// A lab that was found by its state file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabInfo {
    pub id: LabId,
    /// The words that name a lab of this kind, such as "lab:switch:4".
    pub label: String,
    /// The name under which a user holds the lab until `landspeed lab down`; `None` for a lab that a command created
    /// for itself.
    pub name: Option<String>,
    /// Names of its namespaces: those of its hosts, and the one between them, if any.
    pub namespaces: Vec<String>,
    /// ID of the process that created it.
    pub owner_pid: u32,
    /// True if the process that created it still runs. Otherwise a crash has left the lab.
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
    /// This lab, even if its owner still runs.
    Id(LabId),
    /// Labs whose owner has died.
    Stale,
    /// Labs that this process created.
    Own,
    /// All labs, even if they are in use.
    All,
}

/// A lab that was taken down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedLab {
    pub id: LabId,
    /// IDs of the processes in the lab that were ended: landspeed's own processes, or all processes in a lab that a
    /// user held or that has virtual machines.
    pub ended: Vec<u32>,
    /// IDs of the other processes in the lab, which were left running.
    pub left: Vec<u32>,
    /// The kernel's cookies (SO_NETNS_COOKIE) of the lab's namespaces that still existed.
    pub cookies: Vec<u64>,
}

/// Returns all labs on this machine, sorted by ID. Needs root.
pub fn list() -> Result<Vec<LabInfo>, Error> {
    let states = LabStore::open_existing()?.map_or_else(|| Ok(Vec::new()), |store| store.all())?;
    Ok(states.iter().map(|(id, state)| LabInfo::new(id, state)).collect())
}

/// Takes labs down. It ends landspeed's own processes in them (all processes in a lab that a user held or that has
/// virtual machines), removes their namespaces in reverse order, and removes their state files. Only namespaces with the
/// lab's own names are removed, whatever a state file contains. Needs root.
///
/// # Errors
/// Returns an error if there is no lab with the given ID, or if the kernel refuses an operation. Even then, all
/// selected labs have been tried.
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

/// Takes down all labs of this process. The process must end after this call, because from now on any thread that
/// creates a lab waits forever. Call it when a signal ends the process.
pub fn leave() -> Result<Vec<RemovedLab>, Error> {
    std::mem::forget(MAKING.write());
    if MADE.load(Ordering::Relaxed) { down(&LabSelection::Own) } else { Ok(Vec::new()) }
}

/// Returns a guard that a thread must hold while it creates a lab. [`leave`] waits until the guard is dropped.
pub(super) fn making() -> RwLockReadGuard<'static, ()> {
    let making = MAKING.read();
    MADE.store(true, Ordering::Relaxed);
    making
}

/// Returns true if another process, which still runs, holds the lab for a user.
fn is_held(state: &LabState) -> bool {
    state.name.is_some() && state.owner.is_alive() && state.owner.pid != std::process::id()
}

fn take_down(store: &LabStore, id: LabId, state: &LabState) -> Result<RemovedLab, Error> {
    let namespaces = &state.namespaces;
    let cookie = |name: &String| with_namespace(name, netns_cookie).ok()?.ok();
    let cookies = namespaces.iter().filter_map(cookie).collect();
    let agents::EndedProcesses { ended, left } = match is_held(state) || state.has_guests {
        true => agents::end_all_within(namespaces),
        false => agents::end_within(namespaces),
    };
    if is_held(state) {
        // The owner removes the lab when it ends. The next steps remove what the owner leaves.
        agents::end_process(state.owner.pid, || state.owner.is_alive());
    }
    namespaces.iter().rev().try_for_each(|name| namespace::delete(name))?;
    store.remove(&id)?;
    Ok(RemovedLab { id, ended, left, cookies })
}
