//! A block of trials: the two cells that it compares, and its result.

use landspeed_record::units::Nanos;
use landspeed_record::{Arm, Cell, TrialFigures};

use crate::block_figures::{arms, block_trials};

/// Two cells to compare in one block of trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LadderBlock {
    /// The name for `Trial::step`: a step's id, "final", "against", "without 07-tso=on", ...
    pub step: String,
    pub what: String,
    /// The current setting (arm A).
    pub incumbent: Cell,
    /// The setting to try (arm B).
    pub candidate: Cell,
    pub toggle: Nanos,
    /// True if the block has eight trials of half the length, with all idle ping-pongs first and then the streams in
    /// the same order. False if it has four trials, each with its ping-pong and its stream.
    pub fine: bool,
    /// True if the block begins with the candidate (BAAB), false if with the incumbent (ABBA). The order is random, but
    /// each order occurs once in every two blocks of a comparison.
    pub candidate_first: bool,
    /// The number of the block within `step`, from 0, discarded ones included.
    pub block: u32,
    /// The largest number of blocks that the comparison may take; 0 if only the time left limits it.
    pub most: u32,
}

impl LadderBlock {
    /// Returns the cell of one arm.
    pub fn cell(&self, arm: Arm) -> &Cell {
        match arm {
            Arm::Incumbent => &self.incumbent,
            Arm::Candidate => &self.candidate,
        }
    }

    /// Returns the arm of each of the block's trials, in time order.
    pub fn arms(&self) -> Vec<Arm> {
        arms(block_trials(self.fine), self.candidate_first)
    }

    /// Returns the block's result without remarks, from the figures of its trials in time order and the time that it
    /// took, toggles included.
    pub fn result(&self, figures: Vec<TrialFigures>, took: Nanos) -> BlockResult {
        let (step, candidate_first) = (self.step.clone(), self.candidate_first);
        BlockResult { step, figures, candidate_first, took, remarks: Vec::new() }
    }
}

/// The result of one measured block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockResult {
    /// The name of the step, as in the block.
    pub step: String,
    /// The figures of the trials, in time order.
    pub figures: Vec<TrialFigures>,
    /// The order of the arms, as in the block.
    pub candidate_first: bool,
    /// The time that the block took, toggles included.
    pub took: Nanos,
    /// Observations on the candidate's trials beside the figures, in words that are identical from block to block.
    /// They become part of the step's reason.
    pub remarks: Vec<String>,
}
