//! Chooses the size of STREAM's arrays: large enough for STREAM's rules, and small enough for the host.

use std::time::{Duration, Instant};

use landspeed_record::units::Bytes;

use crate::capacity::SystemFiles;
use crate::capacity::cores::last_level_bytes;
use crate::procfile::word;

/// The smallest size of each array, as a multiple of the last-level caches in use (STREAM's rule).
const TIMES_CACHE: u64 = 4;

/// The smallest size of each array: a million elements (STREAM's rule).
const LEAST: Bytes = Bytes(8_000_000);

/// The size of each array if the host does not report its caches: four times 64 MiB.
const UNKNOWN: Bytes = Bytes::mib(256);

/// The reciprocal of the share of the free memory that the three arrays may use together.
const MEMORY_ONE_IN: u64 = 4;

/// Bytes of memory that are touched between two readings of the clock.
const STRIDE: usize = 1 << 20;
/// The smallest page size of any host, in bytes.
const PAGE: usize = 4096;

/// The size of STREAM's arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArraySize {
    /// Bytes of each of the three arrays.
    pub array: Bytes,
    /// A note if the size is not the one that STREAM's rules require.
    pub note: Option<String>,
}

impl ArraySize {
    /// Returns the size for the last-level caches that `cores` use, limited by the free memory.
    pub(super) fn of_host(files: &SystemFiles, cores: &[u32]) -> Self {
        ArraySize::for_caches(last_level_bytes(files, cores), available(files))
    }

    /// Returns the size for last-level caches of `cache` bytes in total, limited by the free memory `available`. `None`
    /// means that the host does not report the value.
    pub(super) fn for_caches(cache: Option<u64>, available: Option<Bytes>) -> Self {
        let asked = match cache {
            Some(cache) => Bytes(cache.saturating_mul(TIMES_CACHE)).max(LEAST),
            None => UNKNOWN,
        };
        let most = available.map(|free| Bytes(free.0 / MEMORY_ONE_IN / 3)).unwrap_or(asked);
        let note = if asked > most {
            Some(format!(
                "STREAM's arrays have {most} each where its rules ask for {asked} (4 x the last-level caches), \
                 for want of free memory: its rates may be a cache's"
            ))
        } else if cache.is_none() {
            Some(format!("this host does not tell its caches: STREAM's arrays have {asked} each"))
        } else {
            None
        };
        ArraySize { array: asked.min(most), note }
    }

    /// Lowers the size so that all three arrays can be touched for the first time within `time`. This is needed in a
    /// virtual machine whose hypervisor allocates each page at the first access. There, only half a gigabyte can be
    /// touched per second, but a cache of half a gigabyte requires arrays of six gigabytes in total.
    pub(super) fn within(self, time: Duration) -> Self {
        let asked = self.array;
        let touched = Bytes(touch(3 * asked.0 as usize, time) as u64 / 3);
        if touched >= asked {
            return self;
        }
        let array = touched.max(LEAST).min(asked);
        let note = format!(
            "STREAM's arrays have {array} each, not {asked}, for want of time to touch more: its rates may be a cache's"
        );
        ArraySize { array, note: Some(note) }
    }
}

/// Allocates `bytes` of memory, writes to its pages for at most `time`, and frees it. Returns the number of bytes in
/// these pages.
fn touch(bytes: usize, time: Duration) -> usize {
    let began = Instant::now();
    // The kernel allocates a page of this memory only when the page is written to.
    let mut memory = vec![0_u8; bytes];
    let mut touched = 0;
    for stride in memory.chunks_mut(STRIDE) {
        if began.elapsed() >= time {
            break;
        }
        stride.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        touched += stride.len();
    }
    std::hint::black_box(&memory);
    touched
}

/// Returns the memory that can be used without swapping: MemAvailable, or the rest under the limits of the control
/// groups if that is less.
fn available(files: &SystemFiles) -> Option<Bytes> {
    [files.memory("MemAvailable"), group_v2(files), group_v1(files)].into_iter().flatten().min()
}

/// Returns the memory that this process may still use under the limits of its control group and of all groups above it
/// (cgroup v2); `None` if no group has a limit.
fn group_v2(files: &SystemFiles) -> Option<Bytes> {
    let groups = files.word("proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = files.path("sys/fs/cgroup");
    let of = |name: &str, folder: &std::path::Path| word(folder.join(name))?.parse::<u64>().ok();
    let folder = root.join(own);
    let left = folder.ancestors().take_while(|folder| folder.starts_with(&root)).filter_map(|folder| {
        let most = of("memory.max", folder)?;
        Some(Bytes(most.saturating_sub(of("memory.current", folder).unwrap_or(0))))
    });
    left.min()
}

/// Returns the memory that this process may still use under the limit of its control group, if the memory controller is
/// on a v1 hierarchy.
fn group_v1(files: &SystemFiles) -> Option<Bytes> {
    let groups = files.word("proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "memory").then_some(path)
    })?;
    let folder = format!("sys/fs/cgroup/memory{}", own.trim_end_matches('/'));
    let most: u64 = files.number(format!("{folder}/memory.limit_in_bytes"))?;
    let used: u64 = files.number(format!("{folder}/memory.usage_in_bytes")).unwrap_or(0);
    Some(Bytes(most.saturating_sub(used)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::write;

    #[test]
    fn four_times_the_cache_where_memory_allows() {
        let size = |cache, free| ArraySize::for_caches(cache, Some(free));
        let plenty = Bytes::mib(64 << 10);
        assert_eq!(size(Some(32 << 20), plenty), ArraySize { array: Bytes::mib(128), note: None });
        assert_eq!(size(Some(1 << 20), plenty).array, Bytes(8_000_000));
        let short = size(Some(32 << 20), Bytes::mib(600));
        assert_eq!(short.array, Bytes::mib(50));
        assert!(short.note.unwrap().contains("50 MiB each"));
        assert!(size(None, plenty).note.unwrap().contains("does not tell"));
    }

    #[test]
    fn arrays_are_no_larger_than_there_is_time_to_touch() {
        let asked = ArraySize { array: Bytes::mib(64), note: None };
        assert_eq!(asked.clone().within(Duration::from_secs(60)), asked);
        let late = asked.clone().within(Duration::ZERO);
        assert_eq!(late.array, LEAST);
        assert!(late.note.unwrap().contains("not 64 MiB, for want of time"));
        let small = ArraySize { array: Bytes::mib(1), note: None };
        assert_eq!(small.within(Duration::ZERO).array, Bytes::mib(1), "never more than asked");
    }

    #[test]
    fn a_control_group_lowers_the_free_memory() {
        let tree = tempfile::tempdir().unwrap();
        let files = SystemFiles::below(tree.path());
        assert_eq!(available(&files), None);
        write(tree.path(), "proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
        assert_eq!(available(&files), Some(Bytes::kib(8000)));

        write(tree.path(), "proc/self/cgroup", "0::/box/inner\n");
        write(tree.path(), "sys/fs/cgroup/box/memory.max", "4096000\n");
        write(tree.path(), "sys/fs/cgroup/box/memory.current", "96000\n");
        write(tree.path(), "sys/fs/cgroup/box/inner/memory.max", "max\n");
        assert_eq!(available(&files), Some(Bytes(4_000_000)));

        write(tree.path(), "proc/self/cgroup", "4:cpu,memory:/old\n0::/\n");
        write(tree.path(), "sys/fs/cgroup/memory/old/memory.limit_in_bytes", "1000\n");
        assert_eq!(available(&files), Some(Bytes(1000)));
    }
}
