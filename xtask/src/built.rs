//! The program that is measured.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// The landspeed beside this program, so that one build made both; a debug build's figures would mean nothing.
pub(crate) fn landspeed() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program itself")?;
    let landspeed = own.with_file_name("landspeed");
    ensure!(
        !cfg!(debug_assertions) && landspeed.exists(),
        "build first: cargo build --release -p landspeed -p xtask"
    );
    Ok(landspeed)
}
