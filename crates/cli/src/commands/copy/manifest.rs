//! The digests of the copied files, in the format that b3sum(1) reads.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use landspeed_record::{CopyProven, FileDigest};
use landspeed_report::counted;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::usage;
use crate::place::{check_replaceable, folder, replace, sync};

/// What `--manifest` wrote.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ManifestCounts {
    /// Files whose digests were written.
    files: u64,
    /// Files that were copied and left out, because `b3sum --check` cannot read their names: names that are not UTF-8,
    /// contain the replacement character U+FFFD, end with a carriage return, or are "-".
    left_out: u64,
    /// Files that were copied and left out, because they have holes of 1 MiB or more. The ends do not hash the zeros of
    /// holes, so their digests differ from those that b3sum prints.
    with_holes: u64,
    /// The path of the manifest.
    #[serde(skip)]
    path: PathBuf,
}

impl ManifestCounts {
    /// Formats what was written, in lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let wrote =
            format!("wrote the digests of {} to {}", counted(self.files, "file"), self.path.display());
        let not_in_it = [
            (self.left_out, "b3sum --check cannot read such names"),
            (self.with_holes, "b3sum hashes the zeros of holes, and a copy does not"),
        ];
        let not_in_it = not_in_it.into_iter().filter(|(number, _)| *number > 0);
        let not_in_it = not_in_it.map(|(number, why)| format!("left out {}: {why}", counted(number, "file")));
        std::iter::once(wrote).chain(not_in_it).collect()
    }
}

/// A manifest that is being written. Its lines are in an unnamed file, so that nothing is left if the program ends.
pub(super) struct Manifest {
    path: PathBuf,
    state: RefCell<ManifestState>,
}

struct ManifestState {
    lines: BufWriter<File>,
    counts: ManifestCounts,
    /// The first error. Nothing is written after it.
    written: io::Result<()>,
}

impl Manifest {
    /// Begins a manifest in the folder of its path.
    pub(super) fn begin(path: &Path) -> Result<Manifest> {
        let lines = check_replaceable(path).and_then(|()| tempfile::tempfile_in(folder(path)));
        let failed =
            |error: io::Error| usage(format!("{}: cannot write a manifest there: {error}", path.display()));
        let lines = lines.map_err(failed)?;
        let counts = ManifestCounts::default();
        let state = ManifestState { lines: BufWriter::new(lines), counts, written: Ok(()) };
        Ok(Manifest { path: path.to_owned(), state: RefCell::new(state) })
    }

    /// Adds files.
    pub(super) fn take(&self, proven: &[CopyProven]) {
        let mut state = self.state.borrow_mut();
        proven.iter().for_each(|file| state.add(file));
    }

    /// Gives the manifest its name, on stable storage.
    pub(super) fn finish(self) -> Result<ManifestCounts> {
        let ManifestState { lines, counts, written } = self.state.into_inner();
        let placed = written.and_then(|()| put_in_place(lines, &self.path));
        placed.with_context(|| format!("{}: cannot write the manifest", self.path.display()))?;
        Ok(ManifestCounts { path: self.path, ..counts })
    }
}

fn put_in_place(lines: BufWriter<File>, path: &Path) -> io::Result<()> {
    let mut lines = lines.into_inner().map_err(io::IntoInnerError::into_error)?;
    lines.rewind()?;
    // The umask removes permissions, as for every new file.
    replace(path, 0o666, |file| io::copy(&mut lines, file).map(|_| ()))?;
    sync(path)
}

impl ManifestState {
    fn add(&mut self, file: &CopyProven) {
        let Some(digest) = file.digest_hex else {
            self.counts.with_holes += 1;
            return;
        };
        match line(&file.name_hex.0, digest) {
            Some(line) => {
                self.counts.files += 1;
                if self.written.is_ok() {
                    self.written = self.lines.write_all(line.as_bytes());
                }
            }
            None => self.counts.left_out += 1,
        }
    }
}

/// Returns the line of a file; `None` if `b3sum --check` does not accept its name.
fn line(name: &[u8], digest: FileDigest) -> Option<String> {
    // Some versions of b3sum ignore a carriage return at the end of a name, and "-" means standard input.
    let is_fine = |name: &&str| !name.contains('\u{fffd}') && !name.ends_with('\r') && *name != "-";
    let name = std::str::from_utf8(name).ok().filter(is_fine)?;
    let digest = String::from(digest);
    // A carriage return elsewhere is kept: not every version has an escape for it.
    Some(match name.contains(['\\', '\n']) {
        true => format!("\\{digest}  {}\n", name.replace('\\', "\\\\").replace('\n', "\\n")),
        false => format!("{digest}  {name}\n"),
    })
}

#[cfg(test)]
mod tests {
    use landspeed_record::PathBytes;

    use super::*;

    #[test]
    fn lines_are_those_of_b3sum() {
        let digits = "a5".repeat(32);
        let line = |name: &[u8]| line(name, FileDigest([0xa5; 32]));
        assert_eq!(line(b"a b/c"), Some(format!("{digits}  a b/c\n")));
        assert_eq!(line(b"a\\b\nc"), Some(format!("\\{digits}  a\\\\b\\nc\n")));
        assert_eq!(line("\u{e9}".as_bytes()), Some(format!("{digits}  \u{e9}\n")));
        assert_eq!((line(b"a\xff"), line("a\u{fffd}".as_bytes())), (None, None));
        // b3sum would read the digest of another file, or standard input.
        assert_eq!((line(b"a\r"), line(b"a\n\r"), line(b"-")), (None, None, None));
        assert_eq!(line(b"a\rb/-"), Some(format!("{digits}  a\rb/-\n")));
    }

    #[test]
    fn a_manifest_is_there_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sums");
        let proven = |name: &[u8], digest_hex| CopyProven { name_hex: PathBytes(name.to_vec()), digest_hex };
        let digest = Some(FileDigest([1; 32]));
        let begin = || {
            let manifest = Manifest::begin(&path).unwrap();
            manifest.take(&[proven(b"a", digest), proven(b"\xff", digest), proven(b"sparse", None)]);
            manifest
        };
        drop(begin());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        let counts = begin().finish().unwrap();
        let path_of = path.clone();
        assert_eq!(counts, ManifestCounts { files: 1, left_out: 1, with_holes: 1, path: path_of });
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}  a\n", "01".repeat(32)));
        let lines = counts.lines();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].ends_with("/sums") && lines[1].starts_with("left out 1 file: "), "{lines:?}");
        assert!(lines[2].contains("holes"), "{lines:?}");
        for wrong in [folder.path().join("none/sums"), folder.path().to_owned(), "/dev/null".into()] {
            assert!(Manifest::begin(&wrong).is_err(), "{}", wrong.display());
        }
    }
}
