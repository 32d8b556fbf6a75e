//! Access to a network device: the check of its name, and the sysfs of its network namespace.

use std::io;

use landspeed_kernel::netlink;
use rustix::fd::OwnedFd;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::device_name::is_name;
use crate::kernel_file::KernelFile;
use crate::{Error, KnobTarget};

/// Returns the name of the target's device, or an error if it is not safe as one component of a path.
pub(crate) fn name(target: &KnobTarget) -> Result<&str, Error> {
    let name = target.device.as_str();
    let no_name = || Error::Unavailable(format!("'{}' is no interface name", name.escape_default()));
    is_name(name).then_some(name).ok_or_else(no_name)
}

/// Returns true for a driver of virtual devices, which have no hardware.
pub(crate) fn is_virtual(driver: &str) -> bool {
    ["veth", "bridge", "ifb", "dummy", "tun", "vlan", "macvlan", "ipvlan", "bond", "team"].contains(&driver)
}

pub(crate) fn refused(knob: &str, error: netlink::Error) -> Error {
    if error.is_unsupported() {
        return Error::Unavailable(error.to_string());
    }
    let source = error.errno().map_or_else(|| io::Error::other("no errno"), io::Error::from_raw_os_error);
    Error::Io { knob: knob.into(), operation: error.to_string(), source }
}

/// The sysfs of this thread's network namespace.
///
/// /sys shows the devices of the namespace in which it was mounted, not those of the thread that reads it. After
/// setns(2), a file in /sys may belong to a device of the same name in another namespace. This type therefore mounts a
/// private sysfs. The mount is in no mount table and is removed when the value is dropped.
pub(crate) struct Sysfs(OwnedFd);

impl Sysfs {
    /// Opens the sysfs of this thread's network namespace.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] if the process lacks CAP_SYS_ADMIN and /sys shows another namespace.
    pub(crate) fn open() -> Result<Self, Error> {
        let own = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC).and_then(|fs| {
            fsconfig_create(&fs)?;
            fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        });
        match own {
            Ok(mount) => Ok(Sysfs(mount)),
            Err(_) => Sysfs::shared(),
        }
    }

    /// Opens /sys, if it shows devices with the same names and indexes as this thread's network namespace has.
    fn shared() -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open("/sys", flags, Mode::empty())
            .map_err(|e| Error::Unavailable(format!("/sys cannot be opened: {e}")))?;
        let sysfs = Sysfs(root);
        let links = netlink::Rtnl::open().and_then(|rtnl| rtnl.links());
        let links = links.map_err(|e| Error::Unavailable(e.to_string()))?;
        let mut named: Vec<String> = links.iter().map(|link| link.name.clone()).collect();
        named.sort();
        let same_number = |link: &netlink::Link| {
            let path = format!("class/net/{}/ifindex", link.name);
            sysfs.file("sysfs", &path).read().is_ok_and(|index| index == link.index.to_string())
        };
        if sysfs.list("class/net")? == named && links.iter().all(same_number) {
            return Ok(sysfs);
        }
        Err(Error::Unavailable(
            "/sys shows another network namespace and no other could be mounted: run as root".into(),
        ))
    }

    pub(crate) fn file<'a>(&'a self, knob: &'a str, path: &'a str) -> KernelFile<'a> {
        KernelFile::below(knob, &self.0, path)
    }

    /// Opens a file that does not hold text.
    pub(crate) fn open_file(&self, path: &str, flags: OFlags) -> io::Result<std::fs::File> {
        Ok(rustix::fs::openat(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// Returns the names in the folder `path`, ordered by their numbers ("rx-2" before "rx-10").
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let names = rustix::fs::openat(&self.0, path, flags, Mode::empty()).and_then(|folder| {
            let entries = Dir::read_from(&folder)?.collect::<Result<Vec<_>, _>>()?;
            Ok(entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
        });
        let mut names: Vec<String> = names.map_err(|_| Error::Unavailable(format!("no {path}")))?;
        names.retain(|name| name != "." && name != "..");
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        Ok(names)
    }
}

/// Splits a name into the part before its trailing number, and that number; zero if there is none.
fn natural(name: &str) -> (&str, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name[stem.len()..].parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_device_names_are_refused() {
        for bad in ["", ".", "..", "all", "a/b", "../../etc", "eth0\n", "eth 0", "a:1", "sixteen-letters-"] {
            assert!(name(&KnobTarget { device: bad.into() }).is_err(), "{bad:?}");
        }
        assert_eq!(name(&KnobTarget { device: "enp1s0f0np0".into() }).unwrap(), "enp1s0f0np0");
    }

    #[test]
    fn queues_sort_by_number() {
        let mut names = ["rx-10", "rx-2", "tx-0", "rx-0"];
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        assert_eq!(names, ["rx-0", "rx-2", "rx-10", "tx-0"]);
    }
}
