//! What joins fake hosts: where the ends of a run meet, and the order of all requests.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use landspeed_record::Role;

use crate::host::lock;

/// As real ends wait for each other.
const MEET: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

type Place = (u16, Role);

#[derive(Default)]
pub(crate) struct Wire {
    /// Ends that wait for their peer, each with whether it has jumbo frames.
    here: Mutex<Vec<(Place, bool)>>,
    changed: Condvar,
    /// Times that all ends were told to give up.
    cancelled: Mutex<u32>,
    /// Every request with its host, in the order in which they came.
    pub(crate) log: Mutex<Vec<(&'static str, &'static str)>>,
    ports: Mutex<u16>,
}

impl Wire {
    /// Keeps a request; its number at its host.
    pub(crate) fn note(&self, host: &'static str, request: &'static str) -> usize {
        let mut log = lock(&self.log);
        let number = log.iter().filter(|(name, _)| *name == host).count();
        log.push((host, request));
        number
    }

    pub(crate) fn requests(&self) -> BTreeMap<&'static str, Vec<&'static str>> {
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (host, request) in lock(&self.log).iter() {
            found.entry(*host).or_default().push(*request);
        }
        found
    }

    pub(crate) fn port(&self) -> u16 {
        let mut ports = lock(&self.ports);
        *ports += 1;
        *ports
    }

    pub(crate) fn cancel(&self) {
        *lock(&self.cancelled) += 1;
    }

    /// What the other end of a run brings; `None` where it does not come.
    pub(crate) fn meet(&self, (port, role): Place, jumbo: bool, over: impl Fn() -> bool) -> Option<bool> {
        let peer = (port, if role == Role::Client { Role::Server } else { Role::Client });
        let (until, cancelled) = (Instant::now() + MEET, *lock(&self.cancelled));
        let mut here = lock(&self.here);
        here.push(((port, role), jumbo));
        self.changed.notify_all();
        loop {
            if let Some(found) = here.iter().position(|(place, _)| *place == peer) {
                return Some(here.remove(found).1);
            }
            // Whoever was taken has been met; the peer's own entry is then for the taking.
            if over() || *lock(&self.cancelled) > cancelled || Instant::now() > until {
                here.retain(|(place, _)| *place != (port, role));
                return None;
            }
            here = self.changed.wait_timeout(here, LOOK).expect("no panic under it").0;
        }
    }
}
