//! Named network namespaces, as in `ip netns`. A namespace is mounted onto a file in /run/netns, which keeps it alive.

mod enter;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use landspeed_kernel::namespace::{on_fresh_thread, unshare_network};
use rustix::fs::{FlockOperation, flock};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount};

use crate::failure::{FailureContext, IoFailure};
use crate::topology::error::Error;
pub use enter::{enter, with_namespace};

/// The folder of named namespaces, which `ip netns` uses too.
const FOLDER: &str = "/run/netns";
const THIS_THREADS: &str = "/proc/thread-self/ns/net";

/// A named network namespace that this process created. Dropping it removes the namespace.
#[derive(Debug)]
#[must_use = "the namespace is removed when this is dropped"]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates a namespace that `ip netns` shows. Returns an error if a namespace of that name exists, and leaves that
    /// one unchanged. Needs CAP_SYS_ADMIN.
    pub fn create(name: &str) -> Result<Self, Error> {
        let path = path_of(name)?;
        prepare_folder().during(|| format!("prepare {FOLDER} for network namespaces"))?;
        OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path).map_err(|e| {
            match e.kind() {
                io::ErrorKind::AlreadyExists => Error::Exists(name.to_owned()),
                _ => IoFailure { operation: format!("create network namespace {name}"), source: e }.into(),
            }
        })?;
        // From here on, dropping the value cleans up.
        let namespace = Namespace { name: name.to_owned() };
        on_fresh_thread(|| {
            unshare_network()?;
            mount_bind(THIS_THREADS, &path).map_err(io::Error::from)
        })
        .during(|| format!("create network namespace {name}"))?;
        Ok(namespace)
    }

    /// Returns the name of the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A failure cannot be reported here; `landspeed lab down` finds the remains.
        let _ = delete(&self.name);
    }
}

/// Returns true if there is a namespace of this name.
pub fn exists(name: &str) -> bool {
    path_of(name).is_ok_and(|path| path.symlink_metadata().is_ok())
}

/// Removes the name of a namespace. The namespace itself ends with its last process. A missing namespace is not an
/// error.
pub(crate) fn delete(name: &str) -> Result<(), Error> {
    let path = path_of(name)?;
    match unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        // EINVAL: nothing is mounted there, as after a crash between the two steps of creation.
        Ok(()) | Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => {}
        Err(e) => Err(e).during(|| format!("unmount network namespace {name}"))?,
    }
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Ok(Err(e).during(|| format!("remove network namespace {name}"))?)
        }
        _ => Ok(()),
    }
}

/// Opens the file of a namespace, through which it can be entered and links can be moved into it.
pub(crate) fn open(name: &str) -> Result<File, Error> {
    match File::open(path_of(name)?) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::NoNamespace(name.to_owned())),
        opened => Ok(opened.during(|| format!("open network namespace {name}"))?),
    }
}

/// Returns the device and inode number of a namespace's file. /proc/PID/ns/net of its processes has the same numbers.
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|meta| (meta.dev(), meta.ino()))
}

/// Returns the path of a namespace's file. Returns an error if the name is not valid, so that the path stays within the
/// folder.
pub(crate) fn path_of(name: &str) -> Result<PathBuf, Error> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let valid = (1..=64).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with(['-', '.']);
    if !valid {
        let given = name.chars().take(64).collect();
        let expected = "1 to 64 letters, digits, '-', '_' and '.', starting with a letter, digit or '_'";
        return Err(Error::Name { what: "network namespace name", given, expected });
    }
    Ok(Path::new(FOLDER).join(name))
}

/// Creates /run/netns and makes it a shared mount, as iproute2 does, so that a namespace that is removed here is
/// removed in every mount namespace. An existing mount is kept.
fn prepare_folder() -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(FOLDER)?;
    // iproute2 takes the same lock. Without it, two processes at the same time could mount the folder onto itself
    // twice.
    let folder = File::open(FOLDER)?;
    flock(&folder, FlockOperation::LockExclusive)?;
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    match mount_change(FOLDER, shared) {
        Err(rustix::io::Errno::INVAL) => {
            rustix::mount::mount_bind_recursive(FOLDER, FOLDER)?;
            Ok(mount_change(FOLDER, shared)?)
        }
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_the_folder() {
        assert_eq!(path_of("ls-ab12-a").unwrap(), Path::new("/run/netns/ls-ab12-a"));
        let long = "a".repeat(65);
        for bad in ["", ".", "..", "../x", "a/b", "-x", "a b", "a\n", "ä", long.as_str()] {
            assert!(path_of(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_missing_namespace_is_reported_with_the_remedy() {
        let missing = open("ls-no-such-namespace").expect_err("it is missing");
        assert!(missing.is_about_words() && missing.to_string().contains("`ip netns list`"), "{missing}");
    }
}
