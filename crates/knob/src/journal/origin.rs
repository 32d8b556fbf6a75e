//! The boot and the network namespace that a journal belongs to.

use super::entry::FORMAT;
use super::identity::NamespaceIdentity;
use super::name::name_of;
use super::read::JournalContents;

/// The relation of a journal to this boot and this network namespace.
pub(super) enum JournalOrigin {
    /// Everything was restored, and the writer died before it could remove the journal.
    Done,
    /// The header is lost.
    HeaderLost,
    AnotherBoot,
    /// Nothing in the journal can be used, for this reason.
    Unreadable(String),
    Here,
    Elsewhere(u64),
}

pub(super) fn origin(contents: &JournalContents, name: &str, here: &NamespaceIdentity) -> JournalOrigin {
    if let Some(other) = &contents.other_format {
        let why = format!(
            "the journal is of another version of landspeed (its format is {}, this one reads {FORMAT}): undo with that version",
            other.format
        );
        return if other.boot_id == here.boot_id {
            JournalOrigin::Unreadable(why)
        } else {
            JournalOrigin::AnotherBoot
        };
    }
    match &contents.header {
        _ if contents.history.mark.is_done() => JournalOrigin::Done,
        None => JournalOrigin::HeaderLost,
        Some(header) if name_of(header.netns_cookie) != name => {
            JournalOrigin::Unreadable("the journal is of another namespace than its name says".into())
        }
        Some(header) if header.boot_id != here.boot_id => JournalOrigin::AnotherBoot,
        Some(header) if header.netns_cookie == here.netns_cookie => JournalOrigin::Here,
        Some(header) => JournalOrigin::Elsewhere(header.netns_cookie),
    }
}
