//! Opens files below a root, and never outside of it (openat2(2)). Symbolic links are not followed: they are content.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::metadata::{Place, shed_inherited};
use crate::name::RelativeName;

/// The number of attempts while other programs rename folders, for which openat2 returns EAGAIN.
const TRIES: usize = 64;

/// A folder with all that is below it, and the mode of folders that are made there.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd, Mode);

impl Root {
    /// Opens the folder at a path. The path may lead anywhere.
    pub(crate) fn open(path: &Path) -> io::Result<Root> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self::new(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
    }

    /// Returns an open folder as a root.
    pub(crate) fn new(folder: OwnedFd) -> io::Result<Root> {
        let root = Root(folder, Mode::RWXU);
        root.can_look_beneath().map(|()| root)
    }

    /// Opens the entry at `way`, relative to this folder. Unlike [`Root::file`], it follows symbolic links. A link or
    /// ".." that leads out of this folder fails with EXDEV.
    pub(crate) fn follow(&self, way: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        self.open_steadily(
            way.as_os_str().as_bytes(),
            flags,
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        )
    }

    /// Returns the same folder. Folders are made there with this mode, and not for this user alone.
    pub(crate) fn making(self, mode: Mode) -> Root {
        Root(self.0, mode)
    }

    /// Returns ENOSYS if the kernel lacks openat2(2), or if a seccomp filter denies it. Without this check, each entry
    /// would fail by itself.
    fn can_look_beneath(&self) -> io::Result<()> {
        match self.folder(&RelativeName::root()) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                Err(Errno::NOSYS.into())
            }
            _ => Ok(()),
        }
    }

    /// Opens the entry `name`.
    pub(crate) fn file(&self, name: &RelativeName, flags: OFlags) -> io::Result<OwnedFd> {
        self.open_entry(name, flags, ResolveFlags::empty())
    }

    fn open_entry(&self, name: &RelativeName, flags: OFlags, resolve: ResolveFlags) -> io::Result<OwnedFd> {
        let resolve =
            resolve | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let path: &[u8] = if name.as_bytes().is_empty() { b"." } else { name.as_bytes() };
        self.open_steadily(path, flags | OFlags::NOFOLLOW, resolve)
    }

    fn open_steadily(&self, path: &[u8], flags: OFlags, resolve: ResolveFlags) -> io::Result<OwnedFd> {
        for _ in 0..TRIES {
            match rustix::fs::openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return Ok(opened?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens the folder `name`, to reach entries in it.
    pub(crate) fn folder(&self, name: &RelativeName) -> io::Result<OwnedFd> {
        self.file(name, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// Opens the folder `name` as a root of its own.
    pub(crate) fn below(&self, name: &RelativeName) -> io::Result<Root> {
        self.file(name, OFlags::RDONLY | OFlags::DIRECTORY).map(|folder| Root(folder, self.1))
    }

    /// Opens the folder `name`, if nothing is mounted on it or on the way to it.
    pub(crate) fn folder_of_mount(&self, name: &RelativeName) -> io::Result<OwnedFd> {
        self.open_entry(name, OFlags::RDONLY | OFlags::DIRECTORY, ResolveFlags::NO_XDEV)
    }

    /// Opens the folder `name`. Creates it and the folders above it if they are missing, for this user alone: the copy
    /// sets their modes at its end. They inherit nothing. Does not recurse: a source may send a name of 2,048 folders.
    pub(crate) fn made_folder(&self, name: &RelativeName) -> io::Result<OwnedFd> {
        self.make_folder(name).map(|(folder, _)| folder)
    }

    /// Opens the folder `name` as [`Root::made_folder`] does. Also returns true if this call has created it.
    pub(crate) fn make_folder(&self, name: &RelativeName) -> io::Result<(OwnedFd, bool)> {
        let mut name = name.clone();
        // The deepest first.
        let mut missing = Vec::new();
        let mut folder = loop {
            match self.folder(&name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => break opened?,
            }
            let (above, leaf) = name.split().ok_or(Errno::NOENT)?;
            missing.push(leaf.to_vec());
            name = above;
        };
        let mut is_new = false;
        while let Some(leaf) = missing.pop() {
            let made = rustix::fs::mkdirat(&folder, &leaf, self.1);
            is_new = made.is_ok();
            name = name.join(&leaf).ok_or(Errno::INVAL)?;
            folder = match made {
                Ok(()) | Err(Errno::EXIST) => self.folder(&name)?,
                Err(error) => return Err(error.into()),
            };
            if is_new {
                shed_inherited(folder.as_fd())?;
            }
        }
        Ok((folder, is_new))
    }

    /// Calls `look` with the place of the entry `name`, a symbolic link itself included. Opens the entry's folder unless it
    /// is the last one.
    pub(crate) fn look<T>(
        &self,
        name: &RelativeName,
        last: &mut LastFolder,
        look: impl FnOnce(&Place<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        match name.split() {
            Some((folder, leaf)) => {
                look(&Place::named(last.get(folder, |folder| self.folder(folder))?, leaf))
            }
            None => look(&Place::named(self.0.as_fd(), b".")),
        }
    }

    /// Returns what the file system says of the entry `name`, a symbolic link itself included; `None` if there is none.
    /// Opens the entry's folder unless it is the last one.
    pub(crate) fn stat(&self, name: &RelativeName, last: &mut LastFolder) -> io::Result<Option<Stat>> {
        let Some((folder, leaf)) = name.split() else { return Ok(Some(rustix::fs::fstat(&self.0)?)) };
        let folder = match last.get(folder, |folder| self.folder(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match rustix::fs::statat(folder, leaf, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            seen => Ok(Some(seen?)),
        }
    }
}

/// The folder of the entry that was handled last. Entries of one folder mostly follow each other, so that it is opened once
/// for a batch of them. It is kept for no longer, because another program may put a folder into its place.
#[derive(Debug, Default)]
pub(crate) struct LastFolder(Option<(RelativeName, OwnedFd)>);

impl LastFolder {
    /// Returns the folder `name`. Opens it by `open` unless it is the last one.
    pub(crate) fn get(
        &mut self,
        name: RelativeName,
        open: impl FnOnce(&RelativeName) -> io::Result<OwnedFd>,
    ) -> io::Result<BorrowedFd<'_>> {
        let last = self.0.take().filter(|(last, _)| *last == name);
        let opened = match last {
            Some((_, folder)) => folder,
            None => open(&name)?,
        };
        Ok(self.0.insert((name, opened)).1.as_fd())
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn name(bytes: &[u8]) -> RelativeName {
        RelativeName::parse(bytes).expect("a name")
    }

    #[test]
    fn nothing_outside_is_reached() {
        let all = tempfile::tempdir().unwrap();
        let inside = all.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(all.path().join("secret"), "s").unwrap();
        symlink("../secret", inside.join("link")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        let root = Root::open(&inside).unwrap();
        for out in [&b"link"[..], b"up/secret", b"up"] {
            let error = root.file(&name(out), OFlags::RDONLY).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{}", out.escape_ascii());
        }
        assert!(Root::open(&inside.join("up")).is_ok());
        assert!(root.made_folder(&name(b"up/new")).is_err());
        assert!(!all.path().join("new").exists());
    }

    /// Makes a system call fail on this thread, as it does where the kernel lacks it or a container's filter denies it.
    pub(crate) fn deny(call: libc::c_long, errno: i32) {
        use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
        let instruction = |code: u32, k: u32, jf: u8| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let mut filter = [
            // The number of the call comes first in struct seccomp_data.
            instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0),
            instruction(BPF_JMP | BPF_JEQ | BPF_K, call as u32, 1),
            instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32, 0),
            instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        let (set, unset): (libc::c_ulong, libc::c_ulong) = (1, 0);
        // SAFETY: the arguments are numbers.
        let no_rights = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, set, unset, unset, unset) };
        assert_eq!(no_rights, 0);
        let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
        // SAFETY: the program and its instructions live until the call returns, and the kernel copies them.
        let denied = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) };
        assert_eq!(denied, 0, "{}", io::Error::last_os_error());
    }

    #[test]
    fn a_kernel_without_openat2_is_found_when_a_folder_is_opened() {
        for errno in [libc::ENOSYS, libc::EPERM] {
            let denied = std::thread::spawn(move || {
                deny(libc::SYS_openat2, errno);
                Root::open(Path::new("/")).map(drop)
            });
            let error = denied.join().expect("no panic").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOSYS));
            let text = crate::Error::at(Path::new("/"), "open it")(error).to_string();
            assert!(text.contains("openat2(2), which Linux has since 5.6"), "{text}");
        }
        assert!(Root::open(Path::new("/")).is_ok(), "other threads have it");
    }

    /// The kernel says so while other programs rename folders.
    #[test]
    fn a_path_that_is_never_steady_is_given_up() {
        let root = Root::open(Path::new("/")).unwrap();
        let error = std::thread::scope(|scope| {
            let tried = scope.spawn(|| {
                deny(libc::SYS_openat2, libc::EAGAIN);
                root.file(&name(b"etc"), OFlags::PATH).unwrap_err()
            });
            tried.join().expect("no panic")
        });
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
    }

    #[test]
    fn folders_are_made_for_this_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let all = tempfile::tempdir().unwrap();
        let root = Root::open(all.path()).unwrap();
        let are_new = [b"a/b/c", b"a/b/c"].map(|folder| root.make_folder(&name(folder)).unwrap().1);
        assert_eq!(are_new, [true, false]);
        let mode = std::fs::metadata(all.path().join("a/b")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let mut last = LastFolder::default();
        assert!(root.stat(&name(b"a/b"), &mut last).unwrap().is_some());
        assert!(root.stat(&name(b"x/y"), &mut last).unwrap().is_none());
    }

    #[test]
    fn a_folder_is_opened_once_for_the_entries_that_follow_each_other() {
        let all = tempfile::tempdir().unwrap();
        let root = Root::open(all.path()).unwrap();
        let (mut last, opened) = (LastFolder::default(), std::cell::Cell::new(0));
        let mut get = |folder: &[u8]| {
            let found = last.get(name(folder), |folder| {
                opened.set(opened.get() + 1);
                root.folder(folder)
            });
            found.map(|folder| rustix::fs::fstat(folder).unwrap().st_ino)
        };
        root.made_folder(&name(b"a/b")).unwrap();
        let [a, again, inner, back] = [&b"a"[..], b"a", b"a/b", b"a"].map(|folder| get(folder).unwrap());
        assert_eq!((opened.get(), a), (3, again));
        assert!(a == back && a != inner);
        assert!(get(b"missing").is_err() && get(b"a").is_ok(), "an error is not kept");
        let there = root.stat(&name(b"a/b"), &mut LastFolder::default()).unwrap();
        assert_eq!(there.map(|there| there.st_ino), Some(inner));
    }
}
