//! The loop of runs whose trials a designer chooses. It records each trial before it makes the next, so that an
//! interrupted run can be resumed.

use std::time::Instant;

use landspeed_analysis::Designer;
use landspeed_record::units::Nanos;
use landspeed_record::{GridEndReason, Line};

use crate::{Error, RecordSink};

/// Measures the time that a run has taken, including the time before it was resumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunClock {
    began: Instant,
    /// Time that the run had taken before it was resumed.
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
pub type StopCheck<'a> = &'a dyn Fn() -> bool;

/// Makes the trials that `designer` chooses, by calls of `make`, and returns the reason for the end. `make` returns the
/// line of the trial, or `None` if the user stopped it.
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
