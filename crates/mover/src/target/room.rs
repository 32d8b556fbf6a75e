//! The free space at the target.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::fs::{IFlags, Stat, fstatfs, fstatvfs, ioctl_getflags};

use super::{Receiving, SourceLink};
use crate::stage::{self, Pause};
use crate::wire::ToSource;

/// File systems that write all that they are given, and say what is free: tmpfs, ext2 to ext4, XFS, vfat and exFAT (statfs(2)).
/// Others compress, share blocks, or are another host's.
const PLAIN: [u64; 5] = [0x0102_1994, 0xef53, 0x5846_5342, 0x4d44, 0x2011_bab0];
/// The time before a second answer.
const MOMENT: Duration = Duration::from_secs(1);
/// The interval at which a waiting thread checks whether the copy is over.
const LOOK: Duration = Duration::from_millis(20);

impl Receiving {
    /// Sends the free space to the source. If the source asks `again`, waits a moment first.
    pub(super) fn tell_room(&self, again: bool, link: &SourceLink) {
        if again {
            stage::wait(Pause::Idle, || self.pause());
        }
        link.tell(&ToSource::Room { free: self.room().unwrap_or(u64::MAX) });
    }

    fn pause(&self) {
        let until = Instant::now() + MOMENT;
        while Instant::now() < until && !self.is_over.load(Ordering::Acquire) {
            std::thread::sleep(LOOK);
        }
    }

    /// Returns the bytes that are free, for any user, or will be once files have replaced others; `None` if that is not known.
    fn room(&self) -> Option<u64> {
        let kind = fstatfs(&self.root).ok()?.f_type as u64 & 0xffff_ffff;
        let about = fstatvfs(&self.root).ok()?;
        // Of a folder with a project, the system says what its quota leaves: a soft one may be exceeded.
        let has_quota = ioctl_getflags(&self.root).is_ok_and(|has| has.contains(IFlags::PROJECT_INHERIT));
        // A tmpfs without a limit has no blocks.
        let is_known = PLAIN.contains(&kind) && about.f_blocks > 0 && !has_quota;
        let free = about.f_bfree.saturating_mul(about.f_frsize);
        let replaced = self.files.lock().values().map(|file| file.replaces()).fold(0, u64::saturating_add);
        is_known.then(|| free.saturating_add(replaced))
    }
}

/// Returns the bytes that an entry takes.
pub(super) fn taken_by(there: &Stat) -> u64 {
    // stat(2) counts blocks of 512 bytes.
    u64::try_from(there.st_blocks).unwrap_or_default().saturating_mul(512)
}
