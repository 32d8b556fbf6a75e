//! The location of a folder, independent of the path to it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The identity of a folder in the kernel of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderIdentity {
    pub device: u64,
    pub inode: u64,
}

/// The location of a folder, independent of the path to it. An unknown folder lies in no other folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FolderPlace {
    /// The folder; `None` if it is missing or unknown.
    pub own: Option<FolderIdentity>,
    /// The folder and its parent folders, on every path that leads to it. For a missing folder, only its parent folders
    /// that exist.
    pub within: BTreeSet<FolderIdentity>,
    /// The parent folders of everything mounted below the folder, on every other path to the mounted content.
    pub mounted_from: BTreeSet<FolderIdentity>,
}

impl FolderPlace {
    /// Returns true if this folder is `other`, or lies in it.
    pub fn lies_in(&self, other: &FolderPlace) -> bool {
        other.own.is_some_and(|other| self.within.contains(&other))
    }

    /// Returns true if something mounted below this folder is `other`, or lies in it.
    pub fn has_mounts_of(&self, other: &FolderPlace) -> bool {
        other.own.is_some_and(|other| self.mounted_from.contains(&other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_folder_lies_in_no_folder() {
        let unknown = FolderPlace::default();
        assert!(!unknown.lies_in(&unknown) && !unknown.has_mounts_of(&unknown));
        let [own, above] = [1, 2].map(|inode| FolderIdentity { device: 7, inode });
        let known = FolderPlace { own: Some(own), within: [own, above].into(), mounted_from: [above].into() };
        let folder_above = FolderPlace { own: Some(above), within: [above].into(), ..FolderPlace::default() };
        assert!(known.lies_in(&known) && known.lies_in(&folder_above) && !folder_above.lies_in(&known));
        assert!(known.has_mounts_of(&folder_above) && !known.has_mounts_of(&known));
        assert!(!known.lies_in(&unknown) && !unknown.lies_in(&known));
        // Another file system may have the same number.
        let elsewhere = Some(FolderIdentity { device: 8, inode: 1 });
        assert!(!known.lies_in(&FolderPlace { own: elsewhere, ..FolderPlace::default() }));
    }
}
