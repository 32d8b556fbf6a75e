//! The plan of a grid.

use std::collections::BTreeMap;

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

use super::{Expectation, GridControl, GridFigure};
use crate::{ProgramMetric, Settings, Workload, unknown};

/// Name of the workload in a grid that runs an unchanged program on the local host.
pub const HERE: &str = "program";

/// Where the values of a factor are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GridSettingTarget {
    /// A setting of the flow.
    #[default]
    Flow,
    /// A parameter of the workload.
    Workload,
    /// A knob of host A.
    A,
    /// A knob of host B.
    B,
    /// A knob of both hosts, set to the same value.
    Both,
    /// A parameter of the lab's link.
    Topology,
}

/// The kind of a factor's values. Words have no position on an axis; all other kinds do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelKind {
    /// Words.
    #[default]
    Words,
    /// Numbers.
    Number,
    /// Amounts of data.
    Bytes,
    /// Times.
    Time,
    /// Rates.
    Rate,
}

/// One value of a setting, and where it is set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridSetting {
    /// Name of a setting, a parameter or a knob.
    pub name: String,
    /// Where the value is set.
    pub place: GridSettingTarget,
    /// The value, in canonical spelling.
    pub value: String,
}

/// A value of a factor that the hosts cannot have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct MissingLevel {
    /// Name of the factor.
    pub factor: String,
    /// The value.
    pub level: String,
    /// Why the hosts cannot have the value, as they reported it.
    pub why: String,
}

/// A factor that is varied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GridFactor {
    /// Name, such as "mtu".
    pub name: String,
    /// Kind of the values.
    pub kind: LevelKind,
    /// Values in canonical spelling, in the order that the user gave. The first is the reference.
    pub levels: Vec<String>,
    /// Settings of each value in `levels`: one, or several that change together under one name.
    pub sets: Vec<Vec<GridSetting>>,
    /// The values in `levels` as amounts: bytes, nanoseconds, bit/s or plain numbers. Empty for words.
    pub amounts: Vec<f64>,
    /// True if the factor is slow to change. Within a block, all cells with the same value of the factor are then
    /// measured together. Such a group of cells is a whole plot.
    pub is_slow: bool,
    /// Usual duration of a change.
    pub toggle_ns: Nanos,
    /// Values that the trials did not use as requested, each with the value that they used instead: "on" with "copied".
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub turned_out: BTreeMap<String, String>,
}

impl GridFactor {
    /// Returns every setting of every value.
    pub fn settings(&self) -> impl Iterator<Item = &GridSetting> {
        self.sets.iter().flatten()
    }

    /// Keeps only the values of the factor with these indices, in this order.
    pub fn keep(&mut self, indices: &[usize]) {
        self.sets = indices.iter().map(|n| self.sets[*n].clone()).collect();
        if !self.amounts.is_empty() {
            self.amounts = indices.iter().map(|n| self.amounts[*n]).collect();
        }
        self.levels = indices.iter().map(|n| self.levels[*n].clone()).collect();
    }
}

/// The plan of `landspeed measure --vary`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Grid {
    /// The workload, with every parameter that is not varied.
    pub workload: Workload,
    /// Settings that are the same in all cells.
    pub base: Vec<GridSetting>,
    /// The program whose figure is compared; `None` for landspeed's own workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramMetric>,
    /// Time at the start of each trial that is not measured.
    pub warm_up_ns: Nanos,
    /// Factors that are varied. Cells are numbered so that the value of the last factor changes fastest.
    pub factors: Vec<GridFactor>,
    /// Position in `factors` of the factor that has a curve for each value; `None` if there is only one factor.
    pub by: Option<u32>,
    /// The figure that is compared.
    pub figure: GridFigure,
    /// True if main effects and interactions are requested.
    pub is_factorial: bool,
    /// Number of blocks to measure; `None` if precision or the budget ends the grid.
    pub blocks: Option<u32>,
    /// Requested precision: the grid ends once the half-width of every interval is at most this share of the figure;
    /// `None` if no precision was requested.
    pub precision: Option<f64>,
    /// Time limit of the grid; `None` without one.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub budget_ns: Nanos,
    /// Estimated duration of a trial, including the time to connect.
    pub trial_ns: Nanos,
    /// Seed of the order of the cells.
    pub seed: u64,
    /// True if each block measures the reference and the loudest other cell twice, under two names. Records from before
    /// there were placebos have none.
    pub has_placebos: bool,
    /// Requested values that the hosts cannot have.
    pub missing: Vec<MissingLevel>,
    /// Title from an experiment's file; empty otherwise.
    pub title: String,
    /// Settings from which the hosts start: "sc03", or empty for their current ones.
    pub baseline: String,
    /// Expectations of the result.
    pub expectations: Vec<Expectation>,
    /// Cells whose mean is known; `None` without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<GridControl>,
}

impl Grid {
    /// Returns the number of combinations of values.
    pub fn cells(&self) -> u32 {
        let levels = self.factors.iter().map(|factor| factor.levels.len().max(1) as u64);
        u32::try_from(levels.fold(1, u64::saturating_mul)).unwrap_or(u32::MAX)
    }

    /// Returns, for each factor, the position of the cell's value among the factor's levels.
    pub fn levels_of(&self, cell: u32) -> Vec<usize> {
        let mut rest = cell as usize;
        let mut places: Vec<usize> = self
            .factors
            .iter()
            .rev()
            .map(|factor| {
                let count = factor.levels.len().max(1);
                let place = rest % count;
                rest /= count;
                place
            })
            .collect();
        places.reverse();
        places
    }

    /// Returns the values of a cell, one for each factor.
    pub fn values_of(&self, cell: u32) -> Vec<&str> {
        let places = self.levels_of(cell);
        let values = self.factors.iter().zip(places).map(|(factor, place)| factor.levels.get(place));
        values.map(|value| value.map_or("", String::as_str)).collect()
    }

    /// Returns the name of a cell, such as "mtu=9000 tso=on".
    pub fn name_of(&self, cell: u32) -> String {
        let values = self.factors.iter().zip(self.values_of(cell));
        values.map(|(factor, value)| format!("{}={value}", factor.name)).collect::<Vec<_>>().join(" ")
    }

    /// Returns every cell that has these values.
    pub fn matching(&self, values: &Settings) -> impl Iterator<Item = u32> {
        let has = move |cell: u32| {
            let own = self.factors.iter().zip(self.values_of(cell));
            own.filter(|(factor, value)| values.get(&factor.name).is_some_and(|wanted| wanted == value))
                .count()
        };
        (0..self.cells()).filter(move |cell| has(*cell) == values.len())
    }

    /// Returns all settings of a cell. A later setting replaces an earlier setting of the same name.
    pub fn settings_of(&self, cell: u32) -> impl Iterator<Item = &GridSetting> {
        let sets = self.factors.iter().zip(self.levels_of(cell));
        self.base.iter().chain(sets.flat_map(|(factor, place)| factor.sets.get(place).into_iter().flatten()))
    }

    /// Returns every setting that a cell may have, each once: those of the base, then those of each factor's levels.
    pub fn all_settings(&self) -> impl Iterator<Item = &GridSetting> {
        self.base.iter().chain(self.factors.iter().flat_map(GridFactor::settings))
    }

    /// Returns the number of the whole plot to which a cell belongs. There is one plot for each combination of values
    /// of the slow factors.
    pub fn plot_of(&self, cell: u32) -> u32 {
        let slow = self.factors.iter().zip(self.levels_of(cell)).filter(|(factor, _)| factor.is_slow);
        slow.fold(0, |plot: u32, (factor, place)| {
            plot.saturating_mul(factor.levels.len() as u32).saturating_add(place as u32)
        })
    }

    /// Returns true if any factor is slow.
    pub fn has_plots(&self) -> bool {
        self.factors.iter().any(|factor| factor.is_slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(name: &str, levels: &[&str], is_slow: bool) -> GridFactor {
        let levels = levels.iter().map(|level| (*level).to_owned()).collect();
        GridFactor { name: name.into(), levels, is_slow, ..GridFactor::default() }
    }

    #[test]
    fn cells_count_the_last_factor_first() {
        let factors = vec![
            factor("mtu", &["1500", "9000"], true),
            factor("write-size", &["1", "2", "3"], false),
            factor("tso", &["on", "off"], true),
        ];
        let grid = Grid { factors, ..Grid::default() };
        assert_eq!(grid.cells(), 12);
        assert_eq!(grid.name_of(0), "mtu=1500 write-size=1 tso=on");
        assert_eq!(grid.name_of(11), "mtu=9000 write-size=3 tso=off");
        assert_eq!(grid.levels_of(8), [1, 1, 0]);
        let large =
            Settings::from([("mtu".to_owned(), "9000".to_owned()), ("tso".to_owned(), "off".to_owned())]);
        assert!(grid.matching(&large).eq([7, 9, 11]));
        assert_eq!(grid.matching(&Settings::from([("mtu".to_owned(), "1280".to_owned())])).count(), 0);
        assert_eq!((grid.plot_of(0), grid.plot_of(3), grid.plot_of(8), grid.plot_of(11)), (0, 1, 2, 3));
    }
}
