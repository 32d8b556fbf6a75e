//! Locates folders by device and inode number.
//!
//! With a bind mount, several paths lead to one folder, each through different parent folders. The mount table shows
//! which folder of which file system is mounted where. A path that follows from the table is used only if the same
//! folder is really there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::session::{FolderIdentity, FolderPlace};

/// The mounts that this thread sees.
#[derive(Debug)]
pub(super) struct Mounts {
    all: Vec<Mount>,
    by_number: HashMap<u64, usize>,
    /// Indices of the mounts, by the device of their file system and then by their root folder. A container host has
    /// many thousand mounts.
    by_root: HashMap<Vec<u8>, HashMap<PathBuf, Vec<usize>>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    number: u64,
    /// The device of the file system, as "8:1".
    device: Vec<u8>,
    /// The folder of the file system that is mounted, as a path from the root of the file system.
    root: PathBuf,
    /// The mount point.
    point: PathBuf,
}

/// The location of an entry within its file system.
struct MountedPlace<'a> {
    /// The mount through which the path leads to the entry.
    mount: &'a Mount,
    /// The path of the entry from the root of its file system.
    inner: PathBuf,
    own: FolderIdentity,
}

impl Mounts {
    /// Reads the mount table. If that fails, the table is empty, and each folder has only one path.
    pub(super) fn read() -> Mounts {
        Mounts::parse(&std::fs::read("/proc/thread-self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Mounts {
        Mounts::of(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    fn of(all: Vec<Mount>) -> Mounts {
        let (mut by_number, mut by_root) = (HashMap::new(), HashMap::<_, HashMap<_, Vec<_>>>::new());
        for (index, Mount { number, device, root, .. }) in all.iter().enumerate() {
            by_number.entry(*number).or_insert(index);
            by_root.entry(device.clone()).or_default().entry(root.clone()).or_default().push(index);
        }
        Mounts { all, by_number, by_root }
    }

    /// Returns the location of the folder at a path. If the folder is missing, this is the location where it would be
    /// created.
    pub(super) fn place(&self, path: &Path) -> FolderPlace {
        let Some(there) = path.ancestors().find_map(real) else { return FolderPlace::default() };
        let own = real(path).filter(|folder| folder.is_dir()).and_then(|folder| identity(&folder));
        let mut ways = self.other_paths(&there).unwrap_or_default();
        ways.push(there.clone());
        // Nothing is mounted below a missing folder.
        let is_below =
            |mount: &&Mount| own.is_some() && mount.point != there && mount.point.starts_with(&there);
        let others = self.others_of(self.all.iter().filter(is_below));
        FolderPlace { own, within: all_above(&ways), mounted_from: all_above(&others) }
    }

    /// Returns the other paths to the mounted folders.
    fn others_of<'a>(&'a self, mounts: impl Iterator<Item = &'a Mount>) -> Vec<PathBuf> {
        let mut taken: HashMap<(&[u8], PathBuf), HashSet<u64>> = HashMap::new();
        // Two mounts of one folder together yield all its paths, so a third mount adds none.
        let mut is_news = |place: &MountedPlace<'a>| {
            let MountedPlace { mount, inner, .. } = place;
            let numbers = taken.entry((mount.device.as_slice(), inner.clone())).or_default();
            numbers.len() < 2 && numbers.insert(mount.number)
        };
        // Skips folders that have only one path.
        let shared = mounts.filter(|mount| self.others(mount, &mount.root).next().is_some());
        let places = shared.filter_map(|mount| self.what_is_at(&mount.point)).filter(|place| is_news(place));
        places.flat_map(|place| self.paths_beside(&place)).collect()
    }

    /// Returns the mounts other than `mount` that may contain `inner` of its file system.
    fn others<'a>(&'a self, mount: &'a Mount, inner: &'a Path) -> impl Iterator<Item = &'a Mount> {
        let roots = self.by_root.get(&mount.device);
        let showing = inner.ancestors().filter_map(move |root| roots?.get(root)).flatten();
        showing.map(move |index| &self.all[*index]).filter(move |other| other.number != mount.number)
    }

    /// Returns the other paths to the entry at a path without symbolic links; `None` if its mount is unknown.
    fn other_paths(&self, path: &Path) -> Option<Vec<PathBuf>> {
        self.what_is_at(path).map(|place| self.paths_beside(&place))
    }

    /// Returns the location of the entry at a path without symbolic links; `None` if its mount is unknown.
    fn what_is_at(&self, path: &Path) -> Option<MountedPlace<'_>> {
        let mount = &self.all[*self.by_number.get(&mount_number(path)?)?];
        let inner = mount.root.join(path.strip_prefix(&mount.point).ok()?);
        Some(MountedPlace { mount, inner, own: identity(path)? })
    }

    fn paths_beside(&self, place: &MountedPlace<'_>) -> Vec<PathBuf> {
        let MountedPlace { mount, inner, own } = place;
        let lead = |other: &Mount| Some(other.point.join(inner.strip_prefix(&other.root).ok()?));
        // Another mount may hide this path.
        let leads_there = |path: &PathBuf| identity(path) == Some(*own);
        self.others(mount, inner).filter_map(lead).filter(leads_there).collect()
    }
}

/// Returns the folders at these paths and all their parent folders.
fn all_above(paths: &[PathBuf]) -> BTreeSet<FolderIdentity> {
    let mut all = HashSet::new();
    for path in paths {
        for above in path.ancestors() {
            // The parents of this folder are in the set already.
            if !all.insert(above) {
                break;
            }
        }
    }
    all.into_iter().filter_map(identity).collect()
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

/// Returns the number of the mount that contains the entry at a path.
fn mount_number(path: &Path) -> Option<u64> {
    let seen = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    (seen.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(seen.stx_mnt_id)
}

/// Parses a line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let number = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device = fields.nth(1)?.to_vec();
    let mut path = || Some(PathBuf::from(OsString::from_vec(unescaped(fields.next()?))));
    Some(Mount { number, device, root: path()?, point: path()? })
}

/// Decodes a field in which "\040" represents a space, and other characters are written likewise.
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
        let mounts = Mounts::parse(text).all;
        let point = PathBuf::from(OsString::from_vec(b"/mnt\\\xff".to_vec()));
        let expected = Mount { number: 36, device: b"98:0".to_vec(), root: "/a b".into(), point };
        assert_eq!(mounts, [expected]);
        assert!(Mounts::read().all.iter().any(|mount| mount.point == Path::new("/")));
    }

    #[test]
    fn a_folder_lies_in_its_parents_and_a_missing_one_in_those_that_exist() {
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

    /// Returns a mount table with the mount of `path`, and with mounts that the kernel does not have: pairs of a folder
    /// and its mount point.
    fn mounts(path: &Path, others: &[[&Path; 2]]) -> Mounts {
        let number = mount_number(path).expect("a kernel that says it");
        let of = |[root, point]: [&Path; 2], number| Mount {
            number,
            device: b"7:7".to_vec(),
            root: root.to_owned(),
            point: point.to_owned(),
        };
        let own = of([Path::new("/"); 2], number);
        let others = others.iter().zip(number + 1..).map(|(other, number)| of(*other, number));
        Mounts::of(std::iter::once(own).chain(others).collect())
    }

    /// A mount beside a missing folder says nothing about the folder.
    #[test]
    fn nothing_is_mounted_below_a_folder_that_is_missing() {
        let all = tempfile::tempdir().unwrap();
        let path = all.path().canonicalize().unwrap();
        let folder = path.join("folder");
        std::fs::create_dir(&folder).unwrap();
        let mounts = mounts(&path, &[[&folder, &folder]]);
        let [above, missing] = [path.clone(), path.join("missing")].map(|path| mounts.place(&path));
        assert!(above.has_mounts_of(&above) && missing.lies_in(&above));
        assert!(missing.mounted_from.is_empty(), "{missing:?}");
    }

    /// Comparing each mount with each other one would take hours.
    #[test]
    fn a_hundred_thousand_mounts_take_little_time() {
        let all = tempfile::tempdir().unwrap();
        let path = all.path().canonicalize().unwrap();
        let (folder, apart) = (path.join("folder"), path.join("apart"));
        [&folder, &apart].iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        let own: Vec<PathBuf> = (0..50_000).map(|number| folder.join(number.to_string())).collect();
        // Half of the mounts are of one folder. Each of the others has a folder of its own.
        let mut others = vec![[folder.as_path(); 2]; own.len()];
        others.extend(own.iter().map(|path| [path.as_path(); 2]));
        let mounts = mounts(&path, &others);
        let [above, apart] = [&path, &apart].map(|path| mounts.place(path));
        assert!(above.has_mounts_of(&above) && !above.has_mounts_of(&apart) && apart.lies_in(&above));
        assert!(apart.mounted_from.is_empty(), "{apart:?}");
    }

    /// In this table, a symbolic link to a folder takes the place of a bind mount of the folder.
    #[test]
    fn a_folder_lies_in_its_parents_on_every_path() {
        let all = tempfile::tempdir().unwrap();
        let path = all.path().canonicalize().unwrap();
        let at = |name: &str| path.join(name);
        ["a/b/c", "m/wrong", "n"].iter().for_each(|name| std::fs::create_dir_all(at(name)).unwrap());
        symlink("../a/b/c", at("m/c")).unwrap();
        let (alone, bound) = (mounts(&path, &[]), mounts(&path, &[[&at("a/b"), &at("m")]]));
        let [c, m] = ["a/b/c", "m"].map(|name| bound.place(&at(name)));
        assert!(c.lies_in(&m) && !alone.place(&at("a/b/c")).lies_in(&m));
        assert!(!bound.place(&at("n")).lies_in(&m));
        // A path that another mount hides does not count.
        std::fs::create_dir(at("a/b/wrong")).unwrap();
        assert!(!bound.place(&at("a/b/wrong")).lies_in(&m));
    }
}
