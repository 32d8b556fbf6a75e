//! The runs of the study.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::kept::KeptRuns;

/// What runs beside the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GateScene {
    /// Nothing: the machine is left alone.
    Quiet,
    /// A program that takes a part of each core.
    Disturbed,
}

/// What a run of the experiment came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GateResult {
    Refused,
    Right,
    Undecided,
    Wrong,
    /// It gave no report.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GateRun {
    pub(super) scene: GateScene,
    pub(super) seed: u32,
    pub(super) result: GateResult,
    /// Why the run failed; empty if it did not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) why: String,
}

/// All runs so far, which a file keeps.
pub(super) struct GateRuns(KeptRuns<GateRun>);

impl GateRuns {
    /// Reads the runs that a file has. Makes the file if it is not there.
    pub(super) fn open(path: &Path) -> Result<GateRuns> {
        Ok(GateRuns(KeptRuns::open(path)?))
    }

    pub(super) fn add(&mut self, run: GateRun) -> Result<()> {
        self.0.add(run)
    }

    /// Returns the seeds below `planned` that have no run yet.
    pub(super) fn missing(&self, scene: GateScene, planned: u32) -> Vec<u32> {
        let is_made = |seed: u32| self.0.made().iter().any(|run| run.scene == scene && run.seed == seed);
        (0..planned).filter(|seed| !is_made(*seed)).collect()
    }

    /// Returns the results of the seeds below `planned`.
    pub(super) fn results(&self, scene: GateScene, planned: u32) -> Vec<GateResult> {
        let of = self.0.made().iter().filter(|run| run.scene == scene && run.seed < planned);
        of.map(|run| run.result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_goes_on_with_the_runs_that_are_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gates.jsonl");
        let run =
            |scene, seed| GateRun { scene, seed, result: GateResult::Failed, why: "no root".to_owned() };
        let mut runs = GateRuns::open(&path).unwrap();
        runs.add(run(GateScene::Quiet, 1)).unwrap();
        runs.add(run(GateScene::Disturbed, 0)).unwrap();
        let again = GateRuns::open(&path).unwrap();
        assert_eq!(again.0.made(), runs.0.made());
        assert_eq!(again.missing(GateScene::Quiet, 3), [0, 2]);
        assert_eq!(again.missing(GateScene::Disturbed, 1), [0_u32; 0]);
        assert_eq!(again.results(GateScene::Quiet, 3), [GateResult::Failed]);
        assert!(again.results(GateScene::Quiet, 1).is_empty());
    }
}
