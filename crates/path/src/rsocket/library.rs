//! The library of rsockets that is loaded before a program's own (librspreload.so of librdmacm).

use std::env::consts::ARCH;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable that names libraries to load before a program's own (ld.so(8)).
pub(super) const PRELOAD: &str = "LD_PRELOAD";
/// The beginning of the library's file name.
pub(super) const NAME: &str = "librspreload.so";

/// Returns the library of this host; `None` if there is none.
pub(super) fn find() -> Option<PathBuf> {
    // The first one is Debian's folder for libraries of this architecture.
    let own = format!("/usr/lib/{ARCH}-linux-gnu");
    let folders = [own.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib64", "/usr/local/lib"];
    let files = folders.map(|folder| Path::new(folder).join("rsocket").join(NAME));
    files.into_iter().find(|file| file.exists())
}

/// Returns the value of [`PRELOAD`] with the library, after what it names `already`.
pub(super) fn beside(already: Option<OsString>, library: &Path) -> OsString {
    let mut all = already.filter(|names| !names.is_empty()).unwrap_or_default();
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
    fn libraries_that_are_preloaded_already_stay_first() {
        let library = Path::new("/usr/lib/rsocket/librspreload.so");
        assert_eq!(beside(None, library), library.as_os_str());
        assert_eq!(beside(Some(OsString::new()), library), library.as_os_str());
        let both = beside(Some("/usr/lib/libasan.so".into()), library);
        assert_eq!(both, "/usr/lib/libasan.so:/usr/lib/rsocket/librspreload.so");
    }
}
