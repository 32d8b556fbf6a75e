//! Files that a link's parameters name: somebody else may have written them.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use super::keys::{WanSpecError, shown};

/// A file that a parameter names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// The parameter.
    pub(super) key: &'static str,
    /// The file.
    pub(super) path: &'a str,
}

impl Named<'_> {
    /// What is wrong with it.
    pub(super) fn wrong(&self, why: impl Into<String>) -> WanSpecError {
        WanSpecError::File { key: self.key, file: shown(self.path), why: why.into() }
    }

    /// What is wrong with one of its lines, counted from 1.
    pub(super) fn wrong_line(&self, number: usize, line: &str, expected: &str) -> WanSpecError {
        self.wrong(format!("line {number}: '{}': expected {expected}", shown(line)))
    }

    /// All of it, where it is an ordinary file of text and not larger than this.
    pub(super) fn read(&self, largest: u64) -> Result<String, WanSpecError> {
        // A pipe would keep the reader waiting for ever.
        let open = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.path);
        let file = open.map_err(|e| self.wrong(format!("cannot be opened: {e}")))?;
        let is_file = file.metadata().map_err(|e| self.wrong(e.to_string()))?.is_file();
        if !is_file {
            return Err(self.wrong("is no ordinary file"));
        }
        let mut bytes = Vec::new();
        let read = file.take(largest + 1).read_to_end(&mut bytes);
        read.map_err(|e| self.wrong(format!("cannot be read: {e}")))?;
        if bytes.len() as u64 > largest {
            return Err(self.wrong(format!("is larger than {largest} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| self.wrong("is no text"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A file that is gone with the test.
    pub(in super::super) struct Scratch(PathBuf);

    impl Scratch {
        pub(in super::super) fn new(text: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("ls-wan-{:08x}", getrandom::u32().unwrap()));
            std::fs::write(&path, text).unwrap();
            Scratch(path)
        }

        pub(in super::super) fn path(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn refused(path: &str) -> String {
        Named { key: "trace", path }.read(10).unwrap_err().to_string()
    }

    #[test]
    fn only_small_files_of_text_are_read() {
        let file = Scratch::new(b"0123456789");
        assert_eq!(Named { key: "trace", path: file.path() }.read(10).unwrap(), "0123456789");
        assert!(refused(Scratch::new(b"0123456789a").path()).contains("larger than 10 bytes"));
        assert!(refused(Scratch::new(b"\xff\xfe").path()).contains("is no text"));
        assert!(refused("/nowhere/at/all").contains("lab:wan: trace=/nowhere/at/all: cannot be opened"));
        assert!(refused("/dev/zero").contains("no ordinary file"));
        assert!(refused("/tmp").contains("no ordinary file"));
    }
}
