//! The size of what `cargo build --release` makes: it is sent to hosts.

use std::fs::metadata;
use std::path::Path;

/// The most that it may have.
const MOST: u64 = 30_000_000;

/// One line where the release build is too large. One that is older than the profile it is judged by says nothing.
pub(crate) fn wrong(root: &Path) -> Option<String> {
    let path = root.join("target/release/landspeed");
    let built = metadata(&path).ok()?;
    let is_old = built.modified().ok()? < metadata(root.join("Cargo.toml")).ok()?.modified().ok()?;
    let line = format!("{}: {} bytes, where at most {MOST} are sent to hosts", path.display(), built.len());
    (!is_old && built.len() > MOST).then_some(line)
}
