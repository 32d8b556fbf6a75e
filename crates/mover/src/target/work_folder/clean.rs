//! Lists and removes what interrupted copies have left.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{CopyLeftover, CopyLeftovers};
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;

use super::{HOLDER, NAME, NEW, PART, SHORT, WorkFolder, is_own, is_private, lock, open_folder};
use crate::Error;
use crate::identity::FileIdentity;
use crate::named_path::NamedPath;

/// The largest number of files that are listed, which fit a reply. Further ones are counted.
const MOST_LISTED: usize = 4_096;

/// Removes the incomplete files that copies have left in a target's folder, and returns them. With `only_list`, removes
/// nothing.
///
/// # Errors
/// Returns an error if the folder cannot be read, if other users have rights to it, or if a copy writes into it now. A list
/// takes no lock, so that no copy is kept out: it may name files of a copy that runs.
pub fn clean(folder: &NamedPath, only_list: bool) -> Result<CopyLeftovers, Error> {
    let root = folder.open_root().map_err(Error::at(folder.as_path(), "open it"))?;
    let path = folder.as_path().join(".landspeed-copy");
    let failed = |operation| {
        let failed = Error::at(&path, operation);
        move |error: Errno| failed(error.into())
    };
    let own = match open_folder(&root, NAME) {
        Err(Errno::NOENT) => return Ok(CopyLeftovers::default()),
        opened => opened.map_err(failed("open it"))?,
    };
    is_own(&own, &path)?;
    if only_list {
        return each(&own, |_| Ok(())).map_err(failed("read it"));
    }
    lock(&own, &path)?;
    is_private(&own, &path)?;
    let above = open_folder(&root, b".").map_err(failed("open the folder above it"))?;
    // Its end removes the folder too, if nothing else is in it.
    let work = WorkFolder { folder: own, above, direct: Arc::default(), has_parts: true };
    let remove = |name: &[u8]| rustix::fs::unlinkat(&work.folder, name, AtFlags::empty());
    let left = each(&work.folder, remove).map_err(failed("remove what is in it"))?;
    work.forget_new();
    Ok(left)
}

/// Returns the incomplete files in the folder, after a call of `visit` with the name of each.
fn each(folder: &OwnedFd, visit: impl Fn(&[u8]) -> Result<(), Errno>) -> Result<CopyLeftovers, Errno> {
    let mut left = CopyLeftovers::default();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || name == HOLDER || name == NEW {
            continue;
        }
        let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            // A copy that runs has put it in place.
            Err(Errno::NOENT) => continue,
            seen => seen?,
        };
        if is_of_copy(name, &stat) {
            visit(name)?;
            add(&mut left, name, &stat);
        } else {
            left.others += 1;
        }
    }
    left.files.sort_by_key(|file| std::cmp::Reverse(file.age_ns));
    Ok(left)
}

fn is_of_copy(name: &[u8], stat: &Stat) -> bool {
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    !is_folder && (name.ends_with(PART) || name.ends_with(SHORT))
}

fn add(left: &mut CopyLeftovers, name: &[u8], stat: &Stat) {
    // stat(2) counts blocks of 512 bytes.
    let size = Bytes(u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512));
    left.number += 1;
    left.bytes += size;
    if left.files.len() < MOST_LISTED {
        let name = String::from_utf8_lossy(name).into_owned();
        left.files.push(CopyLeftover { name, size_bytes: size, age_ns: age(stat) });
    }
}

/// Returns the time since a file was last changed. The modification time may be that of the source's file already.
fn age(stat: &Stat) -> Nanos {
    let changed = FileIdentity::of(stat).changed;
    let since_1970 = Duration::new(u64::try_from(changed.seconds).unwrap_or_default(), changed.nanos);
    let changed = SystemTime::UNIX_EPOCH + since_1970;
    SystemTime::now().duration_since(changed).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::beneath::Root;

    fn names(left: &CopyLeftovers) -> Vec<&str> {
        let mut names: Vec<&str> = left.files.iter().map(|file| file.name.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn remains_of_copies_are_listed_and_removed_and_nothing_else() {
        let all = tempfile::tempdir().unwrap();
        assert_eq!(clean(&all.path().into(), false).unwrap(), CopyLeftovers::default());
        let own = all.path().join(".landspeed-copy");
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).unwrap();
        fs::write(own.join("abc.part"), vec![1; 10_000]).unwrap();
        fs::write(own.join("7.short"), "short").unwrap();
        symlink("/nowhere", own.join("8.short")).unwrap();
        fs::write(own.join("mine"), "mine").unwrap();
        fs::create_dir(own.join("folder.part")).unwrap();
        fs::write(own.join("landspeed-holder"), "process 7 of user 0").unwrap();
        fs::write(own.join("landspeed-new"), "").unwrap();
        let listed = clean(&all.path().into(), true).unwrap();
        assert_eq!((names(&listed), listed.others), (vec!["7.short", "8.short", "abc.part"], 2));
        assert!(listed.number == 3 && listed.files.iter().all(|file| file.age_ns < Nanos::secs(3_600)));
        assert_eq!(fs::read_dir(&own).unwrap().count(), 7, "a list removes nothing");
        let removed = clean(&all.path().into(), false).unwrap();
        assert_eq!(names(&removed), names(&listed));
        let mut left: Vec<_> = fs::read_dir(&own).unwrap().flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["folder.part", "mine"], "what no copy has made stays");
        fs::remove_file(own.join("mine")).unwrap();
        fs::remove_dir(own.join("folder.part")).unwrap();
        assert_eq!(clean(&all.path().into(), false).unwrap(), CopyLeftovers::default());
        assert!(!own.exists(), "nor does the folder stay where it is empty");
    }

    #[test]
    fn a_copy_that_runs_is_left_alone_and_named() {
        let all = tempfile::tempdir().unwrap();
        let root = Root::open(all.path()).unwrap();
        let work = WorkFolder::open(&root, all.path()).unwrap();
        work.file(b"abc.part", rustix::fs::Mode::RWXU).unwrap();
        let error = clean(&all.path().into(), false).unwrap_err();
        let own = format!("process {} of user ", std::process::id());
        assert!(matches!(error, Error::Locked { .. }) && error.to_string().contains(&own), "{error}");
        assert_eq!(names(&clean(&all.path().into(), true).unwrap()), ["abc.part"], "a list takes no lock");
        assert!(work.left(b"abc.part").unwrap().is_some());
        drop(work);
        fs::set_permissions(all.path().join(".landspeed-copy"), PermissionsExt::from_mode(0o777)).unwrap();
        let error = clean(&all.path().into(), false).unwrap_err();
        assert!(matches!(error, Error::UnsafeFolder { .. }), "{error}");
        assert!(all.path().join(".landspeed-copy/abc.part").exists());
    }
}
