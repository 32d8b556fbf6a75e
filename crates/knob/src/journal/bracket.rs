//! Brackets: pairs of snapshots around a write to a knob. A bracket takes one snapshot of the settings that the write
//! can disturb right before the write, and another once the effects of the write have settled. The differences are
//! attributed to this run. The writes of a run and the writes of a restore both have brackets. If a process dies during
//! a write, the process that takes over therefore finds the state before that write in the journal.

use std::collections::{BTreeMap, BTreeSet};

use super::JournalError;
use super::entry::{JournalEntry, ProgressMark, TurnedKnob};
use super::host::JournalHost;
use super::ledger::{JournalLedger, WriteBracket};
use super::location::{DeviceLocation, DeviceWhereabouts};
use super::own_changes::OwnChange;
use super::snapshot::{RouteSlot, SettingKey, SettingValue, SettingsSnapshot};
use crate::{Error, SideEffect};

/// If a write that was cut short began at most this many seconds ago, all differences are attributed to it. If it began
/// earlier, another program may have made them.
const CLAIM_S: u64 = 120;

/// Returns the id after the greatest one in `all`, or 1 if there is none.
fn next_id<T>(all: &BTreeMap<u32, T>) -> u32 {
    all.last_key_value().map_or(1, |(id, _)| id.saturating_add(1))
}

impl JournalLedger {
    /// Calls `write`, which belongs to the intent `seq` or to [`ProgressMark::SIDE_EFFECTS`], and attributes to this
    /// run the changes of `kinds` on the device of `turned`. The write is made even if its snapshot or its journal
    /// entry fails, so that settings can always be restored.
    pub(super) fn bracketed<T>(
        &mut self,
        seq: u32,
        turned: &TurnedKnob,
        kinds: &[SideEffect],
        location: &DeviceLocation,
        write: impl FnOnce(&dyn JournalHost) -> T,
    ) -> T {
        if let Ok(bracket) = self.open_bracket(seq, turned, kinds, location) {
            let _ = self.enter(&bracket, Vec::new());
            self.bracket = Some(bracket);
        }
        let done = write(&*self.host);
        let _ = self.close();
        done
    }

    /// Opens a bracket: takes a snapshot of the settings of `kinds`, right before the write for the intent `seq`.
    pub(super) fn open_bracket(
        &self,
        seq: u32,
        turned: &TurnedKnob,
        kinds: &[SideEffect],
        location: &DeviceLocation,
    ) -> Result<WriteBracket, Error> {
        let name = &turned.intent.knob;
        let knob = (self.lookup)(name).ok_or_else(|| landspeed_record::factor::Error::unknown(name, []))?;
        let device = turned.device();
        let own = self.own_values(seq, device, location);
        let seen = if kinds.is_empty() && own.is_empty() {
            None
        } else {
            Some(self.host.snapshot(kinds, location, &self.slots(device))?.beside(own))
        };
        Ok(WriteBracket { knob, seq, kinds: kinds.to_vec(), location: location.clone(), device, seen })
    }

    /// Returns the current values of this run's knobs except that of the intent `but`, each with the number of its
    /// intent. A knob that another program has set is left out.
    fn own_values(&self, but: u32, device: u32, location: &DeviceLocation) -> Vec<(u32, String)> {
        let others = self.history.turned.iter().filter(|turned| turned.intent.seq != but);
        let own = |turned: &TurnedKnob| {
            let seq = turned.intent.seq;
            let domain = &(self.lookup)(&turned.intent.knob)?.factor.domain;
            let now = self.value_now(seq, device, location)?;
            let ours = [Some(&turned.intent.before), self.net.values.get(&seq)];
            let is_ours = ours.into_iter().flatten().any(|ours| domain.same(ours, &now));
            is_ours.then_some((seq, now))
        };
        others.filter_map(own).collect()
    }

    /// Returns the slots of routing tables in which this run changed routes of the device with index `device`.
    pub(super) fn slots(&self, device: u32) -> BTreeSet<RouteSlot> {
        let slot = |((on, key), _): (&(u32, SettingKey), &OwnChange)| match key {
            SettingKey::Route(slot) if *on == device => Some(slot.clone()),
            _ => None,
        };
        self.net.changes.iter().filter_map(slot).collect()
    }

    /// Returns the id of the bracket's snapshot, and true if the journal already contains that snapshot. Returns zero
    /// and true if the bracket has no snapshot.
    pub(super) fn id_of(&self, bracket: &WriteBracket) -> (u32, bool) {
        let Some(seen) = &bracket.seen else { return (0, true) };
        let is_it = |(_, (device, old)): &(&u32, &(u32, SettingsSnapshot))| {
            *device == bracket.device && old.same(seen)
        };
        let known = self.history.seen.iter().find(is_it).map(|(id, _)| *id);
        (known.unwrap_or(next_id(&self.history.seen)), known.is_some())
    }

    /// Writes to the journal that a write begins: `entries`, the snapshot before the write, and the mark. Entries and
    /// snapshot are durable on return. A frozen journal is left unchanged.
    pub(super) fn enter(
        &mut self,
        bracket: &WriteBracket,
        mut entries: Vec<JournalEntry>,
    ) -> Result<(), JournalError> {
        if self.is_frozen {
            return Ok(());
        }
        let (id, is_known) = self.id_of(bracket);
        let news = bracket.seen.as_ref().filter(|_| !is_known).cloned();
        if let Some(seen) = news.clone() {
            entries.push(JournalEntry::Seen { id, device: bracket.device, seen });
        }
        if !entries.is_empty() {
            self.file.append(&entries)?;
        }
        self.history.seen.extend(news.map(|seen| (id, (bracket.device, seen))));
        let at_s = u32::try_from(self.host.now_s()).unwrap_or(u32::MAX);
        self.mark(ProgressMark { turning: bracket.seq, seen: id, net: self.history.mark.net, at_s, lines: 0 })
    }

    fn mark(&mut self, mark: ProgressMark) -> Result<(), JournalError> {
        self.history.mark = mark;
        self.file.mark(mark)
    }

    /// Closes the open bracket: attributes to this run the differences since the snapshot before the finished write.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        let Some(bracket) = self.bracket.take() else { return Ok(()) };
        let mut net = self.net.clone();
        match self.value_at(bracket.seq, &bracket.location) {
            Some(value) => net.values.insert(bracket.seq, value),
            None => net.values.remove(&bracket.seq),
        };
        for (seq, before) in bracket.seen.iter().flat_map(|seen| &seen.own) {
            let now = self.value_now(*seq, bracket.device, &bracket.location);
            if let Some(now) = now.filter(|now| now != before) {
                net.values.insert(*seq, now);
            }
        }
        if let Some(seen) = &bracket.seen {
            let now = self.host.snapshot_after_write(&bracket.kinds, &bracket.location, seen)?;
            net.attribute(bracket.device, seen, &now);
        }
        self.net = net;
        Ok(self.write_down()?)
    }

    /// Returns the current value of the knob of the intent `seq`. Returns `None` if the value cannot be read, or if it
    /// is not in the knob's domain and therefore must not be in a journal.
    fn value_at(&self, seq: u32, location: &DeviceLocation) -> Option<String> {
        let knob = (self.lookup)(&self.history.turned(seq)?.intent.knob)?;
        self.host.read(knob, location).ok().filter(|value| knob.factor.domain.check(value).is_ok())
    }

    /// Returns the current value of the knob of the intent `seq`, wherever its device is now. The device with index
    /// `device` is known to be at `location`. Other devices are searched for.
    fn value_now(&self, seq: u32, device: u32, location: &DeviceLocation) -> Option<String> {
        let turned = self.history.turned(seq)?;
        if turned.device() == device && !location.is_elsewhere() {
            return self.value_at(seq, location);
        }
        let knob = (self.lookup)(&turned.intent.knob)?;
        self.value_at(seq, &self.location_of(turned, knob).ok()??)
    }

    /// Makes the changes so far durable, and marks that no write is in progress.
    fn write_down(&mut self) -> Result<(), JournalError> {
        if self.is_frozen {
            return Ok(());
        }
        let known = self.history.nets.iter().find(|(_, net)| net.same(&self.net)).map(|(id, _)| *id);
        let id = known.unwrap_or(next_id(&self.history.nets));
        if known.is_none() {
            self.file.append(&[JournalEntry::Net { id, net: self.net.clone() }])?;
            self.history.nets.insert(id, self.net.clone());
        }
        self.mark(ProgressMark { net: id, ..ProgressMark::default() })
    }

    /// Closes the bracket that a dead process left open. If the write began more than [`CLAIM_S`] ago, another program
    /// may have made the differences since. They are then attributed to this run only if `claim` is true, and otherwise
    /// returned, one line each.
    pub(super) fn close_left_open(&mut self, claim: bool) -> Vec<String> {
        self.note_departures();
        if self.bracket.is_none() {
            self.bracket = self.left_open();
        }
        let Some(bracket) = &self.bracket else { return Vec::new() };
        let age_s = self.host.now_s().saturating_sub(self.history.mark.at_s.into());
        if !claim && age_s > CLAIM_S {
            let (lines, seq) = (self.unsure(bracket), bracket.seq);
            // A value that this run wrote counts as this run's, even if no process recorded the end of the write.
            let written = self.history.turned(seq).map(|turned| turned.written.clone()).unwrap_or_default();
            let now = self.value_at(seq, &bracket.location).filter(|now| written.contains(now));
            self.net.values.extend(now.map(|now| (seq, now)));
            self.bracket = None;
            self.is_frozen = !lines.is_empty();
            return lines;
        }
        match self.close() {
            Ok(()) => Vec::new(),
            Err(e) => vec![format!("the changes of an interrupted write are unknown: {e}")],
        }
    }

    fn left_open(&self) -> Option<WriteBracket> {
        let mark = self.history.mark;
        let turned = match mark.turning {
            ProgressMark::SIDE_EFFECTS => {
                let (device, _) = self.history.seen(mark.seen)?;
                self.history.turned.iter().find(|turned| turned.device() == *device)?
            }
            seq => self.history.turned(seq)?,
        };
        let (device, seen) = match self.history.seen(mark.seen) {
            Some((device, seen)) => (*device, Some(seen.clone())),
            None => (turned.device(), None),
        };
        let location = match &turned.intent.device {
            None => DeviceLocation::default(),
            Some(device) => match self.find(device) {
                Ok(DeviceWhereabouts::At(location)) => location,
                _ => return None,
            },
        };
        let mut kinds = self.kinds_on(device);
        kinds.retain(|kind| seen.as_ref().is_some_and(|seen| seen.was_for(kind)));
        let knob = (self.lookup)(&turned.intent.knob)?;
        Some(WriteBracket { knob, seq: mark.turning, kinds, location, device, seen })
    }

    /// Returns all kinds of settings that the knobs written on a device can disturb.
    pub(super) fn kinds_on(&self, device: u32) -> Vec<SideEffect> {
        let on_it = self.history.turned.iter().filter(|turned| turned.device() == device);
        let mut kinds: Vec<SideEffect> = Vec::new();
        for turned in on_it {
            let disturbs =
                (self.lookup)(&turned.intent.knob).map_or(&[] as &[_], |knob| knob.factor.disturbs);
            let new: Vec<SideEffect> =
                disturbs.iter().filter(|kind| !kinds.contains(kind)).copied().collect();
            kinds.extend(new);
        }
        kinds
    }

    /// Returns the snapshots from before the first write of each knob on the device, in the order in which the knobs
    /// were first written.
    pub(super) fn firsts_on(&self, device: u32) -> impl Iterator<Item = &SettingsSnapshot> {
        let on_it = self.history.turned.iter().filter(move |turned| turned.device() == device);
        on_it.filter_map(|turned| Some(&self.history.seen(turned.intent.seen)?.1))
    }

    pub(super) fn first_value(&self, device: u32, key: &SettingKey) -> Option<&SettingValue> {
        self.firsts_on(device).find(|seen| seen.is_about(key)).and_then(|seen| seen.get(key))
    }

    /// Returns the differences since the bracket's snapshot, one line each. They may come from the write that was cut
    /// short or from another program.
    fn unsure(&self, bracket: &WriteBracket) -> Vec<String> {
        let Some(seen) = &bracket.seen else { return Vec::new() };
        match self.host.snapshot(&bracket.kinds, &bracket.location, &seen.slots().cloned().collect()) {
            Ok(now) => seen.differences(&now, &bracket.location.device),
            Err(e) => vec![e.to_string()],
        }
    }
}
