//! `make gates`: does the look at the machine before an experiment refuse only what cannot be answered, and are the answers
//! right beside a program that takes a part of each core? The experiment's truth is made: two rates of a link, whose
//! ratio is 1.5.

mod runs;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::{ExpectationAgreement, GridReport};
use libc::{SIGINT, SIGTERM};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::landspeed::{is_too_noisy, landspeed, last_said};
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
/// The blocks of the experiment: no file that ships has fewer at full size. With two, a look refuses what spreads by over 0.6 %.
const BLOCKS: u32 = 6;
/// The longest time of a run. A look takes some three seconds, and a run some eleven.
const LONGEST: &str = "10m";
/// What `landspeed run` says of a machine on which it goes on.
const PASSED: &str = "can decide something";
/// The exit status of a run that left a setting changed.
const UNRESTORED: i32 = 3;
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
    /// Returns the scenes that were asked for, with the number of runs of each.
    fn scenes(&self) -> impl Iterator<Item = (GateScene, u32)> {
        let all = [(GateScene::Quiet, self.gates), (GateScene::Disturbed, self.runs)];
        let only = self.only;
        all.into_iter().filter(move |(scene, _)| only.is_none_or(|only| only == *scene))
    }
}

/// The experiment. The first claim is true and the second one is not.
fn experiment() -> String {
    format!(
        r#"
        title = "Two rates"
        workload = "stream"
        topology = "lab:wan:rtt=2ms"
        as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
        set = {{ time = "200ms" }}
        vary = [{{ factor = "rate", values = "100M,150M" }}]
        stop = {{ blocks = {BLOCKS} }}
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
    fn complete(&self, scene: GateScene, planned: u32, runs: &mut GateRuns) -> Result<()> {
        // The last runs that failed wait for one that does not.
        let mut failed: Vec<GateRun> = Vec::new();
        for seed in runs.missing(scene, planned) {
            if self.is_over() {
                break;
            }
            let is_disturbed = scene == GateScene::Disturbed;
            let neighbour = is_disturbed.then(|| NoisyNeighbour::begin(LOAD)).transpose()?;
            let output = self.measured(scene)?;
            drop(neighbour);
            // A signal to this program's group ends landspeed too.
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let (result, why) = came_to(scene, &output);
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

    fn measured(&self, scene: GateScene) -> Result<Output> {
        let file = self.folder.path().join("rates.toml");
        std::fs::write(&file, experiment()).context("write the experiment")?;
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--kill-after=1m", LONGEST]).arg(&self.landspeed).arg("run").arg(&file);
        command.args(["--json", "--data-dir"]).arg(self.folder.path()).stdin(Stdio::null());
        match scene {
            GateScene::Quiet => look(&mut command),
            GateScene::Disturbed => command.output().context("run landspeed"),
        }
    }
}

/// Runs landspeed and ends it once it has said that it goes on. Returns what it said on standard error.
fn look(command: &mut Command) -> Result<Output> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("run landspeed")?;
    let mut said = String::new();
    for line in child.stderr.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
        let Ok(line) = line else { break };
        if line.contains(PASSED) {
            // `timeout` passes it on.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        said += &line;
        said.push('\n');
    }
    let status = child.wait().context("wait for landspeed")?;
    Ok(Output { status, stdout: Vec::new(), stderr: said.into_bytes() })
}

/// Returns what a run came to, and why it failed if it did.
fn came_to(scene: GateScene, output: &Output) -> (GateResult, String) {
    let said = String::from_utf8_lossy(&output.stderr);
    let failed = || format!("{}: {}", output.status, last_said(output));
    match (scene, serde_json::from_slice::<GridReport>(&output.stdout)) {
        _ if output.status.code() == Some(UNRESTORED) => (GateResult::Failed, failed()),
        _ if is_too_noisy(output) => (GateResult::Refused, String::new()),
        (GateScene::Quiet, _) if said.contains(PASSED) => (GateResult::Passed, String::new()),
        (GateScene::Disturbed, Ok(report)) => (judged(&report), String::new()),
        _ => (GateResult::Failed, failed()),
    }
}

fn judged(report: &GridReport) -> GateResult {
    use ExpectationAgreement::{Differs, Reproduces};
    let answers: Vec<ExpectationAgreement> = report.expected.iter().map(|one| one.agreement).collect();
    match answers.as_slice() {
        [Differs, _] | [_, Reproduces] => GateResult::Wrong,
        [Reproduces, Differs] => GateResult::Right,
        _ => GateResult::Undecided,
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
    for (scene, planned) in options.scenes() {
        study.complete(scene, planned, &mut runs)?;
    }
    report(options, &runs)
}

fn report(options: &Options, runs: &GateRuns) -> Result<()> {
    use GateResult::{Failed, Passed, Refused, Right, Undecided, Wrong};
    let mut broken = BrokenPromises::default();
    table::head(
        "where | runs | refused | passed | right | undecided | wrong | failed | promise | of all, with its 95 % interval",
    );
    for (scene, planned) in options.scenes() {
        let found = runs.results(scene, planned);
        let missing = planned.saturating_sub(found.len() as u32);
        let kept = match missing {
            0 => broken.check(keeps(scene, &found)).to_owned(),
            missing => format!("{missing} runs are missing: the same command makes them"),
        };
        let counts = [Refused, Passed, Right, Undecided, Wrong, Failed].map(|result| count(&found, result));
        let counts = counts.map(|count| count.to_string()).join(" | ");
        let (name, promise) = promised(scene);
        let promise = format!("{promise}: {kept}");
        let (lost, all) = (lost(scene, &found), found.len() as u32);
        let lost = format!("{} ({})", percent(share(lost, all)), table::interval(lost, all));
        table::row(&[&name, &found.len(), &counts, &promise, &lost]);
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

/// Returns the number of runs that count against the promise of a scene.
fn lost(scene: GateScene, found: &[GateResult]) -> u32 {
    let bad = match scene {
        GateScene::Quiet => GateResult::Refused,
        GateScene::Disturbed => GateResult::Wrong,
    };
    count(found, bad) + count(found, GateResult::Failed)
}

/// Returns true if all runs of a scene keep its promise.
fn keeps(scene: GateScene, found: &[GateResult]) -> bool {
    let all = found.len() as u32;
    let lost = share(lost(scene, found), all);
    match scene {
        GateScene::Quiet => lost <= REFUSED,
        GateScene::Disturbed => share(count(found, GateResult::Wrong), all) <= WRONG && lost <= LOST,
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::ExpectationReport;

    use super::*;

    /// Returns `all` results, of which the first `few` are as given and the others undecided.
    fn results(all: usize, few: usize, result: GateResult) -> Vec<GateResult> {
        let mut found = vec![GateResult::Undecided; all];
        found[..few].fill(result);
        found
    }

    #[test]
    fn the_experiment_can_be_read() {
        let path = std::path::Path::new("rates.toml");
        let read = landspeed_engine::read_experiment(path, &experiment(), false).unwrap();
        assert_eq!(read.grid.expectations.len(), 2);
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
        let ended = |text: &str, status: u8| {
            let script = format!("echo '{text}' >&2; exit {status}");
            let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
            [GateScene::Quiet, GateScene::Disturbed].map(|scene| came_to(scene, &output))
        };
        assert!(ended("whatever it says", 7).iter().all(|one| one.0 == GateResult::Refused));
        for (result, why) in ended("landspeed needs root", 1) {
            assert!(result == GateResult::Failed && why.ends_with("landspeed needs root"), "{why}");
        }
    }

    #[test]
    fn a_look_ends_once_it_has_passed() {
        let script = format!("echo it {PASSED} >&2; exec sleep 60");
        let began = Instant::now();
        let output = look(Command::new("sh").args(["-c", &script]).stdin(Stdio::null())).expect("a shell");
        assert!(!output.status.success() && began.elapsed() < Duration::from_secs(30), "{output:?}");
        assert_eq!(came_to(GateScene::Quiet, &output).0, GateResult::Passed);
        assert_eq!(came_to(GateScene::Disturbed, &output).0, GateResult::Failed, "it has no report");
    }

    #[test]
    fn only_both_answers_together_are_right() {
        use ExpectationAgreement::{Differs, NotHere, Reproduces, Undecided};
        for (answers, result) in [
            (&[Reproduces, Differs][..], GateResult::Right),
            (&[Differs, Differs], GateResult::Wrong),
            (&[Undecided, Reproduces], GateResult::Wrong),
            (&[Reproduces, Undecided], GateResult::Undecided),
            (&[NotHere, NotHere], GateResult::Undecided),
            (&[], GateResult::Undecided),
        ] {
            let expected = answers
                .iter()
                .map(|agreement| ExpectationReport { agreement: *agreement, ..ExpectationReport::default() });
            let report = GridReport { expected: expected.collect(), ..GridReport::default() };
            assert_eq!(judged(&report), result, "{answers:?}");
        }
    }
}
