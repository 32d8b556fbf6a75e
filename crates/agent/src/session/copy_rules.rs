//! What the user asked of a copy beside its paths, on its way to an agent.

use landspeed_record::PathBytes;
use landspeed_record::units::BitRate;
use serde::{Deserialize, Serialize};

/// What the user asked of a copy beside its paths. Both ends get the same.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyRules {
    /// Lines of gitignore rules: what they name is left alone at both ends.
    pub ignore_hex: Vec<PathBytes>,
    /// True to take only the entries that earlier requests have named ([`crate::session::Request::CopyNames`]).
    pub only_named: bool,
    /// True to remove what only the target has.
    pub deletes: bool,
    /// The largest number of entries that may be removed; `None` for any number. If there are more, none is removed.
    pub most_deleted: Option<u64>,
    /// True to list the digests of the files that are copied ([`crate::session::Request::CopyProven`]).
    pub lists_digests: bool,
    /// True to compare files of the same length by their content, and not by their times.
    pub by_content: bool,
    /// The largest rate at which content is sent, over all flows; `None` for any rate.
    pub limit_bps: Option<BitRate>,
    /// True to go on although the target has less room than what is to come.
    pub ignores_room: bool,
}
