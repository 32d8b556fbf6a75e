//! What a copy of files came to.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER_PERMISSIVE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// The silence after which a copy gives up its path, as a multiple of the longest wait of a run: five minutes with
/// [`crate::PATIENCE`].
pub const COPY_PATIENCE_TIMES: u64 = 10;

/// The largest number of bytes of all names of `copy --files-from`.
pub const MOST_NAME_BYTES: usize = 64 << 20;

/// The largest number of names of `copy --files-from`: a short one takes many times its bytes of memory.
pub const MOST_NAMES: usize = 4_000_000;

/// The counts of a copy at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyCounts {
    /// Entries that the walk of the source has found.
    pub found: u64,
    /// Bytes of their content.
    pub found_bytes: Bytes,
    /// True if the walk is over, so that `found` and `found_bytes` are final.
    pub is_walked: bool,
    /// Entries that are settled: copied, made, unchanged or failed.
    pub settled: u64,
    /// Bytes of content that the target has taken, or had already.
    pub moved_bytes: Bytes,
    /// Flows that have broken and are being opened again.
    pub broken_flows: u32,
}

/// What a copy came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CopyOutcome {
    /// Files whose content was sent.
    pub copied: u64,
    /// Bytes of their content, without holes of a MiB and more.
    pub copied_bytes: Bytes,
    /// Bytes that were sent: fewer if the target had some (of an interrupted copy, or with `--checksum`), more if files changed or
    /// flows broke meanwhile.
    pub sent_bytes: Bytes,
    /// Folders, symbolic links, hard links, FIFOs and devices that were made.
    pub made: u64,
    /// Entries that the target had already.
    pub unchanged: u64,
    /// Entries that could not be copied.
    pub failed: u64,
    /// True if the target had no room, which ended the copy.
    pub is_full: bool,
    /// The entries that could not be copied, with their names: the first 3 MB of them.
    pub failures: Vec<CopyFailure>,
    /// The others, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<CopyFailureKind>,
    /// Why it is not known that everything is on stable storage; empty if it is.
    pub unfinished: String,
    /// What was to be kept of entries, and the target did not take, by kind.
    pub lost: Vec<CopyLoss>,
    /// Entries that only the target had, and that `--delete` has removed.
    pub deleted: u64,
    /// Why `--delete` has removed nothing; empty if it has removed what only the target had.
    pub not_deleted: String,
}

/// What a copy keeps of entries, beside their names and their content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyKeeping {
    /// What is kept of each entry.
    pub kinds: BTreeSet<CopyKept>,
    /// True to copy devices, where the far end is root.
    pub devices: bool,
}

impl CopyKeeping {
    /// Returns true if the copy keeps `kind`.
    pub fn has(&self, kind: CopyKept) -> bool {
        self.kinds.contains(&kind)
    }
}

impl Default for CopyKeeping {
    /// Everything is kept, and devices are left out.
    fn default() -> Self {
        CopyKeeping { kinds: CopyKept::ALL.into(), devices: false }
    }
}

/// A kind of what a copy keeps of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyKept {
    /// The permissions; set-user-ID, set-group-ID and sticky bit only where the owner is kept.
    Mode,
    /// The time of the last change of content.
    Times,
    /// Owner and group by their numbers, only where the far end is root.
    Owner,
    /// Extended attributes; beside `user.*` only where the far end is root.
    Xattrs,
    /// POSIX access control lists.
    Acls,
}

impl CopyKept {
    /// All kinds.
    pub const ALL: [CopyKept; 5] =
        [CopyKept::Mode, CopyKept::Times, CopyKept::Owner, CopyKept::Xattrs, CopyKept::Acls];
}

/// What the target did not take of entries that it has otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyLoss {
    /// What it did not take.
    pub kind: CopyLossKind,
    /// The number of entries.
    pub entries: u64,
    /// The name of the first of them at the target, relative to the target's folder.
    pub name_hex: PathBytes,
    /// The reason for that one.
    pub why: String,
}

/// A kind of what a target may not take of an entry.
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
    /// A hard link: the entry became a file of its own. The file has more links than the file system allows, or it has no
    /// links.
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
    /// Returns true if every entry is at the target with what was to be kept of it, and on stable storage, and if what is to be
    /// deleted is gone.
    pub fn is_complete(&self) -> bool {
        let is_there = self.failed == 0 && self.unfinished.is_empty() && self.lost.is_empty();
        is_there && self.not_deleted.is_empty()
    }
}

/// What a comparison of source and target came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyComparison {
    /// Entries of the source that were compared.
    pub compared: u64,
    /// Bytes of the files among them.
    pub compared_bytes: Bytes,
    /// Entries that differ at the target, each of which was listed.
    pub differing: u64,
    /// Entries that could not be compared.
    pub failed: u64,
    /// The first of the entries that could not be compared.
    pub failures: Vec<CopyFailure>,
    /// Entries that only the target has, each of which was listed. They are looked for where a copy is to delete them, if no
    /// entry failed.
    pub extra: u64,
    /// Why a copy would delete nothing although an unbounded number of entries may be deleted: a source folder is empty. Empty if
    /// there is no such folder.
    pub empty_source: String,
}

/// What a comparison of source and target is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyCheck {
    /// To say what a copy would do. Files are compared as by the copy: by length and time, or by content (`--checksum`). What a
    /// copy would not replace is a failure.
    DryRun,
    /// To say whether the target has what the source has. Files of the same length are read at both ends.
    Verify,
    /// To say the same of the target's disk: what its system holds of the files in memory is dropped before they are read.
    VerifyDisk,
}

impl CopyCheck {
    /// Returns true unless it is to say what a copy would do.
    pub fn verifies(self) -> bool {
        self != CopyCheck::DryRun
    }
}

/// An entry that differs at the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyDiffering {
    /// Its name at the target, relative to the target's folder.
    pub name_hex: PathBytes,
    /// What the source has; of an entry that only the target has, what that is.
    pub kind: CopyEntryKind,
    /// The length of the source's file; zero for other entries.
    pub size_bytes: Bytes,
    /// How the target's entry differs.
    pub differs: BTreeSet<CopyDifference>,
}

/// A file whose copy is proven: the target has put in place what has this digest, or had it there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyProven {
    /// Its name at the target, relative to the target's folder.
    pub name_hex: PathBytes,
    /// The BLAKE3 digest of its content; `None` if it has holes of a MiB and more, which the ends did not hash.
    pub digest_hex: Option<FileDigest>,
}

/// The BLAKE3 digest of a file. In a document it is hexadecimal digits, as b3sum(1) prints it.
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
    /// A hard link: a further name of a file that has come before.
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
    /// The target has none.
    Missing,
    /// It is of another kind.
    Kind,
    /// The file has another length.
    Size,
    /// The file has the same length and other bytes; in a dry run: a copy sends it again all the same.
    Content,
    /// The symbolic link has another text.
    Link,
    /// The permissions differ.
    Mode,
    /// The time of the last change differs.
    Time,
    /// Owner or group differ.
    Owner,
    /// Extended attributes differ.
    Xattrs,
    /// The access control lists differ.
    Acls,
    /// The entry is a hard link, and is not one to the same file at the target.
    Split,
    /// Only the target has it.
    Extra,
}

impl CopyDifference {
    /// Returns true if a copy sends a file's content for this difference. Unless it compares files `by_content`, it does so for
    /// another time whatever the length.
    pub fn sends_content(self, by_content: bool) -> bool {
        match self {
            Self::Missing | Self::Kind | Self::Size | Self::Content | Self::Split => true,
            Self::Time => !by_content,
            Self::Link | Self::Mode | Self::Owner | Self::Xattrs | Self::Acls | Self::Extra => false,
        }
    }
}

/// What copies that were interrupted have left in a target's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CopyLeftovers {
    /// The number of incomplete files.
    pub number: u64,
    /// The bytes that they take on the file system.
    pub bytes: Bytes,
    /// The first 4,096 of them, the oldest first.
    pub files: Vec<CopyLeftover>,
    /// Other entries beside them, which no copy has made, and which stay.
    pub others: u64,
}

/// An incomplete file that a copy has left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyLeftover {
    /// Its name in `.landspeed-copy`, which follows from the name of the entry that was copied.
    pub name: String,
    /// The bytes that it takes on the file system.
    pub size_bytes: Bytes,
    /// Time since a copy has last changed it.
    pub age_ns: Nanos,
}

/// The bytes of a path, which need not be text. In a document they are hexadecimal digits, because the text of a document is
/// escaped when it is read.
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
