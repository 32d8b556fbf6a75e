//! One case: a stage is set, `explain` looks at it, and its words are held against what was done.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landspeed_faults::{Fault, Scenario, Stage};
use landspeed_record::{Cause, ExplainReport, Finding};

/// Time that the traffic has to come to its pace before anybody looks.
const SETTLE: Duration = Duration::from_millis(1500);
/// How long `explain` watches one fault, and two at once, of which the lesser shows more seldom. (Its default
/// is ten seconds.)
const WATCH: &str = "4s";
const WATCH_TWO: &str = "8s";

/// What is done to a path.
pub(super) struct Case {
    pub(super) faults: Vec<(&'static Fault, f64)>,
    /// Whether which faults these are was drawn by lot.
    pub(super) drawn: bool,
}

/// What `explain` said of it.
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) causes: Vec<Cause>,
    pub(super) drawn: bool,
    pub(super) found: Vec<Finding>,
    pub(super) took: Duration,
}

impl Case {
    pub(super) fn name(&self) -> String {
        let names = self.faults.iter().map(|(fault, strength)| format!("{}={strength:.2}", fault.name));
        let names: Vec<String> = names.collect();
        if names.is_empty() { "clean".to_owned() } else { names.join(" + ") }
    }
}

impl Judged {
    pub(super) fn is_clean(&self) -> bool {
        self.causes.is_empty()
    }

    pub(super) fn is_pair(&self) -> bool {
        self.causes.len() == 2
    }

    /// Faults that were named and not made: some follow from what was made (checksums in software turn
    /// segmentation offload off), some are wrong.
    pub(super) fn beside(&self) -> usize {
        let beside = |f: &&Finding| !f.cause.is_limit() && !self.causes.contains(&f.cause);
        self.found.iter().filter(beside).count()
    }

    /// Whether the one fault is named first, both of a pair are named, or a clean path has a limit and no
    /// fault.
    pub(super) fn is_right(&self) -> bool {
        match self.causes.as_slice() {
            [] => !self.found.is_empty() && self.found.iter().all(|finding| finding.cause.is_limit()),
            [cause] => self.found.first().is_some_and(|first| first.cause == *cause),
            causes => causes.iter().all(|cause| self.found.iter().any(|finding| finding.cause == *cause)),
        }
    }

    /// What was named, first one first.
    pub(super) fn said(&self) -> String {
        let words = self.found.iter().take(6).map(|f| match f.allows_bps {
            Some(rate) => format!("{:?} next at {rate}", f.cause),
            None => format!("{:?} {:.2}", f.cause, f.weight),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn line(&self) -> String {
        let mark = if self.is_right() { "right" } else { "WRONG" };
        format!("{mark}  {}: {} ({:.1} s)", self.name, self.said(), self.took.as_secs_f64())
    }
}

/// Sets the case up and has it explained.
pub(super) fn judge(landspeed: &Path, case: &Case) -> Result<Judged> {
    let faults: Vec<(&str, f64)> =
        case.faults.iter().map(|(fault, strength)| (fault.name, *strength)).collect();
    let scenario = Scenario::with(&faults)?;
    let stage = Stage::set(&scenario, &[landspeed.display().to_string(), "play".to_owned()])?;
    std::thread::sleep(SETTLE);
    let [a, b] = stage.names();
    let began = Instant::now();
    let at = stage.at().to_string();
    let watch = if case.faults.len() > 1 { WATCH_TWO } else { WATCH };
    let mut command = Command::new(landspeed);
    command.args(["explain", &a, &b, "--flow", &at, "--time", watch, "--no-limits", "--no-trace", "--json"]);
    let output = command.stdin(Stdio::null()).output().context("run landspeed explain")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "landspeed explain failed: {}", said.trim());
    // For whoever wants to know why.
    let folder = landspeed.with_file_name("zoo");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("{}.json", case.name())), &output.stdout)?;
    let report: ExplainReport = serde_json::from_slice(&output.stdout).context("read its report")?;
    let causes = case.faults.iter().map(|(fault, _)| fault.cause).collect();
    let drawn = case.drawn;
    Ok(Judged { name: case.name(), causes, drawn, found: report.verdict, took: began.elapsed() })
}
