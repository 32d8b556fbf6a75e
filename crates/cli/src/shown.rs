//! What is shown of a record.

use std::path::Path;

use landspeed_record::Record;
use landspeed_report::DetailLevel;

use crate::groups::FormArgs;

/// A record to show.
pub(crate) struct ShownRecord<'a> {
    pub(crate) record: &'a Record,
    pub(crate) path: &'a Path,
    /// The record's name in commands, quoted for a shell.
    pub(crate) named: &'a str,
    pub(crate) form: &'a FormArgs,
    pub(crate) detail: DetailLevel,
}
