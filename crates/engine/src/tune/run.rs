//! Runs a tuning run: executes on the hosts each action that the ladder requests.

use std::time::Instant;

use landspeed_analysis::{Ladder, LadderAction, LadderBlock, LadderFindings, LadderRules};
use landspeed_record::units::Nanos;
use landspeed_record::{Cell, EndpointOutcome, Finding, Line, Side, StepLine, Trial, VerdictLine};

use super::candidates::{candidates, placebos};
use super::look::look;
use super::plan::TunePlan;
use super::{TuneOptions, header};
use crate::block::refused;
use crate::curve::curve;
use crate::trial::with_outcomes;
use crate::{BlockOutcome, BlockRunner, Error, HostGroup, RecordSink};

pub(super) struct TuningRun<'a> {
    pub(super) group: &'a mut HostGroup,
    pub(super) plan: &'a TunePlan,
    pub(super) options: &'a TuneOptions,
    pub(super) sink: &'a mut dyn RecordSink,
    pub(super) began: Instant,
    /// Number of looks at what limits the path so far.
    pub(super) verdicts: u32,
    /// Number of searches for the path's rate so far.
    pub(super) searches: u32,
    pub(super) kept: String,
}

impl TuningRun<'_> {
    pub(super) fn used(&self) -> Nanos {
        self.began.elapsed().into()
    }

    pub(super) fn note(&mut self, text: String) -> Result<(), Error> {
        self.sink.line(&Line::Note { text })?;
        Ok(())
    }

    /// Records the beginning of an activity that is not a block of the ladder.
    pub(super) fn trying(&mut self, step: &str, what: &str) -> Result<(), Error> {
        let (step, what, at_ns) = (step.to_owned(), what.to_owned(), self.used());
        self.sink.line(&Line::Trying { step, what, at_ns, blocks: None })?;
        Ok(())
    }

    pub(super) fn climb(&mut self) -> Result<LadderFindings, Error> {
        self.preface()?;
        let mut ladder = Ladder::new(self.plan.start.clone(), self.plan.candidates.clone(), self.rules());
        let bounded = self.bound(&mut ladder, &self.plan.start)?;
        self.budget(&bounded, "")?;
        self.curve(&bounded, "curve-start")?;
        let findings = loop {
            if self.sink.stop() {
                ladder.stop();
            }
            match ladder.next(self.used()) {
                LadderAction::Measure(block) => self.block(&mut ladder, &block)?,
                LadderAction::Decided(step) => self.decided(&mut ladder, step)?,
                LadderAction::Watch(cell) => self.watch(&mut ladder, &cell)?,
                LadderAction::Note(text) => self.note(text)?,
                LadderAction::Finished(findings) => break *findings,
            }
        };
        if !self.sink.stop() {
            self.curve(&findings.final_cell, "curve-final")?;
        }
        Ok(findings)
    }

    /// Measures the curves of a cell. If a host refuses, the run continues without them, because it may be that no
    /// datagram of many fragments gets through.
    fn curve(&mut self, cell: &Cell, step: &str) -> Result<(), Error> {
        if self.options.program.is_some() {
            return Ok(());
        }
        self.group.set(cell)?;
        match curve(&self.group.first(), cell, step, self.plan.timing, self.used(), self.sink) {
            Err(error) if refused(&error) => self.note(format!("could not measure over sizes: {error}")),
            other => other,
        }
    }

    pub(super) fn rules(&self) -> LadderRules {
        self.plan.rules(self.options)
    }

    /// Records the lines that describe the run, before the first trial.
    fn preface(&mut self) -> Result<(), Error> {
        self.sink.line(&Line::Header(header(self.options, self.plan.budget)))?;
        let first = self.group.first();
        for side in Side::BOTH {
            let host = first.host(side);
            let (facts, states) = (Box::new(host.facts.clone()), host.states.clone());
            self.sink.line(&Line::Host { side, facts })?;
            self.sink.line(&Line::Knobs { side, states })?;
        }
        self.sink.line(&Line::Path(first.path.clone()))?;
        self.group.record_others(self.sink)?;
        let (start, candidates) = (self.plan.start.clone(), self.plan.candidates.clone());
        self.sink.line(&Line::Plan { start, candidates })?;
        if let Some(text) = self.plan.placebos.lacking() {
            self.note(text)?;
        }
        Ok(())
    }

    pub(super) fn blocks(&mut self) -> BlockRunner<'_> {
        let (timing, began) = (self.plan.timing, self.began);
        let program = self.options.program.as_ref().map(|program| &program.workload);
        BlockRunner { group: self.group, timing, program, began, sink: self.sink }
    }

    /// Measures a block and passes the result to the ladder. If a host refuses, the step has failed and the incumbent
    /// is set.
    fn block(&mut self, ladder: &mut Ladder, block: &LadderBlock) -> Result<(), Error> {
        match self.blocks().measure(block)? {
            BlockOutcome::Measured(result) => ladder.observe(result),
            BlockOutcome::Refused(why) => ladder.failed(&block.step, &why),
            BlockOutcome::Stopped => {}
        }
        Ok(())
    }

    /// Gives the ladder new candidates and placebos for the incumbent `cell`.
    pub(super) fn replan(&self, ladder: &mut Ladder, cell: &Cell, findings: &[Finding]) -> Result<(), Error> {
        let renewed = placebos(self.group, cell, self.options).changes;
        ladder.replan(candidates(self.group, cell, self.options, findings)?, &renewed);
        Ok(())
    }

    /// Records the outcomes of a trial under `cell` that is not part of the ladder's blocks.
    pub(super) fn keep(
        &mut self,
        (step, at_ns): (&str, Nanos),
        cell: Cell,
        seen: Vec<[EndpointOutcome; 2]>,
    ) -> Result<(), Error> {
        let trial = Trial { step: step.to_owned(), at_ns, cell, ..Trial::default() };
        let trial = with_outcomes(trial, self.group, seen, None);
        self.sink.line(&Line::Trial(Box::new(trial)))?;
        Ok(())
    }

    /// Records the ladder's decision on a step. After a kept step it makes a new plan, because other candidates may now
    /// be worth trying.
    fn decided(&mut self, ladder: &mut Ladder, step: Box<StepLine>) -> Result<(), Error> {
        let is_kept = step.summary.kept && step.summary.blocks > 0 && ladder.climbs();
        if is_kept {
            self.replan(ladder, &step.candidate, &[])?;
            self.kept.clone_from(&step.summary.id);
        }
        let kept = is_kept.then(|| (step.candidate.clone(), step.summary.id.clone()));
        self.sink.line(&Line::Step(step))?;
        let Some((cell, id)) = kept else { return Ok(()) };
        let bounded = self.bound(ladder, &cell)?;
        self.budget(&bounded, &id)
    }

    /// Finds out what limits the path and passes the verdict to the ladder. If a host refuses, the order of the
    /// candidates is unchanged and the run continues.
    fn watch(&mut self, ladder: &mut Ladder, cell: &Cell) -> Result<(), Error> {
        let (number, at_ns) = (self.verdicts, self.used());
        let step = format!("watch {number}");
        let what = match &self.options.program {
            None => "watching a stream: what holds the path back".to_owned(),
            Some(program) => format!("watching {}: what holds its flows back", program.workload.name),
        };
        self.trying(&step, &what)?;
        self.group.set(cell)?;
        let (trial, verdict) = match look(self.group, cell, (&step, at_ns), self.options.program.as_ref()) {
            Ok(seen) => seen,
            Err(error) if refused(&error) => {
                let text = format!("could not watch the path, so the order is the literature's: {error}");
                self.sink.line(&Line::Note { text })?;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.verdicts += 1;
        let took_ns = self.used().saturating_sub(at_ns);
        let line = VerdictLine { number, after: self.kept.clone(), at_ns, took_ns, verdict };
        self.replan(ladder, cell, &line.verdict.findings)?;
        ladder.advise(&line);
        self.sink.line(&Line::Trial(Box::new(trial)))?;
        self.sink.line(&Line::Verdict(Box::new(line)))?;
        Ok(())
    }
}
