//! Writes files completely or not at all.

use std::fs::{File, Permissions};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a file and creates missing folders. After any interruption, even a crash of the machine, `path` is either the
/// previous file or the complete new one.
///
/// # Errors
/// Returns an error if the file system does, or if `path` is something else than a file. `path` is then unchanged, unless only
/// the last step failed (the sync that makes the new name durable).
pub(crate) fn put_in_place(path: &Path, text: &str, mode: u32) -> Result<()> {
    check_replaceable(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    std::fs::create_dir_all(folder)?;
    // Programs choose the files of a folder by suffix or number. The temporary name has neither, so no program reads a
    // file that a crash leaves behind.
    let mut file = tempfile::Builder::new()
        .prefix(".landspeed-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // A file's name is durable once its folder is synced, and a new folder's name once its parent is synced.
    sync(folder)?;
    missing.into_iter().filter_map(Path::parent).try_for_each(sync)
}

/// Returns an error if there is something else than a file at `path`, such as a folder, a device, a pipe or a symbolic link: a new
/// file would take its place, as that of /dev/null.
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

/// Puts the names in a folder on stable storage.
pub(crate) fn sync(folder: &Path) -> Result<()> {
    // The folder of a relative path with one component is "".
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of root could replace /dev/null for all programs of the host.
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
}
