//! Limits a program by a control group (cgroups(7); Documentation/scheduler/sched-bwc.rst;
//! Documentation/admin-guide/cgroup-v1/blkio-controller.rst; Documentation/admin-guide/cgroup-v2.rst).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landspeed_record::units::BitRate;

use super::app::DISK_FOLDER;
use crate::failure::FailureContext;
use crate::faults::Error;

/// The period of a processor quota in microseconds, the kernel's default.
const PERIOD: u64 = 100_000;
/// The mount point of control groups version 2, and the folders of the controllers of version 1.
const ROOT: &str = "/sys/fs/cgroup";

/// A limit on the processes of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GroupLimit {
    Processors(f64),
    /// Reads from the disk of [`DISK_FOLDER`].
    DiskReads(BitRate),
}

impl GroupLimit {
    /// Returns the controller, the file and the value that set the limit, for version 1 and for version 2 of control
    /// groups.
    fn settings(self) -> Result<[(&'static str, &'static str, String); 2], Error> {
        Ok(match self {
            GroupLimit::Processors(processors) => {
                let quota = (processors * PERIOD as f64) as u64;
                let (old, new) = (quota.to_string(), format!("{quota} {PERIOD}"));
                [("cpu", "cpu.cfs_quota_us", old), ("", "cpu.max", new)]
            }
            GroupLimit::DiskReads(rate) => {
                let (disk, rate) = (disk()?, (rate.0 / 8.0) as u64);
                let (old, new) = (format!("{disk} {rate}"), format!("{disk} rbps={rate}"));
                [("blkio", "blkio.throttle.read_bps_device", old), ("", "io.max", new)]
            }
        })
    }
}

/// Returns the major and minor number of the disk that holds [`DISK_FOLDER`], such as "254:0". It is that of the whole
/// disk, not of a partition.
fn disk() -> Result<String, Error> {
    let named = || format!("find the disk of {DISK_FOLDER}");
    let device = fs::metadata(DISK_FOLDER).during(named)?.dev();
    let own = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let is_part = Path::new(&own).join("partition").exists();
    let file = if is_part { format!("{own}/../dev") } else { format!("{own}/dev") };
    Ok(fs::read_to_string(file).during(named)?.trim().to_owned())
}

/// A control group, which is removed on drop. Its processes must have ended by then.
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Creates a group with this limit, and moves the process `pid` to it.
    pub fn around(pid: u32, limit: GroupLimit) -> Result<ControlGroup, Error> {
        let [old, new] = limit.settings()?;
        let has_old = Path::new(ROOT).join(old.0).is_dir();
        let (controller, file, value) = if has_old { old } else { new };
        let group = ControlGroup(Path::new(ROOT).join(controller).join(format!("landspeed-fault-{pid}")));
        let at = group.0.display();
        fs::create_dir(&group.0).during(|| format!("make the control group {at}"))?;
        fs::write(group.0.join(file), value).during(|| format!("set {file} of {at}"))?;
        fs::write(group.0.join("cgroup.procs"), pid.to_string())
            .during(|| format!("move process {pid} to {at}"))?;
        Ok(group)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A process leaves its group shortly after it was waited for.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
