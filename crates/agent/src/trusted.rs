//! A folder that no other user can change or replace.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landspeed_kernel::folder::open_trusted;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::process::geteuid;

/// The largest size of a file in bytes.
const MOST: u64 = 1 << 20;

/// A folder that was checked. Its descriptor stays open, so that later reads use this very folder.
#[derive(Debug)]
pub(crate) struct TrustedFolder {
    folder: OwnedFd,
    path: PathBuf,
}

impl TrustedFolder {
    /// Opens the folder `path`, and checks it and each folder above it.
    ///
    /// # Errors
    /// Returns an error, with the remedy, if another user may change one of these folders.
    pub(crate) fn open(path: &Path) -> Result<TrustedFolder, String> {
        let folder = open_trusted(path).map_err(|error| error.to_string())?;
        judge(&stat(&folder, path)?, path)?;
        Ok(TrustedFolder { folder, path: path.to_owned() })
    }

    /// Reads the file `name` in the folder.
    ///
    /// # Errors
    /// Returns an error if another user may change the file, or if it does not exist, is larger than 1 MiB or is not
    /// text.
    pub(crate) fn read(&self, name: &str) -> Result<String, String> {
        let path = self.path.join(name);
        judge(&stat(&self.folder, &self.path)?, &self.path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::empty());
        let file = file.map_err(|error| {
            format!("this agent runs only what {} has: {}: {error}", self.path.display(), path.display())
        })?;
        let stat = stat(&file, &path)?;
        judge(&stat, &path)?;
        let mut text = String::new();
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        match File::from(file).take(MOST + 1).read_to_string(&mut text) {
            Ok(bytes) if bytes as u64 > MOST => Err(format!("{} is larger than 1 MiB", path.display())),
            Ok(_) if is_file => Ok(text),
            Ok(_) => Err(format!("{} is no file", path.display())),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }
}

fn stat(file: &OwnedFd, path: &Path) -> Result<Stat, String> {
    fstat(file).map_err(|error| format!("cannot look at {}: {error}", path.display()))
}

/// Returns an error if a file or folder belongs to a user other than root and this process's user, or if other users
/// may write it.
fn judge(stat: &Stat, path: &Path) -> Result<(), String> {
    let own = geteuid().as_raw();
    let path = path.display();
    if ![0, own].contains(&stat.st_uid) {
        let owner = if own == 0 { "root".to_owned() } else { format!("user {own} or root") };
        return Err(format!(
            "{path} belongs to user {}, who could have this agent run anything: give it to {owner} (chown)",
            stat.st_uid
        ));
    }
    if stat.st_mode & 0o022 != 0 {
        return Err(format!(
            "other users may write {path}, and could have this agent run anything: chmod go-w {path}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    struct TestTree(tempfile::TempDir);

    impl TestTree {
        /// Creates a temporary folder with the file `top/mid/apps/mine.toml`.
        fn new() -> TestTree {
            let tree = TestTree(tempfile::tempdir().unwrap());
            fs::create_dir_all(tree.at("top/mid/apps")).unwrap();
            fs::write(tree.at("top/mid/apps/mine.toml"), "own").unwrap();
            tree
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn mode(&self, name: &str, mode: u32) {
            fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
        }

        fn read(&self) -> Result<String, String> {
            TrustedFolder::open(&self.at("top/mid/apps"))?.read("mine.toml")
        }
    }

    #[test]
    fn a_folder_that_another_user_may_change_is_refused() {
        let tree = TestTree::new();
        assert_eq!(tree.read(), Ok("own".to_owned()));
        for name in ["top", "top/mid", "top/mid/apps", "top/mid/apps/mine.toml"] {
            for mode in [0o775, 0o757, 0o1777] {
                tree.mode(name, mode);
                let is_fine = mode == 0o1777 && !name.contains("apps");
                assert_eq!(tree.read().is_ok(), is_fine, "{name} {mode:o}: {:?}", tree.read());
                tree.mode(name, 0o755);
            }
            if geteuid().is_root() {
                chown(tree.at(name), Some(41_002), None).unwrap();
                let error = tree.read().unwrap_err();
                let is_file = name.ends_with(".toml");
                let why = if is_file { "belongs to user 41002" } else { "can be changed by other users" };
                assert!(error.contains(why), "{name}: {error}");
                chown(tree.at(name), Some(0), None).unwrap();
            }
        }
        assert_eq!(tree.read(), Ok("own".to_owned()));
    }

    #[test]
    fn a_linked_file_is_not_read_and_a_folder_that_is_swapped_changes_nothing() {
        let tree = TestTree::new();
        let opened = TrustedFolder::open(&tree.at("top/mid/apps")).unwrap();
        fs::rename(tree.at("top/mid"), tree.at("top/old")).unwrap();
        fs::create_dir_all(tree.at("top/mid/apps")).unwrap();
        fs::write(tree.at("top/mid/apps/mine.toml"), "another").unwrap();
        assert_eq!(opened.read("mine.toml"), Ok("own".to_owned()));
        symlink(tree.at("top/mid/apps/mine.toml"), tree.at("top/old/apps/linked.toml")).unwrap();
        assert!(opened.read("linked.toml").is_err());
        fs::write(tree.at("top/old/apps/large.toml"), " ".repeat(1 << 20) + "x").unwrap();
        assert!(opened.read("large.toml").unwrap_err().contains("larger than 1 MiB"));
        fs::create_dir(tree.at("top/old/apps/folder.toml")).unwrap();
        assert!(opened.read("folder.toml").is_err());
        assert!(opened.read("none.toml").unwrap_err().contains("runs only what"));
    }
}
