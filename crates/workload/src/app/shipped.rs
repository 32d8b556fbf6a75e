//! The applications that ship: apps/*.toml.

use std::path::Path;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
#[cfg(test)]
use landspeed_record::strict::FileError;

use crate::app::{Application, read};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../apps");

/// Returns all applications that ship, sorted by name.
pub fn shipped() -> &'static [Application] {
    static ALL: OnceLock<Vec<Application>> = OnceLock::new();
    ALL.get_or_init(|| files().filter_map(|(path, text)| read(path, text).ok()).collect())
}

/// Returns the text of one that ships.
pub fn shipped_text(name: &str) -> Option<&'static str> {
    files().find(|(path, _)| path.file_stem().is_some_and(|stem| stem == name)).map(|(_, text)| text)
}

fn files() -> impl Iterator<Item = (&'static Path, &'static str)> {
    let mut all: Vec<_> =
        FILES.files().filter(|file| file.path().extension().is_some_and(|kind| kind == "toml")).collect();
    all.sort_by_key(|file| file.path());
    all.into_iter().filter_map(|file| Some((file.path(), file.contents_utf8()?)))
}

/// Returns the mistakes in all files that ship.
#[cfg(test)]
fn mistakes() -> Vec<FileError> {
    files().filter_map(|(path, text)| read(path, text).err()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_application_that_ships_is_without_mistakes() {
        assert_eq!(mistakes(), []);
        assert!(!shipped().is_empty());
    }
}
