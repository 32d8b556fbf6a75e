//! Network namespaces with a name, as `ip netns` knows them: a file in /run/netns onto which the
//! namespace is mounted, which keeps it alive.

mod enter;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount};

use crate::error::{During, Error};
pub use enter::{enter, with_namespace};

/// Where `ip netns` keeps them.
const FOLDER: &str = "/run/netns";
const THIS_THREADS: &str = "/proc/thread-self/ns/net";

/// A network namespace that this process made; removed when dropped.
#[derive(Debug)]
#[must_use = "the namespace is removed when this is dropped"]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace visible to `ip netns`. One of that name that exists already is left alone and is
    /// an error. Needs CAP_SYS_ADMIN.
    pub fn create(name: &str) -> Result<Self, Error> {
        let path = path_of(name)?;
        prepare_folder().during(|| format!("prepare {FOLDER} for network namespaces"))?;
        OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path).map_err(|e| {
            match e.kind() {
                io::ErrorKind::AlreadyExists => Error::Exists(name.to_owned()),
                _ => Error::Io { operation: format!("create network namespace {name}"), source: e },
            }
        })?;
        // From here on dropping cleans up, whatever happens.
        let namespace = Namespace { name: name.to_owned() };
        enter::on_fresh_thread(|| {
            enter::unshare_network()?;
            mount_bind(THIS_THREADS, &path).map_err(io::Error::from)
        })
        .during(|| format!("create network namespace {name}"))?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nobody is left to tell; `landspeed lab down` finds what stays.
        let _ = delete(&self.name);
    }
}

/// Whether there is a named namespace of this name.
pub fn exists(name: &str) -> bool {
    path_of(name).is_ok_and(|path| path.symlink_metadata().is_ok())
}

/// Takes the name off a namespace; it ends with the last process in it. Absent ones are no error.
pub(crate) fn delete(name: &str) -> Result<(), Error> {
    let path = path_of(name)?;
    match unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        // EINVAL: no mount there, as after a crash between the two steps of making one.
        Ok(()) | Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => {}
        Err(e) => return Err(e).during(|| format!("unmount network namespace {name}")),
    }
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(e).during(|| format!("remove network namespace {name}"))
        }
        _ => Ok(()),
    }
}

/// The namespace's file, opened to enter it or to put a link into it.
pub(crate) fn open(name: &str) -> Result<File, Error> {
    let path = path_of(name)?;
    File::open(&path).during(|| format!("open network namespace {name}"))
}

/// Device and inode of a namespace's file: what /proc/PID/ns/net of its processes has, too.
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().map(|meta| (meta.dev(), meta.ino()))
}

/// The file of a namespace, once its name is known to stay within the folder.
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

/// Makes /run/netns a shared mount, as iproute2 does, so that a namespace removed here is gone in every
/// mount namespace. What is there already stays as it is.
fn prepare_folder() -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(FOLDER)?;
    // iproute2 takes the same lock: two at once would mount the folder onto itself twice.
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
}
