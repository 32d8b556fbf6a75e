//! A tuning run: climbs the ladder that `analysis` decides, on a pair of hosts, and puts everything
//! back at the end, whatever happened.

mod bound;
mod budget;
mod confirm;
mod look;
mod plan;
mod run;

use std::time::Instant;

use landspeed_analysis::{Goal, RunFacts, assemble};
use landspeed_record::{Header, Line, ProgramOf, RECORD_FORMAT, Settings, TuneSummary, Workload};
use landspeed_transport::Transport;
use landspeed_units::Nanos;

use crate::{Error, Pair, Sink};
pub(crate) use plan::sc03;
pub use plan::{Placebos, TunePlan, placebos, plan};
use run::Run;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// As the hosts are.
    Found,
    /// As SC'03 started: MTU 1500, offloads off, 64 KB windows, Reno, 8 KB writes, two cores.
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

/// The program that a run is about, in place of landspeed's own stream.
#[derive(Debug, Clone)]
pub struct TunedProgram {
    /// What runs, with its parameters.
    pub workload: Workload,
    /// Which of its figures decides.
    pub of: ProgramOf,
}

#[derive(Clone)]
pub struct TuneOptions {
    pub goal: Goal,
    pub program: Option<TunedProgram>,
    pub transport: &'static dyn Transport,
    pub baseline: Baseline,
    /// Settings that are laid over the baseline and stay so.
    pub held: Settings,
    pub budget: Nanos,
    /// Only these knobs, where not empty.
    pub only: Vec<String>,
    /// Not these knobs.
    pub skip: Vec<String>,
    /// Whether to look at what holds the path back, and to try first what would relieve it.
    pub explain: bool,
    /// Settings to compare the result with at the end, laid over the start.
    pub against: Option<Settings>,
    /// How long after the ladder to go on with blocks of final against start.
    pub confirm_for: Option<Nanos>,
    /// Whether the hosts share this machine, whose host-wide knobs are then not theirs.
    pub in_lab: bool,
    pub seed: u64,
    /// For the record: "lab:back-to-back", or the hosts.
    pub topology: String,
    pub command: String,
    /// For the record: RFC 3339 UTC.
    pub started: String,
    pub record: String,
}

impl TuneOptions {
    /// What no step and no placebo changes.
    fn untouched(&self) -> Vec<String> {
        self.skip.iter().chain(self.held.keys()).cloned().collect()
    }

    /// Whether the run looks at what holds the path back: that says nothing of the idle round trip.
    pub fn looks(&self) -> bool {
        self.explain && self.goal != Goal::Latency
    }
}

/// Runs `plan` on `pair`. Everything is put back before this returns, by error too.
pub fn tune(
    pair: &mut Pair,
    plan: TunePlan,
    options: &TuneOptions,
    sink: &mut dyn Sink,
) -> Result<TuneSummary, Error> {
    let began = Instant::now();
    let ((findings, confirmation, verdicts), restored) = pair.tuned(|pair| {
        let mut run = Run {
            pair,
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
    let summary = assemble(
        findings,
        RunFacts {
            header: &header(options, plan.budget),
            host_a: &pair.a.facts,
            host_b: &pair.b.facts,
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
        format: RECORD_FORMAT,
        landspeed: env!("CARGO_PKG_VERSION").to_owned(),
        kind: "tune".to_owned(),
        started: options.started.clone(),
        command: options.command.clone(),
        topology: options.topology.clone(),
        goal: options.goal.to_string(),
        program: options.program.as_ref().map(|program| program.of.clone()),
        baseline: options.baseline.name().to_owned(),
        seed: options.seed,
        budget_ns: budget,
        confirm_for_ns: options.confirm_for.unwrap_or_default(),
        ..Header::default()
    }
}
