//! From the trials of a record to curves with intervals.

use landspeed_record::{
    Estimate, FactorEffect, FactorialEffect, GRID_FORMAT, Grid, GridCell, GridContrast, GridCurves, GridEnd,
    GridFigure, GridReport, GridTrial, Line, Record, Side,
};
use landspeed_stats::grid::{self, Compared, Weights};
use landspeed_stats::ratio_of;
use landspeed_units::Nanos;

use super::{levels, points};

/// Of every interval.
pub(super) const CONFIDENCE: f64 = 0.95;

/// A record of something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{record} is a record of {kind}, not of a grid")]
pub struct NotAGrid {
    record: String,
    kind: String,
}

/// What the trials of a grid's record say. Pure.
///
/// # Errors
/// A record of something else.
pub fn report(record: &Record, path: &str) -> Result<GridReport, NotAGrid> {
    let none = || NotAGrid { record: path.to_owned(), kind: record.header.kind.clone() };
    let grid = lines_of!(record, Line::Grid(grid) => grid).next().ok_or_else(none)?;
    let trials: Vec<&GridTrial> = lines_of!(record, Line::GridTrial(trial) => &**trial).collect();
    let host = |wanted: Side| {
        let mut hosts = lines_of!(record, Line::Host { side, facts } if *side == wanted => facts);
        hosts.next().map(|facts| (**facts).clone()).unwrap_or_default()
    };
    let path_facts = lines_of!(record, Line::Path(path) => path.clone()).next().unwrap_or_default();
    let failed = trials.iter().filter(|trial| trial.failed.is_some()).count();
    let blocks = whole_blocks(grid, &trials);
    let first = figures_of(grid, &trials);
    Ok(GridReport {
        format: GRID_FORMAT,
        landspeed: record.header.landspeed.clone(),
        started: record.header.started.clone(),
        command: record.header.command.clone(),
        topology: record.header.topology.clone(),
        workload: grid.workload.clone(),
        host_a: host(Side::A),
        host_b: host(Side::B),
        path: path_facts,
        factors: grid.factors.clone(),
        by: grid.by,
        blocks,
        trials: (trials.len() - failed) as u32,
        failed: failed as u32,
        took_ns: trials.iter().map(|trial| Nanos(trial.at_ns.0 + trial.took_ns.0)).max().unwrap_or_default(),
        ended: lines_of!(record, Line::GridEnd(end) => *end).next_back(),
        figures: first.into_iter().map(|figure| curves(grid, &trials, figure)).collect(),
        title: grid.title.clone(),
        expected: grid.expectations.iter().map(|one| super::expect::judge(grid, &trials, one)).collect(),
        missing: grid.missing.clone(),
        void: void(record),
        notes: notes(grid, record, &trials, blocks),
        record: Some(path.to_owned()),
    })
}

/// Why the figures must not be used.
fn void(record: &Record) -> Option<String> {
    let mut restored = lines_of!(record, Line::Restored(restored) => restored);
    let left = restored.rfind(|restored| !restored.restored)?;
    Some(format!("NOT everything was restored: {}", left.notes.join("; ")))
}

fn notes(grid: &Grid, record: &Record, trials: &[&GridTrial], blocks: u32) -> Vec<String> {
    let mut notes: Vec<String> = lines_of!(record, Line::Note { text } => text.clone()).collect();
    match lines_of!(record, Line::GridEnd(end) => end).next_back() {
        None => notes.push(format!("unfinished: it was cut off after {blocks} blocks; --resume goes on")),
        Some(GridEnd::Stopped) => {
            notes.push(format!("unfinished: it was stopped after {blocks} blocks; --resume goes on"));
        }
        Some(GridEnd::Blocks | GridEnd::Precision | GridEnd::Budget) => {}
    }
    for cell in 0..grid.cells() {
        let of_cell = || trials.iter().filter(|trial| trial.cell == cell);
        let whys = of_cell().filter_map(|trial| trial.failed.as_ref());
        if let Some(why) = whys.clone().next() {
            let (failed, all) = (whys.count(), of_cell().count());
            notes.push(format!("{}: {failed} of {all} trials failed: {why}", grid.name_of(cell)));
        }
    }
    notes
}

/// Blocks in which every trial that was due was made.
fn whole_blocks(grid: &Grid, trials: &[&GridTrial]) -> u32 {
    let most = trials.iter().map(|trial| trial.block + 1).max().unwrap_or(0);
    let whole = (0..most).filter(|number| {
        let due: usize = super::block(grid, *number).iter().map(|plot| plot.cells.len()).sum();
        trials.iter().filter(|trial| trial.block == *number).count() >= due
    });
    whole.count() as u32
}

/// The figure that was asked for, then the others that any trial has.
fn figures_of(grid: &Grid, trials: &[&GridTrial]) -> Vec<GridFigure> {
    let has = |figure: &GridFigure| trials.iter().any(|trial| trial.figure(*figure).is_some());
    let others = GridFigure::ALL.into_iter().filter(|figure| *figure != grid.figure);
    std::iter::once(grid.figure).chain(others).filter(has).collect()
}

fn curves(grid: &Grid, trials: &[&GridTrial], figure: GridFigure) -> GridCurves {
    let points = points(grid, trials.iter().copied(), figure);
    let fitted = grid::Grid::of(&points);
    let counted = |cell: u32| points.iter().filter(|point| point.cell == cell).count() as u32;
    let shape = levels(grid);
    let mut cells: Vec<GridCell> = (0..grid.cells())
        .map(|cell| GridCell {
            values: grid.values_of(cell).into_iter().map(str::to_owned).collect(),
            trials: counted(cell),
            mean: plain_mean(points.iter().filter(|point| point.cell == cell).map(|point| point.ln)),
            ..GridCell::default()
        })
        .collect();
    let fitted = match fitted {
        Ok(fitted) => fitted,
        Err(why) => {
            return GridCurves {
                figure,
                cells,
                no_intervals: Some(why.to_string()),
                ..GridCurves::default()
            };
        }
    };
    for (cell, mean) in (0..).zip(&mut cells) {
        if let Some(found) = fitted.mean(cell, CONFIDENCE) {
            mean.mean = Some(found.ln.exp());
            (mean.low, mean.high) = (Some(found.alone.0.exp()), Some(found.alone.1.exp()));
        }
    }
    let ratios = fitted.compare(&grid::to_reference(&shape), CONFIDENCE);
    for (cell, ratio) in cells.iter_mut().skip(1).zip(&ratios) {
        cell.ratio = ratio.as_ref().map(estimate);
    }
    let method = ratios.iter().flatten().next().map(|one| one.method.to_string());
    GridCurves {
        figure,
        cells,
        neighbours: neighbours(grid, &fitted),
        effects: effects(grid, &fitted),
        factorial: if grid.is_factorial { factorial(grid, &fitted) } else { Vec::new() },
        method,
        no_intervals: None,
    }
}

/// The geometric mean, before blocks can be taken out.
fn plain_mean(logs: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = logs.collect();
    let sum: f64 = logs.iter().sum();
    (!logs.is_empty()).then(|| (sum / logs.len() as f64).exp())
}

fn estimate(found: &Compared) -> Estimate {
    ratio_of(found.ln, found.together.0, found.together.1)
}

fn neighbours(grid: &Grid, fitted: &grid::Grid) -> Vec<GridContrast> {
    let asked = grid::neighbours(&levels(grid));
    let weights: Vec<Weights> = asked.iter().map(|step| Weights::from_to(step.from, step.to)).collect();
    let found = fitted.compare(&weights, CONFIDENCE);
    let contrast = |(step, found): (&grid::Step, &Option<Compared>)| {
        Some(GridContrast {
            factor: grid.factors.get(step.factor)?.name.clone(),
            from: step.from,
            to: step.to,
            ratio: estimate(found.as_ref()?),
        })
    };
    asked.iter().zip(&found).filter_map(contrast).collect()
}

/// What each factor does: its values against its first one, all else equal.
fn effects(grid: &Grid, fitted: &grid::Grid) -> Vec<FactorEffect> {
    let asked = grid::to_first(&levels(grid));
    let weights: Vec<Weights> = asked.iter().map(|step| Weights::from_to(step.from, step.to)).collect();
    let found = fitted.compare(&weights, CONFIDENCE);
    let of = |number: usize, name: &str| {
        let own =
            || asked.iter().zip(&found).filter(|(step, _)| step.factor == number).map(|(_, found)| found);
        let ends = own().map(|found| found.as_ref().map(|found| found.together));
        let largest = ends
            .collect::<Option<Vec<_>>>()
            .map(|all| all.into_iter().map(|(low, high)| low.abs().max(high.abs())).fold(0.0, f64::max));
        let has_effect = own().flatten().any(|found| found.together.0 > 0.0 || found.together.1 < 0.0);
        FactorEffect {
            factor: name.to_owned(),
            has_effect,
            at_most: largest.map(f64::exp_m1).filter(|share| share.is_finite() && *share < 1e6),
        }
    };
    grid.factors.iter().enumerate().map(|(number, factor)| of(number, &factor.name)).collect()
}

/// Main effects, interactions and simple effects of factors with two values each.
fn factorial(grid: &Grid, fitted: &grid::Grid) -> Vec<FactorialEffect> {
    let Some(asked) = grid::factorial(&levels(grid)) else { return Vec::new() };
    let weights: Vec<Weights> = asked.iter().map(|effect| effect.weights.clone()).collect();
    let found = fitted.compare(&weights, CONFIDENCE);
    let name = |number: usize| grid.factors.get(number).map(|factor| factor.name.clone()).unwrap_or_default();
    let value = |number: usize, place: u32| {
        let levels = grid.factors.get(number).map(|factor| &factor.levels);
        levels.and_then(|levels| levels.get(place as usize)).cloned().unwrap_or_default()
    };
    let effect = |(asked, found): (&grid::Effect, &Option<Compared>)| {
        let given = match (&asked.given[..], asked.factors.len()) {
            ([], 1) => "on average".to_owned(),
            ([], _) => "interaction".to_owned(),
            (given, _) if given.iter().all(|(_, place)| *place == 0) => "alone".to_owned(),
            (given, _) => {
                let set = given.iter().filter(|(_, place)| *place > 0);
                let set = set.map(|(number, place)| format!("{}={}", name(*number), value(*number, *place)));
                format!("with {}", set.collect::<Vec<_>>().join(" "))
            }
        };
        let factors = asked.factors.iter().map(|number| name(*number)).collect();
        Some(FactorialEffect { factors, given, ratio: estimate(found.as_ref()?) })
    };
    asked.iter().zip(&found).filter_map(effect).collect()
}
