//! Reading a journal as if an attacker had written it: only knobs of the table, values in their domains and data of
//! bounded size are accepted. If a journal is damaged, its unchanged lines are read and the damage is reported.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

use landspeed_record::units::EscapedText;

use super::KnobLookup;
use super::entry::{FORMAT, Intent, JournalEntry, JournalHeader, PLAIN_FORMAT, TurnedKnob, WriteHistory};
use super::identity::DeviceIdentity;
use super::line;
use super::own_changes::{OwnChange, OwnChanges};
use super::snapshot::{SettingKey, SettingValue, SettingsSnapshot};
use crate::Knob;
use crate::device_name::is_name;

/// Longest line in bytes, enough for a device with tens of thousands of routes.
pub(super) const MAX_LINE: usize = 32 << 20;
/// Longest journal in bytes.
pub(super) const MAX_FILE: u64 = 256 << 20;
/// The largest number of knobs in one journal, counted per device, and of values for one knob.
pub(super) const MAX_TURNED: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct JournalContents {
    /// The header; `None` if it is missing from the journal.
    pub(super) header: Option<JournalHeader>,
    pub(super) history: WriteHistory,
    /// Messages about refused lines, already escaped.
    pub(super) refused: Vec<String>,
    /// Descriptions of the journal's damage for people: lost, changed or moved lines.
    pub(super) damage: Vec<String>,
    /// The format and the boot id in the header, if another version of landspeed wrote it.
    pub(super) other_format: Option<OtherVersionHeader>,
    /// The position at which the next entry is appended.
    pub(super) end: AppendPosition,
}

/// The position at which a journal is continued, and its format.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AppendPosition {
    /// Offset in bytes of the end of the last complete line.
    pub(super) len: u64,
    /// Offset in bytes of the mark.
    pub(super) mark_at: u64,
    /// Number of lines; `None` if the journal's format has no line numbers.
    pub(super) lines: Option<u32>,
}

/// The part of a header that every version has.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub(super) struct OtherVersionHeader {
    pub(super) format: u32,
    pub(super) boot_id: String,
}

impl JournalContents {
    /// Returns true if the run of this journal may have changed settings that are not restored yet.
    pub(super) fn is_pending(&self) -> bool {
        let may_hold = !self.history.turned.is_empty() || !self.refused.is_empty();
        !self.history.mark.is_done() && (may_hold || !self.damage.is_empty() || self.other_format.is_some())
    }

    /// Returns true if the journal is damaged. Lines to which other lines refer may then be missing.
    fn is_gapped(&self) -> bool {
        !self.damage.is_empty()
    }

    /// Returns true if the header was read, or if the journal is damaged and may have lost it. Intents are accepted
    /// only then.
    fn is_begun(&self) -> bool {
        self.header.is_some() || self.is_gapped()
    }

    /// Returns everything that is wrong with the journal, one line each.
    pub(super) fn complaints(&self) -> Vec<String> {
        let damage = self.damage.iter().map(|what| format!("the journal does not add up: {what}"));
        damage.chain(self.refused.iter().cloned()).collect()
    }
}

/// Reads a journal. Ignores an incomplete last line: it was never durable, so the write that it announces never
/// happened.
pub(super) fn read(file: impl Read, lookup: KnobLookup) -> io::Result<JournalContents> {
    let mut lines = BufReader::new(file.take(MAX_FILE));
    let mut reader =
        JournalReader { lookup, contents: JournalContents::default(), sealed: BTreeMap::new(), last: 0 };
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        lines.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
        let len = line.len();
        if line.pop() != Some(b'\n') {
            if len == MAX_LINE {
                reader.contents.refused.push(format!("line {} is too long", number + 1));
            }
            return Ok(reader.done(number));
        }
        number += 1;
        reader.contents.end.len += len as u64;
        if number == 1 {
            reader.contents.end.mark_at = len as u64;
        }
        reader.line(number, &line);
    }
}

struct JournalReader {
    lookup: KnobLookup,
    contents: JournalContents,
    /// Entries of lines that have numbers, by number.
    sealed: BTreeMap<u32, Vec<u8>>,
    /// The greatest line number so far.
    last: u32,
}

impl JournalReader {
    fn line(&mut self, number: u32, line: &[u8]) {
        if number == 1 {
            self.contents.other_format = other_format(line);
            self.contents.end.lines = line::is_sealed(line).then_some(0);
        }
        match (&self.contents.other_format, self.contents.end.lines) {
            (Some(_), _) => {}
            (None, Some(_)) => self.sealed_line(number, line),
            (None, None) => self.entry(number, line),
        }
    }

    fn sealed_line(&mut self, at: u32, line: &[u8]) {
        let Some((number, entry)) = line::unsealed(line) else {
            return self.contents.damage.push(format!("line {at} was changed"));
        };
        if number <= self.last {
            self.contents.damage.push(format!("line {number} is where it was not written"));
        }
        self.last = self.last.max(number);
        self.sealed.insert(number, entry);
    }

    fn entry(&mut self, number: u32, entry: &[u8]) {
        if let Err(why) = take(&mut self.contents, entry, number, self.lookup) {
            self.contents.refused.push(format!("line {number} {why}"));
        }
    }

    fn done(mut self, whole_lines: u32) -> JournalContents {
        let sealed = std::mem::take(&mut self.sealed);
        if self.contents.end.lines.is_some() {
            self.contents.end.lines = Some(self.last);
            self.contents.damage.extend(gaps(&sealed));
        }
        sealed.iter().for_each(|(number, entry)| self.entry(*number, entry));
        if whole_lines == 0 {
            self.contents.damage.push("it has no whole line".into());
        } else if self.contents.header.is_none() && self.contents.other_format.is_none() {
            self.contents.damage.push("it has no header".into());
        }
        let lines = self.contents.history.mark.lines;
        if lines > self.last {
            self.contents.damage.push(format!("lines {} to {lines} are missing", self.last + 1));
        }
        if self.contents.refused.is_empty() {
            self.contents.damage.extend(self.contents.history.dangling());
        }
        self.contents
    }
}

/// Returns the ranges of missing line numbers, as text. A missing header or mark is reported too.
fn gaps(sealed: &BTreeMap<u32, Vec<u8>>) -> Vec<String> {
    let mut expected = line::HEADER;
    let mut missing = Vec::new();
    for number in sealed.keys().copied().chain([line::MARK + 1]) {
        if number > expected {
            missing.push(format!("lines {expected} to {} are missing", number - 1));
        }
        expected = expected.max(number + 1);
    }
    missing
}

/// Returns format and boot id if the line is a header that another version of landspeed wrote. The other lines of such
/// a journal are not read, because they could mean something else.
fn other_format(line: &[u8]) -> Option<OtherVersionHeader> {
    let line = match line::unsealed(line) {
        None if line::is_sealed(line) => return None,
        None => line.to_vec(),
        Some((_, entry)) => entry,
    };
    let other: OtherVersionHeader = serde_json::from_slice(&line).ok()?;
    (![FORMAT, PLAIN_FORMAT].contains(&other.format) && is_boot_id(&other.boot_id)).then_some(other)
}
fn take(contents: &mut JournalContents, line: &[u8], number: u32, lookup: KnobLookup) -> Result<(), String> {
    let entry: JournalEntry = serde_json::from_slice(line)
        .map_err(|e| format!("is not understood: {}", e.to_string().escape_debug()))?;
    match entry {
        JournalEntry::Header(header) if number == line::HEADER => take_header(contents, header),
        JournalEntry::Mark(mark) if number == line::MARK => {
            contents.history.mark = mark;
            Ok(())
        }
        JournalEntry::Intent(intent) if contents.is_begun() => take_intent(contents, *intent, lookup),
        JournalEntry::Also { seq, to } => {
            let turned = contents.history.turned.iter_mut().find(|t| t.intent.seq == seq);
            let turned = turned.ok_or("belongs to no intent")?;
            check(lookup, &turned.intent.knob, &to)?;
            if turned.written.len() >= MAX_TURNED {
                return Err("is one value too many".into());
            }
            turned.written.push(to);
            Ok(())
        }
        JournalEntry::Seen { id, device, seen } => take_seen(contents, id, device, seen, lookup),
        JournalEntry::Net { id, net } => take_net(contents, id, net, lookup),
        JournalEntry::Left { device, to } if contents.is_begun() => {
            contents.history.left.insert(device, to);
            Ok(())
        }
        _ => Err("is where it cannot be".into()),
    }
}

fn take_header(contents: &mut JournalContents, header: JournalHeader) -> Result<(), String> {
    let expected = if contents.end.lines.is_some() { FORMAT } else { PLAIN_FORMAT };
    if header.format != expected {
        return Err(format!("has format {}, and is written as format {expected}", header.format));
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

fn take_intent(contents: &mut JournalContents, intent: Intent, lookup: KnobLookup) -> Result<(), String> {
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
    turned.push(TurnedKnob { intent, written });
    Ok(())
}

/// Returns true if `id` is the next one after the ids of `all`, or any later one if lines are missing.
fn is_next<T>(contents: &JournalContents, all: &BTreeMap<u32, T>, id: u32) -> bool {
    let next = all.last_key_value().map_or(1, |(last, _)| last.saturating_add(1));
    id == next || (id > next && contents.is_gapped())
}

fn take_seen(
    contents: &mut JournalContents,
    id: u32,
    device: u32,
    mut seen: SettingsSnapshot,
    lookup: KnobLookup,
) -> Result<(), String> {
    if !is_next(contents, &contents.history.seen, id) {
        return Err("is out of order".into());
    }
    let history = &contents.history;
    if contents.is_gapped() {
        seen.own.retain(|(seq, _)| history.turned(*seq).is_some());
    }
    let sound =
        |(key, value): (&SettingKey, &SettingValue)| is_sound(history, lookup, device, key, Some(value));
    // If lines are missing, this check is skipped, because the knob that disturbs a setting may be on a missing line.
    if !contents.is_gapped() && !seen.items().all(sound) {
        return Err(NOT_ITS_OWN.into());
    }
    check_values(history, lookup, seen.own.iter().map(|(seq, value)| (seq, value)))?;
    contents.history.seen.insert(id, (device, seen));
    Ok(())
}

fn take_net(
    contents: &mut JournalContents,
    id: u32,
    mut net: OwnChanges,
    lookup: KnobLookup,
) -> Result<(), String> {
    if !is_next(contents, &contents.history.nets, id) {
        return Err("is out of order".into());
    }
    let history = &contents.history;
    let sound = |(device, key): &(u32, SettingKey), change: &OwnChange| {
        [&change.before, &change.after]
            .into_iter()
            .all(|value| is_sound(history, lookup, *device, key, value.as_ref()))
    };
    if contents.is_gapped() {
        net.values.retain(|seq, _| history.turned(*seq).is_some());
        net.changes.retain(|place, change| sound(place, change));
    }
    check_values(history, lookup, &net.values)?;
    if !net.changes.iter().all(|(place, change)| sound(place, change)) {
        return Err(NOT_ITS_OWN.into());
    }
    contents.history.nets.insert(id, net);
    Ok(())
}

fn check_values<'a>(
    history: &WriteHistory,
    lookup: KnobLookup,
    values: impl IntoIterator<Item = (&'a u32, &'a String)>,
) -> Result<(), String> {
    for (seq, value) in values {
        let turned = history.turned(*seq).ok_or("speaks of no intent")?;
        check(lookup, &turned.intent.knob, value)?;
    }
    Ok(())
}

const NOT_ITS_OWN: &str = "holds settings that none of its knobs disturbs";

/// Returns true if a knob of the journal can have disturbed this setting on the device with index `device`.
fn is_sound(
    history: &WriteHistory,
    lookup: KnobLookup,
    device: u32,
    key: &SettingKey,
    value: Option<&SettingValue>,
) -> bool {
    let disturbs = |turned: &TurnedKnob| {
        (key.is_of_namespace() || turned.device() == device)
            && lookup(&turned.intent.knob).is_some_and(|knob| key.is_among(knob.factor.disturbs))
    };
    key.is_sound(value, Some(device).filter(|device| *device != 0)) && history.turned.iter().any(disturbs)
}

fn check(lookup: KnobLookup, knob: &str, value: &str) -> Result<&'static Knob, String> {
    let knob = lookup(knob).ok_or_else(|| format!("names '{}', which is no knob", shown(knob)))?;
    let wrong = |expected| format!("gives {} '{}': expected {expected}", knob.factor.name, shown(value));
    knob.factor.domain.check(value).map_err(wrong)?;
    Ok(knob)
}

/// Returns untrusted text, escaped and cut to 80 characters.
fn shown(text: &str) -> String {
    EscapedText::from(text).cut(80)
}

fn check_device(device: &DeviceIdentity) -> Result<(), String> {
    if !is_name(&device.name) {
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
