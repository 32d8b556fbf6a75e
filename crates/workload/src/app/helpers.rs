//! Finds the program `landspeed-helpers`, which applications call as `{helpers}`.
//!
//! It is a separate file beside this program. When the controller sends this program to a host, the helpers are
//! appended to this program's own file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Take};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The name of the helpers' file.
pub(crate) const NAME: &str = "landspeed-helpers";
/// The file of this program, even if it was replaced or deleted.
const OWN: &str = "/proc/self/exe";
/// The last bytes of a program with appended helpers. The length of the helpers precedes this mark (8 bytes, little
/// endian).
const MARK: &[u8; 8] = b"LSHELP01";

/// Appends the helpers to a program that is sent to a host.
pub fn append(program: &mut Vec<u8>, helpers: &[u8]) {
    program.extend_from_slice(helpers);
    program.extend_from_slice(&(helpers.len() as u64).to_le_bytes());
    program.extend_from_slice(MARK);
}

/// Opens the helpers in the folder of `program`. Returns `None` if they are not there, or if they belong neither to
/// root nor to the program's owner, because other users may write into a folder such as /tmp.
pub fn beside(program: &Path) -> Option<Take<File>> {
    let program = std::fs::canonicalize(program).ok()?;
    let helpers = File::open(program.with_file_name(NAME)).ok()?;
    let (owner, found) = (std::fs::metadata(&program).ok()?.uid(), helpers.metadata().ok()?);
    let is_trusted = found.is_file() && [0, owner].contains(&found.uid());
    is_trusted.then(|| helpers.take(found.len()))
}

/// Opens the file of this program.
pub(crate) fn own() -> Option<Take<File>> {
    let own = File::open(OWN).ok()?;
    let length = own.metadata().ok()?.len();
    Some(own.take(length))
}

/// Opens the helpers of this program, from the end of its file or from its folder.
pub(crate) fn open() -> Option<Take<File>> {
    at_end(Path::new(OWN)).or_else(|| beside(Path::new(OWN)))
}

fn at_end(program: &Path) -> Option<Take<File>> {
    let mut program = File::open(program).ok()?;
    let end = program.seek(SeekFrom::End(-16)).ok()?;
    let mut last = [0; 16];
    program.read_exact(&mut last).ok()?;
    let (length, mark) = last.split_first_chunk::<8>()?;
    let length = u64::from_le_bytes(*length);
    if mark != MARK {
        return None;
    }
    program.seek(SeekFrom::Start(end.checked_sub(length)?)).ok()?;
    Some(program.take(length))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    fn read(found: Option<Take<File>>) -> Option<String> {
        let mut text = String::new();
        found?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn the_helpers_are_beside_a_program_or_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("landspeed");
        let mut bytes = b"a program".to_vec();
        std::fs::write(&program, &bytes).unwrap();
        assert_eq!((read(beside(&program)), read(at_end(&program))), (None, None));
        std::fs::write(folder.path().join(NAME), "helpers").unwrap();
        assert_eq!(read(beside(&program)).as_deref(), Some("helpers"));
        append(&mut bytes, b"sent");
        std::fs::write(&program, &bytes).unwrap();
        assert_eq!(read(at_end(&program)).as_deref(), Some("sent"));
    }

    #[test]
    fn helpers_of_another_user_are_not_run() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP only root can give files away");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (program, helpers) = (folder.path().join("landspeed"), folder.path().join(NAME));
        std::fs::write(&program, "a program").unwrap();
        std::fs::write(&helpers, "helpers").unwrap();
        chown(&helpers, Some(41_002), None).unwrap();
        assert_eq!(read(beside(&program)), None);
        chown(&program, Some(41_002), None).unwrap();
        assert_eq!(read(beside(&program)).as_deref(), Some("helpers"));
    }
}
