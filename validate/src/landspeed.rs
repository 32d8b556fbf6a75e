//! The landspeed program that is measured, and the documents that it prints.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

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

/// The exit status of a run that the look at the machine has refused.
const TOO_NOISY: i32 = 7;

/// Runs a command of landspeed, and returns the JSON document that it prints.
pub(crate) fn document<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    printed(&ended(command)?)
}

/// Returns the JSON document that a command has printed.
pub(crate) fn printed<T: DeserializeOwned>(output: &Output) -> Result<T> {
    ensure!(output.status.success(), "{}: {}", output.status, last_said(output));
    serde_json::from_slice(&output.stdout).context("read what landspeed prints")
}

/// Runs a command to its end.
pub(crate) fn ended(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().with_context(|| format!("run {command:?}"))
}

/// Returns true if the look at the machine has refused a run.
pub(crate) fn is_too_noisy(output: &Output) -> bool {
    output.status.code() == Some(TOO_NOISY)
}

/// Returns the last line that a command has printed on standard error.
pub(crate) fn last_said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()
}
