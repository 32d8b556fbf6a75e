//! The library of rsockets that is loaded before a program's own (librspreload.so of librdmacm).

use std::env::consts::ARCH;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The environment variable that names libraries to load before a program's own (ld.so(8)).
pub(super) const PRELOAD: &str = "LD_PRELOAD";
/// The beginning of the library's file name.
pub(super) const NAME: &str = "librspreload.so";
/// The first version of rdma-core whose connections are counted: earlier versions have a shorter accept command.
const COUNTED: u32 = 31;

/// Returns the library of this host; `None` if there is none.
pub(super) fn find() -> Option<PathBuf> {
    // The first one is Debian's folder for libraries of this architecture.
    let own = format!("/usr/lib/{ARCH}-linux-gnu");
    let folders = [own.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib64", "/usr/local/lib"];
    let files = folders.map(|folder| Path::new(folder).join("rsocket").join(NAME));
    files.into_iter().find(|file| file.exists())
}

/// Returns true if the library is of a version whose connections are not counted. An unknown version counts as a newer
/// one.
pub(super) fn is_old(library: &Path) -> bool {
    // The library is in a folder beside librdmacm, whose name is a link to a file with the version.
    let names = library.parent().and_then(Path::parent).map(|folder| folder.join("librdmacm.so.1"));
    let file = names.and_then(|link| fs::read_link(link).ok());
    file.and_then(|file| version(file.file_name()?.to_str()?)).is_some_and(|version| version < COUNTED)
}

/// Returns the version of rdma-core in the name of a file of librdmacm, such as "librdmacm.so.1.3.44.0" (its
/// Documentation/versioning.md); 0 of an older project.
fn version(file: &str) -> Option<u32> {
    file.strip_prefix("librdmacm.so.1.")?.split('.').nth(1)?.parse().ok()
}

/// Returns the value of [`PRELOAD`] with the library appended to those that it names `already`.
pub(super) fn beside(already: Option<OsString>, library: &Path) -> OsString {
    let mut all = already.unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_before_version_31_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("rsocket").join(NAME);
        assert!(!is_old(&library));
        let link = folder.path().join("librdmacm.so.1");
        let old = [("1.2.30.0", true), ("1.0.0", true), ("1.3.31.0", false), ("1.5.65.0", false)];
        for (version, is_it) in old {
            std::os::unix::fs::symlink(format!("librdmacm.so.{version}"), &link).unwrap();
            assert_eq!(is_old(&library), is_it, "{version}");
            fs::remove_file(&link).unwrap();
        }
    }

    #[test]
    fn libraries_that_are_preloaded_already_stay_first() {
        let library = Path::new("/usr/lib/rsocket/librspreload.so");
        assert_eq!(beside(None, library), library.as_os_str());
        assert_eq!(beside(Some(OsString::new()), library), library.as_os_str());
        let both = beside(Some("/usr/lib/libasan.so".into()), library);
        assert_eq!(both, "/usr/lib/libasan.so:/usr/lib/rsocket/librspreload.so");
    }
}
