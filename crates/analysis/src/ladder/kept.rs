//! The steps that were kept, and the setting that they make.

use landspeed_record::units::Nanos;
use landspeed_record::{Candidate, Cell, Estimate};

use super::bound::RateBound;
use super::comparison::CellComparison;
use super::queue::interact;
use crate::Metric;
use crate::lost::LostTimeEffects;
use crate::series::CONFIDENCE;

#[derive(Debug, Clone)]
pub(crate) struct KeptStep {
    pub(crate) id: String,
    pub(crate) candidate: Candidate,
    /// The gain that the step added when it was tried, where above one is better.
    pub(crate) added: Estimate,
    pub(crate) dropped: Option<String>,
}

impl KeptStep {
    /// Returns the kept step of a candidate. `betters` are the log ratios of its blocks, above zero where better.
    pub(crate) fn new(candidate: Candidate, id: String, betters: &[f64]) -> Self {
        let added = landspeed_stats::estimate(betters, CONFIDENCE);
        KeptStep { id, candidate, added, dropped: None }
    }

    pub(crate) fn toggle(&self) -> Nanos {
        self.candidate.toggle_ns
    }

    /// Returns true if the knob table says that the effects of this step and `other` depend on each other.
    pub(crate) fn interacts(&self, other: &KeptStep) -> bool {
        interact(&self.candidate, &other.candidate)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct KeptSetting {
    pub(crate) start: Cell,
    pub(crate) kept: Vec<KeptStep>,
    pub(crate) bound: Option<RateBound>,
}

impl KeptSetting {
    pub(crate) fn new(start: Cell) -> Self {
        KeptSetting { start, kept: Vec::new(), bound: None }
    }

    /// Returns the setting with the kept steps and the bound, without the steps at `without`.
    pub(crate) fn cell(&self, without: &[usize]) -> Cell {
        let stays = |(i, kept): &(usize, &KeptStep)| kept.dropped.is_none() && !without.contains(i);
        let kept = self.kept.iter().enumerate().filter(stays).map(|(_, kept)| &kept.candidate.change);
        let bound = self.bound.iter().map(|bound| &bound.change);
        kept.chain(bound).fold(self.start.clone(), |cell, change| cell.with(change))
    }

    /// Returns the indices of the kept steps that are still part of the setting: not dropped, and not completely
    /// overwritten by a later step.
    pub(crate) fn steps(&self) -> Vec<usize> {
        let all = self.cell(&[]);
        let counts = |&i: &usize| self.kept[i].dropped.is_none() && self.cell(&[i]) != all;
        (0..self.kept.len()).filter(counts).collect()
    }

    /// Returns the time that it takes to change from the start to this setting.
    pub(crate) fn toggle(&self) -> Nanos {
        self.kept.iter().filter(|kept| kept.dropped.is_none()).map(KeptStep::toggle).sum()
    }
}

/// The sum of the kept steps' mean log ratios for each figure, where above zero is better.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeptTotals([f64; 3]);

impl KeptTotals {
    pub(crate) fn with(&self, metric: Metric, more: f64) -> f64 {
        self.0[metric as usize] + more
    }

    pub(crate) fn add(&mut self, comparison: &CellComparison, toll: &LostTimeEffects) {
        for metric in Metric::ALL {
            self.0[metric as usize] += comparison.mean_better(metric, toll);
        }
    }
}
