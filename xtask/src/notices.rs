//! `xtask notices`: prints the licences of the crates that are linked into landspeed's programs, from the files of
//! these crates. Most licences require that their text is distributed with the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The programs that are distributed.
const PROGRAMS: &[&str] = &["landspeed", "landspeed-helpers"];
/// The beginnings of the names of licence files.
const FILES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Prints each licence text once, below the names of the crates that have it. For a crate without a text, the name of
/// its licence is printed.
pub(crate) fn print(root: &Path) -> Result<()> {
    let metadata = metadata(root)?;
    let linked = linked(&metadata);
    ensure!(!linked.is_empty(), "cargo metadata names nothing that landspeed is made of");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        // The project's own crates have no source in the metadata. They have the project's licence.
        if !linked.contains(text(&package["id"])) || package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        let terms = terms(package)?;
        let none = || format!("Licence: {}", text(&package["license"]));
        let found = if terms.is_empty() { vec![none()] } else { terms };
        found.into_iter().for_each(|text| texts.entry(text).or_default().push(name.clone()));
    }
    for (text, crates) in texts {
        println!("{}\n\n{}\n\n{}\n", crates.join(", "), text, "-".repeat(72));
    }
    Ok(())
}

pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &target])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("cargo metadata")
}

/// Returns the IDs of the crates that are linked into the programs, without those that are only needed to build or
/// test.
fn linked(metadata: &Value) -> BTreeSet<&str> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let nodes: BTreeMap<_, _> = nodes.map(|node| (text(&node["id"]), &node["deps"])).collect();
    let mut open: Vec<_> =
        packages.filter(|one| PROGRAMS.contains(&text(&one["name"]))).map(|one| text(&one["id"])).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop().filter(|id| nodes.contains_key(id)) {
        if seen.insert(id) {
            let needs = nodes[id].as_array().into_iter().flatten();
            let normal = |dep: &&Value| {
                dep["dep_kinds"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"].is_null()))
            };
            open.extend(needs.filter(normal).map(|dep| text(&dep["pkg"])));
        }
    }
    seen
}

/// Returns the licence texts of a crate, from the folder of its manifest.
fn terms(package: &Value) -> Result<Vec<String>> {
    let folder =
        Path::new(text(&package["manifest_path"])).parent().context("a manifest lies in a folder")?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && FILES.iter().any(|start| name.starts_with(start)) {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            found.push(text.trim().to_owned());
        }
    }
    Ok(found)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
