//! Detects that source and target are one file tree with two paths, as with a bind mount. The paths do not show this,
//! but devices and inodes do within one kernel.

use landspeed_agent::session::{CopyRoot, FolderPlace, FoundPath, PathKind, PathUse};
use landspeed_record::{PathBytes, Side};

use super::landing::{CopyPaths, Landing, LandingError};
use super::look;
use crate::{Error, Pair};

/// Returns the locations of the folders that the copy creates or changes, in the order of the roots. `target` describes
/// the target on the host of `side`, which will use it as `to`. Returns an empty list unless the ends are known to run
/// on one kernel, because inodes of different hosts cannot be compared.
///
/// # Errors
/// Returns an error if the host cannot be asked.
pub fn landed(
    pair: &Pair<'_>,
    (side, to): (Side, PathUse),
    target: &FoundPath,
    landing: &Landing,
) -> Result<Vec<FolderPlace>, Error> {
    if !pair.is_one_kernel() {
        return Ok(Vec::new());
    }
    let paths = landing.roots.iter().map(|root| path_of(root, &landing.folder)).collect();
    let found = look(pair.host(side), paths, to)?;
    Ok(landing.roots.iter().zip(found).map(|(root, found)| place_of(root, found, target)).collect())
}

/// Returns the destination path of a root.
fn path_of(root: &CopyRoot, folder: &PathBytes) -> PathBytes {
    match root.name_hex.0.is_empty() {
        true => folder.clone(),
        false => PathBytes([folder.0.as_slice(), b"/", root.name_hex.0.as_slice()].concat()),
    }
}

/// Returns the location of a root's destination. Within the target's folder, a copy replaces a link by a folder instead
/// of following it.
fn place_of(root: &CopyRoot, found: FoundPath, target: &FoundPath) -> FolderPlace {
    match found.kind {
        PathKind::LinkToFolder if !root.name_hex.0.is_empty() => {
            FolderPlace { within: target.place.within.clone(), ..FolderPlace::default() }
        }
        _ => found.place,
    }
}

/// Checks that no folder is copied into a source and, if extra entries are deleted, that no source lies among them.
/// `landed` is the result of [`landed`].
///
/// # Errors
/// Returns an error for the first source that fails the check.
pub fn check_apart(
    paths: &CopyPaths,
    found: &[FoundPath],
    landed: &[FolderPlace],
    deletes: bool,
) -> Result<(), LandingError> {
    let folders = paths.sources.iter().zip(found).filter(|(_, found)| found.kind == PathKind::Folder);
    folders
        .flat_map(|(path, source)| landed.iter().map(move |target| (path, &source.place, target)))
        .try_for_each(|(path, source, target)| are_apart(path, source, target, deletes))
}

fn are_apart(
    path: &[u8],
    source: &FolderPlace,
    target: &FolderPlace,
    deletes: bool,
) -> Result<(), LandingError> {
    let path = path.to_vec();
    if target.lies_in(source) {
        return Err(LandingError::IntoItself(path));
    }
    match deletes {
        true if source.lies_in(target) => Err(LandingError::WouldBeDeleted(path)),
        true if source.has_mounts_of(target) || target.has_mounts_of(source) => {
            Err(LandingError::MountedBelow(path))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_agent::session::FolderIdentity;

    /// Returns the location of the first of these folders, which lies in the others. `mounted` has the parents of what
    /// is mounted below it.
    fn place(within: &[u64], mounted: &[u64]) -> FolderPlace {
        let identity = |inode: &u64| FolderIdentity { device: 1, inode: *inode };
        FolderPlace {
            own: within.first().map(identity),
            within: within.iter().map(identity).collect(),
            mounted_from: mounted.iter().map(identity).collect(),
        }
    }

    fn found(kind: PathKind, place: FolderPlace) -> FoundPath {
        FoundPath { kind, resolved_hex: PathBytes::default(), place }
    }

    #[test]
    fn folders_are_distinguished_by_device_and_inode() {
        let path = || b"given".to_vec();
        let into_itself = Some(LandingError::IntoItself(path()));
        let deleted = Some(LandingError::WouldBeDeleted(path()));
        let mounted = Some(LandingError::MountedBelow(path()));
        for (source, target, plain, deleting) in [
            (place(&[2, 1], &[]), place(&[3, 1], &[]), None, None),
            (place(&[2, 1], &[]), place(&[2, 5, 1], &[]), into_itself.clone(), into_itself.clone()),
            (place(&[2, 1], &[]), place(&[3, 2, 1], &[]), into_itself.clone(), into_itself),
            (place(&[3, 2, 1], &[]), place(&[2, 1], &[]), None, deleted),
            (place(&[2, 1], &[4, 3, 1]), place(&[3, 1], &[]), None, mounted.clone()),
            (place(&[2, 1], &[]), place(&[3, 1], &[4, 2, 1]), None, mounted),
            (place(&[], &[]), place(&[], &[]), None, None),
        ] {
            let paths = CopyPaths { sources: vec![path()], target: Vec::new() };
            let landed = [place(&[9, 8], &[]), target];
            for (deletes, expected) in [(false, plain), (true, deleting)] {
                let of = |kind| check_apart(&paths, &[found(kind, source.clone())], &landed, deletes).err();
                assert_eq!(of(PathKind::Folder), expected, "{source:?} {landed:?} {deletes}");
                assert_eq!(of(PathKind::LinkToFolder), None, "a link is copied as a link");
            }
        }
    }

    #[test]
    fn a_link_in_the_targets_folder_is_not_followed() {
        let root = |name: &str| CopyRoot { path_hex: PathBytes::default(), name_hex: PathBytes(name.into()) };
        let target = found(PathKind::Folder, place(&[3, 1], &[5]));
        let link = || found(PathKind::LinkToFolder, place(&[2, 1], &[]));
        assert_eq!(place_of(&root(""), link(), &target), place(&[2, 1], &[]), "the user named it");
        let replaced = place_of(&root("a"), link(), &target);
        assert_eq!((replaced.own, &replaced.within), (None, &target.place.within));
        assert!(replaced.mounted_from.is_empty(), "nothing is mounted below a folder that is made");
        let folder = PathBytes(b"t".to_vec());
        assert_eq!(
            [root(""), root("a")].map(|root| path_of(&root, &folder).0),
            [b"t".to_vec(), b"t/a".to_vec()]
        );
    }
}
