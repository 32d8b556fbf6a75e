//! Records a run, line by line.

use landspeed_engine::RecordSink;
use landspeed_record::{Line, RecordWriteError, RecordWriter};

use crate::stop::StopRequest;

/// A sink that writes each line to the record, and then passes it to `report`, which shows it to the user.
pub(crate) struct Recorder {
    writer: RecordWriter,
    stop: StopRequest,
    report: Box<dyn FnMut(&Line)>,
}

impl Recorder {
    pub(crate) fn new(writer: RecordWriter, stop: &StopRequest, report: impl FnMut(&Line) + 'static) -> Self {
        Recorder { writer, stop: stop.clone(), report: Box::new(report) }
    }
}

impl RecordSink for Recorder {
    fn line(&mut self, line: &Line) -> Result<(), RecordWriteError> {
        self.writer.write(line)?;
        (self.report)(line);
        Ok(())
    }

    fn stop(&self) -> bool {
        self.stop.asked()
    }
}
