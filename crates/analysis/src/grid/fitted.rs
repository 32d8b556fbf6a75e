//! A grid's trials as a statistical model, and the contrasts between its cells.

use landspeed_record::{Grid, GridTrial};
use landspeed_stats::grid::{self, CellTrial, Contrast, ContrastEstimate, GridError, GridLayout};

/// The confidence of every interval.
pub(super) const CONFIDENCE: f64 = 0.95;

/// The step from one cell to another that differs in one factor.
pub(super) struct CellStep {
    /// The index of the factor.
    pub(super) factor: usize,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl CellStep {
    pub(super) fn contrast(&self) -> Contrast {
        Contrast::ratio(self.from, self.to)
    }
}

/// The model of one figure of a grid.
pub(super) struct FigureModel {
    model: grid::FittedGrid,
    layout: GridLayout,
}

impl FigureModel {
    pub(super) fn of(grid: &Grid, trials: &[CellTrial]) -> Result<FigureModel, GridError> {
        Ok(FigureModel { model: grid::FittedGrid::of(trials, 0)?, layout: layout(grid) })
    }

    /// Estimates each contrast of a family; `None` where one of its cells has no trial.
    pub(super) fn compare(&self, family: &[Contrast]) -> Vec<Option<ContrastEstimate>> {
        let means = self.model.means(CONFIDENCE);
        let is_known = |contrast: &&Contrast| {
            contrast.weights.iter().all(|(cell, _)| means.iter().any(|mean| mean.cell == *cell))
        };
        let known: Vec<Contrast> = family.iter().filter(is_known).cloned().collect();
        let mut found = self.model.compare(&known, CONFIDENCE).unwrap_or_default().into_iter();
        family.iter().map(|contrast| is_known(&contrast).then(|| found.next()).flatten()).collect()
    }

    /// Returns the mean log of each cell that has one, with its own interval.
    pub(super) fn means(&self) -> Vec<grid::CellMean> {
        self.model.means(CONFIDENCE)
    }

    /// Returns the contrasts of every other cell with the first.
    pub(super) fn to_reference(&self) -> Vec<Contrast> {
        self.layout.to_reference(0)
    }

    /// Returns the steps from each value of each factor to the next, all else equal.
    pub(super) fn neighbours(&self) -> Vec<CellStep> {
        self.steps(|level| level - 1)
    }

    /// Returns the steps from the first value of each factor to each other one, all else equal.
    pub(super) fn to_first(&self) -> Vec<CellStep> {
        self.steps(|_| 0)
    }

    fn steps(&self, before: fn(u32) -> u32) -> Vec<CellStep> {
        let factors = 0..self.layout.levels.len();
        let pairs = factors.flat_map(|factor| (0..self.layout.cells()).map(move |to| (factor, to)));
        let step = |(factor, to): (usize, u32)| {
            let level = self.layout.levels_of(to)[factor];
            let from = (level > 0).then(|| self.layout.with(to, factor, before(level)))?;
            Some(CellStep { factor, from, to })
        };
        pairs.filter_map(step).collect()
    }
}

/// Returns the layout with the number of values of each factor.
pub(super) fn layout(grid: &Grid) -> GridLayout {
    GridLayout { levels: grid.factors.iter().map(|factor| factor.levels.len() as u32).collect() }
}

/// Returns the trials that have the figure, as input of the model.
pub(super) fn points<'a>(
    grid: &Grid,
    trials: impl IntoIterator<Item = &'a GridTrial>,
    figure: impl Fn(&GridTrial) -> Option<f64>,
) -> Vec<CellTrial> {
    let cells = grid.cells();
    let point = |trial: &GridTrial| {
        let ln = figure(trial)?.ln();
        let known = trial.cell < cells;
        known.then_some(CellTrial { block: trial.block, plot: trial.plot, cell: trial.cell, ln })
    };
    trials.into_iter().filter_map(point).collect()
}
