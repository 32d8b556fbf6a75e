//! Writes files completely or not at all.

use std::fs::{File, Metadata, Permissions};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Writes a file and creates missing folders. After any interruption, even a crash of the machine, `path` is either the
/// previous file or the complete new one.
///
/// # Errors
/// Returns an error of the file system, or an error if `path` exists and is not a file. `path` is then unchanged,
/// unless only the last step failed (the sync that makes the new name durable).
pub(crate) fn put_in_place(path: &Path, text: &str, mode: u32) -> Result<()> {
    check_replaceable(path)?;
    let parent = folder(path);
    let missing: Vec<&Path> = parent.ancestors().take_while(|folder| !folder.exists()).collect();
    std::fs::create_dir_all(parent)?;
    replace(path, 0o600, |file| {
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode))
    })?;
    // A file's name is durable once its folder is synced, and a new folder's name once its parent is synced.
    sync(path)?;
    missing.into_iter().try_for_each(sync)
}

/// Writes a report. A file is replaced as a whole and keeps its mode. After an error, such as a full disk, the previous
/// file is still there, or none. A pipe, a link or another special file is written in place, and so is a file that
/// cannot be replaced by a similar one.
pub(crate) fn put_report(path: &Path, text: &str) -> Result<()> {
    let kept = match path.symlink_metadata() {
        Ok(about) if has_one_like_it(&about) => Some(about.permissions()),
        Ok(_) => return std::fs::write(path, text),
        Err(_) => None,
    };
    // The umask removes permissions, as for every new file.
    let mode = kept.as_ref().map_or(0o666, |kept| kept.mode() & 0o777);
    let replaced = replace(path, mode, |file| {
        file.write_all(text.as_bytes())?;
        kept.map_or(Ok(()), |kept| file.set_permissions(kept))
    });
    match replaced {
        // The folder accepts no other file, or does not exist, or something is mounted on this file.
        Err(error) if is_about_place(error.kind()) => std::fs::write(path, text),
        replaced => replaced,
    }
}

/// Returns true if a new file would be similar to this one: it belongs to this user and group, and has only one name.
fn has_one_like_it(about: &Metadata) -> bool {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    about.is_file() && about.nlink() == 1 && (about.uid(), about.gid()) == own
}

fn is_about_place(kind: ErrorKind) -> bool {
    use ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(kind, NotFound | PermissionDenied | ReadOnlyFilesystem | ResourceBusy)
}

/// Replaces `path` by a new file that `write` fills. The file is created with `mode`, reduced by the umask. After an
/// error, the new file is removed.
pub(crate) fn replace(path: &Path, mode: u32, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    // Programs choose the files of a folder by suffix or number. The temporary name has neither, so no program reads a
    // file that a crash leaves behind.
    let mut file = tempfile::Builder::new()
        .prefix(".landspeed-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder(path))?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Returns the folder of a path.
pub(crate) fn folder(path: &Path) -> &Path {
    // The folder of a relative path with one component is "".
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns an error if `path` exists and is not a file, but a folder, a device, a pipe or a symbolic link. A new file
/// would replace it; for /dev/null, this would affect all programs.
pub(crate) fn check_replaceable(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() => Err(Error::from(ErrorKind::IsADirectory)),
        Ok(about) if about.is_symlink() => Err(Error::other(
            "it is a symbolic link, and would be replaced by a file; name the file that it points to",
        )),
        Ok(about) if !about.is_file() => {
            Err(Error::other("it is no plain file, and would be replaced by one; name another"))
        }
        _ => Ok(()),
    }
}

/// Puts the directory entry of a path on stable storage.
pub(crate) fn sync(path: &Path) -> Result<()> {
    File::open(folder(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root could otherwise replace /dev/null for all programs of the host.
    #[test]
    fn only_a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        put_in_place(&file, "1", 0o644).unwrap();
        put_in_place(&file, "2", 0o644).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for other in [folder.path(), link.as_path()] {
            put_in_place(other, "3", 0o644).expect_err("it is no file");
        }
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "2");
        assert!(check_replaceable(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn a_report_replaces_a_file_and_is_written_into_what_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| folder.path().join(name));
        let inode = |path: &Path| path.metadata().unwrap().ino();
        put_report(&file, "1").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let first = inode(&file);
        put_report(&file, "2").unwrap();
        let second = inode(&file);
        assert_eq!((first == second, file.metadata().unwrap().mode() & 0o777), (false, 0o600));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        put_report(&link, "3").unwrap();
        std::fs::hard_link(&file, &other).unwrap();
        put_report(&other, "4").unwrap();
        assert_eq!((inode(&other), link.is_symlink()), (second, true));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "4");
        put_report(Path::new("/dev/null"), "5").unwrap();
        assert!(!Path::new("/dev/null").is_file());
        // The error names the file that the user named.
        let missing = put_report(&folder.path().join("none/file"), "6").unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(2), "{missing}");
    }

    #[test]
    fn after_an_error_the_previous_file_is_there_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        put_report(&file, "1").unwrap();
        let half = |file: &mut File| file.write_all(b"2").and(Err(Error::from(ErrorKind::StorageFull)));
        replace(&file, 0o666, half).expect_err("the disk is full");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
