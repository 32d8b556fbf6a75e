//! The entries of a journal file.
//!
//! ```text
//! {"entry":"header","format":4,"boot_id":"…","netns_cookie":7,"agent":{…},"guardian":{…}}
//! {"entry":"mark","turning":"0000000002","seen":"0000000002","net":"0000000001","at_s":"0000004711","lines":"0000000008"}
//! {"entry":"intent","seq":1,"knob":"tso","device":{…},"before":"off","to":"on","seen":1}
//! {"entry":"seen","id":1,"device":2,"seen":{…}}
//! {"entry":"net","id":1,"net":{"values":[[1,"on"]],"changes":[…]}}
//! {"entry":"intent","seq":2,"knob":"mtu","device":{…},"before":"1500","to":"9000","seen":2}
//! {"entry":"seen","id":2,"device":2,"seen":{…}}
//! {"entry":"also","seq":2,"to":"4148"}
//! ```
//!
//! A `seen` line is a snapshot from right before a write. A `net` line is the set of changes that all writes so far
//! have made. Lines are only appended, except for the mark, which has a fixed width and is overwritten in place. The
//! mark names the intent whose knob is being written (zero between writes), the snapshot and the set of changes before
//! that write, the time at which it began, and the number of lines. In the file, a number and a checksum precede each
//! entry (`line.rs`). A snapshot or a set of changes that the journal already contains is named by its id and not
//! written again, so toggling a knob thousands of times between known values does not make the file grow.

use std::collections::BTreeMap;

use landspeed_kernel::daemon::ProcessIdentity;
use serde::{Deserialize, Serialize};

use super::identity::DeviceIdentity;
use super::own_changes::OwnChanges;
use super::snapshot::SettingsSnapshot;
use super::whereabouts::Departure;

/// The journal format that this build writes.
pub(super) const FORMAT: u32 = 4;
/// The earlier format, whose lines have no numbers and no checksums. A journal in this format is read, and is continued
/// in the same format.
pub(super) const PLAIN_FORMAT: u32 = 3;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum JournalEntry {
    Header(JournalHeader),
    Mark(ProgressMark),
    Intent(Box<Intent>),
    /// A further value for a knob that already has an intent. The entry is on disk before the value is first written to
    /// the knob.
    Also {
        seq: u32,
        to: String,
    },
    /// The snapshot from right before a write. Ids count from 1 without gaps. `device` is an interface index, or zero
    /// for a knob without a device.
    Seen {
        id: u32,
        device: u32,
        seen: SettingsSnapshot,
    },
    /// The changes that all writes so far have made. Ids count from 1 without gaps.
    Net {
        id: u32,
        net: OwnChanges,
    },
    /// A device that has left the network namespace.
    Left {
        device: u32,
        to: Departure,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalHeader {
    pub(super) format: u32,
    pub(super) boot_id: String,
    pub(super) netns_cookie: u64,
    pub(super) agent: ProcessIdentity,
    pub(super) guardian: ProcessIdentity,
}

/// The current state of the run. Each number has ten digits, so that the line has a fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgressMark {
    /// Number of the intent whose knob is being written; zero for none.
    #[serde(with = "digits")]
    pub(super) turning: u32,
    /// Id of the snapshot before the current write; zero if there is none.
    #[serde(with = "digits")]
    pub(super) seen: u32,
    /// Id of the changes before the current write; zero for none.
    #[serde(with = "digits")]
    pub(super) net: u32,
    /// Seconds since boot when the current write began.
    #[serde(with = "digits")]
    pub(super) at_s: u32,
    /// Number of lines in the journal when the current write began; zero, and omitted, in a journal without line
    /// numbers.
    #[serde(with = "digits", default, skip_serializing_if = "is_zero")]
    pub(super) lines: u32,
}

impl ProgressMark {
    /// Value of [`ProgressMark::turning`] while settings that knobs have disturbed are restored.
    pub(super) const SIDE_EFFECTS: u32 = u32::MAX;
    /// Value of [`ProgressMark::turning`] once everything is restored and the journal is about to be removed.
    pub(super) const DONE: u32 = u32::MAX - 1;

    pub(super) fn is_done(self) -> bool {
        self.turning == ProgressMark::DONE
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

mod digits {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(number: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{number:010}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The announcement of a knob's first write, which is on disk before the write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Intent {
    /// Number of the intent, ascending from 1.
    pub(super) seq: u32,
    pub(super) knob: String,
    /// The device that the target named; `None` for a target without one.
    pub(super) device: Option<DeviceIdentity>,
    /// The original value, which is restored.
    pub(super) before: String,
    pub(super) to: String,
    /// Id of the snapshot from before the first write; zero if there is none.
    #[serde(default)]
    pub(super) seen: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnedKnob {
    pub(super) intent: Intent,
    /// Every value that was ever written to the knob.
    pub(super) written: Vec<String>,
}

impl TurnedKnob {
    /// Returns the index of the device; zero if there is none.
    pub(super) fn device(&self) -> u32 {
        self.intent.device.as_ref().map_or(0, |device| device.ifindex)
    }
}

/// The written knobs of a journal, with the snapshots and changes around their writes.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteHistory {
    /// Knobs in the order of their first writes.
    pub(super) turned: Vec<TurnedKnob>,
    /// Snapshots by id, from 1, each with the index of its device.
    pub(super) seen: BTreeMap<u32, (u32, SettingsSnapshot)>,
    /// Sets of changes by id, from 1.
    pub(super) nets: BTreeMap<u32, OwnChanges>,
    pub(super) mark: ProgressMark,
    /// Devices that have left the network namespace, by index.
    pub(super) left: BTreeMap<u32, Departure>,
}

impl WriteHistory {
    pub(super) fn turned(&self, seq: u32) -> Option<&TurnedKnob> {
        self.turned.iter().find(|turned| turned.intent.seq == seq)
    }

    pub(super) fn seen(&self, id: u32) -> Option<&(u32, SettingsSnapshot)> {
        self.seen.get(&id)
    }

    /// Returns the changes that all finished writes have made.
    pub(super) fn net(&self) -> OwnChanges {
        self.nets.get(&self.mark.net).cloned().unwrap_or_default()
    }

    /// Returns the history as entries. Each entry comes after those that it refers to.
    pub(super) fn entries(&self) -> Vec<JournalEntry> {
        let intent = |turned: &TurnedKnob| JournalEntry::Intent(Box::new(turned.intent.clone()));
        let also = |turned: &TurnedKnob| {
            let seq = turned.intent.seq;
            let others = turned.written.iter().skip(1).cloned();
            others.map(move |to| JournalEntry::Also { seq, to }).collect::<Vec<_>>()
        };
        let seen = |(id, (device, seen)): (&u32, &(u32, SettingsSnapshot))| JournalEntry::Seen {
            id: *id,
            device: *device,
            seen: seen.clone(),
        };
        let net = |(id, net): (&u32, &OwnChanges)| JournalEntry::Net { id: *id, net: net.clone() };
        let left = |(device, to): (&u32, &Departure)| JournalEntry::Left { device: *device, to: *to };
        let turned = self.turned.iter().map(intent).chain(self.turned.iter().flat_map(also));
        let snapshots = self.seen.iter().map(seen).chain(self.nets.iter().map(net));
        turned.chain(snapshots).chain(self.left.iter().map(left)).collect()
    }

    /// Returns, one line each, the ids that the history refers to but does not contain.
    pub(super) fn dangling(&self) -> Vec<String> {
        let ProgressMark { turning, seen, net, .. } = self.mark;
        let is_seen = |id: u32| id == 0 || self.seen.contains_key(&id);
        let is_turned = |seq: u32| {
            [0, ProgressMark::DONE].contains(&seq)
                || (seq == ProgressMark::SIDE_EFFECTS && seen != 0)
                || self.turned(seq).is_some()
        };
        let snapshots = self.turned.iter().map(|turned| turned.intent.seen).chain([seen]);
        let snapshots =
            snapshots.filter(|id| !is_seen(*id)).map(|id| format!("what was seen before a write ({id})"));
        let net = (net != 0 && !self.nets.contains_key(&net)).then(|| format!("what was changed ({net})"));
        let turn = (!is_turned(turning)).then(|| format!("the write that was under way ({turning})"));
        snapshots.chain(net).chain(turn).map(|what| format!("{what} is named, and missing")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_is_overwritten_has_one_width() {
        let text = |mark: ProgressMark| serde_json::to_string(&JournalEntry::Mark(mark)).unwrap();
        let width = text(ProgressMark::default()).len();
        let first = ProgressMark { lines: 2, ..ProgressMark::default() };
        let width = text(first).len().max(width);
        for n in [1, u32::MAX] {
            let mark = ProgressMark { turning: n, seen: n, net: n, at_s: n, lines: n };
            assert_eq!(text(mark).len(), width);
            assert_eq!(serde_json::from_str::<JournalEntry>(&text(mark)).unwrap(), JournalEntry::Mark(mark));
        }
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert!(serde_json::from_str::<JournalEntry>(r#"{"entry":"also","seq":1,"to":"x"}"#).is_ok());
        for bad in [
            r#"{"entry":"also","seq":1,"to":"x","path":"/etc/passwd"}"#,
            r#"{"entry":"run","seq":1}"#,
            r#"{"entry":"mark","turning":"0","seen":"0","net":"0","at_s":"0","seq2":"0"}"#,
        ] {
            assert!(serde_json::from_str::<JournalEntry>(bad).is_err(), "{bad}");
        }
    }
}
