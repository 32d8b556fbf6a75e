//! The page of the papers' ledgers, and a ratchet: the number of claims that landspeed shows falls only with a line that
//! says which claim and why.

mod page;
mod ratchet;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use landspeed_papers::{Claim, ClaimState, ledgers};
use serde_json::Value;

use crate::schemas;
use ratchet::{FILE, Ratchet};

/// A claim of a paper, with its state.
struct ClaimRow {
    paper: &'static str,
    claim: &'static Claim,
    state: ClaimState,
    /// The origin of the state: an experiment, a command, a formula or a reason.
    by: String,
}

/// Returns the page, and the file of counts with those that rose: for each, its path within the project, and its text.
pub(crate) fn pages(root: &Path) -> Result<Vec<(String, String)>> {
    let rows = rows(root)?;
    let counts = Ratchet::read(&counts(root)?)?.raised(&rows);
    Ok(vec![(page::PAGE.to_owned(), page::text(&rows)), (FILE.to_owned(), counts)])
}

/// Returns one line for each count that fell without a reason, and for each reason that explains nothing.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    Ok(Ratchet::read(&counts(root)?)?.wrong(&rows(root)?))
}

fn counts(root: &Path) -> Result<String> {
    std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))
}

/// Returns every claim with the state that `landspeed papers` gives it.
fn rows(root: &Path) -> Result<Vec<ClaimRow>> {
    let output = Command::new(schemas::landspeed(root)?).args(["papers", "--json"]).output();
    let output = output.context("cannot run landspeed")?;
    ensure!(output.status.success(), "landspeed papers: {}", String::from_utf8_lossy(&output.stderr).trim());
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout).context("landspeed papers --json")?;
    let all = ledgers()
        .iter()
        .flat_map(|ledger| ledger.claims.iter().map(move |claim| (ledger.paper.id.as_str(), claim)));
    all.map(|(paper, claim)| row(&listed, paper, claim)).collect()
}

fn row(listed: &[Value], paper: &'static str, claim: &'static Claim) -> Result<ClaimRow> {
    let entry = listed.iter().find(|entry| entry["claim"] == claim.id.as_str());
    let entry = entry.with_context(|| format!("landspeed papers does not list {}", claim.id))?;
    let state = ClaimState::ALL.into_iter().find(|state| entry["state"] == state.name());
    let state = state.with_context(|| format!("{}: unknown state {}", claim.id, entry["state"]))?;
    Ok(ClaimRow { paper, claim, state, by: entry["by"].as_str().unwrap_or_default().to_owned() })
}
