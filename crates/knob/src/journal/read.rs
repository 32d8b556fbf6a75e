//! Reading a journal as if an enemy had written it: nothing that is not in the knob table, in its knob's
//! domain and of bounded size comes through.

use std::io::{self, BufRead, BufReader, Read};

use super::Lookup;
use super::entry::{Book, Entry, FORMAT, Header, Intent, Mark, NetEntry, SeenLine, Turned};
use super::identity::Device;
use super::net::Net;
use super::snapshot::{Key, Value};
use crate::Knob;

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
    pub(super) book: Book,
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
        !self.book.turned.is_empty() || !self.refused.is_empty() || self.other_format.is_some()
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
            contents.book.mark = Mark::try_from(&mark).map_err(|_| "names no intent".to_owned())?;
            Ok(())
        }
        Entry::Intent(intent) if contents.header.is_some() => take_intent(contents, *intent, lookup),
        Entry::Also(also) => {
            let turned = contents.book.turned.iter_mut().find(|t| t.intent.seq == also.seq);
            let turned = turned.ok_or("belongs to no intent")?;
            check(lookup, &turned.intent.knob, &also.to)?;
            if turned.written.len() >= MAX_TURNED {
                return Err("is one value too many".into());
            }
            turned.written.push(also.to);
            Ok(())
        }
        Entry::Seen(seen) => take_seen(&mut contents.book, *seen, lookup),
        Entry::Net(net) => take_net(&mut contents.book, *net, lookup),
        Entry::Left(left) if contents.header.is_some() => {
            contents.book.left.insert(left.device, left.to);
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
    let turned = &mut contents.book.turned;
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

fn take_seen(book: &mut Book, line: SeenLine, lookup: Lookup) -> Result<(), String> {
    if line.id as usize != book.seen.len() + 1 {
        return Err("is out of order".into());
    }
    let sound = |(key, value): (&Key, &Value)| is_sound(book, lookup, line.device, key, Some(value));
    if !line.seen.items().all(sound) {
        return Err(NOT_ITS_OWN.into());
    }
    check_values(book, lookup, line.seen.own.iter().map(|(seq, value)| (seq, value)))?;
    book.seen.push((line.device, line.seen));
    Ok(())
}

fn take_net(book: &mut Book, line: NetEntry, lookup: Lookup) -> Result<(), String> {
    if line.id as usize != book.nets.len() + 1 {
        return Err("is out of order".into());
    }
    let net = Net::from(line.net);
    check_values(book, lookup, &net.values)?;
    let sound = net.changes.iter().all(|((device, key), change)| {
        [&change.before, &change.after]
            .into_iter()
            .all(|value| is_sound(book, lookup, *device, key, value.as_ref()))
    });
    if !sound {
        return Err(NOT_ITS_OWN.into());
    }
    book.nets.push(net);
    Ok(())
}

fn check_values<'a>(
    book: &Book,
    lookup: Lookup,
    values: impl IntoIterator<Item = (&'a u32, &'a String)>,
) -> Result<(), String> {
    for (seq, value) in values {
        let turned = book.turned(*seq).ok_or("speaks of no intent")?;
        check(lookup, &turned.intent.knob, value)?;
    }
    Ok(())
}

const NOT_ITS_OWN: &str = "holds settings that none of its knobs disturbs";

/// Whether a knob of the journal can have disturbed this on the device numbered `device`.
fn is_sound(book: &Book, lookup: Lookup, device: u32, key: &Key, value: Option<&Value>) -> bool {
    let disturbs = |turned: &Turned| {
        (key.is_of_namespace() || turned.device() == device)
            && lookup(&turned.intent.knob).is_some_and(|knob| key.is_among(knob.factor.disturbs))
    };
    key.is_sound(value, Some(device).filter(|device| *device != 0)) && book.turned.iter().any(disturbs)
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
    if !is_device_name(&device.name) {
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

/// Whether the kernel could have given a device this name (dev_valid_name), and it is safe as one
/// component of a path. Netlink knows more names; their settings under /proc could not be reached.
pub(super) fn is_device_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_graphic() && b != b'/' && b != b':';
    // "all" and "default" have other meanings below /proc/sys/net.
    let reserved = [".", "..", "all", "default"];
    (1..=15).contains(&name.len()) && !reserved.contains(&name) && name.bytes().all(good)
}
