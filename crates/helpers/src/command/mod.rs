//! The commands, one per file, each with its arguments and the function that runs it.

pub(crate) mod filters;
pub(crate) mod gather;
pub(crate) mod sockets;
pub(crate) mod spawn;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use landspeed_proof::Secret;
use serde::Serialize;

/// Prints `result` as one line of JSON.
fn print(result: &impl Serialize) -> Result<ExitCode> {
    writeln!(std::io::stdout(), "{}", serde_json::to_string(result)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the secret for the port kind `port` from the environment.
fn secret(port: &str) -> Result<Secret> {
    Secret::from_env(port).map_err(anyhow::Error::msg)
}
