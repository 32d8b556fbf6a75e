//! Derives the settings and the workload of a grid's cell.

use landspeed_record::factor::FactorScope;
use landspeed_record::units::Nanos;
use landspeed_record::{
    Cell, Grid, GridSetting, GridSettingTarget, MissingLevel, Settings, Side, TrialSpec, Workload,
};
use landspeed_workload as workload;

use super::contestant::{self, WORKLOAD};
use super::vary::FAN;
use crate::factors::{all_factors, flow, transport_of};
use crate::{Error, HostGroup, Pair, RunSpec};

/// The workload and the settings of one cell of a grid.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellSetup {
    pub(super) workload: Workload,
    /// A cell that has only settings of the flow, and no knobs.
    pub(super) cell: Cell,
    /// The parameters of the lab that the grid varies, or the whole lab under the name "topology". Empty if the grid
    /// varies no lab.
    pub(super) path: Settings,
}

impl CellSetup {
    /// Returns the run that measures the cell after a start-up of `warm_up`.
    pub(super) fn run(self, warm_up: Nanos) -> RunSpec {
        RunSpec::new(self.workload, &self.cell.flow).after(warm_up)
    }
}

/// Returns the sides on whose hosts a setting at `place` is made; empty for settings that are no knobs.
pub(super) fn sides(place: GridSettingTarget) -> &'static [Side] {
    match place {
        GridSettingTarget::A => &[Side::A],
        GridSettingTarget::B => &[Side::B],
        GridSettingTarget::Both => &Side::BOTH,
        GridSettingTarget::Flow | GridSettingTarget::Workload | GridSettingTarget::Topology => &[],
    }
}

/// Returns true if any cell sets a host's knob.
pub fn turns_knobs(grid: &Grid) -> bool {
    grid.all_settings().any(|one| !sides(one.place).is_empty())
}

/// Returns true if any cell sets a knob of a link. Such a knob is set on one link of a host.
pub(super) fn turns_links(grid: &Grid) -> bool {
    let of_link =
        |one: &GridSetting| all_factors().find(&one.name).is_ok_and(|knob| knob.scope == FactorScope::Device);
    grid.all_settings().any(|one| !sides(one.place).is_empty() && of_link(one))
}

/// Returns the settings of a cell that belong to `place`.
fn at(grid: &Grid, cell: u32, place: GridSettingTarget) -> Settings {
    let all = grid.settings_of(cell).filter(|one| one.place == place);
    all.map(|one| (one.name.clone(), one.value.clone())).collect()
}

/// Returns the parameters of the lab in which a cell is measured.
pub fn path_of(grid: &Grid, cell: u32) -> Settings {
    at(grid, cell, GridSettingTarget::Topology)
}

/// Returns the workload, the flow and the lab of a cell, without its knobs.
pub(super) fn cell_setup(grid: &Grid, cell: u32) -> Result<CellSetup, Error> {
    let set = at(grid, cell, GridSettingTarget::Flow);
    let transport = transport_of(&set)?;
    let flow = flow(transport, &set)?;
    let mut parameters = at(grid, cell, GridSettingTarget::Workload);
    let other = parameters.remove(WORKLOAD).map(|name| Workload::new(&name));
    let mut what = workload::with_defaults(other.as_ref().unwrap_or(&grid.workload), transport);
    what.parameters.extend(parameters);
    Ok(CellSetup { workload: what, cell: Cell { flow, ..Cell::default() }, path: path_of(grid, cell) })
}

/// Returns the knobs of a cell: those that it sets, and the prerequisites of these values. Knobs that only other cells
/// set have their values in `found`. So all cells name the same knobs, and a change from one cell to another sets only
/// the knobs that differ.
pub(super) fn knobs(grid: &Grid, cell: u32, found: &Cell) -> Result<Cell, Error> {
    let mut knobs = Cell::default();
    for one in grid.all_settings() {
        let needs = needs(one)?.into_iter().map(|(need, _)| need);
        for (side, name) in
            sides(one.place).iter().flat_map(|side| needs.clone().map(move |need| (side, need)))
        {
            let current = found.host(*side).get(name).map(|value| (name.to_owned(), value.clone()));
            knobs.host_mut(*side).extend(current);
        }
        for side in sides(one.place) {
            let current = found.host(*side).get(&one.name).map(|value| (one.name.clone(), value.clone()));
            knobs.host_mut(*side).extend(current);
        }
    }
    for one in grid.settings_of(cell).filter(|one| one.value != "off") {
        for side in sides(one.place) {
            // A driver that lacks a feature has it off: "off" is then met, and cannot be written.
            let is_met = |need: &str, set: &str| set == "off" && !found.host(*side).contains_key(need);
            let needed = needs(one)?.into_iter().filter(|(need, set)| !is_met(need, set));
            knobs.host_mut(*side).extend(needed.map(|(need, set)| (need.to_owned(), set.to_owned())));
        }
    }
    // The cell's settings come last, so that they override the prerequisites of other settings.
    for one in grid.settings_of(cell) {
        for side in sides(one.place) {
            knobs.host_mut(*side).insert(one.name.clone(), one.value.clone());
        }
    }
    Ok(knobs)
}

/// Returns the settings that a knob needs to be on, as name and value; empty if the setting is not a knob.
fn needs(one: &GridSetting) -> Result<Vec<(&'static str, &'static str)>, Error> {
    if sides(one.place).is_empty() {
        return Ok(Vec::new());
    }
    Ok(all_factors().find(&one.name)?.needs.to_vec())
}

/// Returns the reason why these hosts cannot have a setting; `None` if they can, or if it is not a knob.
pub(super) fn refused(one: &GridSetting, group: &HostGroup, in_lab: bool) -> Result<Option<String>, Error> {
    let on = sides(one.place);
    if on.is_empty() {
        return Ok(None);
    }
    let found = all_factors().find(&one.name)?;
    let refuses = |pair: Pair<'_>| pair.view(in_lab, |path| path.refuses(found, on, &one.value));
    let why = group.pairs().find_map(refuses);
    Ok(why.map(|why| format!("{}={}: {why}", one.name, one.value)))
}

/// Returns all values of the grid's factors that these hosts cannot have, each with the reason.
pub(super) fn missing(grid: &Grid, group: &HostGroup, in_lab: bool) -> Result<Vec<MissingLevel>, Error> {
    let mut missing = Vec::new();
    for factor in &grid.factors {
        for (level, set) in factor.levels.iter().zip(&factor.sets) {
            let whys = set.iter().map(|one| refused(one, group, in_lab)).collect::<Result<Vec<_>, _>>()?;
            if let Some(why) = whys.into_iter().flatten().next() {
                missing.push(MissingLevel { factor: factor.name.clone(), level: level.clone(), why });
            }
        }
    }
    Ok(missing)
}

/// Returns an error if these hosts cannot have one of the settings that all cells share.
pub(super) fn check_base(grid: &Grid, group: &HostGroup, in_lab: bool) -> Result<(), Error> {
    for one in &grid.base {
        if let Some(why) = refused(one, group, in_lab)? {
            return Err(Error::Other(format!("it cannot be measured here: {why}")));
        }
    }
    Ok(())
}

/// Checks that all values can be combined, before any host is reached.
///
/// # Errors
/// Returns an error that names the values that cannot be combined and the reason.
pub fn check_grid(grid: &Grid) -> Result<(), Error> {
    const MOST_CELLS: u32 = 5000;
    let cells = grid.cells();
    if cells > MOST_CELLS {
        return Err(Error::Other(format!("{cells} combinations of values: a grid has {MOST_CELLS} at most")));
    }
    for (n, factor) in grid.factors.iter().enumerate() {
        let mut own = factor.settings();
        let earlier = || grid.factors[..n].iter().flat_map(|other| other.settings());
        if let Some(one) = own.find(|one| earlier().any(|other| other.name == one.name && meet(other, one))) {
            return Err(Error::Other(format!("{} is varied twice", one.name)));
        }
    }
    check_fan(grid)?;
    (0..cells).try_for_each(|cell| {
        let one = cell_setup(grid, cell).and_then(|cell_setup| {
            contestant::check(grid, &cell_setup.workload)?;
            let spec = TrialSpec {
                workload: cell_setup.workload,
                flow: cell_setup.cell.flow,
                ..TrialSpec::default()
            };
            workload::sane(&spec).map_err(|error| Error::Other(error.to_string()))
        });
        one.map_err(|error| Error::Other(format!("{}: {error}", grid.name_of(cell))))
    })
}

/// Returns an error if the grid varies the fan of a workload that cannot fan in or out.
fn check_fan(grid: &Grid) -> Result<(), Error> {
    let mut fans =
        grid.all_settings().filter(|one| one.place == GridSettingTarget::Topology && one.name == FAN.name);
    fans.try_for_each(|one| {
        let hosts = if one.value == "in" { [2, 1] } else { [1, 2] };
        let checked = workload::check_hosts(&grid.workload, hosts);
        checked.map_err(|why| Error::Other(format!("fan={}: {why}", one.value)))
    })
}

/// Returns true if two settings belong to the same place, or to places that share a host.
fn meet(one: &GridSetting, other: &GridSetting) -> bool {
    one.place == other.place || sides(one.place).iter().any(|side| sides(other.place).contains(side))
}

#[cfg(test)]
mod tests {
    use landspeed_record::GridFactor;

    use super::*;

    /// Returns the knobs of the second cell of a grid over two values of rx-usecs, on hosts with these values.
    fn turned(found: &[(&str, &str)]) -> Settings {
        let set = |value: &str| {
            vec![GridSetting { name: "rx-usecs".into(), value: value.into(), place: GridSettingTarget::B }]
        };
        let factor = GridFactor {
            name: "rx-usecs".into(),
            levels: vec!["8".into(), "50".into()],
            sets: vec![set("8"), set("50")],
            ..GridFactor::default()
        };
        let grid = Grid { factors: vec![factor], ..Grid::default() };
        let found: Settings = found.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        knobs(&grid, 1, &Cell { b: found, ..Cell::default() }).unwrap().b
    }

    #[test]
    fn a_need_of_off_is_met_where_the_driver_lacks_the_feature() {
        let with = turned(&[("rx-usecs", "8"), ("adaptive-rx", "on")]);
        assert_eq!((with["adaptive-rx"].as_str(), with["rx-usecs"].as_str()), ("off", "50"));
        let without = turned(&[("rx-usecs", "8")]);
        assert_eq!(without, Settings::from([("rx-usecs".to_owned(), "50".to_owned())]));
    }
}
