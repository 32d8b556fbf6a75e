//! Finds what exists at the paths that a user names.

use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use landspeed_mover::NamedPath;
use landspeed_record::PathBytes;
use rustix::fs::{Access, AtFlags, OFlags, statat};

use super::place::Mounts;
use crate::session::{FoundPath, PathKind};

/// Returns what exists at each of these paths.
///
/// # Errors
/// Returns an error if a path leads out of the folder beneath which it must stay.
pub(crate) fn look(paths: &[NamedPath]) -> Result<Vec<FoundPath>, String> {
    let mounts = Mounts::read();
    paths.iter().map(|path| look_at(path, &mounts)).collect()
}

fn look_at(path: &NamedPath, mounts: &Mounts) -> Result<FoundPath, String> {
    let kind = kind(path).map_err(|_| outside(path.as_path()))?;
    let resolved = resolved(path);
    // Skips files: a command may name thousands of them, and nothing lies within a file.
    let folder = resolved.as_deref().filter(|_| kind != PathKind::File);
    let place = folder.map(|folder| mounts.place(folder)).unwrap_or_default();
    let resolved = resolved.unwrap_or_else(|| path.as_path().to_owned());
    Ok(FoundPath { kind, resolved_hex: PathBytes(resolved.into_os_string().into_vec()), place })
}

fn outside(path: &Path) -> String {
    format!(
        "{}: leads out of the folders that this agent was started with, as each absolute symbolic link does: name a path \
         beneath one, or start the agent with --allow-read DIR or --allow-write DIR for the folder that it leads to",
        path.display()
    )
}

/// Returns what exists at a path. The only error is a path that leads out of its folder.
fn kind(path: &NamedPath) -> io::Result<PathKind> {
    // With a trailing slash, both calls follow a symbolic link.
    Ok(match path.is_folder() {
        Ok(true) if may_read(path) => PathKind::Folder,
        Ok(true) => PathKind::Barred,
        Ok(false) if path.leads_to_folder() => PathKind::LinkToFolder,
        Ok(false) => PathKind::File,
        Err(error) => match error.kind() {
            ErrorKind::CrossesDevices => return Err(error),
            // The path has a trailing slash, but the entry is not a folder.
            ErrorKind::NotADirectory if is_entry(path) => PathKind::File,
            ErrorKind::NotFound | ErrorKind::NotADirectory => PathKind::Missing,
            ErrorKind::PermissionDenied => PathKind::Barred,
            _ => PathKind::File,
        },
    })
}

fn may_read(folder: &NamedPath) -> bool {
    match folder.check_folder(Access::READ_OK | Access::EXEC_OK) {
        Err(error) => error.kind() != ErrorKind::PermissionDenied,
        Ok(()) => true,
    }
}

/// Returns true if the parent folder has an entry of this name, with or without a trailing slash in the path.
fn is_entry(path: &NamedPath) -> bool {
    let Some((above, leaf)) = path.split() else { return false };
    let above = above.open(OFlags::PATH | OFlags::DIRECTORY);
    above.is_ok_and(|above| statat(above, leaf, AtFlags::SYMLINK_NOFOLLOW).is_ok())
}

/// Returns a path without symbolic links, "." and "..", or `None` if it cannot be resolved. Its last component need not
/// exist.
fn resolved(path: &NamedPath) -> Option<PathBuf> {
    let above = || {
        let (above, leaf) = path.split()?;
        Some(above.real()?.join(leaf))
    };
    let as_named = || (!path.is_confined()).then(|| path.as_path().to_owned());
    path.real().or_else(above).or_else(as_named)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use landspeed_mover::Confinement;

    use super::*;

    #[test]
    fn a_trailing_slash_decides_whether_a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "f").unwrap();
        symlink(folder.path(), at("link")).unwrap();
        symlink("/nowhere", at("broken")).unwrap();
        for (name, expected) in [
            ("", PathKind::Folder),
            ("file", PathKind::File),
            ("file/", PathKind::File),
            ("link", PathKind::LinkToFolder),
            ("link/", PathKind::Folder),
            ("broken", PathKind::File),
            ("none", PathKind::Missing),
            ("file/none", PathKind::Missing),
        ] {
            assert_eq!(look(&[at(name).into()]).unwrap()[0].kind, expected, "{name}");
        }
    }

    /// A link that leads out is itself content and can be copied. Its destination is not reported.
    #[test]
    fn nothing_outside_the_folder_is_reported() {
        let all = tempfile::tempdir().unwrap();
        let at = |name: &str| all.path().join(name);
        ["in/a", "out"].iter().for_each(|name| std::fs::create_dir_all(at(name)).unwrap());
        symlink("../out", at("in/up")).unwrap();
        symlink("a", at("in/link")).unwrap();
        let inside = Confinement::open(&at("in")).unwrap();
        let seen = |name: &str| look(&[Confinement::path_in(&[&inside], &at("in").join(name)).unwrap()]);
        for (name, kind) in [
            ("", PathKind::Folder),
            ("link", PathKind::LinkToFolder),
            ("link/", PathKind::Folder),
            ("up", PathKind::File),
            ("new", PathKind::Missing),
            ("none/new", PathKind::Missing),
        ] {
            let [here, there] =
                [seen(name), look(&[at("in").join(name).into()])].map(|seen| seen.unwrap().remove(0));
            assert_eq!(here.kind, kind, "{name}");
            let is_same = here.place == there.place && here.resolved_hex == there.resolved_hex;
            assert!(is_same || matches!(name, "up" | "none/new"), "{name}: {here:?} {there:?}");
        }
        let link = seen("up").unwrap().remove(0);
        assert_eq!((link.place.own, link.place.within.len()), (None, 0));
        for out in ["..", "../out", "up/", "up/new"] {
            assert!(seen(out).unwrap_err().contains("leads out of the folders"), "{out}");
        }
    }

    #[test]
    fn a_path_is_resolved_as_far_as_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let all = folder.path().canonicalize().unwrap();
        std::fs::create_dir(all.join("a")).unwrap();
        symlink("a", all.join("link")).unwrap();
        for (given, expected) in [
            ("a", "a"),
            ("a/", "a"),
            ("link", "a"),
            ("a/../link/.", "a"),
            ("link/new", "a/new"),
            ("none/new", "none/new"),
        ] {
            assert_eq!(resolved(&all.join(given).into()), Some(all.join(expected)), "{given}");
        }
    }
}
