//! From a cell of a grid to what is set and what runs.

use landspeed_record::{Cell, Grid, GridFactor, GridPlace, Settings, Side, TrialSpec, Workload};
use landspeed_transport::settings::TRANSPORT;
use landspeed_workload as workload;

use crate::factors::{all_factors, flow, transport_of};
use crate::{Error, Pair};

/// One cell, ready to be measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub(super) workload: Workload,
    /// Knobs that are varied, with what they need, and the whole flow.
    pub(super) cell: Cell,
    /// Parameters of the lab that are varied.
    pub(super) path: Settings,
}

/// The hosts that a place is on.
pub(super) fn sides(place: GridPlace) -> &'static [Side] {
    match place {
        GridPlace::A => &[Side::A],
        GridPlace::B => &[Side::B],
        GridPlace::Both => &Side::BOTH,
        GridPlace::Flow | GridPlace::Workload | GridPlace::Topology => &[],
    }
}

/// The values of a cell that go to one of `places`.
fn values(grid: &Grid, cell: u32, place: GridPlace) -> impl Iterator<Item = (&GridFactor, &str)> {
    let all = grid.factors.iter().zip(grid.values_of(cell));
    all.filter(move |(factor, _)| factor.place == place)
}

fn settings<'a>(values: impl Iterator<Item = (&'a GridFactor, &'a str)>) -> Settings {
    values.map(|(factor, value)| (factor.name.clone(), value.to_owned())).collect()
}

/// What a cell is without its knobs.
pub(super) fn setting(grid: &Grid, cell: u32) -> Result<Setting, Error> {
    let mut set = grid.flow.clone();
    set.extend(settings(values(grid, cell, GridPlace::Flow)));
    let transport = transport_of(&set)?;
    let flow = flow(transport, &set)?;
    let mut what = workload::with_defaults(&grid.workload, transport);
    what.parameters.extend(settings(values(grid, cell, GridPlace::Workload)));
    let path = settings(values(grid, cell, GridPlace::Topology));
    Ok(Setting { workload: what, cell: Cell { flow, ..Cell::default() }, path })
}

/// The knobs of a cell: those that are varied at their values, with what these values need, and what other cells need as
/// it was found. All cells name the same knobs, so that going from one to another changes what differs.
pub(super) fn knobs(grid: &Grid, cell: u32, found: &Cell) -> Result<Cell, Error> {
    let mut knobs = Cell::default();
    for factor in &grid.factors {
        for side in sides(factor.place) {
            for (need, _) in all_factors().find(&factor.name)?.needs {
                let stands = found.host(*side).get(*need).map(|value| ((*need).to_owned(), value.clone()));
                knobs.host_mut(*side).extend(stands);
            }
        }
    }
    let valued = || grid.factors.iter().zip(grid.values_of(cell));
    for (factor, value) in valued() {
        let needs = if value == "off" { &[] } else { all_factors().find(&factor.name)?.needs };
        for side in sides(factor.place) {
            let needed = needs.iter().map(|(need, set)| ((*need).to_owned(), (*set).to_owned()));
            knobs.host_mut(*side).extend(needed);
        }
    }
    // Last, so that what is varied itself has its own value, whatever another needs of it.
    for (factor, value) in valued() {
        for side in sides(factor.place) {
            knobs.host_mut(*side).insert(factor.name.clone(), value.to_owned());
        }
    }
    Ok(knobs)
}

/// Refuses a grid with a cell that these hosts cannot have, before anything is measured.
pub(super) fn check(grid: &Grid, pair: &Pair, in_lab: bool) -> Result<(), Error> {
    for factor in grid.factors.iter().filter(|factor| !sides(factor.place).is_empty()) {
        let found = all_factors().find(&factor.name)?;
        let on = sides(factor.place);
        let refused = factor.levels.iter().find_map(|level| {
            let why = pair.view(in_lab, |path| path.refuses(found, on, level))?;
            Some(Error::Other(format!("{}={level} cannot be measured here: {why}", factor.name)))
        });
        refused.map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// Refuses values that do not go together, before any host is reached.
///
/// # Errors
/// Which values, and why.
pub fn check_grid(grid: &Grid) -> Result<(), Error> {
    const MOST_CELLS: u32 = 5000;
    let cells = grid.cells();
    if cells > MOST_CELLS {
        return Err(Error::Other(format!("{cells} combinations of values: a grid has {MOST_CELLS} at most")));
    }
    for (n, factor) in grid.factors.iter().enumerate() {
        if grid.factors[..n].iter().any(|other| other.name == factor.name && meet(other.place, factor.place))
        {
            return Err(Error::Other(format!("--vary {}: it is there twice", factor.name)));
        }
    }
    let transports = grid.factors.iter().find(|factor| factor.name == TRANSPORT.name);
    (0..cells).try_for_each(|cell| {
        let one = setting(grid, cell).and_then(|setting| {
            let spec =
                TrialSpec { workload: setting.workload, flow: setting.cell.flow, ..TrialSpec::default() };
            workload::sane(&spec).map_err(|error| Error::Other(error.to_string()))
        });
        one.map_err(|error| match transports {
            Some(_) => Error::Other(format!("{}: {error}", grid.name_of(cell))),
            None => error,
        })
    })
}

/// Whether two places share a host, or are one.
fn meet(one: GridPlace, other: GridPlace) -> bool {
    one == other || sides(one).iter().any(|side| sides(other).contains(side))
}
