//! Where records are kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The user's data folder for landspeed: `given`, or by the XDG rules.
pub(crate) fn folder(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    Ok(base
        .context("neither XDG_DATA_HOME nor HOME is set: name a folder with --data-dir")?
        .join("landspeed"))
}

/// A fresh record's path: kind and start, so that a listing sorts by time.
pub(crate) fn fresh(folder: &Path, kind: &str, started: &str) -> PathBuf {
    let stamp: String = started.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    folder.join(format!("{kind}-{stamp}-{}.jsonl", std::process::id()))
}

pub(crate) fn newest(folder: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("no records in {}", folder.display()))?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok())
        .with_context(|| format!("no records in {}: run `landspeed tune` first", folder.display()))
}

/// Now, RFC 3339 UTC, whole seconds.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().round(jiff::Unit::Second).map_or_else(|_| String::new(), |t| t.to_string())
}

/// The command line, quoted for a shell. Tokens never appear on one.
pub(crate) fn command_line() -> String {
    let args = std::env::args().skip(1).map(|arg| landspeed_report::quoted(&arg));
    std::iter::once("landspeed".to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}
