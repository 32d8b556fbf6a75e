//! Entries that only the target has: a copy can remove them, and a dry run lists them.
//!
//! The source names what each of its folders has, by digests: 16 bytes a name, whatever its length. The target reads
//! its own folder once for a message, and takes what has none of these digests for an extra. A folder with very many
//! entries is sent in parts, each with all digests of a range, so that no end has to keep anything between two
//! messages. If two names had one digest, an extra would stay: nothing else could happen.

mod forms;
mod listing;
mod sweep;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use forms::{ignores_form, is_in_other_case};
pub(crate) use listing::{NameTaker, list_names};
pub(crate) use sweep::Sweeper;

use crate::name::RelativeName;

/// The largest number of folders in a message.
pub(crate) const MOST_FOLDERS: usize = 256;
/// The largest number of digests in a message.
pub(crate) const MOST_NAMES: usize = 32_768;

/// The first bytes of the BLAKE3 digest of a name in its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct NameDigest([u8; 16]);

impl NameDigest {
    const LOWEST: NameDigest = NameDigest([0; 16]);

    pub(crate) fn of(name: &[u8]) -> Self {
        let mut digest = [0; 16];
        digest.copy_from_slice(&blake3::hash(name).as_bytes()[..16]);
        NameDigest(digest)
    }
}

/// The names in a folder of the source whose digests are in a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderNames {
    /// The folder's name at the target.
    pub(crate) folder: RelativeName,
    /// The lowest digest of the range.
    from: NameDigest,
    /// The digest above the range; `None` if it has no end.
    below: Option<NameDigest>,
    /// At most [`MOST_NAMES`]. They take as many bytes in a message as in memory.
    names: Vec<NameDigest>,
}

impl FolderNames {
    /// Returns the parts of a folder that has these names.
    pub(crate) fn parts(folder: &RelativeName, mut names: Vec<NameDigest>) -> Vec<FolderNames> {
        names.sort_unstable();
        let mut parts: Vec<FolderNames> = names
            .chunks(MOST_NAMES)
            .map(|part| FolderNames {
                folder: folder.clone(),
                from: part[0],
                below: None,
                names: part.to_vec(),
            })
            .collect();
        let ends: Vec<NameDigest> = parts.iter().skip(1).map(|part| part.from).collect();
        parts.iter_mut().zip(ends).for_each(|(part, end)| part.below = Some(end));
        match parts.first_mut() {
            Some(first) => first.from = NameDigest::LOWEST,
            None => parts.push(FolderNames {
                folder: folder.clone(),
                from: NameDigest::LOWEST,
                below: None,
                names: Vec::new(),
            }),
        }
        parts
    }

    /// Puts the digests in order, which the other end of a flow need not have done.
    fn sort(&mut self) {
        self.names.sort_unstable();
    }

    /// Returns true if this part's range covers the name, and the source does not have it. The digests are in order.
    fn lacks(&self, name: &[u8]) -> bool {
        let digest = NameDigest::of(name);
        let is_covered = self.from <= digest && self.below.is_none_or(|below| digest < below);
        is_covered && self.names.binary_search(&digest).is_err()
    }
}

/// Returns true if a message may hold these folders.
pub(crate) fn is_bounded(folders: &[FolderNames]) -> bool {
    let names: usize = folders.iter().map(|folder| folder.names.len()).sum();
    folders.len() <= MOST_FOLDERS && names <= MOST_NAMES
}

/// Returns the reason why an empty folder of the source keeps all extras. `extras` of them are in its place; `all` is
/// their total number.
pub(crate) fn empty_source_words(folder: &Path, extras: u64, all: u64) -> String {
    format!(
        "{} is empty, and {extras} of the target's entries would go: mount what belongs there, or allow it with --max-delete {all}",
        folder.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(count: u32) -> Vec<FolderNames> {
        let names = (0..count).map(|n| NameDigest::of(&n.to_le_bytes())).collect();
        FolderNames::parts(&RelativeName::root(), names)
    }

    #[test]
    fn parts_list_each_name_once() {
        for count in [0, 1, 5, MOST_NAMES as u32, MOST_NAMES as u32 + 1, 100_000] {
            let parts = parts(count);
            assert_eq!(parts.len(), (count as usize).div_ceil(MOST_NAMES).max(1), "{count}");
            assert!(parts.iter().all(|part| is_bounded(std::slice::from_ref(part))));
            let lacking = |n: u32| parts.iter().filter(|part| part.lacks(&n.to_le_bytes())).count();
            for n in (0..count).step_by(997).chain(count.checked_sub(1)) {
                assert_eq!(lacking(n), 0, "{n} of {count}");
            }
            // A name that the source lacks is missing in one part alone.
            assert!((count..count + 100).all(|n| lacking(n) == 1), "{count}");
        }
    }

    #[test]
    fn a_message_with_the_most_is_sent() {
        let folder = RelativeName::parse(&b"x".repeat(200)).expect("a name");
        let names = vec![NameDigest::of(b"a"); MOST_NAMES];
        let mut folders = vec![FolderNames { folder, from: NameDigest::LOWEST, below: None, names }];
        assert!(is_bounded(&folders));
        let encoded = crate::wire::encode(&folders);
        assert!(encoded.len() < 1 << 20, "{}", encoded.len());
        folders.push(folders[0].clone());
        assert!(!is_bounded(&folders));
    }
}
