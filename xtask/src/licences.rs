//! The part of `xtask check` about licences: deny.toml must allow the licence and the name of every crate. cargo-deny
//! (`make deny`) checks this and more, but its build takes longer than the rest of `xtask check`.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use toml::Table;

use crate::notices::{metadata, text};

/// Returns one line for each crate that deny.toml does not allow.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    let rules: Table = toml::from_str(&std::fs::read_to_string(root.join("deny.toml"))?)?;
    let list = |table: &str, key: &str| {
        let list = rules.get(table).and_then(|table| table.get(key)?.as_array());
        list.with_context(|| format!("deny.toml has no {table}.{key}"))
    };
    let (allowed, banned) = (list("licenses", "allow")?, list("bans", "deny")?);
    let metadata = metadata(root)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    // The project's own crates have no source in the metadata.
    let of_others = packages.iter().filter(|package| !package["source"].is_null());
    Ok(of_others.filter_map(|package| refused(package, allowed, banned)).collect())
}

fn refused(package: &Value, allowed: &[toml::Value], banned: &[toml::Value]) -> Option<String> {
    let (name, licence) = (text(&package["name"]), text(&package["license"]));
    if banned.iter().any(|one| one["crate"].as_str() == Some(name)) {
        return Some(format!("Cargo.lock: {name} is banned by deny.toml"));
    }
    let is_allowed = |wanted: &spdx::LicenseReq| {
        allowed.iter().any(|one| one.as_str() == Some(wanted.to_string().as_str()))
    };
    match spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX) {
        Ok(expression) if expression.evaluate(is_allowed) => None,
        _ => Some(format!("Cargo.lock: {name} has the licence '{licence}', which deny.toml does not allow")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_licence_that_is_not_listed_is_refused() {
        let allowed =
            ["MIT", "Apache-2.0 WITH LLVM-exception"].map(|one| toml::Value::String(one.to_owned()));
        let banned = [toml::from_str("crate = \"openssl-sys\"").unwrap()];
        let says = |name: &str, licence: &str| {
            refused(&json!({ "name": name, "license": licence }), &allowed, &banned)
        };
        assert_eq!(says("a", "MIT OR GPL-3.0"), None);
        assert_eq!(says("a", "Apache-2.0 WITH LLVM-exception"), None);
        assert!(says("a", "MIT AND GPL-3.0").is_some_and(|why| why.contains("'MIT AND GPL-3.0'")));
        assert!(says("a", "").is_some(), "no licence");
        assert!(says("openssl-sys", "MIT").is_some_and(|why| why.contains("banned")));
    }
}
