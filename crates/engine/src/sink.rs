//! The receiver of a record's lines.

use landspeed_record::{Line, RecordWriteError};

/// Receives the lines of a record as they are produced, to write them to its file and to show them to the user.
pub trait RecordSink {
    /// Receives one line. An error, such as a full disk, ends the run after all settings are restored.
    fn line(&mut self, line: &Line) -> Result<(), RecordWriteError>;

    /// Returns true if the user requests a stop. It is called between trials.
    fn stop(&self) -> bool;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record that requests a stop after this number of lines.
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
