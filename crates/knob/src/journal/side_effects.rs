//! Restoring the settings that a run's writes changed besides the knobs. This is done in stages, because each stage
//! can restore, or disturb, settings of another.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::ProgressMark;
use super::identity::DeviceIdentity;
use super::ledger::JournalLedger;
use super::location::{DeviceLocation, DeviceWhereabouts};
use super::own_changes::{OwnChange, place};
use super::report::RestoreReport;
use super::snapshot::{SettingKey, SettingValue, SettingsSnapshot, same, shown};
use crate::SideEffect;

/// The largest number of rounds. Each of the three stages may need a second attempt, and the side effects of restoring
/// need further rounds. No host has needed half of this number.
const ROUNDS: usize = 32;

/// Restores the settings that are still as the run's writes left them, on the device with index `number`.
pub(super) fn put_back(
    ledger: &mut JournalLedger,
    number: u32,
    device: Option<&DeviceIdentity>,
    report: &mut RestoreReport,
) {
    let mut rest = match SideEffectRestore::on(ledger, number, device) {
        Ok(Some(rest)) => rest,
        Ok(None) => return,
        Err(why) => return report.failures.push(why),
    };
    mention_others(ledger, number, device, report);
    for _ in 0..ROUNDS {
        match rest.round(ledger, report) {
            Ok(true) => {}
            Ok(false) => break,
            Err(why) => return report.failures.push(why),
        }
    }
    if rest.location.is_elsewhere() {
        let name = device.map_or("", |device| &device.name);
        report.foreign(format!(
            "{name} has moved to another network namespace, as {}: what belonged to it here did not go along",
            rest.location.device
        ));
    }
    mention_others(ledger, number, device, report);
    rest.tell_failures(ledger, report);
}

/// Reports, as another program's changes, the settings that differ from the start although no write of this run changed
/// them. Reports nothing if it is unknown which differences are this run's.
fn mention_others(
    ledger: &JournalLedger,
    number: u32,
    device: Option<&DeviceIdentity>,
    report: &mut RestoreReport,
) {
    let Ok(Some(rest)) = SideEffectRestore::on(ledger, number, device) else { return };
    if !report.unsure.is_empty() {
        return;
    }
    let firsts: Vec<&SettingsSnapshot> = ledger.firsts_on(number).collect();
    let slots = firsts.iter().flat_map(|seen| seen.slots().cloned()).collect();
    let Ok(now) = ledger.host.snapshot(&rest.kinds, &rest.location, &slots) else { return };
    // A setting that is not in a snapshot did not exist: the first snapshot with a kind of settings contains all of
    // that kind.
    let mut kinds = rest.kinds.clone();
    for first in firsts {
        let (news, later): (Vec<SideEffect>, _) = kinds.into_iter().partition(|kind| first.was_for(kind));
        kinds = later;
        for key in first.keys().chain(now.keys()).filter(|key| key.is_among(&news)) {
            let (was, is) = (first.get(key), now.get(key));
            let place = place(number, key);
            let by_itself = [was, is].into_iter().flatten().all(SettingValue::is_the_kernels_own);
            if !same(was, is)
                && !by_itself
                && !report.others.contains(&place)
                && !ledger.net.changes.contains_key(&place)
            {
                report.foreign(foreign(key, was, is, &rest.location.device));
                report.others.insert(place);
            }
        }
    }
}

/// Returns the settings that the run's writes changed and that differ from the start, one line each.
pub(super) fn inventory(ledger: &JournalLedger, number: u32, device: Option<&DeviceIdentity>) -> Vec<String> {
    let Ok(Some(rest)) = SideEffectRestore::on(ledger, number, device) else { return Vec::new() };
    let Ok(now) = ledger.host.snapshot(&rest.kinds, &rest.location, &ledger.slots(number)) else {
        return Vec::new();
    };
    let here = |((device, key), _): &(&(u32, SettingKey), &OwnChange)| {
        (*device == number || key.is_of_namespace()) && key.is_among(&rest.kinds)
    };
    let changes = ledger.net.changes.iter().filter(here);
    changes
        .filter(|((_, key), change)| !same(now.get(key), change.before.as_ref()))
        .map(|((_, key), change)| {
            let (was, is) = (change.before.as_ref(), now.get(key));
            let subject = subject(key, was.or(is), &rest.location.device);
            format!("  {subject} is {}, was {}", state(key, is), state(key, was))
        })
        .collect()
}

/// Returns the value of a setting as text. The value of a route is already in its name.
fn state(key: &SettingKey, value: Option<&SettingValue>) -> String {
    match (key, value) {
        (SettingKey::Route(_), Some(_)) => "there".into(),
        (SettingKey::Feature(_), None) => "off".into(),
        _ => shown(value),
    }
}

fn foreign(key: &SettingKey, was: Option<&SettingValue>, is: Option<&SettingValue>, device: &str) -> String {
    let subject = subject(key, is.or(was), device);
    let (was, is) = (state(key, was), state(key, is));
    format!("{subject}: another program changed it since, left alone (is {is}, was {was})")
}

/// Returns the name of a setting for messages.
fn subject(key: &SettingKey, value: Option<&SettingValue>, device: &str) -> String {
    match (key, value) {
        (SettingKey::Route(_), Some(routes)) => format!("route {}", routes.shown()),
        (SettingKey::Related(_), Some(SettingValue::Of { device: other, .. })) => {
            format!("{}, {other}", key.shown(device))
        }
        _ => key.shown(device),
    }
}

/// The state of restoring one device's settings.
struct SideEffectRestore {
    location: DeviceLocation,
    number: u32,
    kinds: Vec<SideEffect>,
    /// The kernel's last reason for refusing a setting.
    refused: BTreeMap<SettingKey, String>,
    /// Settings that no attempt could change.
    given_up: BTreeSet<SettingKey>,
    /// True if the last round changed nothing. If the next one changes nothing either, its settings are given up.
    is_stuck: bool,
}

impl SideEffectRestore {
    /// Prepares the restore of the device with index `number`. Returns `None` if none of its settings could be
    /// restored.
    fn on(
        ledger: &JournalLedger,
        number: u32,
        device: Option<&DeviceIdentity>,
    ) -> Result<Option<SideEffectRestore>, String> {
        let location = match device.map(|device| ledger.find(device)).transpose()? {
            Some(DeviceWhereabouts::At(location)) => location,
            None | Some(DeviceWhereabouts::Gone) => DeviceLocation::default(),
        };
        let mut kinds = ledger.kinds_on(number);
        let ended = ledger.host.ended_netns().is_some();
        kinds.retain(|kind| {
            is_reachable(kind, &location) && !(ended && matches!(kind, SideEffect::Sysctl(_)))
        });
        let rest = SideEffectRestore {
            location,
            number,
            kinds,
            refused: BTreeMap::new(),
            given_up: BTreeSet::new(),
            is_stuck: false,
        };
        Ok(Some(rest).filter(|rest| !rest.kinds.is_empty()))
    }

    /// Restores the settings of one stage. Returns false if nothing remains to be restored.
    fn round(&mut self, ledger: &mut JournalLedger, report: &mut RestoreReport) -> Result<bool, String> {
        let slots = ledger.slots(self.number);
        let now = ledger.host.snapshot(&self.kinds, &self.location, &slots).map_err(|e| e.to_string())?;
        let mut todo = self.ours(ledger, &now, report);
        let stage = todo.iter().map(|(key, _)| key.stage()).min();
        todo.retain(|(key, _)| Some(key.stage()) == stage);
        if todo.is_empty() {
            return Ok(false);
        }
        self.put(ledger, &todo);
        let mut moved = false;
        for (key, change) in &todo {
            match ledger.net.changes.get(&place(self.number, key)) {
                None => {
                    moved = true;
                    report.note(put_back_line(key, change, &self.location.device));
                }
                Some(still) => moved |= !same(still.after.as_ref(), change.after.as_ref()),
            }
        }
        if !moved && self.is_stuck {
            self.given_up.extend(todo.into_iter().map(|(key, _)| key));
        }
        self.is_stuck = !moved && !self.is_stuck;
        Ok(true)
    }

    /// Returns the changes that are still as the run's writes left them. Removes from the ledger the changes that are
    /// already undone, and those that another program has overwritten. Reports the overwritten ones.
    fn ours(
        &self,
        ledger: &mut JournalLedger,
        now: &SettingsSnapshot,
        report: &mut RestoreReport,
    ) -> Vec<(SettingKey, OwnChange)> {
        let mut todo = Vec::new();
        let mut settled = Vec::new();
        for (place, change) in &ledger.net.changes {
            let (device, key) = place;
            let here = *device == self.number || key.is_of_namespace();
            if !here || !key.is_among(&self.kinds) || self.given_up.contains(key) {
                continue;
            }
            let (is, was) = (now.get(key), change.before.as_ref());
            if same(is, was) || !key.can_be(was, ledger.host.now_s()) || key.is_gone(is) {
                settled.push(place.clone());
            } else if self.follows(ledger, report, place) {
                // The change stays in the ledger, because a write of this run may still remove the route along with its
                // address.
                continue;
            } else if same(is, change.after.as_ref()) {
                todo.push((key.clone(), change.clone()));
            } else {
                // If another program has set the original value again, nothing is reported.
                if !same(is, ledger.first_value(self.number, key)) {
                    report.foreign(foreign(key, was, is, &self.location.device));
                    report.others.insert(place.clone());
                }
                settled.push(place.clone());
            }
        }
        settled.iter().for_each(|place| drop(ledger.net.changes.remove(place)));
        todo
    }

    /// Returns true if the kernel adds and removes the route at `place` along with an address of another program. This
    /// is the case for a new route, unless it replaces one that this run removed, and for a lost route that no restored
    /// address has brought back.
    fn follows(&self, ledger: &JournalLedger, report: &RestoreReport, place: &(u32, SettingKey)) -> bool {
        let SettingKey::Route(slot) = &place.1 else { return false };
        let had = |change: &OwnChange| change.before.is_some();
        let is_variant = |((device, key), change): (&(u32, SettingKey), &OwnChange)| match key {
            SettingKey::Route(other) => *device == place.0 && had(change) && other.is_variant_of(slot),
            _ => false,
        };
        match ledger.net.changes.get(place) {
            _ if !slot.is_automatic() => false,
            Some(change) if !had(change) => !ledger.net.changes.iter().any(is_variant),
            Some(change) if change.was_orphan => false,
            _ => self.is_stuck && self.lacks_addresses(report),
        }
    }

    /// Returns true if another program changed addresses of the device.
    fn lacks_addresses(&self, report: &RestoreReport) -> bool {
        let is_address = |(device, key): &(u32, SettingKey)| {
            *device == self.number && matches!(key, SettingKey::Address(_))
        };
        report.others.iter().any(is_address)
    }

    fn put(&mut self, ledger: &mut JournalLedger, todo: &[(SettingKey, OwnChange)]) {
        let mut turned = ledger.history.turned.iter().rev();
        let Some(newest) = turned.find(|turned| turned.device() == self.number).cloned() else { return };
        let put: Vec<(&SettingKey, Option<&SettingValue>)> =
            todo.iter().map(|(key, change)| (key, change.before.as_ref())).collect();
        let refused =
            ledger.bracketed(ProgressMark::SIDE_EFFECTS, &newest, &self.kinds, &self.location, |host| {
                host.put(&self.location, &put, self.is_stuck)
            });
        // A setting that was given up in an earlier round keeps its reason.
        self.refused.extend(refused);
    }

    /// Reports the settings that were given up. If another program changed the device's addresses, a route that the
    /// kernel refuses counts as that program's change.
    fn tell_failures(&self, ledger: &mut JournalLedger, report: &mut RestoreReport) {
        let lacks_addresses = self.lacks_addresses(report);
        for key in &self.given_up {
            let place = place(self.number, key);
            let Some(change) = ledger.net.changes.get(&place) else { continue };
            let (was, is) = (change.before.as_ref(), change.after.as_ref());
            let why = self.refused.get(key).map(|why| format!(" ({why})")).unwrap_or_default();
            let subject = subject(key, was.or(is), &self.location.device);
            let line = format!("{subject} is {}, was {}{why}", state(key, is), state(key, was));
            if lacks_addresses && matches!(key, SettingKey::Route(_)) && self.refused.contains_key(key) {
                report.foreign(format!("{line}: another program changed the addresses that it needs"));
                ledger.net.changes.remove(&place);
                report.others.insert(place);
            } else {
                report.failures.push(line);
            }
        }
    }
}

/// Returns true if settings of this kind can be reached at `location`. A device that is gone has no settings. Of a
/// device in another network namespace, only the settings that moved with it can be reached.
pub(super) fn is_reachable(kind: &SideEffect, location: &DeviceLocation) -> bool {
    let is_there = !location.device.is_empty();
    match kind {
        SideEffect::Sysctl(_) => !location.is_elsewhere(),
        SideEffect::Features | SideEffect::Queues => is_there,
        _ => is_there && !location.is_elsewhere(),
    }
}

fn put_back_line(key: &SettingKey, change: &OwnChange, device: &str) -> String {
    let (was, is) = (change.before.as_ref(), change.after.as_ref());
    match (key, was) {
        (SettingKey::Address(_), Some(_)) => format!("{}: put back", key.shown(device)),
        (SettingKey::Route(_), Some(_)) => format!("{}: put back", subject(key, was, device)),
        (SettingKey::Address(_) | SettingKey::Route(_), None) => {
            format!("{}: removed", subject(key, is, device))
        }
        _ => format!("{}: {} -> {}", subject(key, was.or(is), device), state(key, is), state(key, was)),
    }
}
