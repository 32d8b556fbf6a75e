//! What is at the paths that a user names.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use landspeed_record::PathBytes;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::path;
use super::place::Mounts;
use crate::session::{FolderPlace, FoundPath, PathKind};

/// Returns what is at each of these paths.
pub(crate) fn look(paths: &[PathBytes]) -> Vec<FoundPath> {
    let mounts = Mounts::read();
    let look_at = |bytes: &PathBytes| {
        let path = path(bytes.clone());
        let resolved_hex = PathBytes(resolved(&path).into_os_string().into_vec());
        let kind = kind(&path);
        // A command may name thousands of files, and nothing lies in a file.
        let place = if kind == PathKind::File { FolderPlace::default() } else { mounts.place(&path) };
        FoundPath { kind, resolved_hex, place }
    };
    paths.iter().map(look_at).collect()
}

fn kind(path: &Path) -> PathKind {
    // With a slash at the end, both follow a link.
    match (path.symlink_metadata(), path.metadata()) {
        (Ok(own), _) if own.is_dir() && may_read(path) => PathKind::Folder,
        (Ok(own), _) if own.is_dir() => PathKind::Barred,
        (Ok(_), Ok(beyond)) if beyond.is_dir() => PathKind::LinkToFolder,
        (Err(error), _) => match error.kind() {
            // What has a slash at its end and is no folder.
            ErrorKind::NotADirectory if path.components().as_path().exists() => PathKind::File,
            ErrorKind::NotFound | ErrorKind::NotADirectory => PathKind::Missing,
            ErrorKind::PermissionDenied => PathKind::Barred,
            _ => PathKind::File,
        },
        _ => PathKind::File,
    }
}

fn may_read(folder: &Path) -> bool {
    let wanted = Access::READ_OK | Access::EXEC_OK;
    accessat(CWD, folder, wanted, AtFlags::EACCESS) != Err(Errno::ACCESS)
}

/// Returns a path without symbolic links, "." and "..". Its last component need not exist.
fn resolved(path: &Path) -> PathBuf {
    let above = || {
        let (above, leaf) = (path.parent()?, path.file_name()?);
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        Some(above.canonicalize().ok()?.join(leaf))
    };
    path.canonicalize().ok().or_else(above).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_looked_at_as_it_is_written() {
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
            let path = PathBytes(at(name).into_os_string().into_vec());
            assert_eq!(look(&[path])[0].kind, expected, "{name}");
        }
    }

    #[test]
    fn a_path_is_resolved_as_far_as_it_is_there() {
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
            assert_eq!(resolved(&all.join(given)), all.join(expected), "{given}");
        }
    }
}
