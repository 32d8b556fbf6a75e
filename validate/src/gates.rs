//! `make gates`: does the look at the machine before an experiment refuse only what cannot be answered, and are the answers
//! right beside a program that takes a part of each core? The experiment's truth is made: two rates of a link, whose
//! ratio is 1.5.

mod runs;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::{ExpectationAgreement, GridReport};
use libc::{SIGINT, SIGTERM};
use tempfile::TempDir;

use crate::landspeed::landspeed;
use crate::stolen::NoisyNeighbour;
use crate::stop;
use crate::table::{self, BrokenPromises, percent, share};
use runs::{GateResult, GateRun, GateRuns, GateScene};

/// The largest share of gates on a quiet machine that may refuse: 6 of 200.
const REFUSED: f64 = 0.03;
/// The largest shares of disturbed runs that may answer wrong, and that may answer wrong or fail: 2 and 4 of 40.
const WRONG: f64 = 0.05;
const LOST: f64 = 0.1;
/// The part of each core that the neighbour takes, in percent: that of `make disturbed`.
const LOAD: u32 = 40;
/// The longest time of a run. One takes ten to thirty seconds.
const LONGEST: &str = "10m";
/// The number of failures in a row that end the study, because the next run would fail too. They do not count: their cause
/// is none of the study's, and the same command makes these runs again.
const IN_A_ROW: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Gates on the machine as it is
    #[arg(long, default_value_t = 200)]
    gates: u32,
    /// Runs beside a program that takes a part of each core
    #[arg(long, default_value_t = 40)]
    runs: u32,
    /// Only these
    #[arg(long)]
    only: Option<GateScene>,
    /// Holds the runs that were made. A study goes on with the runs that its file lacks.
    #[arg(long, alias = "into", value_name = "FILE", default_value = "target/gates.jsonl")]
    state: PathBuf,
    /// Begin no run after this number of minutes
    #[arg(long)]
    minutes: Option<u64>,
}

impl Options {
    /// Returns the scenes that were asked for, with the number of runs and of blocks of each.
    fn scenes(&self) -> impl Iterator<Item = (GateScene, u32, u32)> {
        let all = [(GateScene::Quiet, self.gates, 2), (GateScene::Disturbed, self.runs, 6)];
        let only = self.only;
        all.into_iter().filter(move |(scene, ..)| only.is_none_or(|only| only == *scene))
    }
}

/// The experiment, with this number of blocks and this seed. The first claim is true and the second one is not.
fn experiment(blocks: u32, seed: u32) -> String {
    format!(
        r#"
        title = "Two rates"
        workload = "stream"
        topology = "lab:wan:rtt=2ms"
        as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
        set = {{ time = "200ms" }}
        vary = [{{ factor = "rate", values = "100M,150M" }}]
        stop = {{ blocks = {blocks} }}
        seed = {seed}
        [[expect]]
        claim = "The faster link carries 1.5 times as much"
        source = "the links' rates"
        from = {{ rate = "100M" }}
        to = {{ rate = "150M" }}
        ratio = 1.5
        within = "5%"
        [[expect]]
        claim = "The faster link carries twice as much"
        source = "made up"
        from = {{ rate = "100M" }}
        to = {{ rate = "150M" }}
        ratio = 2.0
        within = "5%"
        "#
    )
}

/// What the runs of the study need.
struct GateStudy {
    landspeed: PathBuf,
    folder: TempDir,
    until: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl GateStudy {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Makes the runs of a scene that are missing, until the study's time is over or a signal ends it.
    fn complete(&self, scene: GateScene, planned: u32, blocks: u32, runs: &mut GateRuns) -> Result<()> {
        // The last runs that failed wait for one that does not.
        let mut failed: Vec<GateRun> = Vec::new();
        for seed in runs.missing(scene, planned) {
            if self.is_over() {
                break;
            }
            let is_disturbed = scene == GateScene::Disturbed;
            let neighbour = is_disturbed.then(|| NoisyNeighbour::begin(LOAD)).transpose()?;
            let output = self.measured(blocks, seed)?;
            drop(neighbour);
            // A signal to this program's group ends landspeed too.
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let (result, why) = came_to(&output);
            let run = GateRun { scene, seed, result, why };
            if run.result == GateResult::Failed {
                ensure!(failed.len() + 1 < IN_A_ROW, "{IN_A_ROW} runs in a row failed: {}", run.why);
                failed.push(run);
                continue;
            }
            failed.drain(..).try_for_each(|run| runs.add(run))?;
            runs.add(run)?;
        }
        failed.into_iter().try_for_each(|run| runs.add(run))
    }

    fn measured(&self, blocks: u32, seed: u32) -> Result<Output> {
        let file = self.folder.path().join("rates.toml");
        std::fs::write(&file, experiment(blocks, seed)).context("write the experiment")?;
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--kill-after=1m", LONGEST]).arg(&self.landspeed).arg("run").arg(&file);
        command.args(["--json", "--data-dir"]).arg(self.folder.path()).stdin(Stdio::null());
        command.output().context("run landspeed")
    }
}

/// Returns what a run came to, and why it failed if it did.
fn came_to(output: &Output) -> (GateResult, String) {
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("too noisy now") {
        return (GateResult::Refused, String::new());
    }
    match serde_json::from_slice::<GridReport>(&output.stdout) {
        Ok(report) => (judged(&report), String::new()),
        Err(_) => {
            (GateResult::Failed, format!("{}: {}", output.status, said.lines().last().unwrap_or_default()))
        }
    }
}

fn judged(report: &GridReport) -> GateResult {
    use ExpectationAgreement::{Differs, Reproduces, Undecided};
    let answers: Vec<ExpectationAgreement> = report.expected.iter().map(|one| one.agreement).collect();
    match answers.as_slice() {
        [Differs, _] | [_, Reproduces] => GateResult::Wrong,
        [Undecided, _] | [_, Undecided] => GateResult::Undecided,
        _ => GateResult::Right,
    }
}

/// Makes the runs that are missing, on the machine as it is and then beside a neighbour, and prints how many came to what.
pub(crate) fn run(options: &Options) -> Result<()> {
    let study = GateStudy {
        landspeed: landspeed()?,
        folder: tempfile::tempdir().context("make a folder")?,
        until: options.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60)),
        stop: stop::on(&[SIGINT, SIGTERM])?,
    };
    let mut runs = GateRuns::open(&options.state)?;
    for (scene, planned, blocks) in options.scenes() {
        study.complete(scene, planned, blocks, &mut runs)?;
    }
    report(options, &runs)
}

fn report(options: &Options, runs: &GateRuns) -> Result<()> {
    use GateResult::{Failed, Refused, Right, Undecided, Wrong};
    let mut broken = BrokenPromises::default();
    table::head("where | runs | refused | undecided | right | wrong | failed | promise");
    for (scene, planned, blocks) in options.scenes() {
        let found = runs.results(scene, planned);
        let missing = planned.saturating_sub(found.len() as u32);
        let kept = match missing {
            0 => broken.check(keeps(scene, &found)).to_owned(),
            missing => format!("{missing} runs are missing: the same command makes them"),
        };
        let [refused, undecided, right, wrong, failed] =
            [Refused, Undecided, Right, Wrong, Failed].map(|result| count(&found, result));
        let (name, promise) = promised(scene);
        let name = format!("{name}, {blocks} blocks");
        let promise = format!("{promise}: {kept}");
        table::row(&[&name, &found.len(), &refused, &undecided, &right, &wrong, &failed, &promise]);
    }
    broken.sum_up()
}

fn count(found: &[GateResult], wanted: GateResult) -> u32 {
    found.iter().filter(|one| **one == wanted).count() as u32
}

/// Returns the name of a scene, and what is promised of its runs.
fn promised(scene: GateScene) -> (&'static str, String) {
    match scene {
        GateScene::Quiet => ("a quiet machine", format!("at most {} refused or failed", percent(REFUSED))),
        GateScene::Disturbed => (
            "beside a neighbour",
            format!("at most {} wrong, and {} wrong or failed", percent(WRONG), percent(LOST)),
        ),
    }
}

/// Returns true if all runs of a scene keep its promise.
fn keeps(scene: GateScene, found: &[GateResult]) -> bool {
    let of = |result| share(count(found, result), found.len() as u32);
    let (wrong, failed) = (of(GateResult::Wrong), of(GateResult::Failed));
    match scene {
        GateScene::Quiet => of(GateResult::Refused) + failed <= REFUSED,
        GateScene::Disturbed => wrong <= WRONG && wrong + failed <= LOST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `all` results, of which the first `few` are as given and the others undecided.
    fn results(all: usize, few: usize, result: GateResult) -> Vec<GateResult> {
        let mut found = vec![GateResult::Undecided; all];
        found[..few].fill(result);
        found
    }

    #[test]
    fn promises_count_what_was_refused_wrong_or_lost() {
        use GateResult::{Failed, Refused, Wrong};
        use GateScene::{Disturbed, Quiet};
        for (scene, all, few, result, is_kept) in [
            (Quiet, 200, 6, Refused, true),
            (Quiet, 200, 7, Refused, false),
            (Quiet, 200, 7, Failed, false),
            (Disturbed, 40, 40, Refused, true),
            (Disturbed, 40, 2, Wrong, true),
            (Disturbed, 40, 3, Wrong, false),
            (Disturbed, 40, 4, Failed, true),
            (Disturbed, 40, 5, Failed, false),
        ] {
            assert_eq!(keeps(scene, &results(all, few, result)), is_kept, "{scene:?} {few} {result:?}");
        }
    }

    #[test]
    fn a_run_without_a_report_has_failed() {
        let said = |text: &str| {
            let script = format!("echo '{text}' >&2; exit 1");
            came_to(&Command::new("sh").args(["-c", &script]).output().expect("a shell"))
        };
        assert_eq!(said("rates.toml: too noisy now").0, GateResult::Refused);
        let (result, why) = said("landspeed needs root");
        assert!(result == GateResult::Failed && why.ends_with("landspeed needs root"), "{why}");
    }
}
