//! Reading a journal as if an enemy had written it: nothing that is not in the knob table, in its knob's
//! domain and of bounded size comes through.

use std::io::{self, BufRead, BufReader, Read};

use super::Lookup;
use super::entry::{Entry, FORMAT, Header, Intent, Turned};
use super::identity::Device;
use crate::{Knob, Turn};

/// Longest line: a device with tens of thousands of routes.
pub(super) const MAX_LINE: usize = 32 << 20;
/// Longest journal.
pub(super) const MAX_FILE: u64 = 256 << 20;
/// Most knobs and devices of one journal, and most values of one knob.
pub(super) const MAX_TURNED: usize = 4096;

/// What a journal says.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// `None` in a journal whose writer died before the header was on disk.
    pub(super) header: Option<Header>,
    /// In the order of their first turns.
    pub(super) turned: Vec<Turned>,
    /// The knob that was being written; zero for none.
    pub(super) turning: u32,
    /// Lines that were refused, for people, already escaped.
    pub(super) refused: Vec<String>,
}

impl Contents {
    /// Whether anything may have been changed under this journal.
    pub(super) fn is_pending(&self) -> bool {
        !self.turned.is_empty() || !self.refused.is_empty()
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
        let too_long = line.len() == MAX_LINE;
        if line.pop() != Some(b'\n') {
            if too_long {
                contents.refused.push(format!("line {} is too long", number + 1));
            }
            return Ok(contents);
        }
        number += 1;
        if let Err(why) = take(&mut contents, &line, number, lookup) {
            contents.refused.push(format!("line {number} {why}"));
        }
    }
}

fn take(contents: &mut Contents, line: &[u8], number: usize, lookup: Lookup) -> Result<(), String> {
    let entry: Entry = serde_json::from_slice(line)
        .map_err(|e| format!("is not understood: {}", e.to_string().escape_debug()))?;
    match entry {
        Entry::Header(header) if number == 1 => take_header(contents, header),
        Entry::Turning(turning) if number == 2 => {
            contents.turning = turning.seq.parse().map_err(|_| "names no intent".to_owned())?;
            Ok(())
        }
        Entry::Intent(intent) if contents.header.is_some() => take_intent(contents, *intent, lookup),
        Entry::Also(also) => {
            let turned = contents.turned.iter_mut().find(|t| t.intent.seq == also.seq);
            let turned = turned.ok_or("belongs to no intent")?;
            check(lookup, &turned.intent.knob, &also.to)?;
            if turned.written.len() >= MAX_TURNED {
                return Err("is one value too many".into());
            }
            turned.written.push(also.to);
            Ok(())
        }
        _ => Err("stands where it cannot".into()),
    }
}

fn take_header(contents: &mut Contents, header: Header) -> Result<(), String> {
    if header.format != FORMAT {
        return Err(format!("has format {}, this landspeed reads {FORMAT}", header.format));
    }
    let uuid = |b: u8| b.is_ascii_hexdigit() || b == b'-';
    if header.boot_id.len() != 36 || !header.boot_id.bytes().all(uuid) {
        return Err("has no boot id".into());
    }
    contents.header = Some(header);
    Ok(())
}

fn take_intent(contents: &mut Contents, intent: Intent, lookup: Lookup) -> Result<(), String> {
    let knob = check(lookup, &intent.knob, &intent.before)?;
    check(lookup, &intent.knob, &intent.to)?;
    intent.device.as_ref().map_or(Ok(()), check_device)?;
    intent.disturbed.check(knob.row.disturbs, intent.device.as_ref().map(|d| d.ifindex))?;
    if contents.turned.last().is_some_and(|last| last.intent.seq >= intent.seq) || intent.seq == 0 {
        return Err("is out of order".into());
    }
    if contents.turned.len() >= MAX_TURNED {
        return Err("is one knob too many".into());
    }
    let written = vec![intent.to.clone()];
    contents.turned.push(Turned { intent, written });
    Ok(())
}

fn check(lookup: Lookup, knob: &str, value: &str) -> Result<&'static Knob, String> {
    let knob = lookup(knob).ok_or_else(|| format!("names '{}', which is no knob", shown(knob)))?;
    if !matches!(knob.turn, Turn::Host(_)) {
        return Err(format!("names {}, which is no setting of the host", knob.row.name));
    }
    let wrong = |expected| format!("gives {} '{}': expected {expected}", knob.row.name, shown(value));
    knob.row.domain.check(value).map_err(wrong)?;
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
    match &device.permanent_mac {
        Some(mac) if mac.len() > 95 || !mac.bytes().all(hex) => Err("has no hardware address".into()),
        _ => Ok(()),
    }
}

/// Whether the kernel could have given a device this name (dev_valid_name), and it is safe as one
/// component of a path. Netlink knows more names; their settings under /proc could not be reached.
pub(super) fn is_device_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_graphic() && b != b'/' && b != b':';
    // "all" and "default" have other meanings below /proc/sys/net.
    let reserved = [".", "..", "all", "default"];
    (1..=15).contains(&name.len()) && !reserved.contains(&name) && name.bytes().all(good)
}
