//! Safety: every write of a knob is journaled before it is made, and is undone even if the processes involved die.
//!
//! - [`KnobTurner`] changes knobs, in the agent.
//! - A guardian, a separate process ([`guardian_main`]), holds the journal and its lock. When the agent dies, or its
//!   controller stops answering, the guardian restores everything. When the guardian dies, the agent restores.
//! - [`Undo`] restores when both are dead.
//!
//! Each network namespace has one journal, `/var/lib/landspeed/journal/net-COOKIE.jsonl`. `entry.rs` defines its
//! entries; a second copy is in /run (`second_copy.rs`). The process that restores holds the locks of the file and of
//! the namespace (`lock.rs`) and removes both files at the end, so a journal that exists and is not locked means that
//! there is something to undo.
//!
//! | file | does |
//! |---|---|
//! | `bracket.rs` | takes a snapshot before and after each write |
//! | `snapshot/` | reads and restores the settings of a snapshot, a file for each [`SideEffect`](crate::SideEffect) |
//! | `own_changes.rs` | combines all differences into the changes that this run made |
//! | `restore.rs` | restores knobs, for agent, guardian and undo alike |
//! | `side_effects.rs` | restores the other settings in stages, and leaves those of other programs |
//! | `undo.rs` | finds journals, locks them, and restores by `restore.rs` |
//! | `fake_host.rs` | a simulated host, for tests of orders of events that cannot be produced on a real kernel |
//!
//! If a setting is not restored, check first that its file of `snapshot/` reads it, because only a setting in a
//! snapshot can be restored. A knob's own value is restored by its `write`. The qdisc is both: a knob
//! (`link/queue.rs`) and a side effect of others (`snapshot/qdisc.rs`). If another program is blamed wrongly, look
//! for the cause in this order:
//!
//! - a knob ("another program set it to"): `Domain::same`, for two spellings of one value; then `bracket.rs`, for a
//!   value that the driver changes after it was read back;
//! - another setting ("another program changed it"): `same` in its file of `snapshot/`, for two spellings of one value;
//!   then `after_write.rs`, for an effect that came after the second snapshot; then `disturbs` in the knob's row, for a
//!   kind of setting that the knob changes and only another knob's row names.
//!
//! docs/decisions/0023 explains why changes are attributed by differences.

mod bracket;
mod bring_back;
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
mod keeper;
mod lease;
mod ledger;
mod line;
mod location;
mod lock;
#[cfg(test)]
mod mutation_tests;
mod name;
mod namespaces;
mod origin;
mod own_changes;
mod read;
mod report;
mod restore;
mod second_copy;
mod side_effects;
mod snapshot;
mod spawn;
mod turner;
mod undo;
mod watch;
mod whereabouts;
mod wire;

use landspeed_record::{KernelNeed, KernelVersion};

pub use error::JournalError;
pub use folder::STATE_DIR_VARIABLE;
pub use guardian::{guardian_main, guardian_main_with};
pub(crate) use identity::in_initial_netns;
pub use turner::{KnobTurner, TurnerOptions};
pub use undo::{Undo, UndoReport, has_journal, undo_namespaces};

/// The kernel feature that every change of a setting needs: SO_NETNS_COOKIE, by which a journal names its network
/// namespace.
pub const NEEDS: &[KernelNeed] = &[KernelNeed {
    of: "tune, undo, lab and every other change of a setting",
    since: KernelVersion(5, 14),
    instead: "measure and explain; knobs and doctor print the system's own commands",
}];

/// A function that finds a knob by its name. Only knobs that it finds are ever changed.
pub type KnobLookup = fn(&str) -> Option<&'static crate::Knob>;

/// Finds a knob in the knob table of this build.
fn default_lookup(name: &str) -> Option<&'static crate::Knob> {
    crate::table::find(name).ok()
}
