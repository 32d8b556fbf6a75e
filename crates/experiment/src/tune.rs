//! A tuning run: walks the ladder that `analysis` decides, on a pair of hosts, and puts everything
//! back at the end, whatever happened.

use std::time::Instant;

use landspeed_analysis::{Action, Findings, Goal, Ladder, Pair as Block, Rules, RunFacts, assemble};
use landspeed_knob as knob;
use landspeed_record::{
    Candidate, Cell, FlowSettings, Header, Line, RECORD_FORMAT, Restored, Settings, Side, TuneSummary,
};
use landspeed_units::Nanos;

use crate::curve::curve;
use crate::trial::Timing;
use crate::{BlockOutcome, Blocks, Error, Pair, Sink, placebos};

/// Where a run starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// As the hosts are.
    Found,
    /// As SC'03 started: MTU 1500, offloads off, 64 KB windows, Reno, 8 KB writes, two cores.
    Sc03,
}

impl Baseline {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Found => "found",
            Baseline::Sc03 => "sc03",
        }
    }
}

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct TuneOptions {
    /// Which statistic decides.
    pub goal: Goal,
    /// Where to start from.
    pub baseline: Baseline,
    /// Time for the whole run.
    pub budget: Nanos,
    /// Only these knobs, where not empty.
    pub only: Vec<String>,
    /// Not these knobs.
    pub skip: Vec<String>,
    /// Settings to compare the result with at the end, laid over the start.
    pub against: Option<Settings>,
    /// Whether the hosts share this machine, whose host-wide knobs are then not theirs.
    pub in_lab: bool,
    /// Seed of the orders of trials.
    pub seed: u64,
    /// For the record: "lab:back-to-back", or the hosts.
    pub topology: String,
    /// For the record: how to run it again.
    pub command: String,
    /// For the record: RFC 3339 UTC.
    pub started: String,
    /// Path of the record, for the summary.
    pub record: String,
}

/// What a run would do: shown before real hosts are touched, and by `--dry-run`.
#[derive(Debug, Clone)]
pub struct TunePlan {
    /// The cell that the run starts from.
    pub start: Cell,
    /// What the baseline changes against what was found, as "side: knob: from -> to".
    pub baseline: Vec<String>,
    /// Candidates in order, those that are skipped with their reason among them.
    pub candidates: Vec<Candidate>,
    /// What `--against` names, as a cell.
    pub against: Option<Cell>,
    /// Lengths of the trials.
    pub timing: Timing,
    /// The budget, longer on long paths.
    pub budget: Nanos,
}

/// Plans a run on `pair`; turns nothing.
pub fn plan(pair: &Pair, options: &TuneOptions) -> Result<TunePlan, Error> {
    let found =
        Cell { a: pair.a.found(), b: pair.b.found(), flow: knob::flow_cell(&FlowSettings::default()) };
    let (start, baseline) = match options.baseline {
        Baseline::Found => (found, Vec::new()),
        Baseline::Sc03 => overlay(&found, knob::baseline::sc03())?,
    };
    let candidates = candidates(pair, &start, options)?;
    let against = match &options.against {
        Some(settings) => Some(overlay_all(&start, settings)?),
        None => None,
    };
    let timing = Timing::for_rtt(pair.path.rtt_ns);
    let usual = Timing::for_rtt(Nanos(0)).trial().0;
    let budget = Nanos((options.budget.0 as f64 * (timing.trial().0 as f64 / usual as f64)) as u64);
    Ok(TunePlan { start, baseline, candidates, against, timing, budget })
}

/// Everything that may be tried from `cell`, or why not.
fn candidates(pair: &Pair, cell: &Cell, options: &TuneOptions) -> Result<Vec<Candidate>, Error> {
    let path = knob::PathView {
        sender: &pair.a.facts,
        receiver: &pair.b.facts,
        sender_link: &pair.a.link(),
        receiver_link: &pair.b.link(),
        sender_states: &pair.a.states,
        receiver_states: &pair.b.states,
        rtt: pair.path.rtt_ns,
        in_lab: options.in_lab,
    };
    let filter = knob::Filter { only: &options.only, skip: &options.skip };
    Ok(knob::candidates(&path, cell, &filter)?)
}

/// Lays settings over a cell, each where its knob belongs; a system knob that a host lacks is left
/// out, and the second value says what changes.
fn overlay(
    found: &Cell,
    settings: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<(Cell, Vec<String>), Error> {
    let mut cell = found.clone();
    let mut changes = Vec::new();
    for (name, value) in settings {
        for (place, side) in places(&mut cell, name)? {
            if let Some(now) = place.get_mut(name)
                && *now != value
            {
                changes.push(format!("{side}: {name}: {now} -> {value}"));
                *now = value.clone();
            }
        }
    }
    Ok((cell, changes))
}

/// As [`overlay`] for what a user named: a knob that no host has is an error.
fn overlay_all(found: &Cell, settings: &Settings) -> Result<Cell, Error> {
    let mut cell = found.clone();
    for (name, value) in settings {
        knob::check(name, value)?;
        let mut known = false;
        for (place, _) in places(&mut cell, name)? {
            if let Some(now) = place.get_mut(name) {
                *now = value.clone();
                known = true;
            }
        }
        if !known {
            return Err(Error::Other(format!("{name} cannot be turned here: see `landspeed knobs`")));
        }
    }
    Ok(cell)
}

/// The maps of `cell` that the knob `name` lives in.
fn places<'a>(cell: &'a mut Cell, name: &str) -> Result<Vec<(&'a mut Settings, &'static str)>, Error> {
    Ok(match knob::find(name)?.row.on {
        knob::On::Flow => vec![(&mut cell.flow, "flow")],
        knob::On::Sender => vec![(&mut cell.a, "A")],
        knob::On::Receiver => vec![(&mut cell.b, "B")],
        knob::On::Both => vec![(&mut cell.a, "A"), (&mut cell.b, "B")],
    })
}

/// Runs `plan` on `pair`. Everything is put back before this returns, by error too.
pub fn tune(
    pair: &mut Pair,
    plan: TunePlan,
    options: &TuneOptions,
    sink: &mut dyn Sink,
) -> Result<TuneSummary, Error> {
    let may = [&pair.a, &pair.b].into_iter().find(|host| !host.facts.may_tune);
    if let Some(host) = may {
        let (host, why) = (host.name.clone(), host.facts.may_not_tune_because.clone());
        return Err(Error::MayNotTune { host, why });
    }
    let began = Instant::now();
    let result = Run { pair, plan: &plan, options, sink, began }.climb();
    let restored = pair.restore();
    let findings = match result {
        Ok(findings) => findings,
        Err(error) => return Err(with_leftovers(error, &restored)),
    };
    sink.line(&Line::Restored(restored.clone()))?;
    let summary = assemble(
        findings,
        RunFacts {
            header: &header(options, plan.budget),
            host_a: &pair.a.facts,
            host_b: &pair.b.facts,
            restored: &restored,
            took: began.elapsed().into(),
            record: &options.record,
        },
    );
    sink.line(&Line::Summary(Box::new(summary.clone())))?;
    Ok(summary)
}

/// An error after which something was not put back says that too.
fn with_leftovers(error: Error, restored: &Restored) -> Error {
    if restored.restored {
        return error;
    }
    Error::Other(format!(
        "{error}; NOT everything was put back: {}; run `landspeed undo` there",
        restored.notes.join("; ")
    ))
}

/// The first line of the record.
fn header(options: &TuneOptions, budget: Nanos) -> Header {
    Header {
        format: RECORD_FORMAT,
        landspeed: env!("CARGO_PKG_VERSION").to_owned(),
        kind: "tune".to_owned(),
        started: options.started.clone(),
        command: options.command.clone(),
        topology: options.topology.clone(),
        goal: options.goal.to_string(),
        baseline: options.baseline.name().to_owned(),
        seed: options.seed,
        budget_ns: budget,
    }
}

/// One run, from the baseline to the findings.
struct Run<'a> {
    pair: &'a mut Pair,
    plan: &'a TunePlan,
    options: &'a TuneOptions,
    sink: &'a mut dyn Sink,
    began: Instant,
}

impl Run<'_> {
    fn used(&self) -> Nanos {
        self.began.elapsed().into()
    }

    fn climb(&mut self) -> Result<Findings, Error> {
        self.preface()?;
        self.pair.set(&self.plan.start)?;
        curve(self.pair, &self.plan.start, "curve-start", self.plan.timing, self.used(), self.sink)?;
        let mut ladder = Ladder::new(self.plan.start.clone(), self.plan.candidates.clone(), self.rules());
        let findings = loop {
            if self.sink.stop() {
                ladder.stop();
            }
            match ladder.next(self.used()) {
                Action::Measure(block) => self.block(&mut ladder, &block)?,
                Action::Decided(step) => {
                    if step.summary.kept {
                        ladder.replan(candidates(self.pair, &step.candidate, self.options)?);
                    }
                    self.sink.line(&Line::Step(step))?;
                }
                Action::Note(text) => self.sink.line(&Line::Note { text })?,
                Action::Finished(findings) => break *findings,
            }
        };
        if !self.sink.stop() {
            self.pair.set(&findings.final_cell)?;
            curve(self.pair, &findings.final_cell, "curve-final", self.plan.timing, self.used(), self.sink)?;
        }
        Ok(findings)
    }

    fn rules(&self) -> Rules {
        let block = Nanos(4 * self.plan.timing.trial().0);
        Rules {
            goal: self.options.goal,
            budget: self.plan.budget,
            block_time: block,
            seed: self.options.seed,
            placebos: placebos(&self.plan.start),
            against: self.plan.against.clone(),
            ..Rules::default()
        }
    }

    /// What the run is about: the lines before the first trial.
    fn preface(&mut self) -> Result<(), Error> {
        self.sink.line(&Line::Header(header(self.options, self.plan.budget)))?;
        for side in Side::BOTH {
            let host = self.pair.host_mut(side);
            let (facts, states) = (Box::new(host.facts.clone()), host.states.clone());
            self.sink.line(&Line::Host { side, facts })?;
            self.sink.line(&Line::Knobs { side, states })?;
        }
        self.sink.line(&Line::Path(self.pair.path.clone()))?;
        let (start, candidates) = (self.plan.start.clone(), self.plan.candidates.clone());
        self.sink.line(&Line::Plan { start, candidates })?;
        Ok(())
    }

    /// Four trials, interleaved; a turn that fails ends the step and leaves the incumbent set.
    fn block(&mut self, ladder: &mut Ladder, block: &Block) -> Result<(), Error> {
        let timing = self.plan.timing;
        let mut blocks = Blocks { pair: self.pair, timing, began: self.began, sink: self.sink };
        match blocks.measure(block)? {
            BlockOutcome::Measured(result) => ladder.observe(result),
            BlockOutcome::Refused(why) => ladder.failed(&block.step, &why),
        }
        Ok(())
    }
}
