//! Congestion controls that an agent loads into the kernel for a controller.
//!
//! The kernel has one list of control names for the whole machine, and each name can be registered once. If two agents
//! run on one machine (both ends of a lab), the first one loads a control and the second one uses it. When the first
//! one unloads it, flows that use it keep it until they close, but new flows cannot choose it any more. Therefore a
//! controller requests its controls again before each run.
//!
//! If the kernel cannot load one of landspeed's controls, Linux's own control of the same name replaces it, and a note
//! reports this.

use landspeed_congestion::{self as congestion, LinuxControl, LoadState, LoadedControl};
use parking_lot::Mutex;

/// The controls that this session has loaded. They are unloaded when the process ends, at the latest.
#[derive(Default)]
pub(crate) struct LoadedControls(Mutex<Vec<LoadedControl>>);

/// The controls that flows can choose, in the order of a request.
pub(crate) struct ReadyControls {
    /// The kernel's names.
    pub(crate) names: Vec<String>,
    /// Notes on the controls for a reader of the results.
    pub(crate) notes: Vec<String>,
}

/// A control that flows can choose.
struct ReadyControl {
    kernel_name: &'static str,
    /// The control, if it was loaded by BPF just now.
    loaded: Option<LoadedControl>,
    note: Option<String>,
}

impl LoadedControls {
    /// Makes sure that flows can choose each of `names`. If one control fails, unloads landspeed's controls that this
    /// call has loaded.
    pub(crate) fn make_ready(
        &self,
        names: &[String],
        may_load: &Result<(), String>,
    ) -> Result<ReadyControls, String> {
        let mut held = self.0.lock();
        let rows = names.iter().map(|name| one(name, may_load)).collect::<Result<Vec<_>, _>>()?;
        let names = rows.iter().map(|row| row.kernel_name.to_owned()).collect();
        let notes = rows.iter().filter_map(|row| row.note.clone()).collect();
        held.extend(rows.into_iter().filter_map(|row| row.loaded));
        Ok(ReadyControls { names, notes })
    }

    /// Unloads all controls that the session has loaded.
    pub(crate) fn unload_all(&self) {
        self.0.lock().clear();
    }
}

/// Makes sure that flows can choose the control `name`.
fn one(name: &str, may_load: &Result<(), String>) -> Result<ReadyControl, String> {
    let (row, state) = congestion::look_up(name).map_err(|error| error.to_string())?;
    let ready = |loaded| ReadyControl { kernel_name: row.kernel_name, loaded, note: None };
    if state != LoadState::Absent {
        return Ok(ready(None));
    }
    if let Some(linuxs) = congestion::linuxs_own(row) {
        return linuxs_own(&linuxs, may_load);
    }
    may_load.as_ref().map_err(|why| not_loaded(row.kernel_name, why))?;
    match congestion::load(name) {
        Ok(loaded) => Ok(ready(Some(loaded))),
        // Another agent of this machine loaded it first.
        Err(_) if congestion::state(row) != LoadState::Absent => Ok(ready(None)),
        Err(error) => Err(error.to_string()),
    }
}

/// Makes sure that flows can choose one of Linux's own controls. This may load a kernel module.
fn linuxs_own(control: &LinuxControl, may_load: &Result<(), String>) -> Result<ReadyControl, String> {
    if let Some(module) = control.module {
        may_load.as_ref().map_err(|why| not_loaded(module, why))?;
        control.load().map_err(|error| error.to_string())?;
    }
    Ok(ReadyControl { kernel_name: control.name, loaded: None, note: control.note() })
}

fn not_loaded(what: &str, why: &str) -> String {
    format!("{what} is not loaded, and loading it changes the host: {why}")
}
