//! The numbering of a grid's cells, and the contrasts between them.

use super::Contrast;

/// A grid of factors. Cells are numbered consecutively; the level of the last factor changes fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridLayout {
    /// The number of levels of each factor.
    pub levels: Vec<u32>,
}

impl GridLayout {
    pub fn cells(&self) -> u32 {
        self.levels.iter().product()
    }

    /// Returns the level of each factor in a cell.
    pub fn levels_of(&self, cell: u32) -> Vec<u32> {
        let mut left = cell;
        let mut levels: Vec<u32> = self
            .levels
            .iter()
            .rev()
            .map(|levels| {
                let level = left % levels;
                left /= levels;
                level
            })
            .collect();
        levels.reverse();
        levels
    }

    /// Returns the cell with the level `level` of `factor`, and with the levels of `cell` for all other factors.
    pub fn with(&self, cell: u32, factor: usize, level: u32) -> u32 {
        let step: u32 = self.levels[factor + 1..].iter().product();
        cell - self.levels_of(cell)[factor] * step + level * step
    }

    /// Returns one contrast for each cell other than `reference`: the cell minus the reference.
    pub fn to_reference(&self, reference: u32) -> Vec<Contrast> {
        (0..self.cells())
            .filter(|cell| *cell != reference)
            .map(|cell| Contrast::ratio(reference, cell))
            .collect()
    }

    /// Returns the contrasts between neighbouring levels of `factor`: for each cell that is not at the first level, the
    /// cell minus the cell that differs from it only in having the previous level of `factor`.
    pub fn neighbours(&self, factor: usize) -> Vec<Contrast> {
        let before = |cell: u32| Some(self.with(cell, factor, self.levels_of(cell)[factor].checked_sub(1)?));
        (0..self.cells()).filter_map(|cell| Some(Contrast::ratio(before(cell)?, cell))).collect()
    }

    /// Returns the contrast of a factor's second level minus its first level, with all other factors at their levels in
    /// `cell`. If `cell` is the reference, the contrast is the effect of the factor alone. If `cell` differs from the
    /// reference in another factor, the contrast is the effect of `factor` after the change of the other factor.
    pub fn simple(&self, factor: usize, cell: u32) -> Contrast {
        Contrast::ratio(self.with(cell, factor, 0), self.with(cell, factor, 1))
    }

    /// Returns the contrast of a factor's second level minus its first level, averaged over all levels of the other
    /// factors.
    pub fn main(&self, factor: usize) -> Contrast {
        self.product(&[factor])
    }

    /// Returns the contrast for the interaction of two factors: the effect of one factor's second level at the second
    /// level of the other factor, minus its effect at the other factor's first level. The contrast is averaged over the
    /// remaining factors.
    pub fn interaction(&self, one: usize, other: usize) -> Contrast {
        self.product(&[one, other])
    }

    /// Returns the contrast that is the product of the differences (second level minus first level) of `factors`,
    /// averaged over the levels of all other factors.
    fn product(&self, factors: &[usize]) -> Contrast {
        let part = |(factor, level): (usize, u32)| match (factors.contains(&factor), level) {
            (false, _) => 1.0 / f64::from(self.levels[factor]),
            (true, 0) => -1.0,
            (true, 1) => 1.0,
            (true, _) => 0.0,
        };
        let weight = |cell: u32| self.levels_of(cell).into_iter().enumerate().map(part).product::<f64>();
        let weights = (0..self.cells()).map(|cell| (cell, weight(cell))).filter(|(_, weight)| *weight != 0.0);
        Contrast { weights: weights.collect() }
    }
}
