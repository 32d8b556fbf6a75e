//! Files of /proc and /sys: small, made by the kernel as they are read.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::Error;

/// No file that is read here comes near this; a longer one (a fake /proc, a runaway driver) is cut.
const LIMIT: u64 = 8 << 20;

/// The whole file.
pub(crate) fn read(path: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(4096);
    fs::File::open(path)
        .and_then(|file| file.take(LIMIT).read_to_end(&mut bytes))
        .map_err(|source| Error::io("read", path, source))?;
    // Names of processes may hold any byte but NUL.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file without the white space around its contents; `None` where it is absent, unreadable or empty.
pub(crate) fn word(path: impl AsRef<Path>) -> Option<String> {
    let text = read(path.as_ref().to_str()?).ok()?;
    let word = text.trim();
    (!word.is_empty()).then(|| word.to_owned())
}

/// Whether `path` can be opened for reading; the reason where not.
pub(crate) fn readable(path: &str) -> Result<(), String> {
    fs::File::open(path).map(drop).map_err(|error| format!("cannot read {path}: {error}"))
}

/// A set of processors as the kernel prints it: "0-3,8". Absurd ranges are refused, not expanded.
pub(crate) fn cpu_list(text: &str) -> Option<Vec<u32>> {
    const MOST: u32 = 65_536;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_processors_is_read_as_the_kernel_prints_it() {
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list(""), Some(vec![]));
        for bad in ["3-1", "0-4294967295", "x", "-1", "1-", "0-99999999999999"] {
            assert_eq!(cpu_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_absent_file_is_named() {
        let error = read("/proc/no-such-file").unwrap_err().to_string();
        assert!(error.contains("/proc/no-such-file"), "{error}");
    }
}
