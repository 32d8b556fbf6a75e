//! The kinds of grids that are simulated, with known effects.

use std::collections::BTreeMap;

use landspeed_stats::Random;
use landspeed_stats::grid::{CellTrial, Contrast, GridLayout};

/// The part of a block's trials that is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MeasuredTrials {
    All,
    /// Each trial is missing with probability 0.1.
    NineTenths,
    /// The reference and half of the other cells. The other half is measured in the next block.
    Half,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ContrastFamily {
    Reference,
    Neighbours,
    /// Main effects, interactions of two factors, and each factor's effect alone and with all others changed.
    Factorial,
}

/// A kind of grid. The deviation of its trials is 1, except in a noisy cell.
#[derive(Debug)]
pub(super) struct GridScenario {
    pub(super) name: &'static str,
    /// The number of levels of each factor. The first factor is slow, and the last one has two levels.
    levels: &'static [u32],
    blocks: u32,
    /// The deviation of the plots; `None` if each block is one plot.
    plots: Option<f64>,
    /// What the plots' deviation is multiplied by at each level of the first factor; 1 where there is none.
    spreads: &'static [f64],
    /// The number of the cell that is three times as noisy as the others, if there is one.
    pub(super) loud: Option<u32>,
    measured: MeasuredTrials,
    family: ContrastFamily,
}

/// The basic grid: eight blocks of two plots with eight cells each. All cells are compared with the reference.
const PLAIN: GridScenario = GridScenario {
    name: "",
    levels: &[2, 4, 2],
    blocks: 8,
    plots: Some(1.0),
    spreads: &[],
    loud: None,
    measured: MeasuredTrials::All,
    family: ContrastFamily::Reference,
};
const FACTORIAL: GridScenario =
    GridScenario { levels: &[2, 2, 2], family: ContrastFamily::Factorial, ..PLAIN };
/// Three labs, each with two cells.
const LABS: GridScenario = GridScenario { levels: &[3, 2], blocks: 4, ..PLAIN };
/// Labs that vary unlike each other.
const UNLIKE: GridScenario = GridScenario { spreads: &[0.1, 3.0, 1.0], ..LABS };

pub(super) const SCENES: [GridScenario; 29] = [
    GridScenario { name: "2x4x2, 8 blocks, plots vary by 0", plots: Some(0.0), ..PLAIN },
    GridScenario { name: "2x4x2, 8 blocks, plots vary by 1", ..PLAIN },
    GridScenario { name: "2x4x2, 8 blocks, plots vary by 3", plots: Some(3.0), ..PLAIN },
    GridScenario { name: "2x4x2, 8 blocks, a block is a plot", plots: None, ..PLAIN },
    GridScenario { name: "2x4x2, 8 blocks, neighbours", family: ContrastFamily::Neighbours, ..PLAIN },
    GridScenario { name: "2x4x2, 8 blocks, a loud cell", loud: Some(5), ..PLAIN },
    GridScenario {
        name: "2x4x2, 8 blocks, a loud cell, a block is a plot",
        loud: Some(5),
        plots: None,
        ..PLAIN
    },
    GridScenario { name: "2x4x2, 8 blocks, a loud reference", loud: Some(0), ..PLAIN },
    GridScenario { name: "2x4x2, 8 blocks, a tenth missing", measured: MeasuredTrials::NineTenths, ..PLAIN },
    GridScenario { name: "2x4x2, 8 blocks of half of the cells", measured: MeasuredTrials::Half, ..PLAIN },
    GridScenario { name: "2x4x2, 12 blocks, plots vary by 0", blocks: 12, plots: Some(0.0), ..PLAIN },
    GridScenario { name: "2x4x2, 12 blocks, plots vary by 1", blocks: 12, ..PLAIN },
    GridScenario { name: "2x4x2, 12 blocks, plots vary by 3", blocks: 12, plots: Some(3.0), ..PLAIN },
    GridScenario { name: "2x4x2, 12 blocks, a loud cell", blocks: 12, loud: Some(5), ..PLAIN },
    GridScenario { name: "2x4x2, 12 blocks, a loud reference", blocks: 12, loud: Some(0), ..PLAIN },
    GridScenario {
        name: "2x4x2, 12 blocks, a tenth missing",
        blocks: 12,
        measured: MeasuredTrials::NineTenths,
        ..PLAIN
    },
    GridScenario {
        name: "2x4x2, 12 blocks of half of the cells",
        blocks: 12,
        measured: MeasuredTrials::Half,
        ..PLAIN
    },
    GridScenario { name: "2x2x2, 8 blocks, plots vary by 0", plots: Some(0.0), ..FACTORIAL },
    GridScenario { name: "2x2x2, 8 blocks, plots vary by 1", ..FACTORIAL },
    GridScenario { name: "2x2x2, 8 blocks, plots vary by 3", plots: Some(3.0), ..FACTORIAL },
    GridScenario { name: "2x2x2, 8 blocks, a block is a plot", plots: None, ..FACTORIAL },
    GridScenario { name: "2x2x2, 8 blocks, a loud cell", loud: Some(5), ..FACTORIAL },
    GridScenario {
        name: "2x2x2, 8 blocks, a tenth missing",
        measured: MeasuredTrials::NineTenths,
        ..FACTORIAL
    },
    GridScenario { name: "2x2x2, 12 blocks, plots vary by 1", blocks: 12, ..FACTORIAL },
    GridScenario { name: "2x2x2, 12 blocks, a loud cell", blocks: 12, loud: Some(5), ..FACTORIAL },
    GridScenario { name: "3x2, 4 blocks, plots vary by 1", ..LABS },
    GridScenario { name: "3x2, 4 blocks, plots vary by 0.1, 3 and 1", ..UNLIKE },
    GridScenario { name: "3x2, 8 blocks, plots vary by 1", blocks: 8, ..LABS },
    GridScenario { name: "3x2, 8 blocks, plots vary by 0.1, 3 and 1", blocks: 8, ..UNLIKE },
];

impl GridScenario {
    pub(super) fn layout(&self) -> GridLayout {
        GridLayout { levels: self.levels.to_vec() }
    }

    /// Returns the family of contrasts whose intervals must contain their true values together.
    pub(super) fn contrasts(&self) -> Vec<Contrast> {
        let layout = self.layout();
        let factors = || 0..self.levels.len();
        match self.family {
            ContrastFamily::Reference => layout.to_reference(0),
            ContrastFamily::Neighbours => factors().flat_map(|factor| layout.neighbours(factor)).collect(),
            ContrastFamily::Factorial => {
                let pairs = factors().flat_map(|one| (0..one).map(move |other| (other, one)));
                let last = layout.cells() - 1;
                let mut all: Vec<Contrast> = factors().map(|factor| layout.main(factor)).collect();
                all.extend(pairs.map(|(one, other)| layout.interaction(one, other)));
                all.extend(
                    factors().flat_map(|factor| [layout.simple(factor, 0), layout.simple(factor, last)]),
                );
                all
            }
        }
    }

    /// Returns one contrast between plots and one within plots.
    pub(super) fn strata(&self) -> [Contrast; 2] {
        [0, self.levels.len() - 1].map(|factor| self.layout().main(factor))
    }

    pub(super) fn truth(&self, contrast: &Contrast) -> f64 {
        contrast.weights.iter().map(|(cell, weight)| weight * effect(*cell)).sum()
    }

    /// Returns true if contrasts between plots have errors of their own, whose intervals may be wider than those of a model.
    pub(super) fn has_own_errors(&self) -> bool {
        self.plots.is_some() && self.levels[0] > 2
    }

    /// Returns the deviation of the plots at a level of the first factor; `None` if each block is one plot.
    pub(super) fn plot_deviation(&self, level: u32) -> Option<f64> {
        Some(self.plots? * self.spreads.get(level as usize).unwrap_or(&1.0))
    }

    /// Returns the deviation of the trials of a cell.
    pub(super) fn deviation(&self, cell: u32) -> f64 {
        if self.loud == Some(cell) { 3.0 } else { 1.0 }
    }

    pub(super) fn trials(&self, seed: u64) -> Vec<CellTrial> {
        let layout = self.layout();
        let mut random = Random::stream(seed, 1);
        let mut half = vec![false; layout.cells() as usize];
        let mut trials = Vec::new();
        for block in 0..self.blocks {
            let of_block = 5.0 * random.normal();
            let mut of_plots = BTreeMap::new();
            half.iter_mut()
                .for_each(|half| *half = if block % 2 == 0 { random.happens(0.5) } else { !*half });
            for cell in 0..layout.cells() {
                let plot = self.plots.map_or(0, |_| layout.levels_of(cell)[0]);
                let of_plot = *of_plots
                    .entry(plot)
                    .or_insert_with(|| self.plot_deviation(plot).unwrap_or_default() * random.normal());
                let ln = effect(cell) + of_block + of_plot + self.deviation(cell) * random.normal();
                let measured = match self.measured {
                    MeasuredTrials::All => true,
                    MeasuredTrials::NineTenths => !random.happens(0.1),
                    MeasuredTrials::Half => cell == 0 || half[cell as usize],
                };
                if measured {
                    trials.push(CellTrial { block, plot, cell, ln });
                }
            }
        }
        trials
    }
}

/// Returns the true effect of a cell.
fn effect(cell: u32) -> f64 {
    f64::from(cell * cell % 7)
}
