//! What the user asked of a copy beside its paths.

mod glob;
mod ignore;
mod names;

use std::sync::Arc;

use landspeed_record::units::BitRate;

pub use ignore::{IgnoreRules, RuleError};
pub use names::NameList;

/// The user's options of a copy, without its paths. Both ends get the same.
#[derive(Debug, Clone, Default)]
pub struct CopyRules {
    /// The entries that are ignored at both ends.
    pub ignore: IgnoreRules,
    /// The names below the source folder that alone are copied; `None` for all. The target need not know them.
    pub only: Option<Arc<NameList>>,
    /// The removal of extras, which only the target has; `None` leaves them.
    pub removal: Option<Removal>,
    /// True to list the digests of the files that are copied ([`crate::CopyProgress::proven`]).
    pub lists_digests: bool,
    /// True to compare files of the same length by their content, and not by their times.
    pub by_content: bool,
    /// The largest rate at which content is sent, over all flows; `None` for any rate.
    pub limit: Option<BitRate>,
    /// True to continue although the target has less room than the copy needs.
    pub ignores_room: bool,
    /// The number of threads that walk the source; `None` for the usual one.
    pub walkers: Option<usize>,
}

/// The removal of what only the target has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// The largest number of entries that may be removed; `None` for any number. If there are more, none is removed.
    pub most: Option<u64>,
}
