//! Finding labs, and taking down what a crash left behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use landspeed_netlink::netns_cookie;

use super::agents;
use super::owner::Owner;
use super::plan::LabId;
use super::store::{State, Store};
use crate::error::{During, Error};
use crate::namespace::{self, with_namespace};

/// Held for reading by each lab that is being made.
static MAKING: RwLock<()> = RwLock::new(());
/// Whether this process ever made one.
static MADE: AtomicBool = AtomicBool::new(false);

/// A lab that is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabInfo {
    pub id: LabId,
    /// The words that ask for such a lab.
    pub label: String,
    /// Names of its namespaces: its hosts', and the one between them.
    pub namespaces: Vec<String>,
    /// The process that made it.
    pub owner_pid: u32,
    /// Whether that process still runs; if not, the lab was left behind by a crash.
    pub alive: bool,
    /// When it was begun, in seconds since 1970.
    pub created_unix_s: u64,
}

impl LabInfo {
    fn new(id: &LabId, state: &State) -> Self {
        LabInfo {
            id: id.clone(),
            label: state.label.clone(),
            namespaces: state.namespaces.clone(),
            owner_pid: state.owner.pid,
            alive: state.owner.is_alive(),
            created_unix_s: state.created_unix_s,
        }
    }
}

/// Which labs to take down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// This one, whether or not its owner still runs.
    Id(LabId),
    /// Those whose owner has died.
    Stale,
    /// Those of this process.
    Own,
    /// All of them, in use or not.
    All,
}

/// A lab that was taken down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub id: LabId,
    /// Landspeed processes that lived in it and were ended.
    pub ended: Vec<u32>,
    /// Other processes in it, which were left alone.
    pub left: Vec<u32>,
    /// What the kernel called its namespaces (SO_NETNS_COOKIE), as far as they were still there.
    pub cookies: Vec<u64>,
}

/// All labs on this machine, by id. Needs root.
pub fn list() -> Result<Vec<LabInfo>, Error> {
    let states = Store::open_existing()?.map_or_else(|| Ok(Vec::new()), |store| store.all())?;
    Ok(states.iter().map(|(id, state)| LabInfo::new(id, state)).collect())
}

/// Takes labs down: ends landspeed's own processes in them (and no others), removes their namespaces in
/// reverse order, and forgets them. Nothing outside the lab's own names is touched, whatever a state
/// file says. Needs root.
///
/// # Errors
/// No lab of that id, or what the kernel refuses; all labs were tried by then.
pub fn down(which: &Which) -> Result<Vec<Removed>, Error> {
    let store = Store::open_existing()?;
    let labs = store.as_ref().map_or_else(|| Ok(Vec::new()), Store::all)?;
    if let Which::Id(id) = which
        && !labs.iter().any(|(known, _)| known == id)
    {
        return Err(Error::NoLab(id.to_string()));
    }
    let Some(store) = store else { return Ok(Vec::new()) };
    let me = Owner::me().during(|| "read this process's start time".into())?;
    let chosen = labs.into_iter().filter(|(id, state)| match which {
        Which::Id(chosen) => chosen == id,
        Which::Stale => !state.owner.is_alive(),
        Which::Own => state.owner == me,
        Which::All => true,
    });
    let done: Vec<_> = chosen.map(|(id, state)| take_down(&store, id, &state)).collect();
    done.into_iter().collect()
}

/// Takes down every lab of this process for good: whatever thread wants to make one from here on waits for
/// ever. For a process that a signal ends.
pub fn leave() -> Result<Vec<Removed>, Error> {
    std::mem::forget(MAKING.write().unwrap_or_else(PoisonError::into_inner));
    if MADE.load(Ordering::Relaxed) { down(&Which::Own) } else { Ok(Vec::new()) }
}

/// The right to make a lab; [`leave`] waits for it.
pub(super) fn making() -> RwLockReadGuard<'static, ()> {
    let making = MAKING.read().unwrap_or_else(PoisonError::into_inner);
    MADE.store(true, Ordering::Relaxed);
    making
}

fn take_down(store: &Store, id: LabId, state: &State) -> Result<Removed, Error> {
    let namespaces = &state.namespaces;
    let cookie = |name: &String| with_namespace(name, netns_cookie).ok()?.ok();
    let cookies = namespaces.iter().filter_map(cookie).collect();
    let agents::Ended { ended, left } = agents::end_within(namespaces);
    namespaces.iter().rev().try_for_each(|name| namespace::delete(name))?;
    store.remove(&id)?;
    Ok(Removed { id, ended, left, cookies })
}
