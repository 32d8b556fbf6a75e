//! What the battery found, kept in a file a pair so that a battery that was cut off goes on, and printed as a table.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::battery::checks;
use super::guests::GuestPair;
use crate::table;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CheckOutcome {
    Passed(String),
    /// landspeed says that this cannot work here, and why.
    Refused(String),
    Failed(String),
}

impl fmt::Display for CheckOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckOutcome::Passed(what) if what.is_empty() => f.write_str("passed"),
            CheckOutcome::Passed(what) => write!(f, "passed: {what}"),
            CheckOutcome::Refused(why) => write!(f, "refused: {why}"),
            CheckOutcome::Failed(why) => write!(f, "FAILED: {why}"),
        }
    }
}

/// The outcomes of a pair's checks by name.
#[derive(Debug)]
pub(super) struct PairResults {
    pair: String,
    file: PathBuf,
    outcomes: BTreeMap<String, CheckOutcome>,
    /// Why the battery did not go on.
    pub(super) aborted: Option<String>,
}

impl PairResults {
    pub(super) fn open(folder: &Path, pair: &GuestPair) -> Result<PairResults> {
        let file = folder.join(format!("{}-{}.json", pair.kernel, pair.driver));
        let outcomes = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| format!("read {}", file.display()))?,
            Err(_) => BTreeMap::new(),
        };
        Ok(PairResults { pair: pair.to_string(), file, outcomes, aborted: None })
    }

    /// Returns true if the check has an outcome that another run would not change.
    pub(super) fn is_settled(&self, check: &str) -> bool {
        matches!(self.outcomes.get(check), Some(CheckOutcome::Passed(_) | CheckOutcome::Refused(_)))
    }

    pub(super) fn add(&mut self, check: &str, outcome: CheckOutcome) -> Result<()> {
        self.outcomes.insert(check.to_owned(), outcome);
        fs::write(&self.file, serde_json::to_vec_pretty(&self.outcomes)?)
            .with_context(|| format!("write {}", self.file.display()))
    }

    pub(super) fn is_good(&self) -> bool {
        self.aborted.is_none() && !self.outcomes.values().any(|one| matches!(one, CheckOutcome::Failed(_)))
    }

    /// Returns what a check found, as short as a table needs it.
    fn cell(&self, check: &str) -> String {
        let cell = match (self.outcomes.get(check), &self.aborted) {
            (Some(CheckOutcome::Passed(what)), _) if !what.is_empty() => what.clone(),
            (Some(CheckOutcome::Refused(why)), _) => format!("refused: {}", kernel(why)),
            (Some(outcome), _) => outcome.to_string(),
            (None, Some(_)) => "not run".to_owned(),
            (None, None) => "-".to_owned(),
        };
        cell.replace('|', "/")
    }
}

/// Returns the part of a refusal that names the kernel which it takes.
fn kernel(refusal: &str) -> &str {
    refusal.split(": ").find(|part| part.contains("Linux ")).unwrap_or(refusal)
}

/// Prints a table for docs/results/kernels.md, a row for each check that ran and a column for each pair.
pub(super) fn print(results: &[PairResults]) {
    let pairs: Vec<&str> = results.iter().map(|pair| pair.pair.as_str()).collect();
    table::head(&format!("check | {}", pairs.join(" | ")));
    let ran = |name: &str| results.iter().any(|pair| pair.outcomes.contains_key(name));
    for check in checks().filter(|check| ran(check.name)) {
        let cells: Vec<String> = results.iter().map(|pair| pair.cell(check.name)).collect();
        println!("| {} | {} |", check.name, cells.join(" | "));
    }
    for pair in results {
        if let Some(why) = &pair.aborted {
            println!("\n{}: {why}", pair.pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_battery_goes_on_where_it_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let pair = GuestPair { kernel: "6.12".into(), driver: "igb".into() };
        let mut found = PairResults::open(folder.path(), &pair).unwrap();
        found.add("doctor", CheckOutcome::Passed(String::new())).unwrap();
        found.add("undo", CheckOutcome::Failed("mtu is 1400".into())).unwrap();
        let again = PairResults::open(folder.path(), &pair).unwrap();
        assert!(again.is_settled("doctor") && !again.is_settled("undo") && !again.is_settled("knobs"));
        assert!(!again.is_good());
        assert_eq!(again.cell("undo"), "FAILED: mtu is 1400");
    }

    #[test]
    fn a_cell_has_what_was_found_and_the_kernel_that_a_refusal_names() {
        let folder = tempfile::tempdir().unwrap();
        let pair = GuestPair { kernel: "5.10".into(), driver: "virtio-net".into() };
        let mut found = PairResults::open(folder.path(), &pair).unwrap();
        let refused = "mtu=1400: landspeed: vm1: namespaces | cannot be told apart: it needs Linux 5.14";
        let outcomes = [
            ("doctor", CheckOutcome::Passed("7 findings".into()), "7 findings"),
            ("measure", CheckOutcome::Passed(String::new()), "passed"),
            ("mtu", CheckOutcome::Refused(refused.into()), "refused: it needs Linux 5.14"),
            ("undo", CheckOutcome::Failed("a | b".into()), "FAILED: a / b"),
        ];
        for (check, outcome, cell) in outcomes {
            found.add(check, outcome).unwrap();
            assert_eq!(found.cell(check), cell);
        }
        assert_eq!(found.cell("lab"), "-");
    }
}
