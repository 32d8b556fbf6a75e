//! Copies files over flows: one end reads a tree, the other end writes it, and every byte is proven.
//!
//! | module | content |
//! |---|---|
//! | `name` | names of entries, relative to the root of a copy |
//! | `beneath` | opens files below a root, and never outside of it |
//! | `named_path` | paths that a user names, and the folders that they must not leave |
//! | `identity` | the metadata that identify a file |
//! | `digest` | BLAKE3 of a file from its pieces |
//! | `ranges` | ranges of pieces, and of bytes of a piece |
//! | `extents` | where a file has data, and where it has holes |
//! | `pages` | memory that begins with a page |
//! | `wire` | the messages on the flows, and their frames |
//! | `link` | each message once and in order, over flows that break and are opened again |
//! | `plan` | decides what the source does next; pure, without files and flows |
//! | `metadata` | the metadata that are kept of an entry: owner, mode, times, attributes, ACLs |
//! | `tree` | walks the source's tree |
//! | `source` | the end that reads |
//! | `target` | the end that writes |
//! | `extras` | entries that only the target has, and their removal |
//! | `compare` | both ends of a comparison, which changes nothing |
//! | `select` | the entries that are ignored, and the user's other options |
//! | `progress` | the numbers that a copy reports while it runs |
//! | `stage` | accounts how the threads of an end spend their time |
//! | `steering` | changes settings of a running copy, and counts what each carries |
//!
//! The source offers entries by name, size and time. The target answers which of them it has already, which are to be
//! sent, and of which it has a part from an interrupted copy. The source then sends pieces of files, each with its
//! digest, over all flows. A file gets its name at the target only when all its pieces have arrived, agree with their
//! digests, and are on stable storage.

#![warn(missing_docs)]

#[cfg(test)]
mod attacks;
mod beneath;
mod compare;
mod digest;
mod error;
mod extents;
mod extras;
mod first_error;
mod identity;
mod link;
mod metadata;
mod name;
mod named_path;
mod pages;
mod plan;
mod progress;
mod ranges;
mod select;
mod source;
mod stage;
mod steering;
mod target;
mod tree;
mod wire;

pub use compare::{compare, show};
pub use error::Error;
pub use link::{Caller, Flows, Opening, OtherFlows};
pub use name::RelativeName;
pub use named_path::{Confinement, NamedPath};
pub use progress::CopyProgress;
pub use select::{CopyRules, IgnoreRules, NameList, Removal, RuleError};
pub use source::{MadeFiles, Source, SourceRoot, send, send_made};
pub use target::{DiscardedFiles, Target, clean, discard, receive};
