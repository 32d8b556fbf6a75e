//! The guardian's book of turns: what is in the journal, kept in memory too.

use landspeed_netlink::Rtnl;
use landspeed_units::Nanos;

use super::entry::{Also, Entry, Intent, Turned};
use super::file::JournalFile;
use super::identity::{Device, in_initial_netns};
use super::read::{Contents, MAX_TURNED, is_device_name};
use super::snapshot::Snapshot;
use super::standing::{Standing, Write};
use super::{JournalError, Lookup};
use crate::{Error, HostKnob, Knob, Place, Scope, Turn};

/// Open journal and what it says.
pub(super) struct Ledger {
    pub(super) file: JournalFile,
    pub(super) lookup: Lookup,
    turned: Vec<Turned>,
    /// One for each of `turned`.
    standing: Vec<Standing>,
    /// The write under way, and its intent; zero for none.
    write: Option<Write>,
    turning: u32,
}

/// The knob of this name, its value and place checked, as a setting of this host.
pub(super) fn checked(
    lookup: Lookup,
    name: &str,
    value: &str,
) -> Result<(&'static Knob, &'static dyn HostKnob), Error> {
    let knob = lookup(name).ok_or_else(|| Error::Unknown(name.chars().take(40).collect()))?;
    let Turn::Host(turn) = knob.turn else {
        return Err(Error::Unavailable(format!(
            "{name} is a setting of the flow: there is nothing to turn on a host"
        )));
    };
    if knob.row.scope == Scope::Host && !in_initial_netns() {
        let why = "belongs to the whole host: it is turned only from the host's first network namespace";
        return Err(Error::Unavailable(format!("{name} {why}")));
    }
    knob.row.domain.check(value).map_err(|expected| Error::Value {
        knob: name.to_owned(),
        value: value.chars().take(80).collect(),
        expected,
    })?;
    Ok((knob, turn))
}

impl Ledger {
    pub(super) fn new(file: JournalFile, lookup: Lookup) -> Ledger {
        Ledger { file, lookup, turned: Vec::new(), standing: Vec::new(), write: None, turning: 0 }
    }

    /// Writes down that `knob` is about to be set to `to`; on return it is on disk. Whether it may be is asked of
    /// the host here and now, whatever agent and controller have seen of it. Returns how long the write may take.
    pub(super) fn intend(&mut self, knob: &str, device: &str, to: &str) -> Result<Nanos, Error> {
        let (knob, turn) = checked(self.lookup, knob, to)?;
        let place = Place { device: device.to_owned() };
        let now = turn.read(&place)?;
        let (at, seq) = match self.turned.iter().position(|t| is_of(t, knob, device)) {
            Some(at) => {
                self.standing[at].check(&now)?;
                (at, self.again(at, to)?)
            }
            None => {
                let standing = Standing::found(knob, turn, place, &now);
                standing.check(&now)?;
                let seq = self.first(knob, device, &now, to)?;
                self.standing.push(standing);
                (self.standing.len() - 1, seq)
            }
        };
        self.write = Some(Write::begin(&self.standing, at, now, to));
        self.file.mark_turning(seq)?;
        self.turning = seq;
        Ok(self.patience())
    }

    /// How long the write under way may take.
    pub(super) fn patience(&self) -> Nanos {
        self.write.as_ref().map_or(Nanos(0), |write| write.row.patience())
    }

    /// A knob that has been turned before: only a value never written before is news.
    fn again(&mut self, at: usize, to: &str) -> Result<u32, JournalError> {
        let turned = &mut self.turned[at];
        let seq = turned.intent.seq;
        if !turned.written.iter().any(|written| written == to) {
            if turned.written.len() >= MAX_TURNED {
                return Err(JournalError::Full { path: self.file.path() });
            }
            self.file.append(&Entry::Also(Also { seq, to: to.to_owned() }))?;
            turned.written.push(to.to_owned());
        }
        Ok(seq)
    }

    fn first(&mut self, knob: &Knob, device: &str, before: &str, to: &str) -> Result<u32, Error> {
        if self.turned.len() >= MAX_TURNED {
            return Err(JournalError::Full { path: self.file.path() }.into());
        }
        let name = knob.row.name;
        // What could not be read from the journal could not be put back.
        knob.row.domain.check(before).map_err(|expected| {
            let found = before.escape_debug();
            Error::Unavailable(format!(
                "{name} is '{found}' now, which could not be put back: expected {expected}"
            ))
        })?;
        let unavailable = |e: &dyn std::fmt::Display| Error::Unavailable(format!("{name}: {e}"));
        let on = find_device(device).map_err(|e| unavailable(&e))?;
        let disturbed = Snapshot::take(knob.row.disturbs, device).map_err(|e| unavailable(&e))?;
        disturbed.check(knob.row.disturbs, on.as_ref().map(|d| d.ifindex)).map_err(|e| unavailable(&e))?;
        let seq = self.turned.last().map_or(1, |last| last.intent.seq + 1);
        let (before, to) = (before.to_owned(), to.to_owned());
        let intent = Intent { seq, knob: name.to_owned(), device: on, before, to: to.clone(), disturbed };
        self.file.append(&Entry::Intent(Box::new(intent.clone())))?;
        self.turned.push(Turned { intent, written: vec![to] });
        Ok(seq)
    }

    /// The write that was allowed is over. Returns how long it takes to settle.
    pub(super) fn wrote(&mut self) -> Nanos {
        let settle = self.write.take().map(|write| {
            let settle = write.row.toggle;
            write.end(&mut self.standing);
            settle
        });
        // A mark that stays makes a later undo put this value back whatever it reads: safe.
        let _ = self.file.mark_turning(0);
        self.turning = 0;
        settle.unwrap_or_default()
    }

    /// Whether a write may be under way.
    pub(super) fn is_turning(&self) -> bool {
        self.turning != 0
    }

    /// What the journal says, without reading it again.
    pub(super) fn contents(&self) -> Contents {
        Contents { turned: self.turned.clone(), turning: self.turning, ..Contents::default() }
    }
}

fn is_of(turned: &Turned, knob: &Knob, device: &str) -> bool {
    let same_device = || turned.intent.device.as_ref().is_some_and(|d| d.name == device);
    turned.intent.knob == knob.row.name && (knob.row.scope != Scope::Device || same_device())
}

fn find_device(name: &str) -> Result<Option<Device>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    if !is_device_name(name) {
        return Err(format!("'{}' cannot be the name of a device", name.escape_debug()));
    }
    let link = Rtnl::open().and_then(|rtnl| rtnl.link(name)).map_err(|e| e.to_string())?;
    Ok(Some(Device::of(&link)))
}
