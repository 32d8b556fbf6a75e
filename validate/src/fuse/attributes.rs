//! What FUSE and the system say of an entry, each in the other's terms.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{Timespec, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;

/// Returns what the kernel hears of an entry.
pub(super) fn attributes(seen: &Metadata, number: INodeNo) -> io::Result<FileAttr> {
    let changed = moment(seen.ctime(), seen.ctime_nsec());
    Ok(FileAttr {
        ino: number,
        size: seen.size(),
        blocks: seen.blocks(),
        atime: moment(seen.atime(), seen.atime_nsec()),
        mtime: moment(seen.mtime(), seen.mtime_nsec()),
        ctime: changed,
        crtime: changed,
        kind: FileType::from_std(seen.file_type()).ok_or(Errno::IO)?,
        perm: (seen.mode() & 0o7777) as u16,
        nlink: u32::try_from(seen.nlink()).unwrap_or(u32::MAX),
        uid: seen.uid(),
        gid: seen.gid(),
        // The kernel takes a device's numbers as makedev(3) packs small ones.
        rdev: seen.rdev() as u32,
        blksize: u32::try_from(seen.blksize()).unwrap_or(4_096),
        flags: 0,
    })
}

/// Returns the moment of a time that counts nanoseconds upwards from its seconds, also before 1970.
fn moment(seconds: i64, nanos: i64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
    start + Duration::from_nanos(nanos.unsigned_abs())
}

/// Returns a time that the kernel has asked for, as utimensat(2) takes it.
///
/// fuser 0.18 takes the nanoseconds of a time before 1970 from its seconds, to which they belong: they are put back.
pub(super) fn asked_time(time: Option<TimeOrNow>) -> Timespec {
    let of = |seconds: i64, nanos: u32| Timespec { tv_sec: seconds, tv_nsec: nanos.into() };
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(since) => of(since.as_secs().cast_signed(), since.subsec_nanos()),
            Err(before) => {
                let before = before.duration();
                of(-before.as_secs().cast_signed(), before.subsec_nanos())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_count_upwards_before_1970_too() {
        assert_eq!(moment(1, 5), UNIX_EPOCH + Duration::new(1, 5));
        assert_eq!(moment(-1, 5), UNIX_EPOCH - Duration::new(0, 999_999_995));
    }

    #[test]
    fn a_time_that_is_not_asked_for_stays() {
        assert_eq!(asked_time(None).tv_nsec, UTIME_OMIT);
        assert_eq!(asked_time(Some(TimeOrNow::Now)).tv_nsec, UTIME_NOW);
    }
}
