//! Congestion controls that an agent loads into the kernel for a controller.
//!
//! The kernel has one list of control names for the whole machine, and each name can be registered once. If two agents
//! run on one machine (both ends of a lab), the first one loads a control and the second one uses it. When the first
//! one unloads it, flows that use it keep it until they close, but new flows cannot choose it any more. Therefore a
//! controller requests its controls again before each run.

use landspeed_congestion::{self as congestion, Control, LoadState, LoadedControl};
use parking_lot::Mutex;

/// The controls that this session has loaded. They are unloaded when the process ends, at the latest.
#[derive(Default)]
pub(crate) struct LoadedControls(Mutex<Vec<LoadedControl>>);

impl LoadedControls {
    /// Makes sure that flows can choose each of `names`, and returns the kernel's names for them. If one fails, the
    /// controls that this call has loaded are unloaded.
    pub(crate) fn make_ready(
        &self,
        names: &[String],
        may_load: &Result<(), String>,
    ) -> Result<Vec<String>, String> {
        let mut held = self.0.lock();
        let rows = names.iter().map(|name| one(name, may_load)).collect::<Result<Vec<_>, _>>()?;
        let (ready, loaded): (Vec<String>, Vec<_>) =
            rows.into_iter().map(|(row, loaded)| (row.kernel_name.to_owned(), loaded)).unzip();
        held.extend(loaded.into_iter().flatten());
        Ok(ready)
    }

    /// Unloads all controls that the session has loaded.
    pub(crate) fn unload_all(&self) {
        self.0.lock().clear();
    }
}

/// Makes sure that flows can choose the control `name`. Returns its row of the table, and its handle if this call
/// loaded it.
fn one(
    name: &str,
    may_load: &Result<(), String>,
) -> Result<(&'static Control, Option<LoadedControl>), String> {
    let (row, state) = congestion::look_up(name).map_err(|error| error.to_string())?;
    if state != LoadState::Absent {
        return Ok((row, None));
    }
    if let Err(why) = may_load {
        return Err(format!("{} is not loaded, and loading it changes the host: {why}", row.kernel_name));
    }
    match congestion::load(name) {
        Ok(loaded) => Ok((row, Some(loaded))),
        // Another agent of this machine loaded it first.
        Err(_) if congestion::state(row) != LoadState::Absent => Ok((row, None)),
        Err(error) => Err(error.to_string()),
    }
}
