//! Where a folder is, whatever path leads to it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A folder, as the kernel of its host knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderIdentity {
    pub device: u64,
    pub inode: u64,
}

/// Where a folder is, whatever path leads to it. What is not known is in no folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FolderPlace {
    /// The folder; `None` if there is none, or if it is not known.
    pub own: Option<FolderIdentity>,
    /// The folder and those above it, on each path that leads to it. Of a folder that is missing, those that are there.
    pub within: BTreeSet<FolderIdentity>,
    /// Those above what is mounted below the folder, on each other path that leads to it.
    pub mounted_from: BTreeSet<FolderIdentity>,
}

impl FolderPlace {
    /// Returns true if this folder is `other`, or lies in it.
    pub fn lies_in(&self, other: &FolderPlace) -> bool {
        other.own.is_some_and(|other| self.within.contains(&other))
    }

    /// Returns true if something that is mounted below this folder is `other`, or lies in it.
    pub fn has_mounts_of(&self, other: &FolderPlace) -> bool {
        other.own.is_some_and(|other| self.mounted_from.contains(&other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_in_no_folder() {
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
