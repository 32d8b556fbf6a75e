//! Two cells that are compared block by block.

use std::collections::BTreeSet;

use landspeed_record::Cell;
use landspeed_record::units::Nanos;

use super::block::{BlockResult, LadderBlock};
use super::run_state::{ArmOrder, RunState};
use crate::Metric;
use crate::block_figures::BlockFigures;
use crate::lost::LostTimeEffects;
use crate::series::BlockSeries;

#[derive(Debug, Clone)]
pub(crate) struct CellComparison {
    /// The label for `LadderBlock::step`.
    pub(crate) label: String,
    pub(crate) what: String,
    pub(crate) incumbent: Cell,
    pub(crate) candidate: Cell,
    pub(crate) toggle: Nanos,
    pub(crate) series: BlockSeries,
    /// The largest number of blocks, for `LadderBlock::most`; 0 for no limit.
    pub(crate) most: u32,
    /// The distinct remarks of the comparison's blocks (`BlockResult::remarks`).
    pub(crate) remarks: BTreeSet<String>,
    order: ArmOrder,
}

impl CellComparison {
    pub(crate) fn new(label: String, what: String, incumbent: Cell, candidate: Cell, toggle: Nanos) -> Self {
        CellComparison {
            label,
            what,
            incumbent,
            candidate,
            toggle,
            series: BlockSeries::default(),
            most: 0,
            remarks: BTreeSet::new(),
            order: ArmOrder::default(),
        }
    }

    /// Limits the comparison to `most` blocks.
    pub(crate) fn of_at_most(self, most: u32) -> Self {
        CellComparison { most, ..self }
    }

    pub(crate) fn pair(&mut self, run: &mut RunState) -> Box<LadderBlock> {
        Box::new(LadderBlock {
            step: self.label.clone(),
            what: self.what.clone(),
            incumbent: self.incumbent.clone(),
            candidate: self.candidate.clone(),
            toggle: self.toggle,
            fine: run.rules.is_fine(self.toggle),
            candidate_first: self.order.next(run),
            block: self.series.attempts(),
            most: self.most,
        })
    }

    /// Adds a block to the series. If the block is discarded, notes why.
    pub(crate) fn observe(&mut self, result: &BlockResult, run: &mut RunState) {
        self.remarks.extend(result.remarks.iter().cloned());
        let block = BlockFigures::new(&result.figures, result.candidate_first);
        let number = self.series.attempts();
        let (steal, stolen) = (block.steal, run.stolen(&block));
        let primary = run.rules.goal;
        if self.series.add(block, stolen, primary) {
            return;
        }
        let why = if stolen {
            format!("steal {:.1} %", steal * 100.0)
        } else {
            format!("the {} was not measured", primary.row().name)
        };
        run.note(format!("block {number} of {} discarded: {why}", self.label));
    }

    /// Returns the mean log ratio of a figure, where above zero is better, without the effect of lost processor time;
    /// zero where the figure was not measured.
    pub(crate) fn mean_better(&self, metric: Metric, toll: &LostTimeEffects) -> f64 {
        let blocks = self.series.contrasts(metric, toll);
        let freed: Vec<f64> = blocks.iter().filter(|block| block.counts).map(|block| block.freed).collect();
        landspeed_stats::mean_and_deviation(&freed).0
    }
}
