//! Permits this machine's labs to use its congestion controls.
//!
//! A network namespace other than the first can only have a default congestion control that the machine permits to
//! every namespace (tcp_set_default_congestion_control, net/ipv4/tcp_cong.c). The list of these is one setting of the
//! whole machine.

use landspeed_record::{RestoreOutcome, Settings};

use crate::{Error, Host};

/// The knob that lists the congestion controls that other namespaces may not use, and its value if they may use all.
const RESTRICTED: &str = "restricted-congestion";
const NOTHING: &str = "none";

/// Permission for all namespaces to use every loaded congestion control. If this is dropped without a call of
/// `restore`, the agent restores the list because its session ends.
pub struct OpenControls {
    machine: Host,
}

impl OpenControls {
    /// Permits every loaded congestion control. `machine` is this machine, in a session that may change settings.
    /// Returns `None` if all are permitted already.
    ///
    /// # Errors
    /// Returns an error if the list cannot be changed here, for example in a container, or if another run is changing
    /// settings of this machine.
    pub fn on(mut machine: Host) -> Result<Option<OpenControls>, Error> {
        machine.begin()?;
        let state = machine.states.iter().find(|state| state.knob == RESTRICTED);
        if let Some(why) = state.and_then(|state| state.skip.clone()) {
            return Err(Error::Other(format!(
                "a lab may not use every congestion control here: {RESTRICTED}: {why}"
            )));
        }
        if machine.found().get(RESTRICTED).is_some_and(|now| now == NOTHING) {
            return Ok(None);
        }
        machine.reserve()?;
        let changes = machine.changes_to(&Settings::from([(RESTRICTED.to_owned(), NOTHING.to_owned())]));
        let begun = machine.turn(&changes)?;
        machine.turned(begun, &changes)?;
        Ok(Some(OpenControls { machine }))
    }

    /// Restores the list.
    pub fn restore(mut self) -> RestoreOutcome {
        self.machine.restore()
    }
}
