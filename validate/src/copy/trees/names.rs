//! Names of all sorts: any bytes but '/' and NUL.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use landspeed_stats::Random;

/// The longest name in bytes on most file systems (NAME_MAX).
const LONGEST: usize = 255;

/// Names that differ from each other.
#[derive(Debug, Default)]
pub(super) struct Names(u64);

impl Names {
    /// Returns the next name. Its number makes it differ from the others.
    pub(super) fn next(&mut self, random: &mut Random) -> OsString {
        self.0 += 1;
        let number = self.0.to_string().into_bytes();
        let around = |before: &[u8], after: &[u8]| [before, &number, after].concat();
        OsString::from_vec(match self.0 % 13 {
            0 => around(b"line\nbreak\r", b"\n"),
            1 => around(b"\xff\xfe", b"\xc3"),
            2 => long(&number),
            3 => around(b"-rf ", b""),
            4 => around(b"\x1b[2J\x1b]0;", b"\x07"),
            5 => around(b" ", b" "),
            6 => around(b"*?[", b"]{}"),
            7 => around(b"\"'`$(\\", b"\\"),
            8 => around(b".", b""),
            9 => around("\u{fc}\u{1f600}".as_bytes(), b""),
            10 => around(b"host:", b""),
            11 => around(&any_bytes(random), b""),
            _ => around(b"f", b""),
        })
    }
}

fn long(number: &[u8]) -> Vec<u8> {
    let mut name = vec![b'n'; LONGEST - number.len()];
    name.extend_from_slice(number);
    name
}

fn any_bytes(random: &mut Random) -> Vec<u8> {
    let length = 1 + random.draw() % 60;
    let byte = |_| match random.draw() as u8 {
        0 | b'/' => b'_',
        byte => byte,
    };
    // The byte at the end keeps the number apart.
    (0..length).map(byte).chain([b'.']).collect()
}
