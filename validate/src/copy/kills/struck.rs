//! A copy that was interrupted, and the times within which the copies of a round end.

use std::process::ExitStatus;
use std::time::Duration;

use super::points::Point;

/// The time within which processes of an interrupted copy have ended.
pub(super) const ENDED: Duration = Duration::from_secs(60);
/// The longest time of a traced copy, and of one that is left alone.
pub(super) const LONGEST: Duration = Duration::from_secs(300);

/// How a copy was interrupted.
pub(super) struct StruckCopy {
    pub(super) point: Option<Point>,
    pub(super) is_late: bool,
    pub(super) ended: ExitStatus,
}
