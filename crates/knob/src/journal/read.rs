//! Reading a journal as if an enemy had written it: nothing that is not in the knob table, in its knob's
//! domain and of bounded size comes through.

use std::io::{self, BufRead, BufReader, Read};

use super::Lookup;
use super::entry::{Entry, FORMAT, Header, History, Intent, Turned};
use super::identity::Device;
use super::net::Net;
use super::snapshot::{Key, Seen, Value};
use crate::{Knob, device};

/// Longest line: a device with tens of thousands of routes.
pub(super) const MAX_LINE: usize = 32 << 20;
/// Longest journal.
pub(super) const MAX_FILE: u64 = 256 << 20;
/// Most knobs and devices of one journal, and most values of one knob.
pub(super) const MAX_TURNED: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Contents {
    /// `None` in a journal whose writer died before the header was on disk.
    pub(super) header: Option<Header>,
    pub(super) history: History,
    /// Lines that were refused, for people, already escaped.
    pub(super) refused: Vec<String>,
    /// The boot and the format of a header that another version of landspeed wrote.
    pub(super) other_format: Option<OtherFormat>,
    /// Bytes up to the end of the last whole line, and up to the mark.
    pub(super) len: u64,
    pub(super) mark_at: u64,
}

/// What every version's header says.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub(super) struct OtherFormat {
    pub(super) format: u32,
    pub(super) boot_id: String,
}

impl Contents {
    /// Whether anything may have been changed under this journal.
    pub(super) fn is_pending(&self) -> bool {
        !self.history.turned.is_empty() || !self.refused.is_empty() || self.other_format.is_some()
    }
}

/// Reads a journal. A last line without its end was never durable, so what it announces never happened.
pub(super) fn read(file: impl Read, lookup: Lookup) -> io::Result<Contents> {
    let mut lines = BufReader::new(file.take(MAX_FILE));
    let mut contents = Contents::default();
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        lines.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
        let len = line.len();
        if line.pop() != Some(b'\n') {
            if len == MAX_LINE {
                contents.refused.push(format!("line {} is too long", number + 1));
            }
            return Ok(contents);
        }
        number += 1;
        contents.len += len as u64;
        if number == 1 {
            contents.mark_at = contents.len;
            contents.other_format = other_format(&line);
        }
        if contents.other_format.is_some() {
            continue;
        }
        if let Err(why) = take(&mut contents, &line, number, lookup) {
            contents.refused.push(format!("line {number} {why}"));
        }
    }
}

/// What another version says of itself: its lines are not read, as they could mean something else.
fn other_format(line: &[u8]) -> Option<OtherFormat> {
    let other: OtherFormat = serde_json::from_slice(line).ok()?;
    (other.format != FORMAT && is_boot_id(&other.boot_id)).then_some(other)
}

fn take(contents: &mut Contents, line: &[u8], number: usize, lookup: Lookup) -> Result<(), String> {
    let entry: Entry = serde_json::from_slice(line)
        .map_err(|e| format!("is not understood: {}", e.to_string().escape_debug()))?;
    match entry {
        Entry::Header(header) if number == 1 => take_header(contents, header),
        Entry::Mark(mark) if number == 2 => {
            contents.history.mark = mark;
            Ok(())
        }
        Entry::Intent(intent) if contents.header.is_some() => take_intent(contents, *intent, lookup),
        Entry::Also { seq, to } => {
            let turned = contents.history.turned.iter_mut().find(|t| t.intent.seq == seq);
            let turned = turned.ok_or("belongs to no intent")?;
            check(lookup, &turned.intent.knob, &to)?;
            if turned.written.len() >= MAX_TURNED {
                return Err("is one value too many".into());
            }
            turned.written.push(to);
            Ok(())
        }
        Entry::Seen { id, device, seen } => take_seen(&mut contents.history, (id, device, seen), lookup),
        Entry::Net { id, net } => take_net(&mut contents.history, (id, net), lookup),
        Entry::Left { device, to } if contents.header.is_some() => {
            contents.history.left.insert(device, to);
            Ok(())
        }
        _ => Err("is where it cannot be".into()),
    }
}

fn take_header(contents: &mut Contents, header: Header) -> Result<(), String> {
    if header.format != FORMAT {
        return Err(format!("has format {}, this landspeed reads {FORMAT}", header.format));
    }
    if !is_boot_id(&header.boot_id) {
        return Err("has no boot id".into());
    }
    contents.header = Some(header);
    Ok(())
}

fn is_boot_id(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

fn take_intent(contents: &mut Contents, intent: Intent, lookup: Lookup) -> Result<(), String> {
    check(lookup, &intent.knob, &intent.before)?;
    check(lookup, &intent.knob, &intent.to)?;
    intent.device.as_ref().map_or(Ok(()), check_device)?;
    let turned = &mut contents.history.turned;
    if turned.last().is_some_and(|last| last.intent.seq >= intent.seq) || intent.seq == 0 {
        return Err("is out of order".into());
    }
    if turned.len() >= MAX_TURNED {
        return Err("is one knob too many".into());
    }
    let written = vec![intent.to.clone()];
    turned.push(Turned { intent, written });
    Ok(())
}

fn take_seen(
    history: &mut History,
    (id, device, seen): (u32, u32, Seen),
    lookup: Lookup,
) -> Result<(), String> {
    if id as usize != history.seen.len() + 1 {
        return Err("is out of order".into());
    }
    let sound = |(key, value): (&Key, &Value)| is_sound(history, lookup, device, key, Some(value));
    if !seen.items().all(sound) {
        return Err(NOT_ITS_OWN.into());
    }
    check_values(history, lookup, seen.own.iter().map(|(seq, value)| (seq, value)))?;
    history.seen.push((device, seen));
    Ok(())
}

fn take_net(history: &mut History, (id, net): (u32, Net), lookup: Lookup) -> Result<(), String> {
    if id as usize != history.nets.len() + 1 {
        return Err("is out of order".into());
    }
    check_values(history, lookup, &net.values)?;
    let sound = net.changes.iter().all(|((device, key), change)| {
        [&change.before, &change.after]
            .into_iter()
            .all(|value| is_sound(history, lookup, *device, key, value.as_ref()))
    });
    if !sound {
        return Err(NOT_ITS_OWN.into());
    }
    history.nets.push(net);
    Ok(())
}

fn check_values<'a>(
    history: &History,
    lookup: Lookup,
    values: impl IntoIterator<Item = (&'a u32, &'a String)>,
) -> Result<(), String> {
    for (seq, value) in values {
        let turned = history.turned(*seq).ok_or("speaks of no intent")?;
        check(lookup, &turned.intent.knob, value)?;
    }
    Ok(())
}

const NOT_ITS_OWN: &str = "holds settings that none of its knobs disturbs";

/// Whether a knob of the journal can have disturbed this on the device numbered `device`.
fn is_sound(history: &History, lookup: Lookup, device: u32, key: &Key, value: Option<&Value>) -> bool {
    let disturbs = |turned: &Turned| {
        (key.is_of_namespace() || turned.device() == device)
            && lookup(&turned.intent.knob).is_some_and(|knob| key.is_among(knob.factor.disturbs))
    };
    key.is_sound(value, Some(device).filter(|device| *device != 0)) && history.turned.iter().any(disturbs)
}

fn check(lookup: Lookup, knob: &str, value: &str) -> Result<&'static Knob, String> {
    let knob = lookup(knob).ok_or_else(|| format!("names '{}', which is no knob", shown(knob)))?;
    let wrong = |expected| format!("gives {} '{}': expected {expected}", knob.factor.name, shown(value));
    knob.factor.domain.check(value).map_err(wrong)?;
    Ok(knob)
}

/// A stranger's text, short and without control characters.
fn shown(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}

fn check_device(device: &Device) -> Result<(), String> {
    if !device::is_name(&device.name) {
        return Err(format!("names the device '{}', which cannot be", shown(&device.name)));
    }
    let hex = |b: u8| b.is_ascii_hexdigit() || b == b':';
    for mac in [&device.permanent_mac, &device.mac].into_iter().flatten() {
        if mac.len() > 95 || !mac.bytes().all(hex) {
            return Err("has no hardware address".into());
        }
    }
    let plain = |text: &String| text.len() <= 64 && text.bytes().all(|b| b.is_ascii_graphic());
    if ![&device.kind, &device.parent].into_iter().flatten().all(plain) {
        return Err("names a device of no kind".into());
    }
    Ok(())
}
