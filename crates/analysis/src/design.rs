//! The choice of what a run measures next. A designer does no input or output: the engine makes the trials, records
//! them, and passes their record lines to the designer. A resumed run makes its designer from the trials of its record,
//! so the designer decides where the run continues.

use landspeed_record::units::Nanos;
use landspeed_record::{GridEndReason, Line};

/// Decides which trials a run makes, in which order, and when it ends.
///
/// A designer that measures two congestion controls alternately, in three blocks:
///
/// ```
/// use landspeed_analysis::Designer;
/// use landspeed_record::units::Nanos;
/// use landspeed_record::{GridEndReason, Line};
///
/// struct Alternation(usize);
///
/// impl Designer for Alternation {
///     type Trial = &'static str;
///
///     fn next(&mut self, _used: Nanos) -> Result<&'static str, GridEndReason> {
///         let trials = ["cubic", "bbr"].repeat(3);
///         trials.get(self.0).copied().ok_or(GridEndReason::Blocks)
///     }
///
///     fn take(&mut self, _: &Line) {
///         self.0 += 1;
///     }
/// }
///
/// let mut run = Alternation(4);
/// assert_eq!(run.next(Nanos::secs(0)), Ok("cubic"));
/// assert_eq!(Alternation(6).next(Nanos::secs(0)), Err(GridEndReason::Blocks));
/// ```
pub trait Designer {
    /// The parameters of one trial for the engine.
    type Trial;

    /// Returns the next trial of a run that has taken `used` so far.
    ///
    /// # Errors
    /// Returns the reason for the run's end if no trial follows.
    fn next(&mut self, used: Nanos) -> Result<Self::Trial, GridEndReason>;

    /// Takes the record line of a trial that the engine has made.
    fn take(&mut self, line: &Line);
}
