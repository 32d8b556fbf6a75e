//! Checks the size of the release build, which is limited because the program is sent to hosts.

use std::fs::metadata;
use std::path::Path;

/// The largest size of the release build, in bytes.
const MOST: u64 = 30_000_000;

/// Returns one line if the release build is too large. A missing build, and one older than the last change of
/// Cargo.toml, are not checked.
pub(crate) fn wrong(root: &Path) -> Option<String> {
    let path = root.join("target/release/landspeed");
    let built = metadata(&path).ok()?;
    let is_old = built.modified().ok()? < metadata(root.join("Cargo.toml")).ok()?.modified().ok()?;
    let line = format!("{}: {} bytes, where at most {MOST} are sent to hosts", path.display(), built.len());
    (!is_old && built.len() > MOST).then_some(line)
}
