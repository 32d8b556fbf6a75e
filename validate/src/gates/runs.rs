//! The runs of the study, each a line of a file, so that a study that ends can go on.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

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
    /// The look at the machine let it pass. A run on a quiet machine ends there.
    Passed,
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

/// All runs so far, and the file that has them.
pub(super) struct GateRuns {
    made: Vec<GateRun>,
    file: File,
}

impl GateRuns {
    /// Reads the runs that a file has. Makes the file if it is not there.
    pub(super) fn open(path: &Path) -> Result<GateRuns> {
        let cannot = || format!("cannot open {}", path.display());
        let file = OpenOptions::new().create(true).read(true).append(true).open(path).with_context(cannot)?;
        let run = |(number, line): (u32, io::Result<String>)| -> Result<GateRun> {
            let run = serde_json::from_str(&line?);
            run.with_context(|| format!("line {number} is no run: remove it, and the run is made again"))
        };
        let lines = (1..).zip(BufReader::new(&file).lines());
        let made = lines.map(run).collect::<Result<Vec<GateRun>>>().with_context(cannot)?;
        Ok(GateRuns { made, file })
    }

    pub(super) fn add(&mut self, run: GateRun) -> Result<()> {
        // By one call, so that a study that is killed leaves whole lines.
        let line = serde_json::to_string(&run)? + "\n";
        self.file.write_all(line.as_bytes()).context("keep a run")?;
        self.made.push(run);
        Ok(())
    }

    /// Returns the seeds below `planned` that have no run yet.
    pub(super) fn missing(&self, scene: GateScene, planned: u32) -> Vec<u32> {
        let is_made = |seed: u32| self.made.iter().any(|run| run.scene == scene && run.seed == seed);
        (0..planned).filter(|seed| !is_made(*seed)).collect()
    }

    /// Returns the results of the seeds below `planned`.
    pub(super) fn results(&self, scene: GateScene, planned: u32) -> Vec<GateResult> {
        let of = self.made.iter().filter(|run| run.scene == scene && run.seed < planned);
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
        assert_eq!(again.made, runs.made);
        assert_eq!(again.missing(GateScene::Quiet, 3), [0, 2]);
        assert_eq!(again.missing(GateScene::Disturbed, 1), [0_u32; 0]);
        assert_eq!(again.results(GateScene::Quiet, 3), [GateResult::Failed]);
        assert!(again.results(GateScene::Quiet, 1).is_empty());
        runs.file.write_all(b"{").unwrap();
        let error = GateRuns::open(&path).err().expect("a line that is cut off");
        assert!(format!("{error:#}").contains("line 3 is no run"), "{error:#}");
    }
}
