//! Checks that each crate uses only the crates that the architecture allows, as the picture in ARCHITECTURE.md shows.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Every crate, with the crates of this workspace that it may use. A crate that is missing here is an error, because
/// a new crate needs a place in the architecture.
const ARROWS: &[(&str, &[&str])] = &[
    ("record", &[]),
    ("bpf-build", &[]),
    ("proof", &[]),
    ("kernel", &["record"]),
    ("papers", &["record"]),
    ("stats", &["record"]),
    ("udt", &["record"]),
    ("transport", &["record", "proof", "udt"]),
    ("mover", &["record", "transport"]),
    ("path", &["record", "kernel", "bpf-build"]),
    ("workload", &["record", "kernel", "transport", "mover", "path"]),
    ("congestion", &["record", "kernel", "bpf-build"]),
    ("knob", &["record", "kernel"]),
    ("observer", &["record", "stats", "kernel", "bpf-build"]),
    ("lab", &["record", "stats", "kernel", "knob"]),
    (
        "agent",
        &["record", "proof", "kernel", "transport", "mover", "workload", "knob", "observer", "congestion"],
    ),
    ("analysis", &["record", "stats"]),
    ("simulator", &["record", "stats", "congestion", "udt"]),
    ("report", &["record", "stats", "analysis"]),
    ("engine", &["record", "stats", "agent", "lab", "knob", "transport", "workload", "observer", "analysis"]),
    ("helpers", &["record", "proof"]),
];

/// The crates at the top. They may use any crate, and no other crate may use them. The dependencies of tests are not
/// checked.
const TOP: &[&str] = &["landspeed", "validate", "xtask"];

/// Programs for developers, which are no part of the product.
const TOOLS: &[&str] = &["validate", "xtask"];

fn name_of(package: &Value) -> &str {
    package["name"].as_str().unwrap_or_default()
}

/// Returns the number of crates, and the number of uses between them. Crates for developers and uses by crates at the
/// top are not counted.
pub(crate) fn counted(root: &Path) -> Result<(usize, usize)> {
    let crates: Vec<Value> =
        packages(root)?.into_iter().filter(|package| !TOOLS.contains(&name_of(package))).collect();
    let below = crates.iter().filter(|package| !TOP.contains(&name_of(package)));
    Ok((crates.len(), below.map(|package| uses(package).count()).sum()))
}

/// Returns one line for each use of a crate that the architecture does not allow.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    Ok(packages(root)?.iter().flat_map(wrong_in).collect())
}

/// Returns the workspace's packages, as `cargo metadata` describes them.
fn packages(root: &Path) -> Result<Vec<Value>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    metadata["packages"].as_array().cloned().context("cargo metadata has no packages")
}

/// Returns the names of the crates of this workspace that a package uses, except in its tests.
fn uses(package: &Value) -> impl Iterator<Item = &str> {
    let uses = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = uses.iter().filter(|used| used["path"].is_string() && used["kind"] != "dev");
    own.filter_map(|used| used["name"].as_str()).map(|used| used.trim_start_matches("landspeed-"))
}

fn wrong_in(package: &Value) -> Vec<String> {
    let name = name_of(package);
    if TOP.contains(&name) {
        return Vec::new();
    }
    let room = name.trim_start_matches("landspeed-");
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == room) else {
        return vec![format!("crate {name} has no place in xtask/src/arrows.rs")];
    };
    uses(package)
        .filter(|used| !allowed.contains(used))
        .map(|used| format!("arrow {room} -> {used} points the wrong way"))
        .collect()
}
