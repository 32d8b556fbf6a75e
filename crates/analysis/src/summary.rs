//! The summary of a tuning run, from its findings when it ends, or from its record at any later time.

use std::collections::BTreeMap;

use landspeed_record::units::Nanos;
use landspeed_record::{
    Arm, Cell, ConfirmationReport, Gain, Header, HostFacts, Line, Record, RecordKind, RestoreOutcome,
    SUMMARY_FORMAT, Side, StepAnswer, StepLine, StepSummary, Trial, TrialFigures, TuneSummary, WrongKind,
};

use crate::block_figures::{BlockFigures, arms, block_trials};
use crate::expectations::expectations;
use crate::ladder::{LadderFindings, LadderRules};
use crate::series::BlockSeries;
use crate::steal::StealHistory;
use crate::{Metric, confirm};

/// The facts about a run that its summary contains in addition to the ladder's findings.
#[derive(Debug, Clone)]
pub struct RunFacts<'a> {
    /// The record's first line.
    pub header: &'a Header,
    pub host_a: &'a HostFacts,
    pub host_b: &'a HostFacts,
    /// Names of the further hosts of sides A and B.
    pub others: [Vec<String>; 2],
    pub restored: &'a RestoreOutcome,
    pub took: Nanos,
    /// The number of verdicts during the run.
    pub verdicts: u32,
    /// The result of `--confirm-for`.
    pub confirmation: Option<ConfirmationReport>,
    pub record: &'a str,
}

/// Returns the summary of a run, from its ladder's findings and other facts.
pub fn assemble(findings: LadderFindings, run: RunFacts<'_>) -> TuneSummary {
    let header = run.header.clone();
    let [others_a, others_b] = run.others;
    TuneSummary {
        format: SUMMARY_FORMAT,
        landspeed: header.landspeed,
        started: header.started,
        took_ns: run.took,
        goal: header.goal,
        program: header.program,
        baseline: header.baseline,
        command: header.command,
        topology: header.topology,
        host_a: run.host_a.clone(),
        host_b: run.host_b.clone(),
        others_a,
        others_b,
        start: findings.start,
        final_: findings.final_,
        gain: findings.gain,
        against: findings.against,
        confirmation: run.confirmation,
        expectations: expectations(&findings.steps, run.verdicts),
        steps: findings.steps,
        start_cell: findings.start_cell,
        final_cell: findings.final_cell,
        restored: run.restored.restored,
        left: run.restored.left,
        unknown: run.restored.unknown,
        cut_off: false,
        restored_notes: run.restored.notes.clone(),
        void: findings.void,
        doubts: findings.doubts,
        record: run.record.to_owned(),
    }
}

/// Returns the summary of a saved record, whose name is `path`. The decisions on steps are those that the run made,
/// because the run set the hosts according to them. `start`, `final_` and `gain` are computed again from the raw
/// trials. The summary of a run that ended early has the results so far, and the reason in `void`.
///
/// # Errors
/// Returns an error if the record is not that of a tuning run.
pub fn summary(record: &Record, path: &str) -> Result<TuneSummary, WrongKind> {
    let start_cell = lines_of!(record, Line::Plan { start, .. } => start.clone()).next();
    let start_cell = start_cell.ok_or_else(|| RecordKind::TUNE.missing(record, path))?;
    let restored = lines_of!(record, Line::Restored(restored) => restored.clone()).next_back();
    let cut_off = restored.is_none();
    let restored = restored.unwrap_or_default();
    let host = |wanted: Side| {
        let mut facts = lines_of!(record, Line::Host { side, facts } if *side == wanted => (**facts).clone());
        facts.next_back().unwrap_or_default()
    };
    let took = trials(record).map(|t| t.at_ns).max().unwrap_or_default();
    let written = lines_of!(record, Line::Summary(summary) => (**summary).clone()).next_back();
    let verdicts = lines_of!(record, Line::Verdict(_) => ()).count();
    let others = |wanted: Side| {
        let names = lines_of!(record, Line::Member(one) if one.side == Some(wanted) => one.name.clone());
        names.collect()
    };
    let run = RunFacts {
        header: &record.header,
        host_a: &host(Side::A),
        host_b: &host(Side::B),
        others: Side::BOTH.map(others),
        restored: &restored,
        took: written.as_ref().map_or(took, |w| w.took_ns),
        verdicts: verdicts as u32,
        confirmation: confirmation(record),
        record: path,
    };
    Ok(TuneSummary { cut_off, ..assemble(findings(record, start_cell, written), run) })
}

/// Returns the result of the confirmation blocks (`--confirm-for`), which follow the ladder; `None` if there are none.
fn confirmation(record: &Record) -> Option<ConfirmationReport> {
    let goal = Metric::of_goal(&record.header.goal);
    let mut judged = confirm::ConfirmationBlocks::default();
    for trials in whole_blocks(record).iter().filter(|trials| trials[0].step == confirm::STEP) {
        if let Some(block) = block(trials) {
            judged.add(block, trials[0].at_ns, goal);
        }
    }
    judged.found(goal)
}

fn findings(record: &Record, start_cell: Cell, written: Option<TuneSummary>) -> LadderFindings {
    let steps = steps(record);
    let goal = Metric::of_goal(&record.header.goal);
    let final_ = series(record, "final", goal);
    let against = series(record, "against", goal);
    let (start, end) = final_.as_ref().map(|(series, _)| series.centers()).unwrap_or_default();
    let placebo = steps.iter().any(|s| s.placebo && s.kept);
    let doubts = written.as_ref().map(|written| written.doubts.clone()).unwrap_or_default();
    let void = match written {
        Some(written) => written.void,
        None if placebo => Some("a placebo was kept: this run cannot tell an effect from noise".into()),
        None => Some("unfinished: the record ends before the run did".into()),
    };
    LadderFindings {
        final_cell: final_
            .as_ref()
            .map_or_else(|| last_kept_cell(record, &start_cell), |(_, cell)| cell.clone()),
        gain: final_.map_or_else(unmeasured, |(series, _)| series.gain()),
        against: against.map(|(series, _)| series.gain()),
        steps,
        start,
        final_: end,
        start_cell,
        void,
        doubts,
    }
}

fn unmeasured() -> Gain {
    BlockSeries::default().gain()
}

pub(crate) fn trials(record: &Record) -> impl Iterator<Item = &Trial> {
    lines_of!(record, Line::Trial(trial) => &**trial)
}

/// Returns the last version of each step, in the order of their first versions.
pub(crate) fn steps(record: &Record) -> Vec<StepSummary> {
    let mut steps: Vec<StepSummary> = Vec::new();
    for line in lines_of!(record, Line::Step(line) => line) {
        let step = with_starts(line);
        match steps.iter_mut().find(|s| s.id == step.id) {
            Some(old) => *old = step,
            None => steps.push(step),
        }
    }
    steps
}

/// Returns the summary of a step with `from_a` and `from_b`, the values of its knob that the hosts had before it. Older
/// records lack both values; then they are taken from the step's cells.
fn with_starts(line: &StepLine) -> StepSummary {
    let mut step = line.summary.clone();
    if step.from_a.is_some() || step.from_b.is_some() {
        return step;
    }
    let stood = |side| {
        let is_set = line.candidate.host(side).get(&step.knob) == Some(&step.value);
        line.incumbent.host(side).get(&step.knob).filter(|_| is_set).cloned()
    };
    let [from_a, from_b] = Side::BOTH.map(stood);
    if let Some(from) = [&from_a, &from_b].into_iter().flatten().find(|from| **from != step.value) {
        step.from.clone_from(from);
    }
    StepSummary { from_a, from_b, ..step }
}

fn last_kept_cell(record: &Record, start: &Cell) -> Cell {
    let helps = |step: &StepSummary| step.answer == StepAnswer::Helps && !step.placebo;
    let mut kept = lines_of!(record, Line::Step(line) if helps(&line.summary) => &line.candidate);
    kept.next_back().unwrap_or(start).clone()
}

/// Returns the blocks and the candidate cell of the record's last comparison whose name is `label`, alone or followed
/// by a number ("final", "final 2").
fn series(record: &Record, label: &str, primary: Metric) -> Option<(BlockSeries, Cell)> {
    let named =
        |t: &&Trial| t.step == label || t.step.strip_prefix(label).is_some_and(|rest| rest.starts_with(' '));
    let step = trials(record).filter(named).last()?.step.clone();
    let cell = trials(record).find(|t| t.step == step && t.arm == Arm::Candidate)?.cell.clone();
    let (mut series, mut steals) = (BlockSeries::default(), StealHistory::default());
    for trials in whole_blocks(record) {
        let Some(block) = block(&trials) else { continue };
        // Every block of the run counts towards the usual loss.
        let stolen = steals.stands_out(block.steal, LadderRules::default().steal_limit);
        if trials[0].step == step {
            series.add(block, stolen, primary);
        }
    }
    Some((series, cell))
}

/// Returns the trials of each complete block of a record. A block is complete if it has as many trials as the longest
/// block of its comparison.
fn whole_blocks(record: &Record) -> Vec<Vec<&Trial>> {
    let mut blocks: Vec<Vec<&Trial>> = Vec::new();
    for trial in trials(record) {
        match blocks.last_mut() {
            Some(last) if last[0].step == trial.step && last[0].block == trial.block => last.push(trial),
            _ => blocks.push(vec![trial]),
        }
    }
    let mut longest: BTreeMap<&str, usize> = BTreeMap::new();
    for block in &blocks {
        let most = longest.entry(&block[0].step).or_default();
        *most = block.len().max(*most);
    }
    let least = block_trials(false);
    blocks.retain(|block| block.len() >= least && block.len() == longest[block[0].step.as_str()]);
    blocks
}

/// Returns the figures of a block from its trials in time order; `None` if the order of their arms is not that of a
/// block.
fn block(trials: &[&Trial]) -> Option<BlockFigures> {
    let candidate_first = trials[0].arm == Arm::Candidate;
    let in_order = trials.iter().map(|t| t.arm).eq(arms(trials.len(), candidate_first));
    let figures: Vec<TrialFigures> = trials.iter().map(|t| t.figures).collect();
    in_order.then(|| BlockFigures::new(&figures, candidate_first))
}
