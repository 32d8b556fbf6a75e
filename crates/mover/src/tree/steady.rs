//! Reads files of the source that are still as the walk found them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use super::{SourcePlace, Tree};
use crate::digest;
use crate::identity::FileIdentity;
use crate::wire::{Failure, Operation};

/// Why a file was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadProblem {
    /// The file is not as it was when the walk found it.
    Changed,
    Failed(Failure),
}

impl ReadProblem {
    fn of(operation: Operation, error: &io::Error) -> Self {
        ReadProblem::Failed(Failure::of(operation, error))
    }

    /// Returns the failure of an entry that is not tried again.
    pub(crate) fn failure(self) -> Failure {
        match self {
            ReadProblem::Changed => Failure::plain(Operation::Changed),
            ReadProblem::Failed(failure) => failure,
        }
    }
}

impl Tree {
    /// Opens a file that the walk has found, lets `read` read it, and looks at it then. One look is enough: a file that has
    /// changed since the walk looked at it has changed whether that was before it was read or meanwhile.
    pub(crate) fn read<T>(
        &self,
        place: &SourcePlace,
        read: impl FnOnce(&File) -> Result<T, ReadProblem>,
    ) -> Result<T, ReadProblem> {
        let file = self.open(&place.inner).map_err(|error| ReadProblem::of(Operation::Open, &error))?;
        let file = File::from(file);
        let read = read(&file);
        // The content of a file that has changed does not count, nor does the reason why it could not be read.
        is_as_found(&file, place)?;
        read
    }
}

/// Fills `into` with a piece of a file. A file that is shorter has changed.
pub(crate) fn read_piece(file: &File, index: u32, into: &mut [u8]) -> Result<(), ReadProblem> {
    match file.read_exact_at(into, digest::offset(index)) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(ReadProblem::Changed),
        read => read.map_err(|error| ReadProblem::of(Operation::Read, &error)),
    }
}

fn is_as_found(file: &File, place: &SourcePlace) -> Result<(), ReadProblem> {
    let now = rustix::fs::fstat(file).map_err(|error| ReadProblem::of(Operation::Read, &error.into()))?;
    match FileIdentity::of(&now) == place.identity {
        true => Ok(()),
        false => Err(ReadProblem::Changed),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use landspeed_record::CopyKeeping;

    use crate::beneath::Root;
    use crate::name::RelativeName;

    use super::*;

    #[test]
    fn a_file_that_changes_while_it_is_read_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "abc").unwrap();
        let tree = Tree {
            number: 0,
            root: Root::open(folder.path()).unwrap(),
            start: RelativeName::root(),
            target: RelativeName::root(),
            keeping: CopyKeeping::default(),
            ignore: Arc::default(),
            only: None,
            walkers: 1,
        };
        let place = tree.look(&RelativeName::parse(b"a").unwrap()).unwrap().place;
        let read = |file: &File| {
            let mut bytes = [0; 3];
            read_piece(file, 0, &mut bytes).map(|()| bytes)
        };
        assert_eq!(tree.read(&place, read), Ok(*b"abc"));
        let shorter = tree.read(&place, |file| {
            std::fs::write(&path, "ab").unwrap();
            read(file)
        });
        assert_eq!(shorter, Err(ReadProblem::Changed));
        // The reason why it could not be read does not count either.
        let longer =
            tree.read(&place, |_| Err::<(), _>(ReadProblem::Failed(Failure::plain(Operation::Read))));
        assert_eq!(longer, Err(ReadProblem::Changed));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(tree.read(&place, read).unwrap_err().failure().operation, Operation::Open);
    }
}
