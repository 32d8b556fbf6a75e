//! The applications that ship: apps/*.toml.

use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::app::{Application, read};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../apps");

/// Reads all applications that ship, sorted by name.
pub(crate) fn shipped() -> impl Iterator<Item = Application> {
    files().filter_map(|(path, text)| read(path, text).ok())
}

fn files() -> impl Iterator<Item = (&'static Path, &'static str)> {
    let mut all: Vec<_> =
        FILES.files().filter(|file| file.path().extension().is_some_and(|kind| kind == "toml")).collect();
    all.sort_by_key(|file| file.path().file_stem());
    all.into_iter().filter_map(|file| Some((file.path(), file.contents_utf8()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_application_that_ships_is_without_mistakes() {
        let mistakes: Vec<_> = files().filter_map(|(path, text)| read(path, text).err()).collect();
        assert_eq!(mistakes, []);
        assert!(shipped().next().is_some());
    }
}
