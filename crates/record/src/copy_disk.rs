//! The activity of the disk under one end of a copy, from the disk's counters.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{ByteRate, Bytes, Nanos};

/// The bytes of a disk's name, with a zero at its end (DISK_NAME_LEN of include/linux/blkdev.h).
const NAME: usize = 32;

/// The kernel's name of a disk or of a partition, such as "vda1".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct DiskName([u8; NAME]);

impl DiskName {
    fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        std::str::from_utf8(&self.0[..end]).unwrap_or_default()
    }
}

impl TryFrom<String> for DiskName {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, &'static str> {
        let is_name = (1..NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name {
            return Err("the name of a disk has 1 to 31 characters, which are ASCII and no spaces");
        }
        let mut bytes = [0; NAME];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(DiskName(bytes))
    }
}

impl From<DiskName> for String {
    fn from(name: DiskName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for DiskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The activity of the disk under one end of a copy during the copy, for all programs of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyDiskTimes {
    /// Kernel name of the disk or partition with the file system.
    pub device: DiskName,
    /// Length of the observed time.
    pub observed_ns: Nanos,
    /// Bytes read from the disk.
    pub read_bytes: Bytes,
    /// Bytes written to the disk.
    pub written_bytes: Bytes,
    /// Completed reads and writes.
    pub requests: u64,
    /// Time with at least one request under way.
    pub busy_ns: Nanos,
    /// Sum of the times of all completed reads and writes, each from its submission to its completion.
    pub requested_ns: Nanos,
}

impl CopyDiskTimes {
    /// Returns the differences from `earlier`; `None` if `earlier` is of another disk.
    pub(crate) fn since(self, earlier: Option<Self>) -> Option<Self> {
        let Some(earlier) = earlier else { return Some(self) };
        (self.device == earlier.device).then(|| CopyDiskTimes {
            device: self.device,
            observed_ns: self.observed_ns - earlier.observed_ns,
            read_bytes: self.read_bytes - earlier.read_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
            requests: self.requests.saturating_sub(earlier.requests),
            busy_ns: self.busy_ns - earlier.busy_ns,
            requested_ns: self.requested_ns - earlier.requested_ns,
        })
    }
}

/// The rates and the load of a disk during a copy, for all programs of the host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyDiskUse {
    /// Kernel name of the disk or partition with the file system.
    pub device: DiskName,
    /// Rate of reads.
    pub read_bytes_per_s: ByteRate,
    /// Rate of writes.
    pub written_bytes_per_s: ByteRate,
    /// Share of the time with at least one request under way.
    pub busy_share: f64,
    /// Mean number of reads and writes under way.
    pub mean_queue_requests: f64,
    /// Mean time of a read or write.
    pub mean_request_ns: Nanos,
    /// True if the disk read (at the source) or wrote (at the target) over 1.3 times the bytes of the copy: other
    /// programs or the file system itself caused a large part. False at the source of a copy that compares content.
    pub has_others: bool,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the counters of a disk of this name that has written for some seconds.
    pub(crate) fn written(name: &str, seconds: u64) -> CopyDiskTimes {
        CopyDiskTimes {
            device: DiskName::try_from(name.to_owned()).expect("a name"),
            observed_ns: Nanos::secs(seconds),
            read_bytes: Bytes(0),
            written_bytes: Bytes::mib(seconds),
            requests: seconds,
            busy_ns: Nanos::secs(seconds),
            requested_ns: Nanos::secs(3 * seconds),
        }
    }

    #[test]
    fn a_name_is_short_and_does_nothing_to_a_terminal() {
        let name = |name: &str| DiskName::try_from(name.to_owned()).map(String::from);
        for good in ["vda1", "cciss!c0d0p1", &"x".repeat(31)] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        for bad in ["", "a b", "a\u{1b}", "a\0", "ä", &"x".repeat(32)] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
        let text = serde_json::to_string(&written("vda1", 1).device).unwrap();
        assert_eq!(text, "\"vda1\"");
        assert_eq!(crate::decode::<DiskName>(text.as_bytes()).unwrap().to_string(), "vda1");
    }

    #[test]
    fn an_interval_is_that_of_one_disk() {
        let (early, late) = (written("vda", 2), written("vda", 5));
        assert_eq!(late.since(Some(early)), Some(written("vda", 3)));
        assert_eq!(late.since(None), Some(late));
        assert_eq!(late.since(Some(written("vdb", 2))), None);
        // A peer that counts backwards gives zeros.
        assert_eq!(early.since(Some(late)), Some(written("vda", 0)));
    }
}
