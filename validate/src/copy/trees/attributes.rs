//! Gives the entries of a tree their owners, modes, extended attributes, ACLs and times.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use landspeed_stats::Random;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

const ACCESS_ACL: &str = "system.posix_acl_access";
const DEFAULT_ACL: &str = "system.posix_acl_default";
const CAPABILITY: &str = "security.capability";

/// Whose entries a tree has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// Owners of all sorts, and modes that only root reads. Made by root.
    Anybody,
    /// All of one user, who may read everything. Made by root, or by this user.
    User { user: u32, group: u32 },
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MadeKind {
    Folder,
    File,
    Link,
    Fifo,
}

/// An entry that was made.
#[derive(Debug)]
pub(super) struct MadeEntry {
    pub(super) path: PathBuf,
    pub(super) kind: MadeKind,
}

/// Finishes all entries. Returns what the file system cannot hold, in words.
pub(super) fn finish(
    made: &[MadeEntry],
    random: &mut Random,
    ownership: Ownership,
) -> Result<Vec<&'static str>> {
    let mut finishing = EntryFinisher { random, ownership, left_out: BTreeSet::new() };
    for (number, entry) in made.iter().enumerate() {
        finishing.entry(entry, number as u64).with_context(|| format!("finish {:?}", entry.path))?;
    }
    Ok(finishing.left_out.into_iter().collect())
}

struct EntryFinisher<'a> {
    random: &'a mut Random,
    ownership: Ownership,
    left_out: BTreeSet<&'static str>,
}

impl EntryFinisher<'_> {
    fn entry(&mut self, entry: &MadeEntry, number: u64) -> Result<()> {
        let path = entry.path.as_path();
        self.own(path)?;
        if matches!(entry.kind, MadeKind::File | MadeKind::Folder) {
            self.attributes(path, number)?;
        }
        if entry.kind != MadeKind::Link {
            fs::set_permissions(path, PermissionsExt::from_mode(self.mode(entry.kind)))?;
        }
        if matches!(entry.kind, MadeKind::File | MadeKind::Folder) {
            self.acls(entry, number)?;
        }
        self.capability(entry, number)?;
        self.age(path)
    }

    /// Sets the owner, which takes set-user-ID bits and capabilities away.
    fn own(&mut self, path: &Path) -> Result<()> {
        const USERS: [u32; 6] = [0, 1, 1_000, 65_534, 123_456, 2_000_000_000];
        let mut any = || USERS[(self.random.draw() % USERS.len() as u64) as usize];
        let (user, group) = match self.ownership {
            Ownership::Anybody => (any(), any()),
            Ownership::User { user, group } => (user, group),
        };
        Ok(std::os::unix::fs::lchown(path, Some(user), Some(group))?)
    }

    fn mode(&mut self, kind: MadeKind) -> u32 {
        let any = self.random.draw() as u32 & 0o777;
        let special = self.random.draw() as u32 & 0o7000;
        match (self.ownership, kind) {
            // Set-ID bits of one entry in eight.
            (Ownership::Anybody, _) if self.random.happens(0.125) => special | any,
            (Ownership::Anybody, _) => any,
            (Ownership::User { .. }, MadeKind::Folder) => any | 0o700,
            (Ownership::User { .. }, _) => any | 0o400,
        }
    }

    fn attributes(&mut self, path: &Path, number: u64) -> Result<()> {
        if !number.is_multiple_of(4) {
            return Ok(());
        }
        let bytes: Vec<u8> = (0..200).map(|_| self.random.draw() as u8).collect();
        self.set(path, "user.empty", b"", "user attributes")?;
        self.set(path, "user.bytes", &bytes, "user attributes")?;
        if number.is_multiple_of(8) {
            self.set(path, "user.long", &[b'v'; 1_500], "user attributes")?;
        }
        Ok(())
    }

    fn acls(&mut self, entry: &MadeEntry, number: u64) -> Result<()> {
        if !number.is_multiple_of(5) {
            return Ok(());
        }
        let first = 1_000 + (self.random.draw() % 1_000) as u32;
        self.set(&entry.path, ACCESS_ACL, &acl(first), "ACLs")?;
        if entry.kind == MadeKind::Folder {
            self.set(&entry.path, DEFAULT_ACL, &acl(first + 1), "ACLs")?;
        }
        Ok(())
    }

    /// Gives a file the right to open raw sockets (linux/capability.h: revision 2, CAP_NET_RAW).
    fn capability(&mut self, entry: &MadeEntry, number: u64) -> Result<()> {
        if entry.kind != MadeKind::File || !number.is_multiple_of(32) || self.ownership != Ownership::Anybody
        {
            return Ok(());
        }
        let words: [u32; 5] = [0x0200_0001, 1 << 13, 0, 0, 0];
        self.set(&entry.path, CAPABILITY, &words.map(u32::to_le_bytes).concat(), "file capabilities")
    }

    /// Sets an attribute, or notes that the file system has none such.
    fn set(&mut self, path: &Path, name: &str, value: &[u8], what: &'static str) -> Result<()> {
        match rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP | Errno::PERM) => {
                self.left_out.insert(what);
                Ok(())
            }
            set => Ok(set?),
        }
    }

    /// Sets a time of the last change: before 1970, at 1970, in our days, or after 2038.
    fn age(&mut self, path: &Path) -> Result<()> {
        let any = (self.random.draw() % 1_000_000_000) as i64;
        let seconds = [-2_000_000_000 + any, -1, 0, 1_000_000_000 + any, 3_000_000_000 + any];
        let seconds = seconds[(self.random.draw() % seconds.len() as u64) as usize];
        let nanos = (self.random.draw() % 1_000_000_000) as i64;
        let seen = path.symlink_metadata()?;
        let times = Timestamps {
            last_access: Timespec { tv_sec: seen.atime(), tv_nsec: seen.atime_nsec() },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: nanos },
        };
        Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// Returns an ACL with a further user, a further group and a mask, as the kernel takes it (linux/posix_acl_xattr.h).
pub(super) fn acl(id: u32) -> Vec<u8> {
    const VERSION: u32 = 2;
    const NOBODY: u32 = u32::MAX;
    // The owner, a user, the group, a group, the mask, others.
    let entries: [(u16, u16, u32); 6] = [
        (0x01, 7, NOBODY),
        (0x02, 4, id),
        (0x04, 5, NOBODY),
        (0x08, 6, id),
        (0x10, 7, NOBODY),
        (0x20, 1, NOBODY),
    ];
    let entry = |(tag, rights, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [VERSION.to_le_bytes().to_vec(), entries.map(entry).concat()].concat()
}
