//! The ledger: the journal's history in memory, and the decision whether a knob may be written. If a knob still has the
//! value that it had after this run's last write, that value counts as this run's. Otherwise another program has set
//! it. Every write has a bracket (see `bracket.rs`).

use std::collections::BTreeSet;

use landspeed_record::units::Nanos;

use super::entry::{Intent, JournalEntry, JournalHeader, TurnedKnob, WriteHistory};
use super::file::JournalFile;
use super::host::{JournalHost, KernelHost};
use super::identity::{DeviceIdentity, in_initial_netns};
use super::location::{DeviceLocation, DeviceWhereabouts};
use super::own_changes::OwnChanges;
use super::read::{JournalContents, MAX_TURNED};
use super::snapshot::SettingsSnapshot;
use super::whereabouts::Departure;
use super::{JournalError, KnobLookup};
use crate::{Error, FactorScope, Knob, SideEffect};

/// A write in progress, with the state before it.
pub(super) struct WriteBracket {
    pub(super) knob: &'static Knob,
    pub(super) seq: u32,
    pub(super) kinds: Vec<SideEffect>,
    pub(super) location: DeviceLocation,
    pub(super) device: u32,
    /// Snapshot from right before the write; `None` if the knob disturbs nothing and this run has written no other
    /// knob.
    pub(super) seen: Option<SettingsSnapshot>,
}

/// An open journal and its contents.
pub(super) struct JournalLedger {
    pub(super) file: JournalFile,
    pub(super) lookup: KnobLookup,
    pub(super) host: Box<dyn JournalHost>,
    pub(super) history: WriteHistory,
    /// The header; `None` if it is missing from the journal.
    header: Option<JournalHeader>,
    /// The changes that all finished writes have made.
    pub(super) net: OwnChanges,
    /// Messages about lines that could not be read.
    pub(super) refused: Vec<String>,
    /// The write in progress.
    pub(super) bracket: Option<WriteBracket>,
    /// The reason why the bracket of a finished write could not be closed. No more writes are permitted then.
    stuck: Option<String>,
    /// True if the file must not change, because it is damaged or holds the only trace of a write whose end no process
    /// recorded.
    pub(super) is_frozen: bool,
}

/// Returns the knob with this name, after checking that the value is valid and that this namespace may set it.
pub(super) fn checked(lookup: KnobLookup, name: &str, value: &str) -> Result<&'static Knob, Error> {
    let knob = lookup(name).ok_or_else(|| landspeed_record::factor::Error::unknown(name, []))?;
    if knob.factor.scope == FactorScope::Host && !in_initial_netns() {
        let why = "belongs to the whole host: it is turned only from the host's first network namespace";
        return Err(Error::Unavailable(format!("{name} {why}")));
    }
    knob.factor.check(value)?;
    Ok(knob)
}

impl JournalLedger {
    pub(super) fn new(file: JournalFile, lookup: KnobLookup, header: JournalHeader) -> JournalLedger {
        let contents = JournalContents { header: Some(header), ..JournalContents::default() };
        Self::on(file, lookup, Box::new(KernelHost::watching()), contents)
    }

    pub(super) fn resume(
        mut file: JournalFile,
        lookup: KnobLookup,
        contents: JournalContents,
        host: KernelHost,
    ) -> Result<JournalLedger, JournalError> {
        file.resume(&contents)?;
        Ok(Self::on(file, lookup, Box::new(host), contents))
    }

    pub(super) fn find(&self, device: &DeviceIdentity) -> Result<DeviceWhereabouts, String> {
        self.host.find(device, self.history.left.get(&device.ifindex))
    }

    /// Returns the location at which a knob is read and written now, or `None` if its device is gone. A knob with a
    /// wider scope than one device outlives the device.
    pub(super) fn location_of(
        &self,
        turned: &TurnedKnob,
        knob: &Knob,
    ) -> Result<Option<DeviceLocation>, String> {
        let Some(device) = &turned.intent.device else { return Ok(Some(DeviceLocation::default())) };
        match self.find(device) {
            Ok(DeviceWhereabouts::At(location))
                if knob.factor.scope == FactorScope::Device || !location.is_elsewhere() =>
            {
                Ok(Some(location))
            }
            // The setting does not belong to the device, so any name will do.
            _ if knob.factor.scope != FactorScope::Device => Ok(Some(DeviceLocation::here(&device.name))),
            Ok(DeviceWhereabouts::At(location)) => Ok(Some(location)),
            Ok(DeviceWhereabouts::Gone) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Records which of the devices with changed knobs have left, and where they went.
    pub(super) fn note_departures(&mut self) {
        let Ok(gone) = self.host.departures() else { return self.lose_sight() };
        for left in gone {
            if self.history.turned.iter().any(|turned| turned.device() == left.index) {
                self.left(left.index, left.to.map_or(Departure::Deleted, Departure::from));
            }
        }
    }

    /// Records that reports of departures were lost. Every device that is not known to have left may have left unseen.
    fn lose_sight(&mut self) {
        let turned = self.history.turned.iter().map(TurnedKnob::device);
        let devices: BTreeSet<u32> = turned.filter(|on| !self.history.left.contains_key(on)).collect();
        devices.into_iter().for_each(|device| self.left(device, Departure::Unseen));
    }

    fn left(&mut self, device: u32, to: Departure) {
        self.history.left.insert(device, to);
        if self.is_frozen {
            return;
        }
        // If the entry cannot be written, a process that restores after this one's death searches for the device, and
        // reports it if it is not found.
        let _ = self.file.append(&[JournalEntry::Left { device, to }]);
    }

    /// Writes the journal again at its path, from memory, because another program removed, replaced or changed it.
    pub(super) fn write_anew(&mut self) -> Result<(), JournalError> {
        let Some(header) = self.header.clone() else { return Ok(()) };
        let mut file = JournalFile::begin(self.file.folder().anew()?, self.file.name(), header)?;
        file.append(&self.history.entries())?;
        file.mark(self.history.mark)?;
        file.double();
        self.file = file;
        Ok(())
    }

    pub(super) fn on(
        file: JournalFile,
        lookup: KnobLookup,
        host: Box<dyn JournalHost>,
        contents: JournalContents,
    ) -> JournalLedger {
        let refused = contents.complaints();
        // A damaged journal is kept as it was found.
        let is_frozen = !contents.damage.is_empty();
        let JournalContents { header, history, .. } = contents;
        let net = history.net();
        JournalLedger {
            file,
            lookup,
            host,
            header,
            history,
            net,
            refused,
            bracket: None,
            stuck: None,
            is_frozen,
        }
    }

    /// Records in the journal that `knob` is about to be set to `to`, with a snapshot of the settings that the write
    /// may disturb. Both are on disk on return. Before that, reads the knob and checks whether the host permits the
    /// write, even if agent and controller have already done so. Returns the longest time that the write may take.
    pub(super) fn intend(&mut self, knob: &str, device: &str, to: &str) -> Result<Nanos, Error> {
        if let Some(why) = &self.stuck {
            return Err(Error::Journal(why.clone()));
        }
        let knob = checked(self.lookup, knob, to)?;
        self.note_departures();
        let location = DeviceLocation::here(device);
        let now = self.host.read(knob, &location)?;
        let device = self.host.device(device).map_err(Error::Unavailable)?;
        let known = self.history.turned.iter().position(|t| is_of(t, knob, device.as_ref()));
        let mut turned = match known {
            Some(at) => rewritten(&self.history.turned[at], device.as_ref())?,
            None => self.first_write(knob, device, &now, to)?,
        };
        self.check(knob, &turned, &location, &now)?;
        let bracket = self
            .open_bracket(turned.intent.seq, &turned, knob.factor.disturbs, &location)
            .map_err(|e| Error::Unavailable(format!("{}: {e}", knob.factor.name)))?;
        let mut entries = Vec::new();
        if known.is_none() {
            turned.intent.seen = self.id_of(&bracket).0;
            entries.push(JournalEntry::Intent(Box::new(turned.intent.clone())));
        } else if !turned.written.iter().any(|written| written == to) {
            if turned.written.len() >= MAX_TURNED {
                return Err(JournalError::Full { path: self.file.path() }.into());
            }
            turned.written.push(to.to_owned());
            entries.push(JournalEntry::Also { seq: turned.intent.seq, to: to.to_owned() });
        }
        self.enter(&bracket, entries)?;
        self.bracket = Some(bracket);
        match known {
            Some(at) => self.history.turned[at] = turned,
            None => self.history.turned.push(turned),
        }
        Ok(self.patience())
    }

    /// Checks that a knob with the value `now` may be written.
    ///
    /// # Errors
    /// Returns [`Error::Foreign`] if another program set it, or the error of the knob's `can_write` if its original
    /// value may not be overwritten.
    fn check(
        &self,
        knob: &Knob,
        turned: &TurnedKnob,
        location: &DeviceLocation,
        now: &str,
    ) -> Result<(), Error> {
        let same = |value: &str| knob.factor.domain.same(value, now);
        // `can_write` is called only for the original value. It would take a value of this run for one that a user
        // configured.
        if same(&turned.intent.before) {
            return self.host.can_write(knob, location);
        }
        let ours = self.net.values.get(&turned.intent.seq).unwrap_or(&turned.intent.before);
        if same(ours) {
            return Ok(());
        }
        let (knob, found) = (knob.factor.name.to_owned(), now.to_owned());
        Err(Error::Foreign { knob, found, ours: ours.clone() })
    }

    fn first_write(
        &self,
        knob: &Knob,
        device: Option<DeviceIdentity>,
        before: &str,
        to: &str,
    ) -> Result<TurnedKnob, Error> {
        if self.history.turned.len() >= MAX_TURNED {
            return Err(JournalError::Full { path: self.file.path() }.into());
        }
        let name = knob.factor.name;
        // The reader of a journal refuses a value outside the knob's domain, so such a value could not be restored.
        knob.factor.domain.check(before).map_err(|expected| {
            let found = before.escape_debug();
            Error::Unavailable(format!(
                "{name} is '{found}' now, which could not be put back: expected {expected}"
            ))
        })?;
        let seq = self.history.turned.last().map_or(1, |last| last.intent.seq + 1);
        let (before, knob) = (before.to_owned(), name.to_owned());
        let intent = Intent { seq, knob, device, before, to: to.to_owned(), seen: 0 };
        Ok(TurnedKnob { intent, written: vec![to.to_owned()] })
    }

    /// Closes the bracket of the finished write, and attributes all differences to this run. Returns the time that the
    /// knob takes to settle.
    pub(super) fn wrote(&mut self) -> Nanos {
        let settle = self.bracket.as_ref().map_or(Nanos(0), |bracket| bracket.knob.factor.toggle);
        if let Err(e) = self.close() {
            self.stuck = Some(format!("the changes of the last write are unknown: {e}"));
        }
        settle
    }

    /// Returns the longest time that the write in progress may take; zero if there is none.
    pub(super) fn patience(&self) -> Nanos {
        self.bracket.as_ref().map_or(Nanos(0), |bracket| bracket.knob.factor.patience())
    }

    /// Returns true if a write may be in progress.
    pub(super) fn is_turning(&self) -> bool {
        self.bracket.is_some()
    }
}

/// Returns true if `turned` is `knob` on `device`, which may have been renamed since. Another device with the old name
/// counts too, so that [`rewritten`] can refuse it.
fn is_of(turned: &TurnedKnob, knob: &Knob, device: Option<&DeviceIdentity>) -> bool {
    let is_it = |(then, now): (&DeviceIdentity, &DeviceIdentity)| {
        then.ifindex == now.ifindex || then.name == now.name
    };
    let same_device = || turned.intent.device.as_ref().zip(device).is_some_and(is_it);
    turned.intent.knob == knob.factor.name && (knob.factor.scope != FactorScope::Device || same_device())
}

/// Returns a copy of `turned` for another write, or an error if its device's name belongs to another device now.
fn rewritten(turned: &TurnedKnob, now: Option<&DeviceIdentity>) -> Result<TurnedKnob, Error> {
    match (&turned.intent.device, now) {
        (Some(then), Some(now)) if then.ifindex != now.ifindex && then.name == now.name => {
            Err(Error::Unavailable(format!("{} is another device than before by now", then.name)))
        }
        _ => Ok(turned.clone()),
    }
}
