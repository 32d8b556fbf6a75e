//! Connects fake hosts: lets both ends of a run meet, and logs all requests in order.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use landspeed_record::Role;
use parking_lot::{Condvar, Mutex};

use crate::host::lock;

/// How long an end waits for its peer: longer than any test in which an end learns that its peer does not come.
const MEET: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(20);

type RunEnd = (u16, Role);

#[derive(Default)]
pub(crate) struct FakeWire {
    /// Ends that wait for their peer, each with true if it has jumbo frames.
    here: Mutex<Vec<(RunEnd, bool)>>,
    changed: Condvar,
    /// How often the ends were cancelled.
    cancelled: Mutex<u32>,
    /// All requests in the order of their arrival, each with the name of its host.
    pub(crate) log: Mutex<Vec<(&'static str, &'static str)>>,
    ports: Mutex<u16>,
}

impl FakeWire {
    /// Logs a request, and returns its number among the requests of its host.
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

    /// Waits for the other end of a run. Returns true if that end uses jumbo frames, and `None` if it does not come.
    pub(crate) fn meet(&self, (port, role): RunEnd, jumbo: bool, over: impl Fn() -> bool) -> Option<bool> {
        let peer = (port, if role == Role::Client { Role::Server } else { Role::Client });
        let (until, cancelled) = (Instant::now() + MEET, *lock(&self.cancelled));
        let mut here = lock(&self.here);
        here.push(((port, role), jumbo));
        self.changed.notify_all();
        loop {
            if let Some(found) = here.iter().position(|(end, _)| *end == peer) {
                return Some(here.remove(found).1);
            }
            // A peer adds its own entry before it takes this end's entry, so an end that was met finds it above.
            if over() || *lock(&self.cancelled) > cancelled || Instant::now() > until {
                here.retain(|(end, _)| *end != (port, role));
                return None;
            }
            self.changed.wait_for(&mut here, LOOK);
        }
    }
}
