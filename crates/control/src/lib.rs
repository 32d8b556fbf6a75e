//! Controller and agent: frames and sessions.

mod message;

pub use message::{Change, Reply, Request};

/// A session's 256-bit key. Never on a command line, never in a record.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SessionKey(String);

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKey(..)")
    }
}
