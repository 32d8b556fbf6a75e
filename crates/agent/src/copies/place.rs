//! Where a folder is, by devices and inodes.
//!
//! With a bind mount, several paths lead to one folder, and other folders are above it on each. The list of mounts says which
//! folder of which file system is mounted where; a path that follows from it counts if the same folder is there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::session::{FolderIdentity, FolderPlace};

/// The mounts that this thread sees.
#[derive(Debug)]
pub(super) struct Mounts(Vec<Mount>);

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    number: u64,
    /// The device of the file system, as "8:1".
    device: Vec<u8>,
    /// The folder of the file system that is mounted, from the root of the file system on.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

impl Mounts {
    /// Reads the mounts. Where that fails there are none, and one path leads to each folder.
    pub(super) fn read() -> Mounts {
        Mounts::parse(&std::fs::read("/proc/thread-self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Mounts {
        Mounts(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// Returns where the folder at a path is; of one that is missing, where its entry would be made.
    pub(super) fn place(&self, path: &Path) -> FolderPlace {
        let Some(there) = path.ancestors().find_map(real) else { return FolderPlace::default() };
        let own = real(path).filter(|folder| folder.is_dir()).and_then(|folder| identity(&folder));
        let mut ways = self.other_paths(&there).unwrap_or_default();
        ways.push(there.clone());
        // Below a folder that is missing, nothing is mounted.
        let is_below =
            |mount: &&Mount| own.is_some() && mount.point != there && mount.point.starts_with(&there);
        let below = self.0.iter().filter(is_below);
        // What has one path alone lies in the folder, and nowhere else.
        let shared = below.filter(|mount| self.has_others(mount));
        let others: Vec<PathBuf> =
            shared.filter_map(|mount| self.other_paths(&mount.point)).flatten().collect();
        FolderPlace { own, within: all_above(&ways), mounted_from: all_above(&others) }
    }

    /// Returns true if further mounts may show what this one does.
    fn has_others(&self, mount: &Mount) -> bool {
        self.others(mount).any(|other| mount.root.starts_with(&other.root))
    }

    /// Returns the other mounts of the file system.
    fn others<'a>(&'a self, mount: &'a Mount) -> impl Iterator<Item = &'a Mount> {
        self.0.iter().filter(move |other| other.device == mount.device && other.number != mount.number)
    }

    /// Returns the other paths that lead to what is at a path without symbolic links; `None` if nothing is known of it.
    fn other_paths(&self, path: &Path) -> Option<Vec<PathBuf>> {
        let (number, own) = (mount_number(path)?, identity(path)?);
        let mount = self.0.iter().find(|mount| mount.number == number)?;
        let inner = mount.root.join(path.strip_prefix(&mount.point).ok()?);
        let lead = |other: &Mount| Some(other.point.join(inner.strip_prefix(&other.root).ok()?));
        // A path may be hidden by what is mounted on it.
        let leads_there = |path: &PathBuf| identity(path) == Some(own);
        Some(self.others(mount).filter_map(lead).filter(leads_there).collect())
    }
}

/// Returns what is at these paths, and all that is above it on them.
fn all_above(paths: &[PathBuf]) -> BTreeSet<FolderIdentity> {
    paths.iter().flat_map(|path| path.ancestors()).filter_map(identity).collect()
}

/// Returns a path without symbolic links, "." and ".."; `None` if nothing is there.
fn real(path: &Path) -> Option<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.canonicalize().ok()
}

fn identity(path: &Path) -> Option<FolderIdentity> {
    let seen = path.metadata().ok()?;
    Some(FolderIdentity { device: seen.dev(), inode: seen.ino() })
}

/// Returns the number of the mount through which a path leads to what is there.
fn mount_number(path: &Path) -> Option<u64> {
    let seen = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    (seen.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(seen.stx_mnt_id)
}

/// Returns the mount of a line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let number = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device = fields.nth(1)?.to_vec();
    let mut path = || Some(PathBuf::from(OsString::from_vec(unescaped(fields.next()?))));
    Some(Mount { number, device, root: path()?, point: path()? })
}

/// Returns a field in which "\040" stands for a space, and other characters likewise.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), field);
    while let [first, after @ ..] = rest {
        let (byte, left) = match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', left @ ..] if *first == b'\\' => {
                (((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'), left)
            }
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = left;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_line_of_the_mounts_is_read_with_its_escapes() {
        let text = b"36 35 98:0 /a\\040b /mnt\\134\xff rw,noatime master:1 - ext3 /dev/root rw\n\nodd line\n";
        let Mounts(mounts) = Mounts::parse(text);
        let point = PathBuf::from(OsString::from_vec(b"/mnt\\\xff".to_vec()));
        let expected = Mount { number: 36, device: b"98:0".to_vec(), root: "/a b".into(), point };
        assert_eq!(mounts, [expected]);
        assert!(Mounts::read().0.iter().any(|mount| mount.point == Path::new("/")));
    }

    #[test]
    fn a_folder_lies_in_those_above_it_and_a_missing_one_in_those_that_are_there() {
        let all = tempfile::tempdir().unwrap();
        let at = |name: &str| all.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        symlink("a/b", at("link")).unwrap();
        std::fs::write(at("file"), "f").unwrap();
        let mounts = Mounts::read();
        let [root, a, b, link, missing, file] =
            ["", "a", "a/b", "link/", "link/x/y", "file"].map(|name| mounts.place(&at(name)));
        assert!(b.lies_in(&a) && b.lies_in(&root) && b.lies_in(&link) && link.lies_in(&b));
        assert!(!a.lies_in(&b) && missing.lies_in(&b) && missing.lies_in(&a));
        assert!((missing.own, file.own) == (None, None) && file.lies_in(&root) && !file.lies_in(&a));
    }

    /// Returns a table with the mount of a path, and with one that the kernel has not: a folder and where it is mounted.
    fn mounts(path: &Path, other: Option<[&Path; 2]>) -> Mounts {
        let number = mount_number(path).expect("a kernel that says it");
        let of = |[root, point]: [&Path; 2], number| Mount {
            number,
            device: b"7:7".to_vec(),
            root: root.to_owned(),
            point: point.to_owned(),
        };
        let own = of([Path::new("/"); 2], number);
        Mounts(std::iter::once(own).chain(other.map(|other| of(other, number + 1))).collect())
    }

    /// What is mounted beside a folder that is not made yet says nothing of the folder.
    #[test]
    fn nothing_is_mounted_below_a_folder_that_is_missing() {
        let all = tempfile::tempdir().unwrap();
        let path = all.path().canonicalize().unwrap();
        let folder = path.join("folder");
        std::fs::create_dir(&folder).unwrap();
        let mounts = mounts(&path, Some([&folder, &folder]));
        let [above, missing] = [path.clone(), path.join("missing")].map(|path| mounts.place(&path));
        assert!(above.has_mounts_of(&above) && missing.lies_in(&above));
        assert!(missing.mounted_from.is_empty(), "{missing:?}");
    }

    /// In the table, a folder is mounted where a link to it stands for the mount.
    #[test]
    fn a_folder_lies_in_those_above_it_on_every_path() {
        let all = tempfile::tempdir().unwrap();
        let path = all.path().canonicalize().unwrap();
        let at = |name: &str| path.join(name);
        ["a/b/c", "m/wrong", "n"].iter().for_each(|name| std::fs::create_dir_all(at(name)).unwrap());
        symlink("../a/b/c", at("m/c")).unwrap();
        let (alone, bound) = (mounts(&path, None), mounts(&path, Some([&at("a/b"), &at("m")])));
        let [c, m] = ["a/b/c", "m"].map(|name| bound.place(&at(name)));
        assert!(c.lies_in(&m) && !alone.place(&at("a/b/c")).lies_in(&m));
        assert!(!bound.place(&at("n")).lies_in(&m));
        // What another mount hides is not at that path.
        std::fs::create_dir(at("a/b/wrong")).unwrap();
        assert!(!bound.place(&at("a/b/wrong")).lies_in(&m));
    }
}
