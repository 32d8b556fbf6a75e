//! The history of turns: what is in the journal, kept in memory too, and what may be turned. A later write tells our
//! values from other people's: a knob stands at what it read after our last write. Every write is bracketed (see
//! `bracket.rs`).

use std::collections::BTreeSet;

use landspeed_units::Nanos;

use super::bracket::Bracket;
use super::entry::{Entry, Header, History, Intent, Turned};
use super::file::JournalFile;
use super::host::{Found, Host, Live, Spot};
use super::identity::{Device, in_initial_netns};
use super::net::Net;
use super::read::{Contents, MAX_TURNED};
use super::whereabouts::Departure;
use super::{JournalError, Lookup, value};
use crate::{Error, Knob, Scope};

/// Open journal and what it says.
pub(super) struct Ledger {
    pub(super) file: JournalFile,
    pub(super) lookup: Lookup,
    pub(super) host: Box<dyn Host>,
    pub(super) history: History,
    /// `None` where the journal has lost it.
    header: Option<Header>,
    /// What all finished writes have changed.
    pub(super) net: Net,
    /// Lines that could not be read, for people.
    pub(super) refused: Vec<String>,
    /// The write under way.
    pub(super) bracket: Option<Bracket>,
    /// Why a write that is over could not be closed: nothing more is written until that is settled.
    stuck: Option<String>,
    /// Whether the file stays as it is: it holds the only trace of a write whose end nobody saw.
    pub(super) is_frozen: bool,
}

/// The knob of this name, its value and place checked, as a setting of this host.
pub(super) fn checked(lookup: Lookup, name: &str, value: &str) -> Result<&'static Knob, Error> {
    let knob = lookup(name).ok_or_else(|| landspeed_factor::Error::unknown(name, []))?;
    if knob.factor.scope == Scope::Host && !in_initial_netns() {
        let why = "belongs to the whole host: it is turned only from the host's first network namespace";
        return Err(Error::Unavailable(format!("{name} {why}")));
    }
    knob.factor.check(value)?;
    Ok(knob)
}

impl Ledger {
    pub(super) fn new(file: JournalFile, lookup: Lookup, header: Header) -> Ledger {
        let contents = Contents { header: Some(header), ..Contents::default() };
        Self::on(file, lookup, Box::new(Live::watching()), contents)
    }

    pub(super) fn resume(
        mut file: JournalFile,
        lookup: Lookup,
        contents: Contents,
        host: Live,
    ) -> Result<Ledger, JournalError> {
        file.resume(&contents)?;
        Ok(Self::on(file, lookup, Box::new(host), contents))
    }

    pub(super) fn find(&self, device: &Device) -> Result<Found, String> {
        self.host.find(device, self.history.left.get(&device.ifindex))
    }

    /// Keeps which of the devices that were turned have left, and where to.
    pub(super) fn note_departures(&mut self) {
        let Ok(gone) = self.host.departures() else { return self.lose_sight() };
        for left in gone {
            if self.history.turned.iter().any(|turned| turned.device() == left.index) {
                self.left(left.index, left.to.map_or(Departure::Deleted, Departure::from));
            }
        }
    }

    /// Some departures were missed: none is known for sure any more.
    fn lose_sight(&mut self) {
        let turned = self.history.turned.iter().map(Turned::device);
        let devices: BTreeSet<u32> = turned.filter(|on| !self.history.left.contains_key(on)).collect();
        devices.into_iter().for_each(|device| self.left(device, Departure::Unseen));
    }

    fn left(&mut self, device: u32, to: Departure) {
        self.history.left.insert(device, to);
        if self.is_frozen {
            return;
        }
        // Who restores after our death looks for the device without it, and says so where it finds none.
        let _ = self.file.append(&[Entry::Left { device, to }]);
    }

    /// Writes the journal anew where it should be, from memory: another program removed, replaced or changed it.
    pub(super) fn write_anew(&mut self) -> Result<(), JournalError> {
        let Some(header) = self.header.clone() else { return Ok(()) };
        let mut file = JournalFile::begin(self.file.folder().anew()?, self.file.name(), header)?;
        file.append(&self.history.entries())?;
        file.mark(self.history.mark)?;
        file.double();
        self.file = file;
        Ok(())
    }

    pub(super) fn on(file: JournalFile, lookup: Lookup, host: Box<dyn Host>, contents: Contents) -> Ledger {
        let refused = contents.complaints();
        // A journal that does not add up stays as it was found.
        let is_frozen = !contents.damage.is_empty();
        let Contents { header, history, .. } = contents;
        let net = history.net();
        Ledger { file, lookup, host, header, history, net, refused, bracket: None, stuck: None, is_frozen }
    }

    /// Writes down that `knob` is about to be set to `to`, and what it may disturb; on return it is on disk. Whether
    /// it may be is asked of the host here and now, whatever agent and controller have seen of it. Returns how long
    /// the write may take.
    pub(super) fn intend(&mut self, knob: &str, device: &str, to: &str) -> Result<Nanos, Error> {
        if let Some(why) = &self.stuck {
            return Err(Error::Journal(why.clone()));
        }
        let knob = checked(self.lookup, knob, to)?;
        self.note_departures();
        let spot = Spot::here(device);
        let now = self.host.read(knob, &spot)?;
        let device = self.host.device(device).map_err(Error::Unavailable)?;
        let known = self.history.turned.iter().position(|t| is_of(t, knob, device.as_ref()));
        let mut turned = match known {
            Some(at) => once_more(&self.history.turned[at], device.as_ref())?,
            None => self.fresh(knob, device, &now, to)?,
        };
        self.check(knob, &turned, &spot, &now)?;
        let bracket = self
            .look(turned.intent.seq, &turned, knob.factor.disturbs, &spot)
            .map_err(|e| Error::Unavailable(format!("{}: {e}", knob.factor.name)))?;
        let mut entries = Vec::new();
        if known.is_none() {
            turned.intent.seen = self.id_of(&bracket).0;
            entries.push(Entry::Intent(Box::new(turned.intent.clone())));
        } else if !turned.written.iter().any(|written| written == to) {
            if turned.written.len() >= MAX_TURNED {
                return Err(JournalError::Full { path: self.file.path() }.into());
            }
            turned.written.push(to.to_owned());
            entries.push(Entry::Also { seq: turned.intent.seq, to: to.to_owned() });
        }
        self.enter(&bracket, entries)?;
        self.bracket = Some(bracket);
        match known {
            Some(at) => self.history.turned[at] = turned,
            None => self.history.turned.push(turned),
        }
        Ok(self.patience())
    }

    /// Whether a knob may be written over `now`.
    ///
    /// # Errors
    /// [`Error::Foreign`] where somebody else set it; the row's reason where what we found there cannot be written.
    fn check(&self, knob: &Knob, turned: &Turned, spot: &Spot, now: &str) -> Result<(), Error> {
        let same = |value: &str| value::same(&knob.factor.domain, value, now);
        // Of a value of our own the row would say that somebody configured it.
        if same(&turned.intent.before) {
            return self.host.can_write(knob, spot);
        }
        let ours = self.net.values.get(&turned.intent.seq).unwrap_or(&turned.intent.before);
        if same(ours) {
            return Ok(());
        }
        let (knob, found) = (knob.factor.name.to_owned(), now.to_owned());
        Err(Error::Foreign { knob, found, ours: ours.clone() })
    }

    fn fresh(&self, knob: &Knob, device: Option<Device>, before: &str, to: &str) -> Result<Turned, Error> {
        if self.history.turned.len() >= MAX_TURNED {
            return Err(JournalError::Full { path: self.file.path() }.into());
        }
        let name = knob.factor.name;
        // What could not be read from the journal could not be put back.
        knob.factor.domain.check(before).map_err(|expected| {
            let found = before.escape_debug();
            Error::Unavailable(format!(
                "{name} is '{found}' now, which could not be put back: expected {expected}"
            ))
        })?;
        let seq = self.history.turned.last().map_or(1, |last| last.intent.seq + 1);
        let (before, knob) = (before.to_owned(), name.to_owned());
        let intent = Intent { seq, knob, device, before, to: to.to_owned(), seen: 0 };
        Ok(Turned { intent, written: vec![to.to_owned()] })
    }

    /// The write that was allowed is over: whatever differs now is its doing. Returns how long it takes to settle.
    pub(super) fn wrote(&mut self) -> Nanos {
        let settle = self.bracket.as_ref().map_or(Nanos(0), |bracket| bracket.knob.factor.toggle);
        if let Err(e) = self.close() {
            self.stuck = Some(format!("what the last write changed cannot be told: {e}"));
        }
        settle
    }

    /// How long the write under way may take.
    pub(super) fn patience(&self) -> Nanos {
        self.bracket.as_ref().map_or(Nanos(0), |bracket| bracket.knob.factor.patience())
    }

    /// Whether a write may be under way.
    pub(super) fn is_turning(&self) -> bool {
        self.bracket.is_some()
    }
}

/// Whether it is this knob of this device, which may have another name by now, or of another one that has its name.
fn is_of(turned: &Turned, knob: &Knob, device: Option<&Device>) -> bool {
    let is_it = |(then, now): (&Device, &Device)| then.ifindex == now.ifindex || then.name == now.name;
    let same_device = || turned.intent.device.as_ref().zip(device).is_some_and(is_it);
    turned.intent.knob == knob.factor.name && (knob.factor.scope != Scope::Device || same_device())
}

/// A knob that has been turned before, on the very same device.
fn once_more(turned: &Turned, now: Option<&Device>) -> Result<Turned, Error> {
    match (&turned.intent.device, now) {
        (Some(then), Some(now)) if then.ifindex != now.ifindex && then.name == now.name => {
            Err(Error::Unavailable(format!("{} is another device than before by now", then.name)))
        }
        _ => Ok(turned.clone()),
    }
}
