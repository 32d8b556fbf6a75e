//! What a copy of the kills holds besides files in one folder, so that more calls than those of files change its
//! target.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use anyhow::Result;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

const FOLDERS: u32 = 40;

/// Adds folders with files that have modes, attributes, symbolic links and hard links.
pub(super) fn add_tree(source: &Path) -> Result<()> {
    for number in 0..FOLDERS {
        let folder = source.join(format!("folder{number}/inner"));
        fs::create_dir_all(&folder)?;
        let file = folder.join("file");
        fs::write(&file, number.to_string().repeat(1000))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640))?;
        add_attribute(&file)?;
        fs::hard_link(&file, folder.join("hard"))?;
        symlink("file", folder.join("soft"))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750))?;
    }
    Ok(())
}

fn add_attribute(file: &Path) -> Result<()> {
    match rustix::fs::setxattr(file, "user.kept", b"by a copy", XattrFlags::empty()) {
        // Linux before 6.6 keeps no such attributes on tmpfs.
        Err(Errno::OPNOTSUPP) => Ok(()),
        set => Ok(set?),
    }
}
