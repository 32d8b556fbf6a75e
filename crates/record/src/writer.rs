//! Appending a record as the run goes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::Line;

/// A record that could not be written; names the file and, for a full disk, the remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the record {path}: {source}{remedy}")]
pub struct WriteError {
    path: String,
    source: io::Error,
    remedy: &'static str,
}

/// Writes lines to a record file; each line is complete on disk, or cut off at the end of the file,
/// before the next is begun.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    /// Creates `path`, which must not exist yet, readable by its owner only.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let open = || -> io::Result<File> {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)
        };
        let file = open().map_err(|source| error(path, source))?;
        Ok(Writer { file, path: path.to_owned() })
    }

    /// Appends one line and hands it to the kernel.
    pub fn write(&mut self, line: &Line) -> Result<(), WriteError> {
        let mut text = serde_json::to_vec(line).expect("record lines have string keys only");
        text.push(b'\n');
        self.file.write_all(&text).map_err(|source| error(&self.path, source))
    }

    /// Where the record is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn error(path: &Path, source: io::Error) -> WriteError {
    let remedy = match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space or choose another folder with --data-dir"
        }
        io::ErrorKind::PermissionDenied => "; choose another folder with --data-dir",
        _ => "",
    };
    WriteError { path: path.display().to_string(), source, remedy }
}
