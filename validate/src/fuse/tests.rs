//! The file system as the kernel shows it. Without root or /dev/fuse these tests are skipped.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, SeekFrom, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

use super::*;

/// A folder, and where it is shown.
pub(crate) struct Shown {
    below: tempfile::TempDir,
    at: tempfile::TempDir,
    session: Option<BackgroundSession>,
}

impl Shown {
    /// Shows an empty folder; `None` if that cannot be done here.
    fn new(change: fn(&mut Options)) -> Option<Shown> {
        if let Some(why) = missing() {
            eprintln!("SKIP: {why}");
            return None;
        }
        let [below, at] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut options = Options {
            over: below.path().to_path_buf(),
            at: at.path().to_path_buf(),
            write_rate: None,
            read_rate: None,
            no_xattrs: false,
            no_holes: false,
            one_case: false,
            one_mode: false,
            whole_seconds: false,
            room: None,
        };
        change(&mut options);
        // A container may have the device, and not the right to mount.
        match mount(&options) {
            Ok(session) => Some(Shown { below, at, session: Some(session) }),
            Err(error) => {
                eprintln!("SKIP: {error:#}");
                None
            }
        }
    }

    /// Shows an empty folder in which letters of both cases are one.
    pub(crate) fn with_one_case() -> Option<Shown> {
        Shown::new(|options| options.one_case = true)
    }

    /// Shows an empty folder in which all entries have the same mode.
    pub(crate) fn with_one_mode() -> Option<Shown> {
        Shown::new(|options| options.one_mode = true)
    }

    /// Shows an empty folder that keeps no parts of a second.
    pub(crate) fn with_whole_seconds() -> Option<Shown> {
        Shown::new(|options| options.whole_seconds = true)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }

    pub(crate) fn below(&self, name: &str) -> PathBuf {
        self.below.path().join(name)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.at.path(), UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

fn set(path: &Path) -> Result<(), Errno> {
    rustix::fs::lsetxattr(path, "user.a", b"value", XattrFlags::empty())
}

#[test]
fn what_is_done_at_the_top_is_done_below() {
    let Some(shown) = Shown::new(|_| {}) else { return };
    fs::create_dir(shown.at("folder")).unwrap();
    fs::write(shown.at("folder/file"), "content").unwrap();
    symlink("nowhere", shown.at("link")).unwrap();
    fs::hard_link(shown.at("folder/file"), shown.at("other")).unwrap();
    fs::rename(shown.at("folder/file"), shown.at("folder/new")).unwrap();
    assert_eq!(fs::read(shown.below("folder/new")).unwrap(), b"content");
    assert_eq!(fs::read(shown.at("other")).unwrap(), b"content");
    assert_eq!(fs::read_link(shown.below("link")).unwrap(), Path::new("nowhere"));
    assert_eq!(fs::metadata(shown.below("other")).unwrap().nlink(), 2);
    fs::remove_file(shown.at("other")).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(shown.at.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["folder", "link"]);
    fs::remove_dir_all(shown.at("folder")).unwrap();
    assert!(!shown.below("folder").exists());
}

/// fuser takes some times for others: this would fail if the next version did not, and nothing were changed here.
#[test]
fn times_before_1970_keep_their_nanoseconds() {
    let Some(shown) = Shown::new(|_| {}) else { return };
    fs::write(shown.at("file"), "").unwrap();
    for (seconds, nanos) in [(-1, 0), (-1, 999_999_999), (-2_000_000_000, 1), (0, 7), (3_000_000_000, 5)] {
        let time = Timespec { tv_sec: seconds, tv_nsec: nanos };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, shown.at("file"), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        for path in [shown.below("file"), shown.at("file")] {
            let seen = fs::metadata(path).unwrap();
            assert_eq!((seen.mtime(), seen.mtime_nsec()), (seconds, nanos));
        }
    }
}

#[test]
fn attributes_are_there_unless_they_are_switched_off() {
    let Some(shown) = Shown::new(|_| {}) else { return };
    fs::write(shown.below("file"), "").unwrap();
    if let Err(error) = set(&shown.below("file")) {
        return eprintln!("SKIP: the folder below has no attributes: {error}");
    }
    let mut room = [0_u8; 64];
    let length = rustix::fs::lgetxattr(shown.at("file"), "user.a", &mut room[..]).unwrap();
    assert_eq!(&room[..length], b"value");
    let length = rustix::fs::llistxattr(shown.at("file"), &mut room[..]).unwrap();
    assert_eq!(&room[..length], b"user.a\0");
    let Some(shown) = Shown::new(|options| options.no_xattrs = true) else { return };
    fs::write(shown.at("file"), "").unwrap();
    assert_eq!(set(&shown.at("file")), Err(Errno::OPNOTSUPP));
}

#[test]
fn holes_are_told_unless_they_are_switched_off() {
    let sought = |shown: &Shown| {
        let file = fs::File::create(shown.at("sparse")).unwrap();
        file.write_all_at(b"data", 1 << 20).unwrap();
        rustix::fs::seek(&file, SeekFrom::Data(0)).unwrap()
    };
    let Some(shown) = Shown::new(|_| {}) else { return };
    let own = fs::File::create(shown.below("own")).unwrap();
    own.set_len(1 << 20).unwrap();
    let has_holes = rustix::fs::seek(&own, SeekFrom::Data(0)) == Err(Errno::NXIO);
    match has_holes {
        true => assert_eq!(sought(&shown), 1 << 20),
        false => eprintln!("SKIP: the folder below tells no holes"),
    }
    let Some(shown) = Shown::new(|options| options.no_holes = true) else { return };
    assert_eq!(sought(&shown), 0);
}

#[test]
fn it_is_full_once_its_room_is_used() {
    let Some(shown) = Shown::new(|options| options.room = Some(4_096)) else { return };
    fs::write(shown.at("first"), [7; 4_096]).unwrap();
    let error = fs::write(shown.at("second"), [7; 1]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
}

#[test]
fn letters_of_both_cases_are_one_where_that_is_asked_for() {
    let Some(shown) = Shown::with_one_case() else { return };
    fs::write(shown.at("Name"), "first").unwrap();
    assert_eq!(fs::read(shown.at("nAME")).unwrap(), b"first");
    assert!(fs::create_dir(shown.at("name")).is_err() && shown.below("Name").exists());
    fs::write(shown.at("other"), "second").unwrap();
    fs::rename(shown.at("OTHER"), shown.at("name")).unwrap();
    assert_eq!(fs::read(shown.below("Name")).unwrap(), b"second", "it keeps the first name");
    fs::remove_file(shown.at("NAME")).unwrap();
    assert_eq!(fs::read_dir(shown.below.path()).unwrap().count(), 0);
}

#[test]
fn all_have_one_mode_where_that_is_asked_for() {
    use std::os::unix::fs::PermissionsExt;
    let Some(shown) = Shown::with_one_mode() else { return };
    fs::write(shown.at("file"), "f").unwrap();
    let private = fs::Permissions::from_mode(0o700);
    let error = fs::set_permissions(shown.at("file"), private).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    rustix::fs::mkdirat(CWD, shown.at("folder"), rustix::fs::Mode::RWXU).unwrap();
    let mode = |name: &str| fs::metadata(shown.at(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("file"), mode("folder")), (0o755, 0o755));
}

#[test]
fn a_file_without_a_name_cannot_be_made() {
    use rustix::fs::{Mode, OFlags, openat};
    let Some(shown) = Shown::new(|_| {}) else { return };
    let made = openat(CWD, shown.at.path(), OFlags::TMPFILE | OFlags::WRONLY, Mode::RUSR);
    assert_eq!(made.map(drop), Err(Errno::OPNOTSUPP));
}
