//! Runs one case: a fault lab is set up, `explain` examines it, and its findings are compared with the faults.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use landspeed_analysis::verdict::is_limit;
use landspeed_lab::faults::{FaultLab, FaultScenario};
use landspeed_record::units::BitRate;
use landspeed_record::{Cause, ExplainReport, Finding};

use super::clean::HealthyPath;
use super::draw::DrawnFault;
use crate::landspeed::document;

/// Time for the traffic to reach its rate before `explain` starts.
const START_UP: Duration = Duration::from_millis(1500);
/// The time for which `explain` watches a path with one fault. (Its default is ten seconds.)
const WATCH: &str = "4s";
/// The time for which `explain` watches a path with two faults, because the lesser of them shows less often.
const WATCH_TWO: &str = "8s";

/// The share of a link's rate from which a fault costs less than 10 %.
const FULL: f64 = 0.9;

/// What a case is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CasePurpose {
    /// The thresholds were chosen on such cases.
    Chosen,
    /// The thresholds are judged by such cases.
    Judged,
}

pub(super) struct FaultCase {
    purpose: CasePurpose,
    name: String,
    causes: Vec<Cause>,
    /// The scenario with the faults at their strengths, or the healthy path.
    scenario: Result<FaultScenario, landspeed_lab::faults::Error>,
}

pub(super) struct FaultCaseResult {
    pub(super) purpose: CasePurpose,
    pub(super) name: String,
    /// The faults that were made; none on a healthy path, and where no fault cost anything ([`fills_its_link`]).
    pub(super) causes: Vec<Cause>,
    /// The findings, the most expensive first; empty if the case could not be decided.
    pub(super) found: Vec<Finding>,
    /// The reason why the case could not be decided.
    pub(super) undecided: Option<String>,
    pub(super) took: Duration,
}

impl FaultCase {
    pub(super) fn of(purpose: CasePurpose, faults: &[DrawnFault]) -> FaultCase {
        let names: Vec<String> =
            faults.iter().map(|one| format!("{}={:.2}", one.fault.name, one.strength)).collect();
        let done: Vec<(&str, f64)> = faults.iter().map(|one| (one.fault.name, one.strength)).collect();
        let causes = faults.iter().map(|one| one.fault.cause).collect();
        FaultCase { purpose, name: names.join(" + "), causes, scenario: FaultScenario::with(&done) }
    }

    pub(super) fn clean(clean: &HealthyPath) -> FaultCase {
        FaultCase {
            purpose: CasePurpose::Judged,
            name: format!("clean: {}", clean.name),
            causes: Vec::new(),
            scenario: Ok(clean.scenario()),
        }
    }
}

impl FaultCaseResult {
    /// Returns the named faults, without the limits of healthy paths. These include faults that cost something now
    /// and faults that would limit next.
    pub(super) fn named(&self) -> impl Iterator<Item = Cause> + '_ {
        self.found.iter().map(|finding| finding.cause).filter(|cause| !is_limit(*cause))
    }

    /// Describes all findings, in order, or the reason why the case is undecided.
    pub(super) fn said(&self) -> String {
        if let Some(why) = &self.undecided {
            return format!("undecided: {why}");
        }
        let words = self.found.iter().map(|f| match f.allows_bps {
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

/// Sets up the case, runs `explain` on it, and returns the findings. A case in which either fails is undecided.
pub(super) fn judge(landspeed: &Path, case: FaultCase) -> FaultCaseResult {
    let began = Instant::now();
    let FaultCase { purpose, mut name, mut causes, scenario } = case;
    let report = scenario.map_err(anyhow::Error::from).and_then(|scenario| {
        let report = explained(landspeed, &name, &scenario)?;
        if !causes.is_empty() && fills_its_link(&scenario, &report) {
            causes.clear();
            name += " (fills its link)";
        }
        Ok(report)
    });
    let (found, undecided) = match report {
        Ok(report) => (report.verdict, None),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    FaultCaseResult { purpose, name, causes, found, undecided, took: began.elapsed() }
}

/// Returns true if the flow has nine tenths of the rate of its wide-area link. No fault can then cost as much as the 10 %
/// from which `explain` names it, so the path is judged like a healthy one.
fn fills_its_link(scenario: &FaultScenario, report: &ExplainReport) -> bool {
    let rate = scenario.wan.as_ref().and_then(|wan| wan.get("rate")?.parse::<BitRate>().ok());
    rate.is_some_and(|rate| report.goodput_bps.0 >= FULL * rate.0)
}

fn explained(landspeed: &Path, name: &str, scenario: &FaultScenario) -> Result<ExplainReport> {
    watched(&lab(landspeed, scenario)?, landspeed, name)
}

/// Sets up a scenario, whose programs are those of `landspeed`.
pub(crate) fn lab(landspeed: &Path, scenario: &FaultScenario) -> Result<FaultLab> {
    Ok(FaultLab::set(scenario, &[landspeed.display().to_string(), "play".to_owned()])?)
}

/// Lets the traffic reach its rate, and returns what `explain` reports of it.
pub(super) fn watched(lab: &FaultLab, landspeed: &Path, name: &str) -> Result<ExplainReport> {
    std::thread::sleep(START_UP);
    let [a, b] = lab.names();
    let at = lab.at().to_string();
    let watch = if name.contains(" + ") { WATCH_TWO } else { WATCH };
    let mut command = Command::new(landspeed);
    command.args(["explain", &a, &b, "--flow", &at, "--time", watch, "--no-limits", "--no-trace", "--json"]);
    let report: ExplainReport = document(&mut command)?;
    // For readers who want to know the reasons for a verdict.
    let folder = landspeed.with_file_name("faults");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        folder.join(format!("{}.json", name.replace('/', " per "))),
        serde_json::to_vec_pretty(&report)?,
    )?;
    Ok(report)
}
