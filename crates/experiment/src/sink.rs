//! Where the lines of a record go as they come.

use landspeed_record::{Line, WriteError};

/// Takes each line as it comes: the record's file first, then whoever watches.
pub trait Sink {
    /// One line. An error (a full disk) ends the run; everything is put back first.
    fn line(&mut self, line: &Line) -> Result<(), WriteError>;

    /// Whether the user asked to stop; looked at between trials.
    fn stop(&self) -> bool;
}
