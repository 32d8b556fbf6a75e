//! Files that are written whole or not at all.

use std::fs::{File, Permissions};
use std::io::{Result, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Puts a file in place, its folders made where they are missing. Whatever interrupts this, a crash of the machine too,
/// what stood at `path` before stands there still, or the new file does with all of its text.
///
/// # Errors
/// The file system's; nothing was changed at `path` then.
pub(crate) fn put_in_place(path: &Path, text: &str, mode: u32) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    std::fs::create_dir_all(folder)?;
    // The name, with neither suffix nor a place in an order, is one that no program reads that is left after a crash.
    let mut file = tempfile::Builder::new()
        .prefix(".landspeed-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // A name is as durable as the folder that it is in; one of a folder made just now, as that one's.
    sync(folder)?;
    missing.into_iter().filter_map(Path::parent).try_for_each(sync)
}

fn sync(folder: &Path) -> Result<()> {
    // A relative path of one component has "" for its folder.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}
