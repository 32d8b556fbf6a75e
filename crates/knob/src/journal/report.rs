//! The report of a restore.

use std::collections::BTreeSet;

use landspeed_record::RestoreOutcome;

use super::snapshot::SettingKey;

/// The result of a restore, and the remaining work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RestoreReport {
    /// The restored and the kept settings, one line each.
    pub(super) notes: Vec<String>,
    /// Settings that could not be restored, one line each. Another attempt may succeed.
    pub(super) failures: Vec<String>,
    /// Changes that may be this run's or another program's, because the write that may have made them was cut short.
    pub(super) unsure: Vec<String>,
    /// True if values were kept because another program had changed them.
    pub(super) foreign: bool,
    /// The settings that were reported as changed by other programs, with the index of their device.
    pub(super) others: BTreeSet<(u32, SettingKey)>,
}

impl RestoreReport {
    /// Returns true if nothing remains to be restored, so that the journal can be removed.
    pub(super) fn is_done(&self) -> bool {
        self.failures.is_empty() && self.unsure.is_empty()
    }

    /// Converts the report to a [`RestoreOutcome`], which agents and records use.
    pub(super) fn into_restored(self) -> RestoreOutcome {
        let restored = self.is_done() && !self.foreign;
        let left = self.is_done() && self.foreign;
        let failures = self.failures.into_iter().map(|line| format!("NOT PUT BACK: {line}"));
        let unsure = self.unsure.into_iter().map(|line| format!("NOT PUT BACK, maybe not ours: {line}"));
        RestoreOutcome {
            restored,
            left,
            notes: failures.chain(unsure).chain(self.notes).collect(),
            ..RestoreOutcome::default()
        }
    }

    pub(super) fn note(&mut self, line: String) {
        if !self.notes.contains(&line) {
            self.notes.push(line);
        }
    }

    pub(super) fn foreign(&mut self, line: String) {
        self.foreign = true;
        self.note(line);
    }
}
