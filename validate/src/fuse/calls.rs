//! The calls of the kernel, and the answers to them.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, FallocateFlags, FileType, XattrFlags};

use super::passthrough::{AttributeChange, Passthrough};

/// The time for which the kernel keeps what it has heard: none, because others change the folder below.
const KEPT: Duration = Duration::ZERO;

/// Calls that are missing here are refused with ENOSYS: O_TMPFILE is one of them.
impl Filesystem for Passthrough {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.spelled(parent, name).and_then(|name| self.nodes.look_up(parent, &name));
        entry(reply, found);
    }

    fn forget(&self, _: &Request, number: INodeNo, lookups: u64) {
        self.nodes.forget(number, lookups);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(reply, self.nodes.attributes(number));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _file: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = AttributeChange { mode, user, group, size, accessed, modified };
        attributes(reply, self.change(number, &change));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        data(reply, self.link_text(number));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let (kind, mode) = (FileType::from_raw_mode(mode), self.mode_of_new(mode));
        let made = self.made(request, (parent, name), |folder| {
            Ok(rustix::fs::mknodat(folder, name, kind, mode, device.into())?)
        });
        entry(reply, made);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self.made(request, (parent, name), |folder| {
            Ok(rustix::fs::mkdirat(folder, name, self.mode_of_new(mode))?)
        });
        entry(reply, made);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, text: &Path, reply: ReplyEntry) {
        let made =
            self.made(request, (parent, name), |folder| Ok(rustix::fs::symlinkat(text, folder, name)?));
        entry(reply, made);
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.linked(number, (parent, name)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.removed(parent, name, AtFlags::empty()));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.removed(parent, name, AtFlags::REMOVEDIR));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let renamed = || -> io::Result<()> {
            let (from, to) = (self.nodes.get(parent)?, self.nodes.get(new_parent)?);
            let (name, new_name) = (self.spelled(parent, name)?, self.spelled(new_parent, new_name)?);
            Ok(rustix::fs::renameat_with(&*from, name, &*to, new_name, flags)?)
        };
        done(reply, renamed());
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        opened(reply, self.opened(number, flags.acc_mode()));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.created(request, (parent, name), mode, flags) {
            Ok((made, file)) => reply.created(&KEPT, &made, Generation(0), file, FopenFlags::empty()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        data(reply, self.read_bytes(file, offset, size));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.write_bytes(file, offset, bytes) {
            Ok(written) => reply.written(written),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, file: FileHandle, only_data: bool, reply: ReplyEmpty) {
        let file = self.files.get(file);
        done(reply, file.and_then(|file| if only_data { file.sync_data() } else { file.sync_all() }));
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.files.remove(file);
        reply.ok();
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        opened(reply, Ok(self.folders.add(Mutex::default())));
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        folder: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.list(number, folder, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, folder: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.folders.remove(folder);
        reply.ok();
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        let seen = self.nodes.get(number).and_then(|file| Ok(rustix::fs::fstatvfs(&*file)?));
        match seen {
            Ok(all) => {
                let [block, name, unit] = [all.f_bsize, all.f_namemax, all.f_frsize].map(|size| size as u32);
                let (blocks, files) = ([all.f_blocks, all.f_bfree, all.f_bavail], [all.f_files, all.f_ffree]);
                reply.statfs(blocks[0], blocks[1], blocks[2], files[0], files[1], block, name, unit);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let flags = XattrFlags::from_bits_retain(flags.cast_unsigned());
        let path = self.path_of_attributes(number);
        done(reply, path.and_then(|path| Ok(rustix::fs::setxattr(path, name, value, flags)?)));
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        attribute(reply, size, self.attribute(number, name));
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        attribute(reply, size, self.attribute_names(number));
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.path_of_attributes(number);
        done(reply, path.and_then(|path| Ok(rustix::fs::removexattr(path, name)?)));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        file: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let file = self.files.get(file);
        done(reply, file.and_then(|file| Ok(rustix::fs::fallocate(&*file, mode, offset, length)?)));
    }

    fn lseek(&self, _: &Request, _: INodeNo, file: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        match self.sought(file, offset, whence) {
            Ok(found) => reply.offset(found),
            Err(error) => reply.error(error.into()),
        }
    }
}

fn done(reply: ReplyEmpty, result: io::Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

fn entry(reply: ReplyEntry, found: io::Result<FileAttr>) {
    match found {
        Ok(found) => reply.entry(&KEPT, &found, Generation(0)),
        Err(error) => reply.error(error.into()),
    }
}

fn attributes(reply: ReplyAttr, found: io::Result<FileAttr>) {
    match found {
        Ok(found) => reply.attr(&KEPT, &found),
        Err(error) => reply.error(error.into()),
    }
}

fn opened(reply: ReplyOpen, result: io::Result<FileHandle>) {
    match result {
        Ok(handle) => reply.opened(handle, FopenFlags::empty()),
        Err(error) => reply.error(error.into()),
    }
}

fn data(reply: ReplyData, read: io::Result<Vec<u8>>) {
    match read {
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(error.into()),
    }
}

/// Answers with an attribute, or with its length alone where the caller has no room yet.
fn attribute(reply: ReplyXattr, room: u32, read: io::Result<Vec<u8>>) {
    match read {
        Ok(bytes) if room == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() > room as usize => reply.error(fuser::Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(error.into()),
    }
}
