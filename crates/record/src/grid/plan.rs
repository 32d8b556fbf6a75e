//! What is varied.

use std::collections::BTreeMap;

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

use super::{Expectation, GridFigure};
use crate::{ProgramOf, Workload, unknown};

/// The workload of a grid whose program runs on the host of the command, as it is.
pub const HERE: &str = "program";

/// Where the values of a factor go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GridPlace {
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

/// What the values of a factor are, and so whether they have places on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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

/// One value, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GridSetting {
    /// Name of a setting, a parameter or a knob.
    pub name: String,
    /// Where its value goes.
    pub place: GridPlace,
    /// Its value, in canonical spelling.
    pub value: String,
}

/// A value of a factor that the hosts cannot have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingLevel {
    /// Name of the factor.
    pub factor: String,
    /// Which of its values.
    pub level: String,
    /// What the hosts said when they were asked.
    pub why: String,
}

/// One thing that is varied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GridFactor {
    /// Its name: "mtu".
    pub name: String,
    /// What its values are.
    pub kind: LevelKind,
    /// Its values in canonical spelling, in the order that was asked for; the first is the reference.
    pub levels: Vec<String>,
    /// What each of them sets: one setting, or several that change together under a name.
    pub sets: Vec<Vec<GridSetting>>,
    /// The same as amounts in bytes, nanoseconds, bit/s or as they are; empty for words.
    pub amounts: Vec<f64>,
    /// Whether it takes so long to change that all cells with one value of it are measured together in a block: it is
    /// varied over whole plots.
    pub is_slow: bool,
    /// About how long a change takes.
    pub toggle_ns: Nanos,
    /// What values turned out to be in the trials, by value: "on" was "copied".
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub turned_out: BTreeMap<String, String>,
}

impl GridFactor {
    /// Everything that its values set.
    pub fn settings(&self) -> impl Iterator<Item = &GridSetting> {
        self.sets.iter().flatten()
    }
}

/// What `landspeed measure --vary` is to measure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Grid {
    /// What is sent, with every parameter that is not varied.
    pub workload: Workload,
    /// What is set and not varied.
    pub base: Vec<GridSetting>,
    /// The program whose figure is compared; `None` of landspeed's own workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramOf>,
    /// Start-up of each trial that is not counted.
    pub warm_up_ns: Nanos,
    /// What is varied. A cell's number counts the values of the last factor first.
    pub factors: Vec<GridFactor>,
    /// The factor with a curve for each value, by its place among `factors`; `None` where there is one factor.
    pub by: Option<u32>,
    /// The figure that the answer is about.
    pub figure: GridFigure,
    /// Whether main effects and interactions are asked for.
    pub is_factorial: bool,
    /// Blocks to measure; `None` where precision or the budget ends the grid.
    pub blocks: Option<u32>,
    /// Half the width of every interval at most, as a share of the figure; `None` where it was not asked for.
    pub precision: Option<f64>,
    /// Time that the grid has; `None` where it takes what it takes.
    #[serde(with = "unknown::measured")]
    pub budget_ns: Nanos,
    /// About how long a trial takes, connecting included.
    pub trial_ns: Nanos,
    /// Seed of the order of cells.
    pub seed: u64,
    /// Values that were asked for and that these hosts cannot have.
    pub missing: Vec<MissingLevel>,
    /// Of an experiment's file: what it is about; empty otherwise.
    pub title: String,
    /// Where hosts start from: "sc03", or as they are where it is empty.
    pub baseline: String,
    /// What is expected.
    pub expectations: Vec<Expectation>,
}

impl Grid {
    /// How many combinations of values there are.
    pub fn cells(&self) -> u32 {
        let levels = self.factors.iter().map(|factor| factor.levels.len().max(1) as u64);
        u32::try_from(levels.fold(1, u64::saturating_mul)).unwrap_or(u32::MAX)
    }

    /// Which value each factor has in a cell, by its place among the factor's levels.
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

    /// The values of a cell, factor by factor.
    pub fn values_of(&self, cell: u32) -> Vec<&str> {
        let places = self.levels_of(cell);
        let values = self.factors.iter().zip(places).map(|(factor, place)| factor.levels.get(place));
        values.map(|value| value.map_or("", String::as_str)).collect()
    }

    /// "mtu=9000 tso=on".
    pub fn name_of(&self, cell: u32) -> String {
        let values = self.factors.iter().zip(self.values_of(cell));
        values.map(|(factor, value)| format!("{}={value}", factor.name)).collect::<Vec<_>>().join(" ")
    }

    /// Everything that a cell sets, later ones over earlier ones.
    pub fn settings_of(&self, cell: u32) -> impl Iterator<Item = &GridSetting> {
        let sets = self.factors.iter().zip(self.levels_of(cell));
        self.base.iter().chain(sets.flat_map(|(factor, place)| factor.sets.get(place).into_iter().flatten()))
    }

    /// Everything that any cell sets.
    pub fn all_settings(&self) -> impl Iterator<Item = &GridSetting> {
        self.base.iter().chain(self.factors.iter().flat_map(GridFactor::settings))
    }

    /// The number of the whole plot that a cell belongs to: one for each combination of values of the slow factors.
    pub fn plot_of(&self, cell: u32) -> u32 {
        let slow = self.factors.iter().zip(self.levels_of(cell)).filter(|(factor, _)| factor.is_slow);
        slow.fold(0, |plot, (factor, place)| plot * factor.levels.len() as u32 + place as u32)
    }

    /// Whether any factor is slow.
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
        assert_eq!((grid.plot_of(0), grid.plot_of(3), grid.plot_of(8), grid.plot_of(11)), (0, 1, 2, 3));
    }
}
