//! The directory in which the supervisors of one user meet.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use landspeed_kernel::folder::PrivateFolder;
use rustix::fs::FileType;

use crate::Error;

const NAME: &str = "landspeed-path";

/// Opens the directory, and creates it if it is missing. Returns an error if other users can enter the directory.
pub(super) fn open() -> Result<PrivateFolder, Error> {
    let user = rustix::process::geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        _ if user.is_root() => Ok(PrivateFolder::make(&Path::new("/run").join(NAME))?),
        Some(folder) => Ok(PrivateFolder::make(&PathBuf::from(folder).join(NAME))?),
        // TMPDIR is not used, because it may differ between programs, and all programs of a user must get the same
        // directory.
        None => {
            let above = PathBuf::from(format!("/tmp/landspeed-{}", user.as_raw()));
            Ok(PrivateFolder::make(&above)?.make_inside(NAME)?)
        }
    }
}

/// Removes the files that killed supervisors have left in the directory.
pub(super) fn clear() {
    let _ = open().map(|folder| sweep(&folder));
}

/// Removes sockets that no process has bound any more, and entries that point to removed sockets.
pub(super) fn sweep(folder: &PrivateFolder) {
    let asks = UnixDatagram::unbound();
    let is_dead = |path: &Path| {
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        asks.as_ref().is_ok_and(|asks| asks.connect(path).err().is_some_and(refused))
    };
    let names = folder.names().unwrap_or_default();
    let is_port = |name: &OsString| folder.own(name) == Some(FileType::Directory);
    let (ports, sockets): (Vec<_>, Vec<_>) = names.iter().partition(|name| is_port(name));
    for socket in sockets.into_iter().filter(|name| is_dead(&folder.through(name))) {
        let _ = folder.remove(socket);
    }
    for port in ports.into_iter().map(|name| folder.through(name)) {
        let entries = fs::read_dir(&port).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(|entry| !entry.exists()).for_each(|entry| drop(fs::remove_file(entry)));
        // Fails as long as the directory of the port has entries.
        let _ = fs::remove_dir(port);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn entries_without_a_process_are_swept() {
        let directory = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::make(&directory.path().join("folder")).unwrap();
        let bound = |name: &str| UnixDatagram::bind(folder.through(name)).unwrap();
        let _live = bound("1-live");
        drop(bound("2-dead"));
        for (port, to) in [("80", "../1-live"), ("81", "../2-dead")] {
            fs::create_dir(folder.through(port)).unwrap();
            symlink(to, folder.through(port).join("entry")).unwrap();
        }
        sweep(&folder);
        assert_eq!(folder.names().unwrap(), ["1-live", "80"]);
    }
}
