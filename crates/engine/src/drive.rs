//! The loop of runs whose trials a designer chooses: makes each, and records it before the next begins, so that an
//! interrupted run loses one trial at most.

use std::time::Instant;

use landspeed_analysis::Designer;
use landspeed_record::units::Nanos;
use landspeed_record::{GridEndReason, Line};

use crate::{Error, RecordSink};

/// The time that a run has taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunClock {
    began: Instant,
    /// Time that an interrupted run had taken before it went on.
    earlier: Nanos,
}

impl RunClock {
    pub(crate) fn after(earlier: Nanos) -> Self {
        RunClock { began: Instant::now(), earlier }
    }

    pub(crate) fn used(&self) -> Nanos {
        self.earlier + Nanos::from(self.began.elapsed())
    }
}

/// Returns true if the user wants to stop.
pub(crate) type StopCheck<'a> = &'a dyn Fn() -> bool;

/// Makes the trials of `designer` by `make`, which returns the line of each; `None` if the user stopped it.
///
/// # Errors
/// Returns the error of `make`, or of the record.
pub(crate) fn drive<D: Designer>(
    designer: &mut D,
    clock: RunClock,
    sink: &mut dyn RecordSink,
    mut make: impl FnMut(D::Trial, StopCheck<'_>) -> Result<Option<Line>, Error>,
) -> Result<GridEndReason, Error> {
    while !sink.stop() {
        let trial = match designer.next(clock.used()) {
            Ok(trial) => trial,
            Err(why) => return Ok(why),
        };
        let Some(line) = make(trial, &|| sink.stop())? else { break };
        designer.take(&line);
        sink.line(&line)?;
    }
    Ok(GridEndReason::Stopped)
}
