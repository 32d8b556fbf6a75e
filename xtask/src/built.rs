//! Finds the program that is measured.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// Returns the landspeed program beside this one, so that both are of one build. Fails in a debug build, whose figures
/// would be meaningless.
pub(crate) fn landspeed() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program itself")?;
    let landspeed = own.with_file_name("landspeed");
    ensure!(
        !cfg!(debug_assertions) && landspeed.exists(),
        "build first: cargo build --release -p landspeed -p landspeed-helpers -p xtask"
    );
    Ok(landspeed)
}
