//! Measures blocks: interleaved trials of the two cells that a ladder compares. All programs that climb a ladder on
//! real hosts use this code, so that a study of the method judges what `tune` really does.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use landspeed_analysis::{BlockResult, LadderBlock};
use landspeed_record::units::Nanos;
use landspeed_record::{
    Arm, Cell, EndpointOutcome, LatencyHistogram, Line, Trial, TrialFigures, Workload, ZeroCopyCounts,
};

use crate::trial::{TrialTiming, measure_idle, trial_run, with_outcomes};
use crate::{Error, HostGroup, RecordSink};

/// Measures blocks on a group of hosts.
pub struct BlockRunner<'a> {
    pub group: &'a mut HostGroup,
    pub timing: TrialTiming,
    /// The program that runs instead of landspeed's own stream, if any.
    pub program: Option<&'a Workload>,
    /// The start of the run. The times of trials are relative to it.
    pub began: Instant,
    /// Receives the record's line of each trial.
    pub sink: &'a mut dyn RecordSink,
}

/// How a block ended.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockOutcome {
    /// All trials were measured. Pass the result to [`landspeed_analysis::Ladder::observe`].
    Measured(BlockResult),
    /// A host refused a change of its knobs or a trial, for this reason, and the incumbent is set again. Pass the
    /// reason to [`landspeed_analysis::Ladder::failed`].
    Refused(String),
    /// The user requested a stop, and the block ended between two trials.
    Stopped,
}

impl BlockRunner<'_> {
    /// Measures one block.
    ///
    /// # Errors
    /// Returns an error if a host is lost, if the incumbent cannot be set again, or if the sink fails.
    pub fn measure(&mut self, block: &LadderBlock) -> Result<BlockOutcome, Error> {
        if block.block == 0 {
            let (step, what) = (block.step.clone(), block.what.clone());
            self.sink.line(&Line::Trying {
                step,
                what,
                at_ns: self.used(),
                blocks: Some(block.most).filter(|most| *most > 0),
            })?;
        }
        self.group.begin_epoch(&format!("{} {}", block.step, block.block));
        match self.trials(block) {
            Ok(Some(result)) => Ok(BlockOutcome::Measured(result)),
            Ok(None) => Ok(BlockOutcome::Stopped),
            Err(error) if refused(&error) => {
                self.group.set(&block.incumbent)?;
                Ok(BlockOutcome::Refused(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    /// Runs the block's trials. Returns `None` if the user stopped it between two of them.
    fn trials(&mut self, block: &LadderBlock) -> Result<Option<BlockResult>, Error> {
        let began = Instant::now();
        let arms = block.arms();
        let mut idle = if block.fine { self.idle(block, &arms)? } else { VecDeque::new() };
        let mut figures = Vec::with_capacity(arms.len());
        let mut remarks = BTreeSet::new();
        for (position, arm) in arms.into_iter().enumerate() {
            if self.sink.stop() {
                return Ok(None);
            }
            let (seen, said) = self.trial(block, (position, arm), idle.pop_front())?;
            figures.push(seen);
            if arm == Arm::Candidate {
                remarks.extend(said);
            }
        }
        let remarks = remarks.into_iter().collect();
        Ok(Some(BlockResult { remarks, ..block.result(figures, began.elapsed().into()) }))
    }

    /// Measures the idle RTTs of all trials in immediate succession, because the RTT of an idle path changes within
    /// tenths of a second.
    fn idle(&mut self, block: &LadderBlock, arms: &[Arm]) -> Result<VecDeque<LatencyHistogram>, Error> {
        let time = self.timing.of(block.fine).ping;
        let ask = |arm: &Arm| {
            let cell = self.set(block, *arm)?;
            measure_idle(self.group, cell, time)
        };
        arms.iter().map(ask).collect()
    }

    fn set<'b>(&mut self, block: &'b LadderBlock, arm: Arm) -> Result<&'b Cell, Error> {
        let cell = block.cell(arm);
        self.group.set(cell)?;
        Ok(cell)
    }

    fn used(&self) -> Nanos {
        self.began.elapsed().into()
    }

    /// Runs and records one trial. Returns its figures, and remarks on it.
    fn trial(
        &mut self,
        block: &LadderBlock,
        (position, arm): (usize, Arm),
        idle: Option<LatencyHistogram>,
    ) -> Result<(TrialFigures, Vec<String>), Error> {
        let cell = self.set(block, arm)?;
        let timing = self.timing.of(block.fine);
        let at_ns = self.used();
        let idle = match idle {
            Some(idle) => idle,
            None => measure_idle(self.group, cell, timing.ping)?,
        };
        let seen = self.group.run(&trial_run(cell, timing, self.program))?;
        let remarks = seen.iter().flatten().flat_map(remarks_of).collect();
        let trial = Trial {
            step: block.step.clone(),
            block: block.block,
            position: position as u32,
            arm,
            at_ns,
            cell: cell.clone(),
            ..Trial::default()
        };
        let trial = with_outcomes(trial, self.group, seen, Some(idle));
        let figures = trial.figures;
        self.sink.line(&Line::Trial(Box::new(trial)))?;
        Ok((figures, remarks))
    }
}

/// Returns the remarks that a reader of the step needs in addition to its figures. They contain no counts that change
/// from trial to trial.
fn remarks_of(end: &EndpointOutcome) -> Vec<String> {
    let mut remarks = end.not_as_asked.clone();
    let ZeroCopyCounts { completions: sent, copied, .. } = *end.get();
    if copied > 0 {
        let how_much =
            if copied == sent { "every MSG_ZEROCOPY send" } else { "part of the MSG_ZEROCOPY sends" };
        remarks.push(format!("the kernel copied {how_much} after all"));
    }
    remarks
}

/// Returns true if the error costs only one trial and no host was lost: a host refused the trial, its flows were of
/// another kind than requested, or the path carried nothing under these settings.
pub(crate) fn refused(error: &Error) -> bool {
    use landspeed_agent::session::Error::Refused;
    match error {
        Error::Both { first, .. } => refused(first),
        Error::Session { source: Refused { .. }, .. } | Error::FellBack { .. } | Error::Silent { .. } => true,
        _ => false,
    }
}
