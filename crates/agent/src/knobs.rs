//! Turning knobs on behalf of a controller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landspeed_knob::Place;
use landspeed_knob::journal::{Options, Turner};
use landspeed_netlink::Rtnl;
use landspeed_record::{Restored, TurnReport};
use landspeed_session::Change;
use landspeed_units::Nanos;

/// The knobs of this host; the journal and its guardian exist from the first turn on.
pub(crate) struct Knobs {
    options: Options,
    /// Held for a moment, never while a knob is turned: heartbeats pass beside a turn.
    turner: Mutex<Option<Arc<Turner>>>,
    /// Held for a whole request, so that none comes between its changes.
    turning: Mutex<()>,
    /// The numbers of devices, by the names that they had when they were first asked for: names change.
    devices: Mutex<BTreeMap<String, u32>>,
}

/// Whether this process may turn knobs, and if not, why and what to do.
pub(crate) fn may_tune(allowed: bool) -> Result<(), String> {
    if !allowed {
        return Err("this agent was started without --allow-tune: start it with it to turn knobs".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("this agent does not run as root: start it with sudo to turn knobs".into());
    }
    Ok(())
}

impl Knobs {
    pub(crate) fn new(options: Options) -> Self {
        Knobs { options, turner: Mutex::default(), turning: Mutex::default(), devices: Mutex::default() }
    }

    /// Where the device is that was called so when it was first asked for.
    pub(crate) fn place(&self, device: &str) -> Place {
        let named = |device: &str| Place { device: device.to_owned() };
        let Ok(links) = Rtnl::open().and_then(|rtnl| rtnl.links()) else { return named(device) };
        let mut devices = lock(&self.devices);
        if let Some(link) = links.iter().find(|link| link.name == device) {
            devices.entry(device.to_owned()).or_insert(link.index);
        }
        let number = devices.get(device);
        let now = links.iter().find(|link| Some(&link.index) == number);
        named(now.map_or(device, |link| &link.name))
    }

    /// Turns `changes` in order; where one fails, the earlier ones are put back.
    pub(crate) fn turn(
        &self,
        device: &str,
        changes: &[Change],
        short_lease: Option<Nanos>,
    ) -> Result<Vec<TurnReport>, String> {
        // Refuse the whole request before anything is touched.
        for change in changes {
            self.options.check(&change.knob, &change.value).map_err(|e| e.to_string())?;
        }
        let _alone = lock(&self.turning);
        let turner = self.started()?;
        let place = self.place(device);
        let mut done: Vec<TurnReport> = Vec::new();
        for change in changes {
            // Before each change: a heartbeat after an earlier one ends it, and each can cut the path.
            if let Some(lease) = short_lease {
                turner.short_lease(lease);
            }
            match turner.turn(&change.knob, &change.value, &place) {
                Ok(report) => done.push(report),
                Err(error) => return Err(roll_back(&turner, &place, &done, &error.to_string())),
            }
        }
        Ok(done)
    }

    fn started(&self) -> Result<Arc<Turner>, String> {
        if let Some(turner) = self.turner() {
            return Ok(turner);
        }
        let turner = Arc::new(Turner::start(self.options.clone()).map_err(|e| e.to_string())?);
        *lock(&self.turner) = Some(Arc::clone(&turner));
        Ok(turner)
    }

    fn turner(&self) -> Option<Arc<Turner>> {
        lock(&self.turner).clone()
    }

    /// Whether the right to turn knobs was had and is gone.
    pub(crate) fn lost(&self) -> bool {
        self.turner().is_some_and(|turner| turner.lost().is_some())
    }

    /// Puts everything back; nothing to do where nothing was turned.
    pub(crate) fn restore(&self) -> Restored {
        let _alone = lock(&self.turning);
        let turner = lock(&self.turner).take();
        match turner {
            Some(turner) => turner.restore_all(),
            None => Restored::untouched(),
        }
    }

    /// The controller lives: so may what it turned.
    pub(crate) fn heartbeat(&self) {
        if let Some(turner) = self.turner() {
            turner.heartbeat();
        }
    }
}

/// A panic elsewhere must not keep settings from being put back.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn roll_back(turner: &Turner, place: &Place, done: &[TurnReport], why: &str) -> String {
    let mut line = why.to_owned();
    for report in done.iter().rev() {
        if let Err(error) = turner.turn(&report.knob, &report.before, place) {
            line.push_str(&format!("; while putting {} back: {error}", report.knob));
        }
    }
    line
}
