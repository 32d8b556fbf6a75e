//! The lines of a journal file.
//!
//! ```text
//! {"entry":"header","format":1,"boot_id":"…","netns_cookie":7,"agent":{…},"guardian":{…}}
//! {"entry":"turning","seq":"0000000002"}
//! {"entry":"intent","seq":1,"knob":"tso","device":{…},"before":"off","to":"on","disturbed":{…}}
//! {"entry":"intent","seq":2,"knob":"mtu","device":{…},"before":"1500","to":"9000","disturbed":{…}}
//! {"entry":"also","seq":2,"to":"4148"}
//! ```
//!
//! The file is appended to, but for one field of constant width: `turning` names the intent whose knob is
//! being written at this moment, and is zero between turns. It tells a value that landspeed left half-way
//! (which is put back whatever it reads) from one that somebody else has chosen (which is left). As it is
//! overwritten in place, a knob that is toggled thousands of times between known values costs no growth.

use landspeed_daemon::Process;
use serde::{Deserialize, Serialize};

use super::identity::Device;
use super::snapshot::Snapshot;

/// The format that this build writes and the only one it takes: a journal does not outlive a boot.
pub(super) const FORMAT: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "kebab-case")]
pub(super) enum Entry {
    Header(Header),
    Turning(Turning),
    Intent(Box<Intent>),
    Also(Also),
}

/// Whose journal this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) format: u32,
    pub(super) boot_id: String,
    pub(super) netns_cookie: u64,
    pub(super) agent: Process,
    pub(super) guardian: Process,
}

/// The intent being written, in [`Turning::WIDTH`] digits; zero for none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Turning {
    pub(super) seq: String,
}

impl Turning {
    pub(super) const WIDTH: usize = 10;

    pub(super) fn at(seq: u32) -> Turning {
        Turning { seq: format!("{seq:0width$}", width = Self::WIDTH) }
    }
}

/// The first turn of a knob: on disk before the write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Intent {
    /// From 1, ascending.
    pub(super) seq: u32,
    pub(super) knob: String,
    /// The device that the place named; `None` for a place without one.
    pub(super) device: Option<Device>,
    /// The value that is put back.
    pub(super) before: String,
    /// The first value written.
    pub(super) to: String,
    /// What the turn can disturb, as it was just before.
    #[serde(default)]
    pub(super) disturbed: Snapshot,
}

/// Another value of a knob that has an intent: on disk before it is written for the first time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Also {
    /// The knob's intent.
    pub(super) seq: u32,
    pub(super) to: String,
}

/// An intent with all that was written since.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turned {
    pub(super) intent: Intent,
    /// Every value ever written.
    pub(super) written: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_that_is_overwritten_has_one_width() {
        for seq in [0, 1, u32::MAX] {
            let turning = Turning::at(seq);
            assert_eq!(turning.seq.len(), Turning::WIDTH);
            assert_eq!(turning.seq.parse(), Ok(seq));
        }
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert!(serde_json::from_str::<Entry>(r#"{"entry":"also","seq":1,"to":"x"}"#).is_ok());
        for bad in [
            r#"{"entry":"also","seq":1,"to":"x","path":"/etc/passwd"}"#,
            r#"{"entry":"run","seq":1}"#,
            r#"{"entry":"turning","seq":"0","seq2":"0"}"#,
        ] {
            assert!(serde_json::from_str::<Entry>(bad).is_err(), "{bad}");
        }
    }
}
