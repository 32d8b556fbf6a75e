//! Restores the settings of a host.

use std::time::Duration;

use landspeed_agent::session::{Reply, Request};
use landspeed_knob as knob;
use landspeed_record::factor::FactorScope;
use landspeed_record::{KnobState, RestoreOutcome};

use super::Host;
use super::differences::{differences, value_of};
use super::knobs::time_of;
use crate::Error;

/// Options for undoing the changes that an interrupted run left on a host.
#[derive(Debug, Clone, Copy, Default)]
pub struct UndoRequest {
    /// True to undo changes only in the agent's network namespace.
    pub here: bool,
    /// True to undo also settings that an interrupted write may or may not have changed.
    pub unsure: bool,
    /// True to report the changes without undoing them.
    pub dry_run: bool,
}

/// The answer of a host to an [`UndoRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndoneHost {
    /// One line for each setting that was restored or kept.
    pub lines: Vec<String>,
    /// True if nothing remains to be undone.
    pub is_clean: bool,
    /// True if a setting was kept on purpose, because another program changed it.
    pub left: bool,
}

/// Additional time for an undo, because it may restore slow knobs and read many journals.
const UNDO_TIME: Duration = Duration::from_secs(60);

impl Host {
    /// Makes the agent restore all settings, then probes the knobs again. The notes of the result name each knob that
    /// differs from the start.
    pub(crate) fn restore(&mut self) -> RestoreOutcome {
        use landspeed_agent::session::Error::{Ended, TimedOut};
        let found = self.found();
        let limit = self.patience() + time_of(&self.changes_to(&found));
        // A run may continue with this session: its next changes start from these values.
        self.applied = found;
        let answer = self.start(&Request::Restore {}).and_then(|pending| self.wait(pending, limit));
        let mut restored = match answer {
            Ok(Reply::Restored { restored }) => self.read_again(restored),
            Ok(_) => RestoreOutcome::failed("unexpected answer to restore".into()),
            // The notes for these errors name the host already.
            Err(Error::Session { source: error @ (Ended { .. } | TimedOut { .. }), .. }) => {
                return self.lost(&error);
            }
            Err(error) => return RestoreOutcome::failed(error.to_string()),
        };
        if restored.unknown {
            return restored;
        }
        for note in &mut restored.notes {
            *note = format!("{}: {note}", self.name);
        }
        restored
    }

    /// Returns the result for this host after its loss: how it is restored, and what the user can do.
    fn lost(&self, error: &landspeed_agent::session::Error) -> RestoreOutcome {
        let (name, undo) = (&self.name, &self.undo_command);
        RestoreOutcome::unknown(format!(
            "{name} was lost: {error}; its guardian restores it by itself. When it is back: {undo}"
        ))
    }

    /// Undoes the changes that an interrupted run left on the host, or with `dry_run` only reports them.
    pub fn undo(&self, request: &UndoRequest) -> Result<UndoneHost, Error> {
        let UndoRequest { here, unsure, dry_run } = *request;
        let pending = self.start(&Request::Undo { here, unsure, dry_run })?;
        match self.wait(pending, self.patience() + UNDO_TIME)? {
            Reply::Undone { lines, is_clean, left } => Ok(UndoneHost { lines, is_clean, left }),
            _ => Err(self.unexpected("undo")),
        }
    }

    /// Probes the knobs again, and adds the differences from the start to the host's own report.
    fn read_again(&self, mut restored: RestoreOutcome) -> RestoreOutcome {
        use landspeed_agent::session::Error::{Ended, TimedOut};
        match self.knobs() {
            Ok(now) => self.compare(&now, &mut restored),
            Err(Error::Session { source: error @ (Ended { .. } | TimedOut { .. }), .. }) => {
                return self.lost(&error);
            }
            Err(error) => {
                (restored.restored, restored.left) = (false, false);
                restored.notes.push(format!("its knobs could not be read again: {error}"));
            }
        }
        restored
    }

    /// Adds a note for each knob that differs from the start. If the agent has restored all knobs that were changed,
    /// another program has caused the differences.
    fn compare(&self, now: &[KnobState], restored: &mut RestoreOutcome) {
        let is_put_back = restored.restored || restored.left;
        for (before, after) in differences(&self.states, now).filter(|(before, _)| self.owns(before)) {
            (restored.restored, restored.left) = (false, is_put_back);
            restored.notes.push(format!("{} was {}, is {}", before.knob, value_of(before), value_of(after)));
        }
    }

    /// Returns true if a run on this host could have changed the knob. A setting of the whole machine belongs to the
    /// first network namespace: a lab sees it, and another run may change it at any time.
    fn owns(&self, state: &KnobState) -> bool {
        let is_of_machine = knob::find(&state.knob).is_ok_and(|knob| knob.factor.scope == FactorScope::Host);
        self.facts.initial_netns || !is_of_machine
    }
}
