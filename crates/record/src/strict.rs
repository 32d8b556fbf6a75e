//! Strict TOML files: unknown keys are errors, and every mistake is reported with its line.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;

/// A mistake in the text of a file, and its position in bytes, if that is known.
#[derive(Debug)]
pub struct FileMistake {
    pub at: Option<Range<usize>>,
    pub why: String,
}

/// A mistake in a file, and its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}:{line}: {why}", path = .path.display())]
pub struct FileError {
    pub path: PathBuf,
    /// Number of the line, from 1.
    pub line: usize,
    pub why: String,
}

/// Returns a function that creates a [`FileMistake`] from a message. The position of the mistake is that of `at`.
pub fn here<T>(at: &Spanned<T>) -> impl Fn(String) -> FileMistake + use<T> {
    let span = at.span();
    move |why| FileMistake { at: Some(span.clone()), why }
}

/// Parses `text`, the content of the file `path`, as an `F`, which `check` converts to a `T`.
///
/// # Errors
/// Returns an error with the line of the first mistake.
pub fn read<F: DeserializeOwned, T>(
    path: &Path,
    text: &str,
    check: impl FnOnce(F) -> Result<T, FileMistake>,
) -> Result<T, FileError> {
    let parsed = toml::from_str(text)
        .map_err(|error| FileMistake { at: error.span(), why: error.message().replace('\n', " ") });
    parsed.and_then(check).map_err(|FileMistake { at, why }| {
        let before = at.map_or("", |at| text.get(..at.start).unwrap_or(text));
        FileError { path: path.to_owned(), line: before.matches('\n').count() + 1, why }
    })
}
