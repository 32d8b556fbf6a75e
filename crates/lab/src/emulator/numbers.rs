//! Reads the files that parameters name: ascending whole numbers, one per line. Users write these files, so every line
//! is checked.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use super::error::{WanSpecError, shown};

/// The rules for the file of one parameter, and for the numbers in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberRules {
    /// The name of the parameter.
    pub(super) key: &'static str,
    /// The largest size of the file, in bytes.
    pub(super) largest: u64,
    /// Returns true if the second number may follow the first. For the first line, the number before it is 0.
    pub(super) follows: fn(u64, u64) -> bool,
    pub(super) expected: &'static str,
}

/// The rules for `drop-list`: the numbers of the packets to lose. The file may have some millions of numbers, more than
/// any study needs.
pub(super) const DROPS: NumberRules = NumberRules {
    key: "drop-list",
    largest: 16 << 20,
    follows: |before, number| number > before,
    expected: "a whole number above the one before; the first packet is 1",
};

impl NumberRules {
    /// Returns the error `why` for the file `path`.
    pub(super) fn wrong(&self, path: &str, why: impl Into<String>) -> WanSpecError {
        WanSpecError::File { key: self.key, file: shown(path), why: why.into() }
    }

    /// Reads the numbers of a file.
    ///
    /// # Errors
    /// Returns an error that names the file and, if a line is not valid, the line.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u64>, WanSpecError> {
        let text = self.text(path)?;
        self.parse(text.lines().map(str::trim)).map_err(|(line, given)| {
            self.wrong(path, format!("line {line}: '{}': expected {}", shown(given), self.expected))
        })
    }

    /// Parses `texts` as numbers that follow these rules.
    ///
    /// # Errors
    /// Returns the first text that is not a valid number, and its place, counted from 1.
    pub(super) fn parse<'a>(
        &self,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<u64>, (usize, &'a str)> {
        let mut before = 0;
        let number = |(place, text): (usize, &'a str)| {
            let is_plain = text.bytes().all(|b| b.is_ascii_digit());
            let number = text.parse().ok().filter(|number| is_plain && (self.follows)(before, *number));
            before = number.ok_or((place, text))?;
            Ok(before)
        };
        (1..).zip(texts).map(number).collect()
    }

    /// Returns the text of a file, or an error if it is not a regular file, is not UTF-8, or is too large.
    fn text(&self, path: &str) -> Result<String, WanSpecError> {
        // Without O_NONBLOCK, opening a FIFO would block until a writer opens it.
        let open = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = open.map_err(|e| self.wrong(path, format!("cannot be opened: {e}")))?;
        if !file.metadata().map_err(|e| self.wrong(path, e.to_string()))?.is_file() {
            return Err(self.wrong(path, "is no ordinary file"));
        }
        let mut bytes = Vec::new();
        let read = file.take(self.largest + 1).read_to_end(&mut bytes);
        read.map_err(|e| self.wrong(path, format!("cannot be read: {e}")))?;
        if bytes.len() as u64 > self.largest {
            return Err(self.wrong(path, format!("is larger than {} bytes", self.largest)));
        }
        String::from_utf8(bytes).map_err(|_| self.wrong(path, "is no text"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tempfile::TempPath;

    use super::*;

    /// Writes a file that is deleted at the end of the test.
    pub(in super::super) fn file(text: impl AsRef<[u8]>) -> TempPath {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, text).unwrap();
        file.into_temp_path()
    }

    fn read(text: &str) -> Result<Vec<u64>, String> {
        let numbers = NumberRules { largest: 12, ..DROPS };
        numbers.read(file(text).to_str().unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn numbers_ascend_or_the_line_is_named() {
        assert_eq!(read("5\n17\r\n300\n"), Ok(vec![5, 17, 300]));
        assert_eq!(read(""), Ok(vec![]));
        for (text, line) in [
            ("5\n17\n17\n", "line 3: '17'"),
            ("5\n\n", "line 2"),
            ("0", "line 1"),
            ("1\n-2", "line 2"),
            ("1\n+2", "line 2"),
            ("1\n\u{1b}[2J\n", "line 2"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(line) && error.contains("the first packet is 1"), "{error}");
            assert!(!error.contains('\u{1b}'), "{error}");
        }
    }

    #[test]
    fn only_small_files_of_text_are_read() {
        assert_eq!(read("123456789012"), Ok(vec![123_456_789_012]));
        assert!(read("1234567890123").unwrap_err().contains("larger than 12 bytes"));
        let refused = |path: &str| DROPS.read(path).unwrap_err().to_string();
        assert!(refused(file(b"\xff\xfe").to_str().unwrap()).contains("is no text"));
        assert!(refused("/nowhere/at/all").contains("lab:wan: drop-list=/nowhere/at/all: cannot be opened"));
        assert!(refused("/dev/zero").contains("no ordinary file"));
        assert!(refused("/tmp").contains("no ordinary file"));
    }
}
