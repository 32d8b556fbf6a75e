//! The place for a kept setting of the system.

use super::link_file::LinkLine;

/// The destination of a setting.
pub(super) enum PersistDestination {
    Link(LinkLine),
    /// In a script, as these lines.
    Command(String),
    /// In no file, for this reason.
    None(&'static str),
}
