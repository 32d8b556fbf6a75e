//! Reads processor quotas from the files `cpu.stat` and `cpu.max` of control groups (cgroups(7);
//! Documentation/admin-guide/cgroup-v2.rst; Documentation/scheduler/sched-bwc.rst).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use landspeed_record::units::Nanos;

use crate::procfile;

/// The most processes above this one whose mounts are tried.
const ANCESTORS: usize = 64;

/// Returns the paths of the files `cpu.stat` of the control groups of `pids` and of the groups above them, in the
/// hierarchy with the cpu controller. A process in a network namespace that `ip netns exec` or an agent has entered has
/// its own /sys without control groups. It finds the files through the mounts of the nearest process above it that sees
/// them.
pub(super) fn find(pids: &BTreeSet<u32>) -> Vec<PathBuf> {
    let of = |pid: &u32| {
        let groups = read(&format!("/proc/{pid}/cgroup"));
        let by = |above: u32| {
            let root = format!("/proc/{above}/root");
            visible(&groups, &format!("/proc/{above}/mountinfo"), Path::new(&root))
        };
        let own = visible(&groups, "/proc/self/mountinfo", Path::new("/"));
        let seen = std::iter::once(own).chain(ancestors().map(by));
        seen.into_iter().find(|files| !files.is_empty()).unwrap_or_default()
    };
    let mut files: Vec<PathBuf> = pids.iter().flat_map(of).collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Returns the parent of this process, its parent, and so on.
fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| {
        let stat = read(&format!("/proc/{pid}/stat"));
        // proc_pid_stat(5): the name is in brackets, then come state and parent.
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 0)
    };
    std::iter::successors(Some(std::os::unix::process::parent_id()), parent).take(ANCESTORS)
}

fn read(path: &str) -> String {
    procfile::read(path).unwrap_or_default()
}

/// Returns the files `cpu.stat` of `groups`, the text of a process's /proc/PID/cgroup, that exist below `root` at the
/// mounts in the file `mounts`.
fn visible(groups: &str, mounts: &str, root: &Path) -> Vec<PathBuf> {
    let folders = folders(groups, &read(mounts)).into_iter();
    let files = folders.map(|folder| root.join(folder.strip_prefix("/").unwrap_or(&folder)).join("cpu.stat"));
    // The `cpu.stat` of a group without the cpu controller, and of the root group of version 2, has no throttled time.
    files.filter(|file| self::time(file).is_some()).collect()
}

/// Returns the processor time that the group of this `cpu.stat` may use in each period, and the length of the period;
/// `None` if the group has no quota.
pub(super) fn quota(file: &Path) -> Option<(Nanos, Nanos)> {
    let folder = file.parent()?;
    let word = |name: &str| procfile::word(folder.join(name));
    let text = word("cpu.max")
        .or_else(|| Some(format!("{} {}", word("cpu.cfs_quota_us")?, word("cpu.cfs_period_us")?)))?;
    let (allowed, period) = text.split_once(' ')?;
    Some((Nanos::micros(allowed.parse().ok()?), Nanos::micros(period.parse().ok()?)))
}

/// Returns the name of the group of this `cpu.stat`: its folder below the mount point, such as
/// "/system.slice/nginx.service".
pub(super) fn name(file: &Path) -> String {
    let folder = file.parent().unwrap_or(file).to_string_lossy();
    let below = folder.split_once("/sys/fs/cgroup").map_or(&*folder, |(_, below)| below);
    // Version 1 has a hierarchy for each controller.
    let below = ["/cpu,cpuacct", "/cpuacct,cpu", "/cpu"]
        .iter()
        .find_map(|start| below.strip_prefix(start).filter(|rest| rest.is_empty() || rest.starts_with('/')))
        .unwrap_or(below);
    if below.is_empty() { "/".to_owned() } else { below.to_owned() }
}

/// Returns the total throttled time of the group from its `cpu.stat`, summed over processors; `None` if the file does
/// not have this time.
pub(super) fn time(file: &Path) -> Option<Nanos> {
    throttled(&procfile::word(file)?)
}

fn throttled(text: &str) -> Option<Nanos> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", time) => Some(Nanos(time.parse::<u64>().ok()?.saturating_mul(1_000))),
        ("throttled_time", time) => Some(Nanos(time.parse().ok()?)),
        _ => None,
    })
}

/// Returns the folders of a process's groups and of the groups above them, up to the mount points. `groups` is the text
/// of /proc/PID/cgroup, and `mounts` is the text of /proc/PID/mountinfo.
fn folders(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let groups = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let has_cpu = |(controllers, _): &(&str, &str)| {
        controllers.is_empty() || controllers.split(',').any(|controller| controller == "cpu")
    };
    groups
        .filter(has_cpu)
        .filter_map(|(controllers, own)| chain(controllers.is_empty(), own, mounts))
        .flatten()
        .collect()
}

/// Returns the folders of the group `own` and of the groups above it, below the first mount in `mounts` that shows the
/// group. `unified` is true for cgroup version 2.
fn chain(unified: bool, own: &str, mounts: &str) -> Option<Vec<PathBuf>> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let fits = match kind.next()? {
            "cgroup2" => unified,
            "cgroup" => !unified && kind.nth(1)?.split(',').any(|option| option == "cpu"),
            _ => false,
        };
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, Path::new(fields.next()?));
        // If only a part of the hierarchy is mounted, the mount shows only the groups below its root.
        let below = Path::new(own).strip_prefix(root).ok()?;
        let climbs = below.components().any(|part| part.as_os_str() == "..");
        (fits && !climbs).then(|| {
            // Collecting the components removes the slash at the end that an empty `below` would leave.
            let leaf: PathBuf = point.join(below).components().collect();
            leaf.ancestors().take_while(|folder| folder.starts_with(point)).map(Path::to_owned).collect()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mount of Debian 12 with systemd, which has one hierarchy.
    const UNIFIED: &str = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
    /// The mounts of a container host with cgroup version 1, and with version 2 without controllers.
    const OLD: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
                       33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                       41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    fn shown(groups: &str, mounts: &str) -> Vec<String> {
        folders(groups, mounts).iter().map(|folder| folder.display().to_string()).collect()
    }

    #[test]
    fn a_group_is_found_with_all_around_it() {
        let own = "0::/user.slice/user-0.slice/session-4.scope\n";
        let found = [
            "/sys/fs/cgroup/user.slice/user-0.slice/session-4.scope",
            "/sys/fs/cgroup/user.slice/user-0.slice",
            "/sys/fs/cgroup/user.slice",
            "/sys/fs/cgroup",
        ];
        assert_eq!(shown(own, UNIFIED), found);
    }

    #[test]
    fn the_processor_controller_of_version_1_has_a_hierarchy_of_its_own() {
        let own = "4:memory:/other\n1:cpu,cpuacct:/box\n0::/\n";
        let found =
            ["/sys/fs/cgroup/cpu,cpuacct/box", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/unified"];
        assert_eq!(shown(own, OLD), found);
    }

    #[test]
    fn a_container_sees_its_part() {
        let mounts = "50 40 0:26 /docker/4f2a /sys/fs/cgroup ro - cgroup2 cgroup rw";
        assert_eq!(shown("0::/docker/4f2a/inner", mounts), ["/sys/fs/cgroup/inner", "/sys/fs/cgroup"]);
        assert!(shown("0::/../other", UNIFIED).is_empty(), "outside of what is mounted");
        assert!(shown("0::/docker/beside", mounts).is_empty());
    }

    #[test]
    fn a_group_has_a_name_and_a_quota() {
        let name_of = |file: &str| name(Path::new(file));
        assert_eq!(
            name_of("/sys/fs/cgroup/system.slice/nginx.service/cpu.stat"),
            "/system.slice/nginx.service"
        );
        assert_eq!(name_of("/proc/7/root/sys/fs/cgroup/cpu,cpuacct/box/cpu.stat"), "/box");
        assert_eq!(name_of("/sys/fs/cgroup/cpuset.slice/cpu.stat"), "/cpuset.slice");
        assert_eq!(name_of("/sys/fs/cgroup/cpu/cpu.stat"), "/");
        let tree = |files: &[(&str, &str)]| {
            let tree = crate::host::tests::files_below(files);
            quota(&tree.path().join("cpu.stat"))
        };
        let (allowed, period) = (Nanos::millis(2), Nanos::millis(10));
        assert_eq!(tree(&[("cpu.max", "2000 10000\n")]), Some((allowed, period)));
        let old = [("cpu.cfs_quota_us", "2000\n"), ("cpu.cfs_period_us", "10000\n")];
        assert_eq!(tree(&old), Some((allowed, period)));
        assert_eq!(tree(&[("cpu.max", "max 100000\n")]), None);
        assert_eq!(tree(&[("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")]), None);
    }

    /// The texts are those of Linux 6.18 (version 1) and 6.1 (version 2).
    #[test]
    fn both_versions_give_the_time() {
        let old = "nr_periods 41\nnr_throttled 17\nthrottled_time 1650000123\nnr_bursts 0\nburst_time 0";
        assert_eq!(throttled(old), Some(Nanos(1_650_000_123)));
        let new = "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 3\nnr_throttled 2\nthrottled_usec 77";
        assert_eq!(throttled(new), Some(Nanos::micros(77)));
        assert_eq!(throttled("usage_usec 9\nuser_usec 5\nsystem_usec 4"), None, "the root of version 2");
        assert_eq!(throttled("throttled_usec soon"), None);
    }
}
