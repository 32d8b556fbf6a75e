//! The steps that were kept, and the settings that they make.

use landspeed_record::{Candidate, Cell, Estimate};
use landspeed_units::Nanos;

use super::queue::Task;
use super::step::Step;
use crate::Goal;
use crate::series::CONFIDENCE;

#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) candidate: Candidate,
    /// What it added, above one better.
    pub(crate) added: Estimate,
    pub(crate) dropped: Option<String>,
}

impl Kept {
    pub(crate) fn new(step: Step, id: String, goal: Goal) -> Self {
        let betters = step.comparison.series.betters(goal.primary());
        let added = landspeed_stats::estimate(&betters, CONFIDENCE);
        Kept { id, candidate: step.task.candidate, added, dropped: None }
    }

    pub(crate) fn toggle(&self) -> Nanos {
        self.candidate.toggle_ns
    }

    /// Whether the effects of the two depend on each other, as far as the knob table says.
    pub(crate) fn interacts(&self, other: &Kept) -> bool {
        Task::new(self.candidate.clone(), false).interacts(&other.candidate)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) start: Cell,
    pub(crate) kept: Vec<Kept>,
}

impl Standing {
    pub(crate) fn new(start: Cell) -> Self {
        Standing { start, kept: Vec::new() }
    }

    /// The setting with the kept steps, those at `without` left out.
    pub(crate) fn cell(&self, without: &[usize]) -> Cell {
        let stays = |(i, kept): &(usize, &Kept)| kept.dropped.is_none() && !without.contains(i);
        self.kept
            .iter()
            .enumerate()
            .filter(stays)
            .fold(self.start.clone(), |cell, (_, kept)| cell.with(&kept.candidate.change))
    }

    /// Kept steps that are still part of the setting: not dropped, and not overwritten whole by a later one.
    pub(crate) fn steps(&self) -> Vec<usize> {
        let all = self.cell(&[]);
        let counts = |&i: &usize| self.kept[i].dropped.is_none() && self.cell(&[i]) != all;
        (0..self.kept.len()).filter(counts).collect()
    }

    /// The time that going from the start to the setting takes.
    pub(crate) fn toggle(&self) -> Nanos {
        self.kept.iter().filter(|kept| kept.dropped.is_none()).map(Kept::toggle).sum()
    }
}
