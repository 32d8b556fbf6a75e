//! The actions that the ladder requests from its driver, and its results.

use landspeed_record::{Cell, Gain, StepLine, StepSummary, TrialFigures};

use super::block::LadderBlock;

/// An action that the ladder requests from its driver.
#[derive(Debug, Clone)]
pub enum LadderAction {
    /// Measure this block, then call [`Ladder::observe`](super::Ladder::observe) or
    /// [`Ladder::failed`](super::Ladder::failed).
    Measure(Box<LadderBlock>),
    /// Write a decision to the record. A later line with the same id replaces an earlier one, because the final trials
    /// add a kept step's worth or drop the step.
    Decided(Box<StepLine>),
    /// Get a verdict at this cell, the current setting, and pass it to [`Ladder::advise`](super::Ladder::advise). This
    /// is requested at the start and after each kept step, because the bottleneck may have moved, but only if
    /// [`LadderRules::watch_time`](super::LadderRules::watch_time) is set. The ladder does not repeat the request, and
    /// it continues even without an answer.
    Watch(Box<Cell>),
    /// Show a note to the user.
    Note(String),
    /// The run is over. Further calls return the same findings.
    Finished(Box<LadderFindings>),
}

/// The results of a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct LadderFindings {
    pub steps: Vec<StepSummary>,
    /// The geometric means of the start cell's trials in the final check.
    pub start: TrialFigures,
    /// The geometric means of the final cell's trials in the final check.
    pub final_: TrialFigures,
    /// The ratios of the final setting's figures to the start's, from the trials of the final check alone.
    pub gain: Gain,
    /// The ratios of the final setting's figures to those of the setting `LadderRules::against`, from the trials of the
    /// final check alone; `None` if no such setting was given.
    pub against: Option<Gain>,
    pub start_cell: Cell,
    pub final_cell: Cell,
    /// The reason why the result is invalid or partial, such as a kept placebo or an early end; `None` if it is valid.
    pub void: Option<String>,
    /// Signs that the trials have a kind of noise under which the probability of a false keep is not bounded.
    pub doubts: Vec<String>,
}

/// The result of a phase of the ladder, or its next request.
pub(super) enum LadderProgress {
    Measure(Box<LadderBlock>),
    /// Get a verdict on the bottleneck at this cell.
    Watch(Box<Cell>),
    /// Something was decided or noted; call again.
    Said,
    Over,
}
