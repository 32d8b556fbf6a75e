//! Compares two trees entry by entry, with no code of the mover: bytes, kinds, names, links, modes, times, owners, hard links, holes,
//! extended attributes and ACLs.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::holes::{data, filled};

/// How two entries of the same name differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TreeDifference {
    /// The copy has none.
    Missing,
    /// Only the copy has one.
    Extra,
    /// One is a file, and the other one a folder, and the like.
    Kind,
    Content,
    /// What a symbolic link says.
    Text,
    Mode,
    /// Set-user-ID, set-group-ID and sticky bits.
    SpecialBits,
    Time,
    Owner,
    /// Names of one file have become several files, or the reverse. Symbolic links and FIFOs are left out: landspeed makes their
    /// names one by one (docs/decisions/0079-links-and-holes.md).
    HardLink,
    /// The copy has blocks where the source has a hole.
    Hole,
    Attribute,
    Acl,
}

impl TreeDifference {
    pub(super) const ALL: [TreeDifference; 13] = [
        TreeDifference::Missing,
        TreeDifference::Extra,
        TreeDifference::Kind,
        TreeDifference::Content,
        TreeDifference::Text,
        TreeDifference::Mode,
        TreeDifference::SpecialBits,
        TreeDifference::Time,
        TreeDifference::Owner,
        TreeDifference::HardLink,
        TreeDifference::Hole,
        TreeDifference::Attribute,
        TreeDifference::Acl,
    ];
}

/// The number of differences of each kind, and the first name with one.
#[derive(Debug, Default)]
pub(in crate::copy) struct TreeDifferences(BTreeMap<TreeDifference, (u64, Vec<u8>)>);

impl TreeDifferences {
    fn add(&mut self, difference: TreeDifference, name: &[u8]) {
        self.0.entry(difference).or_insert_with(|| (0, name.to_vec())).0 += 1;
    }

    pub(super) fn count(&self, difference: TreeDifference) -> u64 {
        self.0.get(&difference).map_or(0, |(count, _)| *count)
    }

    /// Returns the kinds that there are.
    pub(super) fn kinds(&self) -> impl Iterator<Item = TreeDifference> {
        self.0.keys().copied()
    }

    /// Returns one line for each kind, with the first name.
    pub(in crate::copy) fn examples(&self) -> Vec<String> {
        let line = |(kind, (count, name)): (&TreeDifference, &(u64, Vec<u8>))| {
            format!("{kind:?}: {count}, first {}", name.escape_ascii())
        };
        self.0.iter().map(line).collect()
    }
}

/// An entry as the file system tells it.
struct TreeEntry {
    path: PathBuf,
    seen: Metadata,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The entries below a folder by their names, relative to it.
type Entries = BTreeMap<Vec<u8>, TreeEntry>;

/// Compares what is below two folders, of which the second one is the copy. The folders themselves are left out.
pub(in crate::copy) fn compare(source: &Path, copy: &Path) -> Result<TreeDifferences> {
    let (own, there) = (entries(source)?, entries(copy)?);
    let (own_links, links_there) = (hard_links(&own, &there), hard_links(&there, &own));
    let mut found = TreeDifferences::default();
    for (name, entry) in &own {
        let Some(other) = there.get(name) else {
            found.add(TreeDifference::Missing, name);
            continue;
        };
        if own_links.get(name.as_slice()) != links_there.get(name.as_slice()) {
            found.add(TreeDifference::HardLink, name);
        }
        let differing = differing(entry, other).with_context(|| entry.path.display().to_string())?;
        differing.into_iter().for_each(|difference| found.add(difference, name));
    }
    there
        .keys()
        .filter(|name| !own.contains_key(*name))
        .for_each(|name| found.add(TreeDifference::Extra, name));
    Ok(found)
}

/// Returns the number of entries below a folder.
pub(super) fn count(folder: &Path) -> Result<usize> {
    Ok(entries(folder)?.len())
}

fn entries(root: &Path) -> Result<Entries> {
    let (mut all, mut folders) = (Entries::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        let listed = fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?;
        for entry in listed {
            let path = entry?.path();
            let seen = path.symlink_metadata()?;
            if seen.is_dir() {
                folders.push(path.clone());
            }
            let name = path.strip_prefix(root)?.as_os_str().as_bytes().to_vec();
            let attributes = attributes(&path)?;
            all.insert(name, TreeEntry { path, seen, attributes });
        }
    }
    Ok(all)
}

fn attributes(path: &Path) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    // The most that Linux has: XATTR_LIST_MAX and XATTR_SIZE_MAX.
    let mut room = vec![0; 65_536];
    let length = match rustix::fs::llistxattr(path, room.as_mut_slice()) {
        Err(rustix::io::Errno::OPNOTSUPP) => 0,
        listed => listed.with_context(|| format!("list the attributes of {}", path.display()))?,
    };
    let names: Vec<Vec<u8>> =
        room[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
    let mut all = BTreeMap::new();
    for name in names {
        let length = rustix::fs::lgetxattr(path, name.as_slice(), room.as_mut_slice())?;
        all.insert(name, room[..length].to_vec());
    }
    Ok(all)
}

/// Returns of each file that both trees have the first one of its names.
fn hard_links<'a>(entries: &'a Entries, others: &Entries) -> BTreeMap<&'a [u8], &'a [u8]> {
    let mut first: BTreeMap<(u64, u64), &[u8]> = BTreeMap::new();
    let is_in_others = |name: &[u8]| others.get(name).is_some_and(|other| other.seen.is_file());
    let files = entries.iter().filter(|(name, entry)| entry.seen.is_file() && is_in_others(name));
    files
        .map(|(name, entry)| {
            let inode = (entry.seen.dev(), entry.seen.ino());
            (name.as_slice(), *first.entry(inode).or_insert(name))
        })
        .collect()
}

/// Returns how an entry differs from its copy.
fn differing(own: &TreeEntry, there: &TreeEntry) -> Result<Vec<TreeDifference>> {
    if own.seen.file_type() != there.seen.file_type() {
        return Ok(vec![TreeDifference::Kind]);
    }
    let mut found = metadata(&own.seen, &there.seen);
    if own.seen.is_symlink() && fs::read_link(&own.path)? != fs::read_link(&there.path)? {
        found.push(TreeDifference::Text);
    }
    if own.seen.is_file() {
        found.extend(content(own, there)?);
    }
    let of = |entry: &TreeEntry, is_acl: bool| -> BTreeMap<Vec<u8>, Vec<u8>> {
        let own =
            entry.attributes.iter().filter(|(name, _)| name.starts_with(b"system.posix_acl_") == is_acl);
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    for (difference, is_acl) in [(TreeDifference::Attribute, false), (TreeDifference::Acl, true)] {
        if of(own, is_acl) != of(there, is_acl) {
            found.push(difference);
        }
    }
    Ok(found)
}

fn metadata(own: &Metadata, there: &Metadata) -> Vec<TreeDifference> {
    let bits = |bits: u32| own.mode() & bits != there.mode() & bits;
    [
        // A symbolic link has no mode of its own.
        (TreeDifference::Mode, !own.is_symlink() && bits(0o777)),
        (TreeDifference::SpecialBits, !own.is_symlink() && bits(0o7000)),
        (TreeDifference::Time, (own.mtime(), own.mtime_nsec()) != (there.mtime(), there.mtime_nsec())),
        (TreeDifference::Owner, (own.uid(), own.gid()) != (there.uid(), there.gid())),
        (TreeDifference::Kind, is_device(own) && own.rdev() != there.rdev()),
    ]
    .into_iter()
    .filter_map(|(difference, differs)| differs.then_some(difference))
    .collect()
}

fn is_device(seen: &Metadata) -> bool {
    seen.file_type().is_block_device() || seen.file_type().is_char_device()
}

fn content(own: &TreeEntry, there: &TreeEntry) -> Result<Vec<TreeDifference>> {
    let (one, other) = (File::open(&own.path)?, File::open(&there.path)?);
    let mut found = Vec::new();
    if own.seen.len() != there.seen.len() || !is_same(&one, &other)? {
        found.push(TreeDifference::Content);
    }
    if filled(&data(&one)?, &data(&other)?, there.seen.blksize()) > 0 {
        found.push(TreeDifference::Hole);
    }
    Ok(found)
}

/// Returns true if two files of one length have the same bytes.
fn is_same(mut one: &File, mut other: &File) -> Result<bool> {
    let mut room = [vec![0; 1 << 18], vec![0; 1 << 18]];
    loop {
        let [left, right] = &mut room;
        let came = one.read(left)?;
        if came == 0 {
            return Ok(true);
        }
        other.read_exact(&mut right[..came])?;
        if left[..came] != right[..came] {
            return Ok(false);
        }
    }
}
