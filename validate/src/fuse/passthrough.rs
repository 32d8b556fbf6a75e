//! The file system: what the kernel asks, done in the folder below.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirEntryExt, FileExt, MetadataExt};
use std::sync::atomic::{AtomicU64, Ordering};

use fuser::{FileAttr, FileHandle, FileType, INodeNo, OpenAccMode, ReplyDirectory, Request, TimeOrNow};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, Uid, openat};
use rustix::io::Errno;

use super::Options;
use super::attributes::asked_time;
use super::handles::Handles;
use super::nodes::{Nodes, path_of};
use super::pace::Pace;

/// The mode of all entries where all have one.
const ONE_MODE: u32 = 0o755;
/// The set-group-ID bit of a folder: what is made in it has the folder's group.
const SET_GROUP: u32 = 0o2000;
/// The most that Linux has of an attribute's value, and of the list of names: XATTR_SIZE_MAX and XATTR_LIST_MAX.
const LONGEST_ATTRIBUTE: usize = 65_536;

/// A folder that is shown as a file system of its own, without what its options take from it.
pub(super) struct Passthrough {
    pub(super) nodes: Nodes,
    pub(super) files: Handles<File>,
    pub(super) folders: Handles<Mutex<Vec<ListedEntry>>>,
    has_xattrs: bool,
    has_holes: bool,
    pub(super) has_one_case: bool,
    has_one_mode: bool,
    has_whole_seconds: bool,
    reads: Pace,
    writes: Pace,
    /// The bytes that may still be written.
    room: AtomicU64,
}

/// An entry of a folder that was opened.
pub(super) struct ListedEntry {
    number: INodeNo,
    kind: FileType,
    name: OsString,
}

/// What is to change of an entry.
pub(super) struct AttributeChange {
    pub(super) mode: Option<u32>,
    pub(super) user: Option<u32>,
    pub(super) group: Option<u32>,
    pub(super) size: Option<u64>,
    pub(super) accessed: Option<TimeOrNow>,
    pub(super) modified: Option<TimeOrNow>,
}

impl Passthrough {
    pub(super) fn new(options: &Options) -> io::Result<Passthrough> {
        Ok(Passthrough {
            nodes: Nodes::below(&options.over)?,
            files: Handles::default(),
            folders: Handles::default(),
            has_xattrs: !options.no_xattrs,
            has_holes: !options.no_holes,
            has_one_case: options.one_case,
            has_one_mode: options.one_mode,
            has_whole_seconds: options.whole_seconds,
            reads: Pace::new(options.read_rate),
            writes: Pace::new(options.write_rate),
            room: AtomicU64::new(options.room.unwrap_or(u64::MAX)),
        })
    }

    /// Returns the mode of a new entry.
    pub(super) fn mode_of_new(&self, asked: u32) -> Mode {
        Mode::from_raw_mode(if self.has_one_mode { ONE_MODE } else { asked })
    }

    /// Makes an entry by `make`, gives it to who has asked for it, and looks it up.
    pub(super) fn made(
        &self,
        request: &Request,
        (parent, name): (INodeNo, &OsStr),
        make: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<FileAttr> {
        let folder = self.nodes.get(parent)?;
        make(&folder)?;
        let (user, group) = (request.uid(), request.gid());
        if (user, group) != (0, 0) {
            let is_inherited = folder.metadata()?.mode() & SET_GROUP != 0;
            let group = (!is_inherited).then(|| Gid::from_raw(group));
            let owner = Some(Uid::from_raw(user));
            rustix::fs::chownat(&*folder, name, owner, group, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        self.nodes.look_up(parent, name)
    }

    /// Makes a file, and opens it.
    pub(super) fn created(
        &self,
        request: &Request,
        (parent, name): (INodeNo, &OsStr),
        mode: u32,
        flags: i32,
    ) -> io::Result<(FileAttr, FileHandle)> {
        let asked = OFlags::from_bits_retain(flags.cast_unsigned()) & (OFlags::EXCL | OFlags::TRUNC);
        let access = access(fuser::OpenFlags(flags).acc_mode());
        let mut opened = None;
        let made = self.made(request, (parent, name), |folder| {
            let flags = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | access | asked;
            opened = Some(openat(folder, name, flags, self.mode_of_new(mode))?);
            Ok(())
        })?;
        let file = File::from(opened.ok_or(Errno::IO)?);
        Ok((made, self.files.add(file)))
    }

    pub(super) fn opened(&self, number: INodeNo, mode: OpenAccMode) -> io::Result<FileHandle> {
        let entry = self.nodes.get(number)?;
        let path = path_of(&entry);
        let file = openat(CWD, path, access(mode) | OFlags::CLOEXEC, Mode::empty())?;
        Ok(self.files.add(File::from(file)))
    }

    /// Tells of the entries of a folder after the first `offset` ones, as far as there is room. A folder is read when its first ones
    /// are asked for.
    pub(super) fn list(
        &self,
        number: INodeNo,
        folder: FileHandle,
        offset: u64,
        reply: &mut ReplyDirectory,
    ) -> io::Result<()> {
        let open = self.folders.get(folder)?;
        let mut all = open.lock();
        if offset == 0 {
            *all = self.listed(number)?;
        }
        for (place, entry) in (1..).zip(all.iter()).skip(offset as usize) {
            if reply.add(entry.number, place, entry.kind, &entry.name) {
                break;
            }
        }
        Ok(())
    }

    /// Returns what a folder has, with itself and the one above.
    fn listed(&self, number: INodeNo) -> io::Result<Vec<ListedEntry>> {
        let folder = self.nodes.get(number)?;
        let dots =
            [".", ".."].map(|name| ListedEntry { number, kind: FileType::Directory, name: name.into() });
        let mut all = Vec::from(dots);
        for entry in std::fs::read_dir(path_of(&folder))? {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).ok_or(Errno::IO)?;
            all.push(ListedEntry { number: INodeNo(entry.ino()), kind, name: entry.file_name() });
        }
        Ok(all)
    }

    pub(super) fn read_bytes(&self, number: FileHandle, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        let file = self.files.get(number)?;
        let (mut bytes, mut filled) = (vec![0_u8; size as usize], 0);
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
                0 => break,
                more => filled += more,
            }
        }
        bytes.truncate(filled);
        self.reads.pass(filled as u64);
        Ok(bytes)
    }

    pub(super) fn write_bytes(&self, number: FileHandle, offset: u64, data: &[u8]) -> io::Result<u32> {
        let length = data.len() as u64;
        let left = |room: u64| room.checked_sub(length);
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            return Err(Errno::NOSPC.into());
        }
        self.files.get(number)?.write_all_at(data, offset)?;
        self.writes.pass(length);
        Ok(data.len() as u32)
    }

    /// Changes an entry. The owner comes first, because a new one takes set-ID bits away.
    pub(super) fn change(&self, number: INodeNo, change: &AttributeChange) -> io::Result<FileAttr> {
        let entry = self.nodes.get(number)?;
        let path = path_of(&entry);
        let none = AtFlags::empty();
        if change.user.is_some() || change.group.is_some() {
            let (user, group) = (change.user.map(Uid::from_raw), change.group.map(Gid::from_raw));
            rustix::fs::chownat(CWD, &path, user, group, none)?;
        }
        if let Some(mode) = change.mode {
            if self.has_one_mode && mode & 0o7777 != ONE_MODE {
                return Err(Errno::PERM.into());
            }
            rustix::fs::chmodat(CWD, &path, Mode::from_raw_mode(mode), none)?;
        }
        if let Some(size) = change.size {
            OpenOptions::new().write(true).open(&path)?.set_len(size)?;
        }
        let last_access = asked_time(change.accessed);
        let times = Timestamps { last_access, last_modification: self.kept_time(change.modified) };
        rustix::fs::utimensat(CWD, &path, &times, none)?;
        self.nodes.attributes(number)
    }

    /// Returns a time as it is kept.
    fn kept_time(&self, asked: Option<TimeOrNow>) -> Timespec {
        let time = asked_time(asked);
        // Other numbers are no nanoseconds (utimensat(2)).
        let is_cut = self.has_whole_seconds && (0..1_000_000_000).contains(&time.tv_nsec);
        if is_cut { Timespec { tv_nsec: 0, ..time } } else { time }
    }

    /// Gives an entry a further name.
    pub(super) fn linked(&self, number: INodeNo, (parent, name): (INodeNo, &OsStr)) -> io::Result<FileAttr> {
        let (file, folder) = (self.nodes.get(number)?, self.nodes.get(parent)?);
        rustix::fs::linkat(CWD, path_of(&file), &*folder, name, AtFlags::SYMLINK_FOLLOW)?;
        self.nodes.look_up(parent, name)
    }

    /// Returns what a symbolic link says.
    pub(super) fn link_text(&self, number: INodeNo) -> io::Result<Vec<u8>> {
        let text = rustix::fs::readlinkat(&*self.nodes.get(number)?, "", Vec::<u8>::new())?;
        Ok(text.into_bytes())
    }

    /// Removes a name.
    pub(super) fn removed(&self, parent: INodeNo, name: &OsStr, flags: AtFlags) -> io::Result<()> {
        let name = self.spelled(parent, name)?;
        Ok(rustix::fs::unlinkat(&*self.nodes.get(parent)?, name, flags)?)
    }

    /// Returns the next data or the next hole of a file.
    pub(super) fn sought(&self, file: FileHandle, offset: i64, whence: i32) -> io::Result<i64> {
        let offset = u64::try_from(offset).map_err(|_| Errno::INVAL)?;
        let place = match whence {
            libc::SEEK_DATA if self.has_holes => SeekFrom::Data(offset),
            libc::SEEK_HOLE if self.has_holes => SeekFrom::Hole(offset),
            // The kernel then takes every file for one without holes, and never asks again.
            _ => return Err(Errno::NOSYS.into()),
        };
        Ok(rustix::fs::seek(&*self.files.get(file)?, place)?.cast_signed())
    }

    pub(super) fn attribute(&self, number: INodeNo, name: &OsStr) -> io::Result<Vec<u8>> {
        let path = self.path_of_attributes(number)?;
        let mut room = vec![0_u8; LONGEST_ATTRIBUTE];
        let length = rustix::fs::getxattr(path, name, room.as_mut_slice())?;
        room.truncate(length);
        Ok(room)
    }

    pub(super) fn attribute_names(&self, number: INodeNo) -> io::Result<Vec<u8>> {
        let path = self.path_of_attributes(number)?;
        let mut room = vec![0_u8; LONGEST_ATTRIBUTE];
        let length = rustix::fs::listxattr(path, room.as_mut_slice())?;
        room.truncate(length);
        Ok(room)
    }

    /// Returns the path by which attributes are read and written.
    pub(super) fn path_of_attributes(&self, number: INodeNo) -> io::Result<String> {
        match self.has_xattrs {
            true => self.nodes.get(number).map(|entry| path_of(&entry)),
            false => Err(Errno::OPNOTSUPP.into()),
        }
    }
}

fn access(mode: OpenAccMode) -> OFlags {
    match mode {
        OpenAccMode::O_RDONLY => OFlags::RDONLY,
        OpenAccMode::O_WRONLY => OFlags::WRONLY,
        OpenAccMode::O_RDWR => OFlags::RDWR,
    }
}
