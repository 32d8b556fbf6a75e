//! Writes files completely or not at all.

use std::fs::{File, Permissions};
use std::io::{Result, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a file and creates missing folders. After any interruption, even a crash of the machine, `path` is either the
/// previous file or the complete new one.
///
/// # Errors
/// Returns an error if the file system does. `path` is then unchanged, unless only the last step failed (the sync that
/// makes the new name durable).
pub(crate) fn put_in_place(path: &Path, text: &str, mode: u32) -> Result<()> {
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

/// Puts the names in a folder on stable storage.
pub(crate) fn sync(folder: &Path) -> Result<()> {
    // The folder of a relative path with one component is "".
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}
