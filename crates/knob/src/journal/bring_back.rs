//! Bringing a journal back from its second copy.

use std::io::Read;
use std::path::Path;

use super::file::JournalFile;
use super::folder::JournalFolder;
use super::read::{self, JournalContents};
use super::second_copy::SecondCopies;
use super::{JournalError, KnobLookup};

/// Replaces `first`, the locked first file of a journal, by the second file if the first is missing or lacks lines that
/// the second has. Returns true if it did. The journal's name then leads to a new file, which is not locked.
///
/// The caller must hold the lock of the first file, if there is one. If it took the lock only later, another process
/// could hold the lock during this call, and the caller would then restore the rest of a changed journal instead of its
/// copy.
pub(super) fn bring_back(
    state: &Path,
    name: &str,
    first: Option<&JournalFile>,
    lookup: KnobLookup,
) -> Result<bool, JournalError> {
    let Some(copies) = SecondCopies::open(state)? else { return Ok(false) };
    let Some(copy) = copies.open_copy(name)? else { return Ok(false) };
    let failed = |e| JournalError::io("read", &copies.path_of(name), e);
    let mut bytes = Vec::new();
    copy.take(read::MAX_FILE).read_to_end(&mut bytes).map_err(failed)?;
    let second = read::read(&bytes[..], lookup).map_err(failed)?;
    let is_wanted = match first {
        None => second.header.is_some() && second.is_pending(),
        Some(first) => lacks(&first.read(lookup)?, &second),
    };
    if is_wanted {
        put_back(state, name, &bytes)?;
    }
    Ok(is_wanted)
}

fn put_back(state: &Path, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
    let folder = JournalFolder::open_or_make(state)?;
    folder.put(name, bytes)?.sync_data().map_err(|e| JournalError::io("write", &folder.path_of(name), e))?;
    folder.sync()
}

/// Returns true if the first file of a journal lacks lines that the second has. A first file that another run has
/// written and not restored takes precedence.
fn lacks(first: &JournalContents, second: &JournalContents) -> bool {
    if second.header.is_none() || !second.damage.is_empty() {
        return false;
    }
    if second.header == first.header {
        return !first.damage.is_empty() || first.end.lines < second.end.lines;
    }
    let has_lost_its_header = first.header.is_none() && first.other_format.is_none();
    second.is_pending() && (has_lost_its_header || !first.is_pending())
}
