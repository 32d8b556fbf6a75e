//! The knobs that an agent changes for a controller.

use std::sync::Arc;

use crate::session::{KnobChange, Reply};
use landspeed_kernel::netlink::netns_cookie;
use landspeed_knob::KnobTarget;
use landspeed_knob::journal::{KnobTurner, TurnerOptions, Undo, UndoReport};
use landspeed_record::units::Nanos;
use landspeed_record::{KnobChangeReport, RestoreOutcome};
use parking_lot::Mutex;

/// The knobs of this host. The first change starts their journal and guardian.
pub(crate) struct Knobs {
    options: TurnerOptions,
    /// Locked only briefly, never while a knob is written, so that heartbeats are handled during a write.
    turner: Mutex<Option<Arc<KnobTurner>>>,
    /// Locked for a whole request, so that no other request comes between its changes.
    turning: Mutex<()>,
}

/// Returns an error, with the remedy, if this process may not turn knobs.
pub(crate) fn may_tune(allowed: bool) -> Result<(), String> {
    // A journal names its network namespace by the cookie. An inode number is used again for a later namespace, and an
    // undo would then change a stranger's settings. No permission helps against that, so it is the first reason: a dry
    // run, whose agent has none, shows it too.
    netns_cookie().map_err(|error| format!("no knob can be turned here: {error}"))?;
    if !allowed {
        return Err("this agent was started without --allow-tune: start it with it to turn knobs".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("this agent does not run as root: start it with sudo to turn knobs".into());
    }
    Ok(())
}

/// Restores the settings that an interrupted run left changed; with `dry_run`, only reports them.
pub(crate) fn undo(undo: &Undo, dry_run: bool) -> Result<Reply, String> {
    let done = if dry_run { undo.preview() } else { undo.run() };
    let UndoReport { lines, clean, left, .. } = done.map_err(|error| error.to_string())?;
    Ok(Reply::Undone { lines, is_clean: clean, left })
}

impl Knobs {
    pub(crate) fn new(options: TurnerOptions) -> Self {
        Knobs { options, turner: Mutex::default(), turning: Mutex::default() }
    }

    /// Turns the knobs of `changes` in order. If one fails, the earlier ones are rolled back. With `short_lease`,
    /// everything is restored unless a heartbeat follows within this time.
    pub(crate) fn turn(
        &self,
        changes: &[KnobChange],
        short_lease: Option<Nanos>,
    ) -> Result<Vec<KnobChangeReport>, String> {
        // Refuse the whole request before anything is written.
        for change in changes {
            self.options.check(&change.knob, &change.value).map_err(|e| e.to_string())?;
        }
        let _alone = self.turning.lock();
        let turner = self.started()?;
        let mut done: Vec<(KnobChangeReport, KnobTarget)> = Vec::new();
        for change in changes {
            // The short lease is set before each change, because a heartbeat ends it, and each change can cut the path.
            if let Some(lease) = short_lease {
                turner.short_lease(lease);
            }
            let target = KnobTarget { device: change.device.clone() };
            match turner.turn(&change.knob, &change.value, &target) {
                Ok(report) => done.push((report, target)),
                Err(error) => return Err(roll_back(&turner, &done, &error.to_string())),
            }
        }
        Ok(done.into_iter().map(|(report, _)| report).collect())
    }

    fn started(&self) -> Result<Arc<KnobTurner>, String> {
        if let Some(turner) = self.turner() {
            return Ok(turner);
        }
        let turner = Arc::new(KnobTurner::start(self.options.clone()).map_err(|e| e.to_string())?);
        *self.turner.lock() = Some(Arc::clone(&turner));
        Ok(turner)
    }

    fn turner(&self) -> Option<Arc<KnobTurner>> {
        self.turner.lock().clone()
    }

    /// Returns true if this agent had the right to turn knobs and has lost it.
    pub(crate) fn lost(&self) -> bool {
        self.turner().is_some_and(|turner| turner.lost().is_some())
    }

    /// Restores all knobs that were turned.
    pub(crate) fn restore(&self) -> RestoreOutcome {
        let _alone = self.turning.lock();
        let turner = self.turner.lock().take();
        match turner {
            Some(turner) => turner.restore_all(),
            None => RestoreOutcome::untouched(),
        }
    }

    /// Renews the lease of the changed knobs, because a message of the controller has arrived.
    pub(crate) fn heartbeat(&self) {
        if let Some(turner) = self.turner() {
            turner.heartbeat();
        }
    }
}

fn roll_back(turner: &KnobTurner, done: &[(KnobChangeReport, KnobTarget)], why: &str) -> String {
    let mut line = why.to_owned();
    for (report, target) in done.iter().rev() {
        if let Err(error) = turner.turn(&report.knob, &report.before, target) {
            line.push_str(&format!("; while putting {} back: {error}", report.knob));
        }
    }
    line
}
