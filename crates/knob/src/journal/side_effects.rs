//! Restoring the settings that our writes changed besides the knobs. This is done in stages, because each stage can
//! restore, or disturb, settings of another.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::Mark;
use super::host::{Found, Spot};
use super::identity::Device;
use super::ledger::Ledger;
use super::net::{Change, place};
use super::restore::Report;
use super::snapshot::{Key, Seen, Value, same, shown};
use crate::SideEffect;

/// Most rounds: three stages, each repeated if the first attempt had no effect, and the side effects. No host has
/// needed half as many.
const ROUNDS: usize = 32;

/// Restores what is still as our writes left it on the device with index `number`.
pub(super) fn put_back(ledger: &mut Ledger, number: u32, device: Option<&Device>, report: &mut Report) {
    let mut rest = match SideEffects::on(ledger, number, device) {
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
    if rest.spot.is_elsewhere() {
        let name = device.map_or("", |device| &device.name);
        report.foreign(format!(
            "{name} has moved to another network namespace, as {}: what belonged to it here did not go along",
            rest.spot.device
        ));
    }
    mention_others(ledger, number, device, report);
    rest.tell_failures(ledger, report);
}

/// Reports what differs from the start without a write of ours, unless it is unknown which differences are ours.
fn mention_others(ledger: &Ledger, number: u32, device: Option<&Device>, report: &mut Report) {
    let Ok(Some(rest)) = SideEffects::on(ledger, number, device) else { return };
    if !report.unsure.is_empty() {
        return;
    }
    let firsts: Vec<&Seen> = ledger.firsts_on(number).collect();
    let slots = firsts.iter().flat_map(|seen| seen.slots().cloned()).collect();
    let Ok(now) = ledger.host.look(&rest.kinds, &rest.spot, &slots) else { return };
    // A setting that is not in a snapshot did not exist: the first snapshot with a kind of settings contains all of
    // that kind.
    let mut kinds = rest.kinds.clone();
    for first in firsts {
        let (news, later): (Vec<SideEffect>, _) = kinds.into_iter().partition(|kind| first.was_for(kind));
        kinds = later;
        for key in first.keys().chain(now.keys()).filter(|key| key.is_among(&news)) {
            let (was, is) = (first.get(key), now.get(key));
            let place = place(number, key);
            let by_itself = [was, is].into_iter().flatten().all(Value::is_the_kernels_own);
            if !same(was, is)
                && !by_itself
                && !report.others.contains(&place)
                && !ledger.net.changes.contains_key(&place)
            {
                report.foreign(foreign(key, was, is, &rest.spot.device));
                report.others.insert(place);
            }
        }
    }
}

/// Returns what our writes changed and what is not as it was, one line each.
pub(super) fn inventory(ledger: &Ledger, number: u32, device: Option<&Device>) -> Vec<String> {
    let Ok(Some(rest)) = SideEffects::on(ledger, number, device) else { return Vec::new() };
    let Ok(now) = ledger.host.look(&rest.kinds, &rest.spot, &ledger.slots(number)) else { return Vec::new() };
    let here = |((device, key), _): &(&(u32, Key), &Change)| {
        (*device == number || key.is_of_namespace()) && key.is_among(&rest.kinds)
    };
    let changes = ledger.net.changes.iter().filter(here);
    changes
        .filter(|((_, key), change)| !same(now.get(key), change.before.as_ref()))
        .map(|((_, key), change)| {
            let (was, is) = (change.before.as_ref(), now.get(key));
            let subject = subject(key, was.or(is), &rest.spot.device);
            format!("  {subject} is {}, was {}", state(key, is), state(key, was))
        })
        .collect()
}

/// Returns the value of a setting as text. The value of a route is in its name already.
fn state(key: &Key, value: Option<&Value>) -> String {
    match (key, value) {
        (Key::Route(_), Some(_)) => "there".into(),
        (Key::Feature(_), None) => "off".into(),
        _ => shown(value),
    }
}

fn foreign(key: &Key, was: Option<&Value>, is: Option<&Value>, device: &str) -> String {
    let subject = subject(key, is.or(was), device);
    let (was, is) = (state(key, was), state(key, is));
    format!("{subject}: another program changed it since, left alone (is {is}, was {was})")
}

/// Returns the name of a setting as people know it.
fn subject(key: &Key, value: Option<&Value>, device: &str) -> String {
    match (key, value) {
        (Key::Route(_), Some(routes)) => format!("route {}", routes.shown()),
        (Key::Related(_), Some(Value::Of { device: other, .. })) => {
            format!("{}, {other}", key.shown(device))
        }
        _ => key.shown(device),
    }
}

/// The state of restoring one device's settings.
struct SideEffects {
    spot: Spot,
    number: u32,
    kinds: Vec<SideEffect>,
    /// The kernel's last reason for refusing a setting.
    refused: BTreeMap<Key, String>,
    /// Settings that no attempt has changed.
    given_up: BTreeSet<Key>,
    /// True if the last round changed nothing.
    is_stuck: bool,
}

impl SideEffects {
    /// Prepares restoring a device. Returns `None` if nothing is left that could be restored.
    fn on(ledger: &Ledger, number: u32, device: Option<&Device>) -> Result<Option<SideEffects>, String> {
        let spot = match device.map(|device| ledger.find(device)).transpose()? {
            Some(Found::At(spot)) => spot,
            None | Some(Found::Gone) => Spot::default(),
        };
        let mut kinds = ledger.kinds_on(number);
        let ended = ledger.host.ended_netns().is_some();
        kinds.retain(|kind| is_reachable(kind, &spot) && !(ended && matches!(kind, SideEffect::Sysctl(_))));
        let rest = SideEffects {
            spot,
            number,
            kinds,
            refused: BTreeMap::new(),
            given_up: BTreeSet::new(),
            is_stuck: false,
        };
        Ok(Some(rest).filter(|rest| !rest.kinds.is_empty()))
    }

    /// Restores one stage. Returns false if nothing is left to do.
    fn round(&mut self, ledger: &mut Ledger, report: &mut Report) -> Result<bool, String> {
        let slots = ledger.slots(self.number);
        let now = ledger.host.look(&self.kinds, &self.spot, &slots).map_err(|e| e.to_string())?;
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
                    report.note(put_back_line(key, change, &self.spot.device));
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

    /// Returns the changes that are still as our writes left them. The others are another program's by now and are
    /// dropped.
    fn ours(&self, ledger: &mut Ledger, now: &Seen, report: &mut Report) -> Vec<(Key, Change)> {
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
                // It stays in the list: it may yet go with its address, because of us.
                continue;
            } else if same(is, change.after.as_ref()) {
                todo.push((key.clone(), change.clone()));
            } else {
                // Another program has set it back to the original value, which needs no report.
                if !same(is, ledger.first_value(self.number, key)) {
                    report.foreign(foreign(key, was, is, &self.spot.device));
                    report.others.insert(place.clone());
                }
                settled.push(place.clone());
            }
        }
        settled.iter().for_each(|place| drop(ledger.net.changes.remove(place)));
        todo
    }

    /// Returns true if the kernel makes and removes this route with an address that belongs to another program. That
    /// is so for a new route, unless it replaces one that we removed, and for a lost route that no address has
    /// brought back.
    fn follows(&self, ledger: &Ledger, report: &Report, place: &(u32, Key)) -> bool {
        let Key::Route(slot) = &place.1 else { return false };
        let had = |change: &Change| change.before.is_some();
        let is_variant = |((device, key), change): (&(u32, Key), &Change)| match key {
            Key::Route(other) => *device == place.0 && had(change) && other.is_variant_of(slot),
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
    fn lacks_addresses(&self, report: &Report) -> bool {
        let is_address =
            |(device, key): &(u32, Key)| *device == self.number && matches!(key, Key::Address(_));
        report.others.iter().any(is_address)
    }

    fn put(&mut self, ledger: &mut Ledger, todo: &[(Key, Change)]) {
        let mut turned = ledger.history.turned.iter().rev();
        let Some(newest) = turned.find(|turned| turned.device() == self.number).cloned() else { return };
        let put: Vec<(&Key, Option<&Value>)> =
            todo.iter().map(|(key, change)| (key, change.before.as_ref())).collect();
        let refused = ledger.bracketed(Mark::SIDE_EFFECTS, &newest, &self.kinds, &self.spot, |host| {
            host.put(&self.spot, &put, self.is_stuck)
        });
        // A setting that was given up in an earlier round keeps its reason.
        self.refused.extend(refused);
    }

    /// Reports the settings that were given up. A route that the kernel refuses because another program removed what
    /// it needs counts as that program's change.
    fn tell_failures(&self, ledger: &mut Ledger, report: &mut Report) {
        let lacks_addresses = self.lacks_addresses(report);
        for key in &self.given_up {
            let place = place(self.number, key);
            let Some(change) = ledger.net.changes.get(&place) else { continue };
            let (was, is) = (change.before.as_ref(), change.after.as_ref());
            let why = self.refused.get(key).map(|why| format!(" ({why})")).unwrap_or_default();
            let subject = subject(key, was.or(is), &self.spot.device);
            let line = format!("{subject} is {}, was {}{why}", state(key, is), state(key, was));
            if lacks_addresses && matches!(key, Key::Route(_)) && self.refused.contains_key(key) {
                report.foreign(format!("{line}: another program changed the addresses that it needs"));
                ledger.net.changes.remove(&place);
                report.others.insert(place);
            } else {
                report.failures.push(line);
            }
        }
    }
}

/// Returns true if settings of this kind can be reached: none of a device that is gone, and only what moved along of
/// a device that is in another network namespace.
pub(super) fn is_reachable(kind: &SideEffect, spot: &Spot) -> bool {
    let is_there = !spot.device.is_empty();
    match kind {
        SideEffect::Sysctl(_) => !spot.is_elsewhere(),
        SideEffect::Features | SideEffect::Queues => is_there,
        _ => is_there && !spot.is_elsewhere(),
    }
}

fn put_back_line(key: &Key, change: &Change, device: &str) -> String {
    let (was, is) = (change.before.as_ref(), change.after.as_ref());
    match (key, was) {
        (Key::Address(_), Some(_)) => format!("{}: put back", key.shown(device)),
        (Key::Route(_), Some(_)) => format!("{}: put back", subject(key, was, device)),
        (Key::Address(_) | Key::Route(_), None) => format!("{}: removed", subject(key, is, device)),
        _ => format!("{}: {} -> {}", subject(key, was.or(is), device), state(key, is), state(key, was)),
    }
}
