//! The work of the disks under some files, by the disks' own counters, as of each query.
//!
//! | what | source | resolution |
//! |---|---|---|
//! | bytes | `/sys/dev/block/MAJOR:MINOR/stat` of the file system's disk or partition | sectors of 512 bytes |
//! | times | the same file | 1 ms; the busy time is counted in ticks of the kernel (1 to 10 ms) |
//!
//! A device on top of a single other one (LVM, LUKS) is followed down to it. The counters do not cover a file system
//! without a single disk: in memory, over the network, over several devices (btrfs, overlay) or on a device on top of
//! several (RAID), which is busy while any of these is. They show neither which program made a request, nor how long it
//! waited above the disk.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{CopyDiskTimes, DiskName};
use parking_lot::Mutex;

use crate::cpu::clock;
use crate::files::SystemFiles;
use crate::procfile;

/// The largest number of disks that are observed.
const MOST_DISKS: usize = 8;
/// The largest number of stacked devices. LVM on LUKS on a partition is three.
const MOST_LEVELS: usize = 8;
/// The unit of the counters, whatever the disk's own sectors are (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// The counters of the disks under some files.
#[derive(Debug)]
pub struct DiskCounters(Mutex<Vec<Disk>>);

impl DiskCounters {
    /// Begins to observe the disks under these paths; for a missing path, the disk under the nearest existing folder
    /// above it.
    pub fn begin(paths: &[impl AsRef<Path>]) -> Self {
        Self::of(&SystemFiles::default(), paths.iter().filter_map(|path| device(path.as_ref())).collect())
    }

    fn of(files: &SystemFiles, devices: BTreeSet<u64>) -> Self {
        // Several volumes may be on the same disk.
        let folders: BTreeSet<_> =
            devices.into_iter().filter_map(|device| single_disk(files, device)).collect();
        let disks = folders.iter().filter_map(|folder| Disk::begin(folder));
        DiskCounters(Mutex::new(disks.take(MOST_DISKS).collect()))
    }

    /// Returns the counts so far of the disk that was busy longest; `None` if there is none.
    pub fn so_far(&self) -> Option<CopyDiskTimes> {
        let mut disks = self.0.lock();
        disks.iter_mut().for_each(Disk::look);
        disks.iter().map(|disk| disk.so_far).max_by_key(|so_far| so_far.busy_ns)
    }
}

/// Returns the device of the file system at a path.
fn device(path: &Path) -> Option<u64> {
    for path in path.ancestors() {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match path.metadata() {
            Ok(found) => return Some(found.dev()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    None
}

/// Returns the folder of the disk or partition that finally holds a device; `None` if several or none hold it.
fn single_disk(files: &SystemFiles, device: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let mut folder = files.path(format!("sys/dev/block/{major}:{minor}")).canonicalize().ok()?;
    for _ in 0..MOST_LEVELS {
        match &slaves(files, &folder)[..] {
            [] => return Some(folder),
            [slave] => folder = slave.canonicalize().ok()?,
            _ => return None,
        }
    }
    None
}

/// Returns the links to the devices below a device, or below the disk of a partition.
fn slaves(files: &SystemFiles, device: &Path) -> Vec<PathBuf> {
    // The folder of a partition is in that of its disk.
    let lists = ["slaves", "../slaves"].map(|way| device.join(way));
    lists.iter().flat_map(|list| files.names(list).into_iter().map(move |name| list.join(name))).collect()
}

#[derive(Debug)]
struct Disk {
    stat: PathBuf,
    last: DiskReading,
    so_far: CopyDiskTimes,
}

impl Disk {
    /// Begins to observe the disk or partition with this folder; `None` if it has no counters.
    fn begin(folder: &Path) -> Option<Self> {
        let name = folder.file_name()?.to_str()?.to_owned();
        let stat = folder.join("stat");
        let last = DiskReading::of(&stat)?;
        Some(Disk { stat, last, so_far: nothing(DiskName::try_from(name).ok()?) })
    }

    /// Adds the growth of the counters since the last look. The kernel counts milliseconds in 32 bits, so the counters
    /// wrap after 49 days of requests, which a disk with a hundred requests at a time reaches in half a day.
    fn look(&mut self) {
        let Some(now) = DiskReading::of(&self.stat) else { return };
        let before = std::mem::replace(&mut self.last, now);
        // The counters of a disk that was removed and returned begin at zero.
        let Some(requests) = now.requests.checked_sub(before.requests) else { return };
        let sectors = |now: u64, before: u64| Bytes(now.saturating_sub(before).saturating_mul(SECTOR));
        let time = |now: u32, before: u32| Nanos::millis(now.wrapping_sub(before).into());
        let so_far = &mut self.so_far;
        so_far.observed_ns += now.at - before.at;
        so_far.requests = so_far.requests.saturating_add(requests);
        so_far.read_bytes += sectors(now.read_sectors, before.read_sectors);
        so_far.written_bytes += sectors(now.written_sectors, before.written_sectors);
        so_far.busy_ns += time(now.busy_ms, before.busy_ms);
        so_far.requested_ns += time(now.requested_ms, before.requested_ms);
    }
}

fn nothing(device: DiskName) -> CopyDiskTimes {
    let (bytes, time) = (Bytes(0), Nanos(0));
    CopyDiskTimes {
        device,
        observed_ns: time,
        read_bytes: bytes,
        written_bytes: bytes,
        requests: 0,
        busy_ns: time,
        requested_ns: time,
    }
}

/// The counters of a disk at one moment.
#[derive(Debug, Clone, Copy)]
struct DiskReading {
    at: Nanos,
    /// Reads and writes that are complete.
    requests: u64,
    read_sectors: u64,
    written_sectors: u64,
    /// Time for which there was any request.
    busy_ms: u32,
    /// The time of reads and writes. The eleventh field (time_in_queue) also has the time of flushes and discards, which
    /// `requests` does not count.
    requested_ms: u32,
}

impl DiskReading {
    fn of(stat: &Path) -> Option<Self> {
        Self::parse(&procfile::word(stat)?, clock::now())
    }

    fn parse(text: &str, at: Nanos) -> Option<Self> {
        let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        let [reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms, _, busy_ms, ..] =
            fields[..]
        else {
            return None;
        };
        Some(DiskReading {
            at,
            requests: reads.saturating_add(writes),
            read_sectors,
            written_sectors,
            busy_ms: busy_ms as u32,
            requested_ms: read_ms.wrapping_add(write_ms) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::files::tests::write;

    /// Devices by number: the disk vda, its partitions, and the devices on top of these.
    const DEVICES: [(&str, &str); 9] = [
        ("254:0", "vda"),
        ("254:1", "vda/vda1"),
        ("254:2", "vda/vda2"),
        ("253:0", "dm-0"),
        ("253:1", "dm-0/dm-0p1"),
        ("253:2", "dm-2"),
        ("253:3", "dm-3"),
        ("9:0", "md0"),
        ("9:1", "md0/md0p1"),
    ];
    /// LUKS on a partition, LVM on LUKS, LVM on RAID, RAID of two partitions.
    const SLAVES: [(&str, &str); 5] =
        [("dm-0", "vda/vda1"), ("dm-2", "dm-0"), ("dm-3", "md0"), ("md0", "vda/vda1"), ("md0", "vda/vda2")];

    /// A tree with these devices, each with the same counters.
    fn disks() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let at = tree.path();
        fs::create_dir_all(at.join("sys/dev/block")).unwrap();
        fs::create_dir_all(at.join("sys/devices/vda/slaves")).unwrap();
        for (number, folder) in DEVICES {
            write(
                at,
                &format!("sys/devices/{folder}/stat"),
                " 10 1 80 400 20 2 160 600 3 500 1000 7 8 9 10 11 12\n",
            );
            symlink(format!("../../devices/{folder}"), at.join("sys/dev/block").join(number)).unwrap();
        }
        SLAVES.iter().for_each(|(device, slave)| add_slave(at, device, slave));
        tree
    }

    fn add_slave(tree: &Path, device: &str, slave: &str) {
        let list = tree.join("sys/devices").join(device).join("slaves");
        fs::create_dir_all(&list).unwrap();
        let name = Path::new(slave).file_name().unwrap();
        symlink(Path::new("../..").join(slave), list.join(name)).unwrap();
    }

    fn counters(tree: &tempfile::TempDir, devices: &[(u32, u32)]) -> DiskCounters {
        let devices = devices.iter().map(|(major, minor)| rustix::fs::makedev(*major, *minor)).collect();
        DiskCounters::of(&SystemFiles::below(tree.path()), devices)
    }

    #[test]
    fn a_partition_has_counters_of_its_own() {
        let tree = disks();
        let counters = counters(&tree, &[(254, 1)]);
        write(tree.path(), "sys/devices/vda/stat", "99 1 9999 400 20 2 160 600 3 9999 1000\n");
        write(tree.path(), "sys/devices/vda/vda1/stat", "11 1 82 403 24 2 200 607 3 506 1010\n");
        let found = counters.so_far().expect("a partition");
        assert_eq!((found.device.to_string().as_str(), found.requests), ("vda1", 5));
        assert_eq!((found.read_bytes, found.written_bytes), (Bytes(1024), Bytes(40 * 512)));
        assert_eq!((found.busy_ns, found.requested_ns), (Nanos::millis(6), Nanos::millis(10)));
        assert!(found.observed_ns > Nanos(0));
    }

    #[test]
    fn times_that_begin_anew_are_not_lost() {
        let tree = disks();
        let counters = counters(&tree, &[(254, 0)]);
        let stat = |text: &str| write(tree.path(), "sys/devices/vda/stat", text);
        stat("10 1 80 4294967290 20 2 160 600 3 4294967290 1000");
        counters.so_far().expect("a disk");
        stat("12 1 80 4 20 2 160 600 3 2 1000");
        let before = u64::from(u32::MAX) - 5;
        let found = counters.so_far().expect("a disk");
        assert_eq!(found.requested_ns, Nanos::millis(before - 400 + 10));
        assert_eq!(found.busy_ns, Nanos::millis(before - 500 + 8));
        // Another disk with this number, or none any more.
        for text in ["1 1 1 1 1 1 1 1 1 1 1", "odd", ""] {
            stat(text);
            let after = counters.so_far().expect("a disk");
            assert_eq!((after.busy_ns, after.requests), (found.busy_ns, 2), "{text}");
        }
    }

    #[test]
    fn the_busiest_of_several_disks_is_named() {
        let tree = disks();
        let counters = counters(&tree, &[(254, 0), (254, 1)]);
        write(tree.path(), "sys/devices/vda/vda1/stat", "11 1 82 403 24 2 200 607 3 506 1010\n");
        assert_eq!(counters.so_far().map(|found| found.device.to_string()).as_deref(), Some("vda1"));
    }

    #[test]
    fn a_device_that_is_made_of_one_is_followed_to_the_partition_that_it_is_on() {
        let tree = disks();
        let each = [(253, 0), (253, 1), (253, 2)].map(|device| counters(&tree, &[device]));
        for path in ["vda", "dm-0", "dm-0/dm-0p1", "dm-2"] {
            let stat = format!("sys/devices/{path}/stat");
            write(tree.path(), &stat, "99 1 9999 400 20 2 160 600 3 9999 1000\n");
        }
        write(tree.path(), "sys/devices/vda/vda1/stat", "11 1 82 403 24 2 200 607 3 506 1010\n");
        for counters in each {
            let found = counters.so_far().expect("a partition");
            assert_eq!((found.device.to_string().as_str(), found.requests), ("vda1", 5));
        }
    }

    #[test]
    fn volumes_on_the_same_partition_are_one_disk() {
        let tree = disks();
        let disks = counters(&tree, &[(253, 0), (253, 2), (254, 1), (254, 2)]);
        assert_eq!(disks.0.lock().len(), 2);
    }

    /// No kernel lets a device be made of itself.
    #[test]
    fn devices_on_top_of_each_other_have_an_end() {
        let tree = disks();
        add_slave(tree.path(), "vda", "dm-2");
        assert_eq!(counters(&tree, &[(253, 2)]).so_far(), None);
    }

    #[test]
    fn file_systems_without_a_single_disk_have_no_counts() {
        let tree = disks();
        for device in [(9, 0), (9, 1), (253, 3), (0, 27)] {
            assert_eq!(counters(&tree, &[device]).so_far(), None, "{device:?}");
        }
        write(tree.path(), "sys/devices/vda/stat", "1 2 3");
        assert_eq!(counters(&tree, &[(254, 0)]).so_far(), None, "too few counters");
        // The kernel's own files are in no disk.
        assert_eq!(DiskCounters::begin(&[Path::new("/proc"), Path::new("/proc/none/below")]).so_far(), None);
    }

    /// The kernel lists the devices of all disks by number and name in /proc/diskstats too.
    #[test]
    fn bytes_written_to_a_disk_are_counted() {
        const LENGTH: usize = 8 << 20;
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        let counters = DiskCounters::begin(&[Path::new("/var/tmp/landspeed-missing/below")]);
        if counters.so_far().is_none() {
            return eprintln!("SKIP: /var/tmp is on no single disk");
        }
        file.write_all(&vec![7; LENGTH]).unwrap();
        file.sync_all().unwrap();
        let found = counters.so_far().expect("a disk");
        assert!(found.written_bytes.0 >= LENGTH as u64 && found.requests > 0, "{found:?}");
        let device = file.metadata().unwrap().dev();
        let numbers = [rustix::fs::major(device), rustix::fs::minor(device)].map(|number| number.to_string());
        let known = fs::read_to_string("/proc/diskstats").unwrap();
        let fields = known.lines().map(|line| line.split_ascii_whitespace().take(3).collect::<Vec<_>>());
        let mut named = fields.filter(|fields| fields[..2] == numbers).map(|fields| fields[2].to_owned());
        let is_the_disk = named.next().expect("the device of the file system") == found.device.to_string();
        let folder = Path::new("/sys/dev/block").join(numbers.join(":")).canonicalize().unwrap();
        assert_eq!(is_the_disk, slaves(&SystemFiles::default(), &folder).is_empty(), "{found:?}");
    }
}
