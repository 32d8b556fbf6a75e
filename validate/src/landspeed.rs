//! The landspeed program that is measured, and the documents that it prints.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

/// Returns the path of the landspeed program beside this one, so that both are from the same build. Returns an error
/// in a debug build, whose figures would be meaningless.
pub(crate) fn landspeed() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program itself")?;
    let landspeed = own.with_file_name("landspeed");
    ensure!(
        !cfg!(debug_assertions) && landspeed.exists(),
        "build first: cargo build --release -p landspeed -p landspeed-helpers -p validate"
    );
    Ok(landspeed)
}

/// Runs a command of landspeed, and returns the JSON document that it prints.
pub(crate) fn document<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", output.status, said.lines().last().unwrap_or_default());
    serde_json::from_slice(&output.stdout).with_context(|| format!("read what {command:?} prints"))
}
