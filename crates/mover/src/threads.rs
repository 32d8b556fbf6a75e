//! What the threads of one end share: the first error, and the end of all flows after it.

use std::time::Duration;

use landspeed_transport::{CancelFlag, Flow};
use parking_lot::Mutex;

use crate::Error;

/// The time between two looks at the request to cancel.
const LOOK: Duration = Duration::from_millis(10);

/// The first error of any thread.
#[derive(Debug, Default)]
pub(crate) struct FirstError(Mutex<Option<Error>>);

impl FirstError {
    /// Keeps an error if it is the first one: those of other threads follow from it.
    pub(crate) fn keep(&self, error: Error) {
        self.0.lock().get_or_insert(error);
    }

    fn is_there(&self) -> bool {
        self.0.lock().is_some()
    }

    pub(crate) fn into_result(self) -> Result<(), Error> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}

/// Waits until `is_over`. Aborts all flows after an error or a request to cancel, so that no thread waits for the other
/// end.
pub(crate) fn watch(
    flows: &[Box<dyn Flow>],
    cancel: &CancelFlag,
    first: &FirstError,
    is_over: &dyn Fn() -> bool,
) {
    while !is_over() {
        if cancel.is_cancelled() {
            first.keep(Error::Cancelled);
        }
        if first.is_there() {
            // A flow that has ended already cannot be aborted.
            flows.iter().for_each(|flow| drop(flow.abort()));
        }
        std::thread::sleep(LOOK);
    }
}
