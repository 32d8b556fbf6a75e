//! The messages of a copy on its flows. Names travel as bytes here, and nowhere else (docs/decisions/0075-copy.md).

mod frame;
#[cfg(test)]
pub(crate) mod fuzz;
mod lists;
mod sparse;
mod swept;
mod version;

use serde::{Deserialize, Serialize};

pub(crate) use frame::{FrameReader, FrameWriter, encode};
pub(crate) use lists::{few, offered};
pub(crate) use sparse::SparsePiece;
pub(crate) use swept::Swept;

use crate::digest::Digest;
use crate::extras::FolderNames;
use crate::identity::Timestamp;
use crate::metadata::{DeviceNumber, LostKind, Metadata};
use crate::name::RelativeName;

/// The largest number of entries in one offer.
pub(crate) const MOST_OFFERED: usize = 256;
/// The largest number of pieces in one message.
pub(crate) const MOST_PIECES: usize = 256;
/// The largest number of outcomes in one message.
pub(crate) const MOST_OUTCOMES: usize = 2_048;

/// Numbers what a message lists from `first`. Numbers end with the largest one, which no honest end uses.
pub(crate) fn numbered<I: IntoIterator>(first: u64, listed: I) -> impl Iterator<Item = (u64, I::Item)> {
    (0..).zip(listed).map(move |(distance, one)| (first.saturating_add(distance), one))
}

/// A message of the source to the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToTarget {
    /// Entries of the source, numbered from `first`. Answered with [`ToSource::Answers`].
    Offer {
        first: u64,
        #[serde(deserialize_with = "offered")]
        entries: Vec<OfferedEntry>,
    },
    /// Folders whose contents are complete, numbered from `first`: the target sets their modes and times. Answered with
    /// [`ToSource::Answers`].
    Folders {
        first: u64,
        #[serde(deserialize_with = "offered")]
        entries: Vec<OfferedEntry>,
    },
    /// Pieces of files. The frame's body has the bytes of those that are sent, one after the other. Each is answered
    /// with an outcome ([`ToSource::Outcomes`]).
    Pieces(#[serde(deserialize_with = "few")] Vec<PieceHeader>),
    /// The target has taken all pieces of a file of several pieces, whose digest is this. Answered with an outcome.
    Install { entry: u64, digest: Digest },
    /// The source sends no more of this entry. Answered with [`EntryOutcome::Withdrawn`].
    Withdraw { entry: u64 },
    /// All entries are settled. Answered with [`ToSource::Finished`].
    Finish,
    /// The source's last message: it has heard that all is finished, or it cannot continue.
    Over,
    /// Pieces as in [`ToTarget::Pieces`], of which some have holes. The body has the data alone.
    SparsePieces(#[serde(deserialize_with = "few")] Vec<SparsePiece>),
    /// All pieces of a file of several pieces that are holes, as ranges of (first, number). Answered with
    /// [`EntryOutcome::Holes`].
    Holes {
        entry: u64,
        #[serde(deserialize_with = "lists::ranges")]
        holes: Vec<(u32, u32)>,
    },
    /// The names in folders of the source. The target looks for extras, and removes them if `removes`. Answered with
    /// [`ToSource::Swept`].
    Names {
        number: u64,
        #[serde(deserialize_with = "few")]
        folders: Vec<FolderNames>,
        removes: bool,
    },
    /// Nothing is left for this flow, unless the work of other flows leads to more. Its time does not show what holds
    /// the copy.
    Rest,
    /// How much can still be written? Answered with [`ToSource::Room`], a moment later if it is asked `again`.
    Room { again: bool },
}

/// An entry of the source's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OfferedEntry {
    pub(crate) name: RelativeName,
    pub(crate) kind: EntryKind,
    /// The mode, as in chmod(2).
    pub(crate) mode: u32,
    pub(crate) modified: Timestamp,
    pub(crate) metadata: Metadata,
    pub(crate) link: HardLink,
}

/// How an entry relates to the other names of its file (link(2)).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum HardLink {
    /// It has no other names, or is to have none.
    #[default]
    Alone,
    /// Others that follow may be links to this one.
    First,
    /// It is to be a link to the entry with this name, which the target has.
    To(RelativeName),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntryKind {
    File {
        /// The length in bytes.
        size: u64,
    },
    Folder,
    Symlink {
        /// The target of the link, which is never followed.
        to: Vec<u8>,
    },
    Fifo,
    Device(DeviceNumber),
}

/// A piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PieceHeader {
    pub(crate) entry: u64,
    pub(crate) index: u32,
    /// The number of its bytes.
    pub(crate) length: u32,
    pub(crate) digest: Digest,
    /// True if the body has the piece; false if the target has it from an interrupted copy or in place, and compares its digest.
    pub(crate) is_sent: bool,
}

/// A message of the target to the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToSource {
    /// The answers to an offer, in its order.
    Answers {
        first: u64,
        #[serde(deserialize_with = "few")]
        answers: Vec<Answer>,
    },
    /// The outcomes of pieces and entries, each with the number of its entry. Those that become known together share a
    /// message, up to [`MOST_OUTCOMES`].
    Outcomes(#[serde(deserialize_with = "lists::outcomes")] Vec<(u64, EntryOutcome)>),
    /// The metadata that the target could not keep. Comes before [`ToSource::Finished`], if anything was lost.
    Lost(#[serde(deserialize_with = "few")] Vec<LostKind>),
    /// Everything is on stable storage; or why it is not known to be.
    Finished(Result<(), Failure>),
    /// What was found or removed of the folders in a message with names.
    Swept { number: u64, swept: Swept },
    /// The bytes that can still be written; the largest number if that is not known.
    Room { free: u64 },
}

/// The target's answer to an offered entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The target has the entry. Nothing was changed.
    Unchanged,
    /// The target has made the entry, which has no content to send.
    Made,
    /// All pieces are to be sent.
    Send,
    /// The target has a part of the file, or a file of its length in place: it compares the pieces of these ranges, each as
    /// (first, number). All others are to be sent.
    Compare(#[serde(deserialize_with = "lists::ranges")] Vec<(u32, u32)>),
    Failed(Failure),
}

/// The outcome of a piece or of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntryOutcome {
    /// The target has taken the piece with this index.
    Taken(u32),
    /// The target's piece with this index differs: the source is to send its own.
    Again(u32),
    /// The entry has its name, and its content is on stable storage.
    Installed,
    Withdrawn,
    Failed(Failure),
    /// The target has taken the holes of the file.
    Holes,
    /// The entry was offered as a link, and the target cannot make one: it becomes a file of its own, and an answer follows.
    Apart,
    /// The target has a file with this content in place. It has set what is kept beside the content, and no more.
    Same,
}

/// Why an operation on an entry failed. The text for people is made where it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) operation: Operation,
    /// The error number of the system, as in errno(3); zero if the system refused nothing.
    pub(crate) errno: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    Open,
    Read,
    ReadFolder,
    MakeFolder,
    MakeLink,
    MakeSpecial,
    Create,
    Write,
    SetModeAndTimes,
    ReadAttributes,
    Sync,
    Install,
    /// The file changed while it was compared.
    Changed,
    /// The file changed while it was read, twice.
    Unsteady,
    /// The entry is a socket, which no copy can make.
    Special,
    /// The entry is a device, which the copy leaves out.
    Device,
    /// The bytes that arrived do not have the digest that came with them.
    Damaged,
    /// The name is too long, or one that a copy keeps for itself.
    Name,
    Remove,
    /// The folder is not case-sensitive, or treats composed and decomposed letters as the same.
    RemoveWithoutCase,
    /// As many entries were removed as were counted, or as may be.
    RemoveBeyond,
    /// Another source has an entry of this name.
    NameTaken,
}

impl Failure {
    pub(crate) fn of(operation: Operation, error: &std::io::Error) -> Self {
        Failure { operation, errno: error.raw_os_error().unwrap_or_default() }
    }

    /// Returns a failure in which the system refused nothing.
    pub(crate) fn plain(operation: Operation) -> Self {
        Failure { operation, errno: 0 }
    }

    /// Returns true if the target has no room: no further entry can succeed.
    pub(crate) fn is_full(&self) -> bool {
        [libc::ENOSPC, libc::EDQUOT].contains(&self.errno)
    }

    /// Returns a failure of the target in words, for the source's report.
    pub(crate) fn words_at_target(&self) -> String {
        format!("at the target: {}", self.words())
    }

    /// Returns the failure in words.
    pub(crate) fn words(&self) -> String {
        let what = match self.operation {
            Operation::Open => "cannot be opened",
            Operation::Read => "cannot be read",
            Operation::ReadFolder => "its entries cannot be read",
            Operation::MakeFolder => "the folder cannot be made",
            Operation::MakeLink => "the symbolic link cannot be made",
            Operation::MakeSpecial => "the FIFO or device cannot be made",
            Operation::Create => "cannot be created",
            Operation::Write => "cannot be written",
            Operation::SetModeAndTimes => "its owner, mode and times cannot be set",
            Operation::ReadAttributes => "its extended attributes cannot be read",
            Operation::Sync => "cannot be put on stable storage",
            Operation::Install => "cannot be put in place",
            Operation::Changed => "changed while it was compared",
            Operation::Unsteady => "changed while it was read, and again when it was read anew",
            Operation::Special => "is a socket, and was left out",
            Operation::Device => {
                "is a device, and was left out: --devices copies it where the far end is root"
            }
            Operation::Damaged => "arrived damaged",
            Operation::Name => "has a name that cannot be copied",
            Operation::Remove => "cannot be deleted",
            Operation::RemoveWithoutCase => {
                "nothing was deleted in it: its file system takes names with other letters, or other forms of letters, for one"
            }
            Operation::RemoveBeyond => {
                "was not deleted: as many entries were deleted as were counted before, or as may be"
            }
            Operation::NameTaken => {
                "has the name of an entry of a source before it: copy them into folders of their own"
            }
        };
        match self.errno {
            0 => what.to_owned(),
            libc::ENOTUNIQ => {
                format!(
                    "{what}: its file system takes its name for that of another entry: rename one of the two"
                )
            }
            errno => format!("{what}: {}", std::io::Error::from_raw_os_error(errno)),
        }
    }
}
