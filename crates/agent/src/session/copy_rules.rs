//! The user's options for a copy, in the form in which an agent gets them.

use landspeed_record::PathBytes;
use landspeed_record::units::BitRate;
use serde::{Deserialize, Serialize};

/// The user's options for a copy, besides its paths. Both ends get the same options.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyRules {
    /// Lines of gitignore rules. Both ends ignore the entries that match.
    pub ignore_hex: Vec<PathBytes>,
    /// True to copy only the entries that earlier requests have named ([`crate::session::Request::CopyNames`]).
    pub only_named: bool,
    /// True to remove entries that only the target has.
    pub deletes: bool,
    /// The largest number of entries that may be removed; `None` for no limit. If there would be more, none is removed.
    pub most_deleted: Option<u64>,
    /// True to list the digests of the files that are copied ([`crate::session::Request::CopyProven`]).
    pub lists_digests: bool,
    /// True to compare files of the same length by content instead of by modification time.
    pub by_content: bool,
    /// The largest rate at which content is sent, over all flows; `None` for no limit.
    pub limit_bps: Option<BitRate>,
    /// True to continue even if the target lacks room for the files to come.
    pub ignores_room: bool,
}
