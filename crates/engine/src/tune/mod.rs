//! A tuning run. It climbs the ladder, whose decisions `analysis` makes, on a group of hosts, and restores all settings
//! at the end, even after an error.

mod bound;
mod budget;
mod candidates;
mod confirm;
mod fit;
mod look;
mod plan;
mod planning;
mod run;
mod start;

use std::time::Instant;

use landspeed_analysis::{Metric, RunFacts, assemble};
use landspeed_record::units::Nanos;
use landspeed_record::{Header, Line, ProgramMetric, RecordKind, Settings, TuneSummary, Workload};
use landspeed_transport::Transport;

use crate::{Error, HostGroup, RecordSink};
pub use candidates::{Placebos, placebos};
pub use fit::FittedParameter;
pub use plan::TunePlan;
pub use planning::plan;
use run::TuningRun;
pub(crate) use start::sc03;

/// The settings from which a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// The hosts as they are.
    Found,
    /// The settings with which SC'03 started: MTU 1500, offloads off, 64 KB windows, Reno, 8 KB writes, sender and
    /// receiver on two cores.
    Sc03,
}

impl Baseline {
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Found => "found",
            Baseline::Sc03 => "sc03",
        }
    }
}

/// The program that a run tunes, instead of landspeed's own stream, or another workload that ends with its work.
#[derive(Debug, Clone)]
pub struct TunedProgram {
    /// The workload that runs the program, with its parameters.
    pub workload: Workload,
    /// The figure of the program that decides which settings are better; `None` for a workload of landspeed's own,
    /// which goodput decides.
    pub of: Option<ProgramMetric>,
}

/// The options of a tuning run: its goal, its limits, and texts for the record.
#[derive(Clone)]
pub struct TuneOptions {
    pub goal: Metric,
    pub program: Option<TunedProgram>,
    pub transport: &'static dyn Transport,
    pub baseline: Baseline,
    /// Settings that override the baseline and that the run does not change.
    pub held: Settings,
    pub budget: Nanos,
    /// The only knobs that are tried; if empty, all are.
    pub only: Vec<String>,
    /// Knobs that are not tried.
    pub skip: Vec<String>,
    /// True if the run finds out what limits the path, and first tries the candidates that would relieve that limit.
    pub explain: bool,
    /// Settings with which the result is compared at the end. They override the start.
    pub against: Option<Settings>,
    /// How long blocks of the final cell against the start cell are measured after the ladder; `None` for no such
    /// blocks.
    pub confirm_for: Option<Nanos>,
    /// True if the hosts are namespaces of this machine, so that its host-wide knobs must not be turned.
    pub in_lab: bool,
    pub seed: u64,
    /// The topology for the record: the name of a lab such as "lab:back-to-back", or the hosts.
    pub topology: String,
    pub command: String,
    /// The time of the start for the record, in RFC 3339 and UTC.
    pub started: String,
    pub record: String,
}

impl TuneOptions {
    /// Returns the names of the settings that no step and no placebo changes.
    fn untouched(&self) -> Vec<String> {
        self.skip.iter().chain(self.held.keys()).cloned().collect()
    }

    /// Returns true if the run finds out what limits the path. A run for latency does not, because such a limit says
    /// nothing about the idle RTT.
    pub fn looks(&self) -> bool {
        self.explain && self.goal != Metric::Latency
    }
}

/// Runs `plan` on `group`, and returns the summary of the record. All settings are restored before this returns, even
/// after an error.
pub fn tune(
    group: &mut HostGroup,
    plan: TunePlan,
    options: &TuneOptions,
    sink: &mut dyn RecordSink,
) -> Result<TuneSummary, Error> {
    let began = Instant::now();
    let ((mut findings, confirmation, verdicts), restored) = group.tuned(|group| {
        let mut run = TuningRun {
            group,
            plan: &plan,
            options,
            sink: &mut *sink,
            began,
            verdicts: 0,
            searches: 0,
            kept: String::new(),
        };
        let findings = run.climb()?;
        let confirmation = run.confirm(&findings)?;
        run.trying("restore", "restoring")?;
        Ok((findings, confirmation, run.verdicts))
    })?;
    sink.line(&Line::Restored(restored.clone()))?;
    if restored.restored {
        // A terminal shows only the first doubts.
        findings.doubts = [group.moved(), std::mem::take(&mut findings.doubts)].concat();
    }
    let summary = assemble(
        findings,
        RunFacts {
            header: &header(options, plan.budget),
            host_a: &group.first().a.facts,
            host_b: &group.first().b.facts,
            others: group.others(),
            restored: &restored,
            took: began.elapsed().into(),
            verdicts,
            confirmation,
            record: &options.record,
        },
    );
    sink.line(&Line::Summary(Box::new(summary.clone())))?;
    Ok(summary)
}

fn header(options: &TuneOptions, budget: Nanos) -> Header {
    Header {
        topology: options.topology.clone(),
        goal: options.goal.row().goal.to_owned(),
        program: options.program.as_ref().and_then(|program| program.of.clone()),
        baseline: options.baseline.name().to_owned(),
        seed: options.seed,
        budget_ns: budget,
        confirm_for_ns: options.confirm_for.unwrap_or_default(),
        ..RecordKind::TUNE.header(&options.command, &options.started)
    }
}
