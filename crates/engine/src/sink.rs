//! The receiver of a record's lines.

use landspeed_record::{Line, RecordWriteError};

/// A receiver of each line as it comes: first the record's file, then the user.
pub trait RecordSink {
    /// Takes one line. An error (a full disk) ends the run; everything is restored first.
    fn line(&mut self, line: &Line) -> Result<(), RecordWriteError>;

    /// Returns true if the user wants to stop; checked between trials.
    fn stop(&self) -> bool;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record that stops after this number of lines.
    pub(crate) struct LimitedRecord(pub(crate) Vec<Line>, pub(crate) usize);

    impl RecordSink for LimitedRecord {
        fn line(&mut self, line: &Line) -> Result<(), RecordWriteError> {
            self.0.push(line.clone());
            Ok(())
        }

        fn stop(&self) -> bool {
            self.0.len() >= self.1
        }
    }
}
