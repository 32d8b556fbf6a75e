//! The first error of the threads of one end.

use parking_lot::Mutex;

use crate::Error;

/// The first error of any thread.
#[derive(Debug, Default)]
pub(crate) struct FirstError(Mutex<Option<Error>>);

impl FirstError {
    /// Keeps an error if it is the first one. The errors of other threads follow from it.
    pub(crate) fn keep(&self, error: Error) {
        self.0.lock().get_or_insert(error);
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.lock().is_some()
    }

    pub(crate) fn into_result(self) -> Result<(), Error> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}
