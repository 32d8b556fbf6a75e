//! The result of a copy of files.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER_PERMISSIVE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// The silence of the path after which a copy gives up, as a multiple of the longest wait of a run: five minutes with
/// [`crate::PATIENCE`].
pub const COPY_PATIENCE_TIMES: u64 = 10;

/// The largest total size of the names of `copy --files-from`, in bytes.
pub const MOST_NAME_BYTES: usize = 64 << 20;

/// The largest number of names of `copy --files-from`. A short name takes many times its own size in memory.
pub const MOST_NAMES: usize = 4_000_000;

/// The counts of a copy at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyCounts {
    /// Entries that the walk of the source has found.
    pub found: u64,
    /// Bytes of their content.
    pub found_bytes: Bytes,
    /// True if the walk is complete, so that `found` and `found_bytes` are final.
    pub is_walked: bool,
    /// Entries that are done: copied, created, unchanged or failed.
    pub settled: u64,
    /// Bytes of content that the target has received or had already.
    pub moved_bytes: Bytes,
    /// Broken flows that are being opened again.
    pub broken_flows: u32,
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyOutcome {
    /// Files whose content was sent.
    pub copied: u64,
    /// Bytes of their content, without holes of 1 MiB or more.
    pub copied_bytes: Bytes,
    /// Bytes that were sent: fewer than `copied_bytes` if the target had a part (from an interrupted copy, or with
    /// `--checksum`), more if files changed or flows broke during the copy.
    pub sent_bytes: Bytes,
    /// Folders, symbolic links, hard links, FIFOs and devices that were created.
    pub made: u64,
    /// Entries that the target had already.
    pub unchanged: u64,
    /// Entries that could not be copied.
    pub failed: u64,
    /// True if the target ran out of space, which ended the copy.
    pub is_full: bool,
    /// The entries that could not be copied, with their names, up to 3 MB.
    pub failures: Vec<CopyFailure>,
    /// The remaining entries that could not be copied, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<CopyFailureKind>,
    /// Reason why some data may not be on stable storage; empty if all of it is.
    pub unfinished: String,
    /// Attributes that should have been kept and that the target did not accept, by kind.
    pub lost: Vec<CopyLoss>,
    /// Entries that only the target had and that `--delete` removed.
    pub deleted: u64,
    /// Reason why `--delete` removed nothing; empty if it removed all entries that only the target had.
    pub not_deleted: String,
}

/// The attributes of entries that a copy keeps, besides their names and their content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyKeeping {
    /// Kinds of attributes that are kept.
    pub kinds: BTreeSet<CopyKept>,
    /// True to copy devices, if the far end is root.
    pub devices: bool,
}

impl CopyKeeping {
    /// Returns true if the copy keeps `kind`.
    pub fn has(&self, kind: CopyKept) -> bool {
        self.kinds.contains(&kind)
    }
}

impl Default for CopyKeeping {
    /// All kinds are kept. Devices are not copied.
    fn default() -> Self {
        CopyKeeping { kinds: CopyKept::ALL.into(), devices: false }
    }
}

/// A kind of attribute that a copy can keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyKept {
    /// The permissions. The set-user-ID, set-group-ID and sticky bits are kept only together with the owner.
    Mode,
    /// The time of the last change of content.
    Times,
    /// Owner and group by number, only if the far end is root.
    Owner,
    /// Extended attributes; those outside `user.*` only if the far end is root.
    Xattrs,
    /// POSIX access control lists.
    Acls,
}

impl CopyKept {
    /// All kinds.
    pub const ALL: [CopyKept; 5] =
        [CopyKept::Mode, CopyKept::Times, CopyKept::Owner, CopyKept::Xattrs, CopyKept::Acls];
}

/// Attributes of one kind that the target did not accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyLoss {
    /// The kind.
    pub kind: CopyLossKind,
    /// The number of entries.
    pub entries: u64,
    /// The name of the first such entry at the target, relative to the target's folder.
    pub name_hex: PathBytes,
    /// The reason for the first entry.
    pub why: String,
}

/// A kind of attribute that a target may not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyLossKind {
    /// The permissions.
    Mode,
    /// The time of the last change of content.
    Times,
    /// Owner and group.
    Owner,
    /// Extended attributes.
    Xattrs,
    /// POSIX access control lists.
    Acls,
    /// A hard link: the entry became a separate file. The file has more links than the file system allows, or the file
    /// system has no hard links.
    HardLink,
}

impl From<CopyKept> for CopyLossKind {
    fn from(kept: CopyKept) -> Self {
        match kept {
            CopyKept::Mode => CopyLossKind::Mode,
            CopyKept::Times => CopyLossKind::Times,
            CopyKept::Owner => CopyLossKind::Owner,
            CopyKept::Xattrs => CopyLossKind::Xattrs,
            CopyKept::Acls => CopyLossKind::Acls,
        }
    }
}

/// An entry that could not be copied.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyFailure {
    /// Its name at the target, relative to the target's folder.
    pub name_hex: PathBytes,
    /// The reason.
    pub why: String,
}

/// Entries that could not be copied for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyFailureKind {
    /// The number of entries.
    pub entries: u64,
    /// The reason.
    pub why: String,
}

impl CopyOutcome {
    /// Returns true if the target has every entry with all attributes to keep, on stable storage, and if all entries to
    /// delete are gone.
    pub fn is_complete(&self) -> bool {
        let is_there = self.failed == 0 && self.unfinished.is_empty() && self.lost.is_empty();
        is_there && self.not_deleted.is_empty()
    }
}

/// The result of a comparison of source and target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyComparison {
    /// Entries of the source that were compared.
    pub compared: u64,
    /// Bytes of the compared files.
    pub compared_bytes: Bytes,
    /// Entries that differ at the target. Each was listed.
    pub differing: u64,
    /// Entries that could not be compared.
    pub failed: u64,
    /// The first of the entries that could not be compared.
    pub failures: Vec<CopyFailure>,
    /// Entries that only the target has. Each was listed. They are counted only if a copy would delete them and no
    /// entry failed.
    pub extra: u64,
    /// Reason why a copy without a limit on deletions would delete nothing: a source folder is empty. Empty if there is
    /// no such folder.
    pub empty_source: String,
}

/// The purpose of a comparison of source and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyCheck {
    /// Predict a copy. Files are compared as a copy would: by length and time, or by content (`--checksum`). An entry
    /// that a copy would not replace is a failure.
    DryRun,
    /// Verify that the target has the content of the source. Files of the same length are read at both ends.
    Verify,
    /// Verify the same for the target's disk: files are dropped from the target's page cache before they are read.
    VerifyDisk,
}

impl CopyCheck {
    /// Returns true if the comparison verifies the target, and false if it predicts a copy.
    pub fn verifies(self) -> bool {
        self != CopyCheck::DryRun
    }
}

/// An entry that differs at the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyDiffering {
    /// Its name at the target, relative to the target's folder.
    pub name_hex: PathBytes,
    /// The kind of the source's entry, or of the target's entry if only the target has it.
    pub kind: CopyEntryKind,
    /// The length of the source's file; zero for other entries.
    pub size_bytes: Bytes,
    /// How the target's entry differs.
    pub differs: BTreeSet<CopyDifference>,
}

/// A file whose copy is proven: the target has installed content with this digest, or had it before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyProven {
    /// Its name at the target, relative to the target's folder.
    pub name_hex: PathBytes,
    /// The BLAKE3 digest of its content; `None` if it has holes of 1 MiB or more, which the ends did not hash.
    pub digest_hex: Option<FileDigest>,
}

/// The BLAKE3 digest of a file. A document has it as hexadecimal digits, as b3sum(1) prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileDigest(pub [u8; 32]);

impl TryFrom<String> for FileDigest {
    type Error = &'static str;

    fn try_from(digits: String) -> Result<Self, &'static str> {
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok();
        let digest = bytes.and_then(|bytes| bytes.try_into().ok());
        digest.map(FileDigest).ok_or("a digest is written as 64 hexadecimal digits")
    }
}

impl From<FileDigest> for String {
    fn from(digest: FileDigest) -> Self {
        HEXLOWER_PERMISSIVE.encode(&digest.0)
    }
}

/// A kind of entry that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyEntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A hard link: another name of a file that was copied before.
    HardLink,
    /// A FIFO.
    Fifo,
    /// A block or character device.
    Device,
}

/// How the target's entry differs from the source's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyDifference {
    /// The target has no such entry.
    Missing,
    /// The entry is of another kind.
    Kind,
    /// The file has another length.
    Size,
    /// The files have the same length and other bytes. In a dry run: a copy would send the file again.
    Content,
    /// The symbolic links have different destinations.
    Link,
    /// The permissions differ.
    Mode,
    /// The modification time differs.
    Time,
    /// Owner or group differ.
    Owner,
    /// Extended attributes differ.
    Xattrs,
    /// The access control lists differ.
    Acls,
    /// The entry is a hard link. At the target it is not a link to the same file.
    Split,
    /// Only the target has the entry.
    Extra,
}

impl CopyDifference {
    /// Returns true if a copy sends a file's content because of this difference. Unless files are compared
    /// `by_content`, a different time suffices, whatever the length.
    pub fn sends_content(self, by_content: bool) -> bool {
        match self {
            Self::Missing | Self::Kind | Self::Size | Self::Content | Self::Split => true,
            Self::Time => !by_content,
            Self::Link | Self::Mode | Self::Owner | Self::Xattrs | Self::Acls | Self::Extra => false,
        }
    }
}

/// Files that interrupted copies have left in a target's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyLeftovers {
    /// The number of incomplete files.
    pub number: u64,
    /// The bytes that they take on the file system.
    pub bytes: Bytes,
    /// The first 4,096 of these files, oldest first.
    pub files: Vec<CopyLeftover>,
    /// Other entries in the same folder. No copy has created them, and they stay.
    pub others: u64,
}

/// An incomplete file that a copy has left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyLeftover {
    /// Its name in `.landspeed-copy`, which is derived from the name of the copied entry.
    pub name: String,
    /// The bytes that it takes on the file system.
    pub size_bytes: Bytes,
    /// Time since a copy last changed it.
    pub age_ns: Nanos,
}

/// The bytes of a path, which need not be valid text. A document has them as hexadecimal digits, because the reader
/// escapes the text of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PathBytes(pub Vec<u8>);

impl TryFrom<String> for PathBytes {
    type Error = &'static str;

    fn try_from(digits: String) -> Result<Self, &'static str> {
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes());
        bytes.map(PathBytes).map_err(|_| "a path is written as pairs of hexadecimal digits")
    }
}

impl From<PathBytes> for String {
    fn from(path: PathBytes) -> Self {
        HEXLOWER_PERMISSIVE.encode(&path.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_all_its_bytes() {
        let path = PathBytes(b"a\n\xff/b".to_vec());
        let text = serde_json::to_string(&path).unwrap();
        assert_eq!(text, "\"610aff2f62\"");
        assert_eq!(crate::decode::<PathBytes>(text.as_bytes()).unwrap(), path);
        for bad in ["\"6\"", "\"zz\"", "7"] {
            assert!(crate::decode::<PathBytes>(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_digest_has_all_its_digits() {
        let digest = FileDigest([0xa5; 32]);
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(text, format!("\"{}\"", "a5".repeat(32)));
        assert_eq!(crate::decode::<FileDigest>(text.as_bytes()).unwrap(), digest);
        for bad in
            ["\"a5\"".to_owned(), format!("\"{}\"", "a5".repeat(33)), format!("\"{}\"", "\\n".repeat(32))]
        {
            assert!(crate::decode::<FileDigest>(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
