//! Checks which crate uses which (ARCHITECTURE.md has the picture).

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Every crate with the crates of this workspace that it may use. A crate that is missing here is an error: a new
/// crate needs a place in the architecture.
const ARROWS: &[(&str, &[&str])] = &[
    ("record", &[]),
    ("bpf-build", &[]),
    ("proof", &[]),
    ("kernel", &["record"]),
    ("stats", &["record"]),
    ("udt", &["record"]),
    ("transport", &["record", "udt"]),
    ("path", &["kernel", "bpf-build"]),
    ("workload", &["record", "transport", "path", "proof"]),
    ("congestion", &["record", "kernel", "bpf-build"]),
    ("knob", &["record", "kernel"]),
    ("observer", &["record", "stats", "kernel", "bpf-build"]),
    ("lab", &["record", "stats", "kernel", "knob"]),
    ("agent", &["record", "kernel", "workload", "knob", "observer", "congestion"]),
    ("analysis", &["record", "stats"]),
    ("simulator", &["record", "stats", "congestion", "udt"]),
    ("report", &["record", "stats", "analysis"]),
    ("engine", &["record", "stats", "agent", "lab", "knob", "transport", "workload", "observer", "analysis"]),
    ("filter", &["record"]),
    ("sockets", &["proof"]),
];

/// The crates at the top, which may use any crate. Dependencies of tests are not checked; they must not lead to these.
const TOP: &[&str] = &["landspeed", "xtask"];

/// Returns the number of crates that have a place, and of the arrows that they may use.
pub(crate) fn counted() -> (usize, usize) {
    (ARROWS.len(), ARROWS.iter().map(|(_, uses)| uses.len()).sum())
}

/// Returns one line for each arrow that points the wrong way.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    Ok(packages.iter().flat_map(wrong_in).collect())
}

fn wrong_in(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    if TOP.contains(&name) {
        return Vec::new();
    }
    let room = name.trim_start_matches("landspeed-");
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == room) else {
        return vec![format!("crate {name} has no place in xtask/src/arrows.rs")];
    };
    let uses = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    uses.iter()
        .filter(|used| used["path"].is_string() && used["kind"] != "dev")
        .filter_map(|used| used["name"].as_str())
        .map(|used| used.trim_start_matches("landspeed-"))
        .filter(|used| !allowed.contains(used))
        .map(|used| format!("arrow {room} -> {used} points the wrong way"))
        .collect()
}
