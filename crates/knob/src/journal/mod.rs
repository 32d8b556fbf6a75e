//! Safety: every turn of a knob is journaled before it is made, and put back whatever happens to whom.
//!
//! - [`Turner`] turns knobs, in the agent.
//! - A guardian, a process of its own ([`guardian_main`]), holds the journal and its lock. When the agent
//!   dies, or its controller stops answering, the guardian puts everything back. When the guardian dies,
//!   the agent does.
//! - [`Undo`] does when both are dead.
//!
//! The journal is one file a network namespace, `/var/lib/landspeed/journal/net-COOKIE.jsonl`; the entries
//! are in `entry.rs`, and a second copy is in /run (`second.rs`). The process that restores holds the locks of the file and of the
//! namespace (`lock.rs`), compares, and removes both: a file that exists unlocked means that there is something to undo.

mod bracket;
mod entry;
mod error;
#[cfg(test)]
mod fake_host;
#[cfg(test)]
mod fake_host_tests;
mod file;
mod folder;
mod guardian;
mod host;
mod identity;
mod keeping;
mod lease;
mod ledger;
mod line;
mod lock;
#[cfg(test)]
mod mutation_tests;
mod namespaces;
mod net;
mod read;
mod restore;
mod second;
mod side_effects;
mod snapshot;
mod spawn;
mod turner;
mod undo;
mod value;
mod watch;
mod whereabouts;
mod wire;

pub use error::JournalError;
pub use folder::STATE_DIR_VARIABLE;
pub use guardian::{guardian_main, guardian_main_with};
pub(crate) use identity::in_initial_netns;
pub use turner::{Options, Turner};
pub use undo::{Undo, UndoReport, has_journal, undo_namespaces};
pub use value::same;

/// Finds a knob by its name in a table; nothing else is ever turned.
pub type Lookup = fn(&str) -> Option<&'static crate::Knob>;

/// The knob table of this build.
fn default_lookup(name: &str) -> Option<&'static crate::Knob> {
    crate::table::find(name).ok()
}
