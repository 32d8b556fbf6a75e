//! Reads the user's lists of patterns and of names. All reads are limited, even of /dev/zero.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Take};
use std::path::Path;

use anyhow::Result;
use landspeed_record::{MOST_NAME_BYTES, MOST_NAMES, PathBytes};

use crate::output::usage;

/// The longest name that Linux accepts (PATH_MAX), without its NUL.
const LONGEST_NAME: usize = 4095;

/// The largest number of bytes that are read of one name. A leading "./" and trailing slashes are not kept.
const LONGEST_LINE: u64 = 2 * LONGEST_NAME as u64;

/// The largest number of bytes that are read of a list of names.
const MOST_BYTES: u64 = MOST_NAME_BYTES as u64;

/// The largest number of bytes that are read of a file of patterns.
const MOST_PATTERNS: u64 = 1 << 20;

/// Returns the lines of a file of patterns.
pub(super) fn patterns(file: &Path) -> Result<Vec<Vec<u8>>> {
    let mut text = Vec::new();
    let read = File::open(file).and_then(|opened| opened.take(MOST_PATTERNS + 1).read_to_end(&mut text));
    match read.map_err(|error| unread(file, &error))? as u64 <= MOST_PATTERNS {
        true => Ok(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()),
        false => Err(usage(format!(
            "{}: longer than 1 MiB, which no list of patterns is: name folders instead",
            file.display()
        ))),
    }
}

/// Returns the names in a file, or in standard input for "-". With `ends_with_nul`, each name ends with NUL, otherwise
/// with a newline.
pub(super) fn names(file: &Path, ends_with_nul: bool) -> Result<Vec<PathBytes>> {
    let read = match file.as_os_str() == "-" {
        true => read_names(io::stdin().lock().take(MOST_BYTES + 1), MOST_NAMES, ends_with_nul),
        false => {
            let opened = File::open(file).map_err(|error| unread(file, &error))?;
            read_names(BufReader::new(opened).take(MOST_BYTES + 1), MOST_NAMES, ends_with_nul)
        }
    };
    read.map_err(|error| match error {
        NameError::Unread(error) => unread(file, &error),
        NameError::Wrong(why) => usage(format!("{}: {why}", file.display())),
    })
}

/// The reason why a list of names is refused.
#[derive(Debug)]
enum NameError {
    Unread(io::Error),
    Wrong(&'static str),
}

/// Reads names one by one, up to the first invalid one, and at most `most`.
fn read_names<R: BufRead>(
    mut list: Take<R>,
    most: usize,
    ends_with_nul: bool,
) -> Result<Vec<PathBytes>, NameError> {
    let end = if ends_with_nul { 0 } else { b'\n' };
    let (mut names, mut line) = (Vec::new(), Vec::new());
    while names.len() <= most {
        line.clear();
        let read = list.by_ref().take(LONGEST_LINE).read_until(end, &mut line);
        match (read.map_err(NameError::Unread)?, list.limit()) {
            (0, 1..) => return Ok(names),
            // A line that is cut off is not a name.
            (_, 0) => return Err(NameError::Wrong("longer than 64 MiB: name folders instead")),
            _ => names.extend(name_of(&line, end)?),
        }
    }
    Err(NameError::Wrong("more than 4 million names: name folders instead"))
}

/// Returns the name in a line, which may end with `end`; `None` for an empty line.
fn name_of(line: &[u8], end: u8) -> Result<Option<PathBytes>, NameError> {
    let name = below_source(line.strip_suffix(&[end]).unwrap_or(line)).map(PathBytes);
    let fits = |name: &PathBytes| name.0.len() <= LONGEST_NAME && !name.0.contains(&0);
    match ((line.len() as u64) < LONGEST_LINE && name.iter().all(fits), end) {
        (true, _) => Ok(name),
        (false, 0) => Err(NameError::Wrong(
            "a name is longer than the 4095 bytes that Linux takes: with --null, each name ends with NUL",
        )),
        (false, _) => Err(NameError::Wrong(
            "a name is longer than the 4095 bytes that Linux takes, or has a NUL: names that end with NUL need --null",
        )),
    }
}

/// Returns the error about a file of patterns or names that cannot be read.
fn unread(file: &Path, error: &io::Error) -> anyhow::Error {
    usage(format!("{}: cannot read it: {error}", file.display()))
}

/// Returns a name without a leading "./", as find(1) prints it, and without a trailing slash; "" for ".", and `None`
/// for an empty line.
fn below_source(line: &[u8]) -> Option<Vec<u8>> {
    let mut name = line;
    while let [b'.', b'/', rest @ ..] = name {
        name = rest;
    }
    while let [rest @ .., b'/'] = name
        && !rest.is_empty()
    {
        name = rest;
    }
    let is_folder_itself = name == b"." || (name.is_empty() && !line.is_empty());
    match (is_folder_itself, name.is_empty()) {
        (true, _) => Some(Vec::new()),
        (false, true) => None,
        (false, false) => Some(name.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns why a list is refused if at most 64 KiB and 10,000 names of it are read.
    fn wrong(list: impl Read, ends_with_nul: bool) -> &'static str {
        match read_names(BufReader::new(list).take(64 << 10), 10_000, ends_with_nul) {
            Err(NameError::Wrong(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_are_read_by_line_or_by_nul() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("names");
        let read = |text: &[u8], ends_with_nul| {
            std::fs::write(&file, text).unwrap();
            let names = names(&file, ends_with_nul).unwrap().into_iter();
            names.map(|name| name.0).collect::<Vec<Vec<u8>>>()
        };
        assert_eq!(read(b"a\n./b/c/\n\n\xff\n", false), [&b"a"[..], b"b/c", b"\xff"]);
        assert_eq!(read(b"a\nb\0./\0.\0", true), [&b"a\nb"[..], b"", b""]);
        // The last name needs no terminator.
        assert_eq!(read(b"a\nb", false), [b"a", b"b"]);
        // The host that has the files refuses names that lead elsewhere.
        assert_eq!(read(b"/etc/x\n../y\n", false), [&b"/etc/x"[..], b"../y"]);
        std::fs::write(&file, b"a\0b\0").unwrap();
        assert!(names(&file, false).unwrap_err().to_string().contains("need --null"));
    }

    #[test]
    fn a_name_is_bounded_wherever_it_ends() {
        let longest = [b"./".to_vec(), vec![b'x'; LONGEST_NAME], b"/\n".to_vec()].concat();
        let read = read_names(longest.as_slice().take(MOST_BYTES), 1, false).unwrap();
        assert_eq!((read.len(), read[0].0.len()), (1, LONGEST_NAME));
        let longer = [b'x'; LONGEST_NAME + 1];
        assert!(wrong(&longer[..], false).starts_with("a name is longer than the 4095 bytes"));
        for (ends_with_nul, remedy) in [(false, "need --null"), (true, "each name ends with NUL")] {
            for byte in [b'x', b'/'] {
                assert!(wrong(io::repeat(byte), ends_with_nul).ends_with(remedy));
            }
        }
        assert!(wrong(io::repeat(0), false).ends_with("need --null"));
        // A part of the line must not become a name, such as that of the whole folder.
        assert!(wrong(&b"./".repeat(9_000)[..], false).ends_with("need --null"));
    }

    #[test]
    fn a_list_is_bounded_also_where_its_names_are_short_or_empty() {
        assert!(wrong(io::repeat(0), true).starts_with("longer than 64 MiB"));
        assert!(wrong(&b"long name\n".repeat(9_000)[..], false).starts_with("longer than 64 MiB"));
        assert!(wrong(&b"x\n".repeat(40_000)[..], false).starts_with("more than 4 million names"));
    }

    #[test]
    fn patterns_without_an_end_are_refused() {
        let error = patterns(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero: longer than 1 MiB"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules");
        std::fs::write(&file, b"*.o\n\xff").unwrap();
        assert_eq!(patterns(&file).unwrap(), [&b"*.o"[..], b"\xff"]);
    }
}
