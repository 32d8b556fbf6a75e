//! Computes the report of a grid from its record: curves of figures with intervals.

use std::collections::BTreeSet;

use landspeed_record::units::Nanos;
use landspeed_record::{
    Expectation, ExpectationReport, FactorEffect, FactorialEffect, FigureUnit, GRID_FORMAT, Grid, GridCell,
    GridContrast, GridCurves, GridEndReason, GridFigure, GridPlacebo, GridReport, GridTrial, Line,
    PathPrediction, ProgramFigure, ProgramFigures, ProgramMetric, Record, RecordKind, Side, WrongKind,
};
use landspeed_stats::grid::{Contrast, ContrastEstimate, GridLayout};

use super::expect::{JudgedTrials, has_peaks, judge};
use super::fitted::{CellStep, FigureModel, layout, points};
use super::order::block;
use super::{called, conditions, control, kinds, placebo};
use crate::disturbance::over_trials;
use crate::paths::{is_about_paths, over_interconnects, predicted, too_far_off, used};
use crate::trial_ends::BothEnds;

/// Returns the report of a grid's record, whose name is `path`. Nothing is judged where the grid's control failed.
///
/// # Errors
/// Returns an error if the record is not that of a grid.
pub fn report(record: &Record, path: &str) -> Result<GridReport, WrongKind> {
    judged(record, path).map(control::applied)
}

/// Returns the report as it would be if the grid's control held.
pub(crate) fn judged(record: &Record, path: &str) -> Result<GridReport, WrongKind> {
    let grid = lines_of!(record, Line::Grid(grid) => grid).next();
    let grid = grid.ok_or_else(|| RecordKind::GRID.missing(record, path))?;
    let trials: Vec<&GridTrial> = lines_of!(record, Line::GridTrial(trial) => &**trial).collect();
    let doubles: Vec<&GridTrial> = lines_of!(record, Line::GridPlacebo(trial) => &**trial).collect();
    let placebos = placebo::compared(grid, &trials, &doubles);
    let host = |wanted: Side| record.host(wanted).cloned().unwrap_or_default();
    let path_facts = lines_of!(record, Line::Path(path) => path.clone()).next().unwrap_or_default();
    let failed = trials.iter().filter(|trial| trial.failed.is_some()).count();
    let blocks = whole_blocks(grid, &trials);
    let shown = figures_of(grid, &trials);
    let figures: Vec<GridCurves> = shown.into_iter().map(|curves| fitted(grid, &trials, curves)).collect();
    let costs = lines_of!(record, Line::PathCosts { costs } => costs).next();
    let costs = costs.filter(|_| is_about_paths(grid));
    let used = costs.and_then(|_| used(&trials));
    let known = costs.zip(used);
    let predicted =
        known.map_or_else(Vec::new, |(costs, used)| beside_measured(predicted(&used, costs), &figures));
    let far_off = too_far_off(&predicted);
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
        factors: called::factors(grid, &trials),
        by: grid.by,
        blocks,
        trials: (trials.len() - failed) as u32,
        failed: failed as u32,
        took_ns: trials.iter().map(|trial| Nanos(trial.at_ns.0 + trial.took_ns.0)).max().unwrap_or_default(),
        ended: lines_of!(record, Line::GridEnd(end) => *end).next_back(),
        used,
        predicted,
        interconnects: known
            .filter(|_| far_off.is_none())
            .and_then(|(costs, used)| Some(over_interconnects(&used, costs.first()?)))
            .unwrap_or_default(),
        figures,
        title: grid.title.clone(),
        expected: expected(&JudgedTrials { grid, trials: &trials, others: &[] }, &placebos),
        missing: grid.missing.clone(),
        void: void(record).or_else(|| without_figures(&trials)),
        doubts: conditions::doubts(grid, &trials).into_iter().chain(placebo::doubts(&placebos)).collect(),
        placebos,
        control: control::measured(grid, &trials),
        notes: notes(grid, record, &trials, blocks).into_iter().chain(far_off).collect(),
        record: Some(path.to_owned()),
    })
}

/// Returns the answers of an occasion whose best cells the occasions `others` choose. An answer that compares no best cells
/// is that of its report.
pub(crate) fn expected_beside(
    record: &Record,
    report: &GridReport,
    others: &[&GridReport],
) -> Vec<ExpectationReport> {
    let Some(grid) = lines_of!(record, Line::Grid(grid) => grid).next() else { return Vec::new() };
    let trials: Vec<&GridTrial> = lines_of!(record, Line::GridTrial(trial) => &**trial).collect();
    let of = JudgedTrials { grid, trials: &trials, others };
    let both = grid.expectations.iter().zip(&report.expected);
    let again = |(asked, alone): (&Expectation, &ExpectationReport)| match has_peaks(&asked.test) {
        true => answer(&of, asked, &report.placebos),
        false => alone.clone(),
    };
    both.map(again).collect()
}

/// Returns the answers to the grid's expectations.
fn expected(of: &JudgedTrials<'_>, placebos: &[GridPlacebo]) -> Vec<ExpectationReport> {
    of.grid.expectations.iter().map(|asked| answer(of, asked, placebos)).collect()
}

/// Returns the answer to an expectation: none where a placebo shows that the intervals are too narrow.
fn answer(of: &JudgedTrials<'_>, asked: &Expectation, placebos: &[GridPlacebo]) -> ExpectationReport {
    let is_void = placebos.iter().any(|placebo| !placebo.holds());
    let one = judge(of, asked);
    match one.agreement.withdrawn() {
        agreement if is_void && agreement != one.agreement => {
            ExpectationReport { agreement, why: "a placebo of this run left 1".to_owned(), ..one }
        }
        _ => one,
    }
}

/// Adds the measured ratio to the prediction for each path: the program's figure divided by its figure over the first
/// path, inverted if less of the figure is better.
fn beside_measured(predicted: Vec<PathPrediction>, figures: &[GridCurves]) -> Vec<PathPrediction> {
    let measured = |path: &str| {
        let curves = figures.first()?;
        let cell = curves.cells.iter().find(|cell| cell.values.first().is_some_and(|value| value == path))?;
        let less = curves.program.as_ref().is_some_and(|program| program.less_is_better);
        cell.ratio.map(|ratio| if less { ratio.inverse() } else { ratio })
    };
    let beside = |one: PathPrediction| PathPrediction { measured: measured(&one.cost.path), ..one };
    predicted.into_iter().map(beside).collect()
}

/// Returns the reason why the figures must not be used, if any.
fn void(record: &Record) -> Option<String> {
    let mut restored = lines_of!(record, Line::Restored(restored) => restored);
    restored.rfind(|restored| !restored.restored)?.complaint()
}

/// Returns why there are no figures, if all trials failed.
fn without_figures(trials: &[&GridTrial]) -> Option<String> {
    let why = trials.first()?.failed.as_ref()?;
    trials.iter().all(|trial| trial.failed.is_some()).then(|| format!("no trial gave a figure: {why}"))
}

fn notes(grid: &Grid, record: &Record, trials: &[&GridTrial], blocks: u32) -> Vec<String> {
    let mut notes: Vec<String> = lines_of!(record, Line::Note { text } => text.clone()).collect();
    notes.extend(record.unread.iter().cloned());
    match lines_of!(record, Line::GridEnd(end) => end).next_back() {
        None => notes.push(format!("unfinished: it was cut off after {blocks} blocks; --resume goes on")),
        Some(GridEndReason::Stopped) => {
            notes.push(format!("unfinished: it was stopped after {blocks} blocks; --resume goes on"));
        }
        Some(GridEndReason::Blocks | GridEndReason::Precision | GridEndReason::Budget) => {}
    }
    notes.extend(called::of_base(grid, trials));
    notes.extend(kinds::remarks(grid, trials));
    notes.extend(disturbed(record, trials));
    if trials.iter().any(|trial| trial.failed.is_none()) && !has(trials, grid.figure) {
        let name = grid.figure.name;
        notes.push(format!(
            "no trial has the figure {name}: {} does not measure it, or has too few samples a trial",
            grid.workload.name
        ));
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

/// Returns a line for each kind of disturbance of the trials. A fan has none, because the record does not say which
/// machines its further hosts are.
fn disturbed(record: &Record, trials: &[&GridTrial]) -> Vec<String> {
    let Some(hosts) = record.host(Side::A).zip(record.host(Side::B)) else { return Vec::new() };
    let of_pair = trials.iter().filter(|trial| trial.failed.is_none() && trial.others.is_empty());
    over_trials(of_pair.map(|trial| BothEnds { seen: [&trial.a, &trial.b], hosts: hosts.into() }))
}

/// Returns the number of blocks in which every planned trial was made.
fn whole_blocks(grid: &Grid, trials: &[&GridTrial]) -> u32 {
    let most = trials.iter().map(|trial| trial.block + 1).max().unwrap_or(0);
    let whole = (0..most).filter(|number| {
        let due: usize = block(grid, *number).iter().map(|plot| plot.cells.len()).sum();
        trials.iter().filter(|trial| trial.block == *number).count() >= due
    });
    whole.count() as u32
}

fn has(trials: &[&GridTrial], figure: GridFigure) -> bool {
    trials.iter().any(|trial| trial.figure(figure).is_some())
}

/// Returns the curves to compute: the grid's main figure, the program's other figures, then every other figure that a
/// trial has. A figure on request is included only if an expectation is about it.
fn figures_of(grid: &Grid, trials: &[&GridTrial]) -> Vec<GridCurves> {
    let expected = |figure: GridFigure| grid.expectations.iter().any(|one| one.figure == Some(figure));
    let others = GridFigure::all().filter(|figure| *figure != grid.figure);
    let others = others.filter(|figure| !figure.is_on_request || expected(*figure));
    let reported = trials.iter().find_map(|trial| trial.program());
    let named = |figure: GridFigure| {
        let program = grid.program.clone().and_then(|program| match figure.unit {
            FigureUnit::Program => Some(program),
            FigureUnit::ProgramPerCpuSecond => Some(named_after(reported?.costed(), program)),
            _ => None,
        });
        GridCurves { figure, program, ..GridCurves::default() }
    };
    let mut all: Vec<GridCurves> =
        std::iter::once(grid.figure).chain(others).filter(|figure| has(trials, *figure)).map(named).collect();
    all.splice(all.len().min(1)..all.len().min(1), curves_beside(grid, reported));
    all
}

/// Returns curves for the figures that the program reported besides the deciding one. Returns none if the deciding
/// figure is not the same in all cells.
fn curves_beside(grid: &Grid, reported: Option<&ProgramFigures>) -> Vec<GridCurves> {
    let Some(program) = &grid.program else { return Vec::new() };
    let others = reported.iter().flat_map(|reported| &reported.all).filter(|one| one.name != program.figure);
    let is_one = reported.is_some_and(|reported| reported.asked == program.figure);
    let curves = |one: &ProgramFigure| {
        let program = Some(named_after(Some(one), program.clone()));
        GridCurves { figure: GridFigure::PROGRAM, program, is_beside: true, ..GridCurves::default() }
    };
    others.filter(|_| is_one).map(curves).collect()
}

fn named_after(figure: Option<&ProgramFigure>, program: ProgramMetric) -> ProgramMetric {
    let Some(one) = figure else { return program };
    let (figure, unit, less_is_better) = (one.name.clone(), one.unit.clone(), !one.more_is_better);
    ProgramMetric { figure, unit, less_is_better, ..program }
}

/// Returns the curves of a figure, fitted to the trials.
fn fitted(grid: &Grid, trials: &[&GridTrial], curves: GridCurves) -> GridCurves {
    let points = points(grid, trials.iter().copied(), |trial| curves.of(trial));
    let fitted = FigureModel::of(grid, &points);
    let counted = |cell: u32| points.iter().filter(|point| point.cell == cell).count() as u32;
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
            return GridCurves { cells, no_intervals: Some(why.to_string()), ..curves };
        }
    };
    for found in fitted.means() {
        let Some(cell) = cells.get_mut(found.cell as usize) else { continue };
        cell.mean = Some(found.ln.exp());
        (cell.low, cell.high) = (Some(found.alone.0.exp()), Some(found.alone.1.exp()));
    }
    let ratios = fitted.compare(&fitted.to_reference());
    for (cell, ratio) in cells.iter_mut().skip(1).zip(&ratios) {
        cell.ratio = ratio.as_ref().map(ContrastEstimate::estimate);
        cell.error_ln = ratio.as_ref().map(|one| one.error);
    }
    let methods: BTreeSet<String> = ratios.iter().flatten().map(|one| one.method.to_string()).collect();
    let method = (!methods.is_empty()).then(|| Vec::from_iter(methods).join("; "));
    GridCurves {
        cells,
        neighbours: neighbours(grid, &fitted),
        effects: effects(grid, &fitted),
        factorial: if grid.is_factorial { factorial(grid, &fitted) } else { Vec::new() },
        method,
        ..curves
    }
}

/// Returns the geometric mean of values from their logarithms. It is used if the effect of blocks cannot be removed.
fn plain_mean(logs: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = logs.collect();
    let sum: f64 = logs.iter().sum();
    (!logs.is_empty()).then(|| (sum / logs.len() as f64).exp())
}

fn neighbours(grid: &Grid, fitted: &FigureModel) -> Vec<GridContrast> {
    let asked = fitted.neighbours();
    let found = fitted.compare(&asked.iter().map(CellStep::contrast).collect::<Vec<_>>());
    let contrast = |(step, found): (&CellStep, &Option<ContrastEstimate>)| {
        Some(GridContrast {
            factor: grid.factors.get(step.factor)?.name.clone(),
            from: step.from,
            to: step.to,
            ratio: found.as_ref()?.estimate(),
        })
    };
    asked.iter().zip(&found).filter_map(contrast).collect()
}

/// Returns the effect of each factor: the contrasts of its other values with its first value, all else equal.
fn effects(grid: &Grid, fitted: &FigureModel) -> Vec<FactorEffect> {
    let asked = fitted.to_first();
    let found = fitted.compare(&asked.iter().map(CellStep::contrast).collect::<Vec<_>>());
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

/// A contrast of two-valued factors: their names, the condition, and the cells.
type FactorContrast = (Vec<String>, String, Contrast);

/// Returns the effects of factors with two values each: alone, with each combination of the others, on average, and
/// the interaction of two (Box, Hunter and Hunter, Statistics for Experimenters, chapter 5).
fn factorial(grid: &Grid, fitted: &FigureModel) -> Vec<FactorialEffect> {
    let layout = layout(grid);
    if layout.levels.iter().any(|levels| *levels != 2) {
        return Vec::new();
    }
    let name = |number: usize| grid.factors[number].name.clone();
    let factors = 0..grid.factors.len();
    let mut asked: Vec<FactorContrast> = Vec::new();
    for factor in factors.clone() {
        asked.push((vec![name(factor)], "on average".to_owned(), layout.main(factor)));
        asked.extend(simple(grid, &layout, factor));
    }
    for one in factors.clone() {
        for other in factors.clone().skip(one + 1) {
            let contrast = layout.interaction(one, other);
            asked.push((vec![name(one), name(other)], "interaction".to_owned(), contrast));
        }
    }
    let contrasts: Vec<Contrast> = asked.iter().map(|(_, _, contrast)| contrast.clone()).collect();
    let found = fitted.compare(&contrasts);
    let effect = |((factors, given, _), found): (FactorContrast, &Option<ContrastEstimate>)| {
        Some(FactorialEffect { factors, given, ratio: found.as_ref()?.estimate() })
    };
    asked.into_iter().zip(&found).filter_map(effect).collect()
}

/// Returns the contrasts of a factor at each combination of the others' values; none if there is only one factor,
/// because its average effect is the same contrast.
fn simple(grid: &Grid, layout: &GridLayout, factor: usize) -> Vec<FactorContrast> {
    if grid.factors.len() < 2 {
        return Vec::new();
    }
    let given = |cell: u32| {
        let values = grid.factors.iter().zip(grid.values_of(cell)).enumerate();
        let second = values.filter(|(number, (of, value))| {
            *number != factor && of.levels.first().is_some_and(|first| first != value)
        });
        let second: Vec<String> = second.map(|(_, (of, value))| format!("{}={value}", of.name)).collect();
        if second.is_empty() { "alone".to_owned() } else { format!("with {}", second.join(" ")) }
    };
    let at_first = (0..layout.cells()).filter(|cell| layout.levels_of(*cell)[factor] == 0);
    let one = |cell: u32| {
        let to = layout.with(cell, factor, 1);
        (vec![grid.factors[factor].name.clone()], given(cell), Contrast::ratio(cell, to))
    };
    at_first.map(one).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;
    use landspeed_record::{GridFactor, TrialFigures};

    use super::*;

    /// Returns the notes and the figures of a grid about `figure` whose trials have a goodput.
    fn notes_and_figures(figure: GridFigure) -> (Vec<String>, Vec<&'static str>) {
        let levels = vec!["1500".to_owned(), "9000".to_owned()];
        let factors = vec![GridFactor { name: "mtu".into(), levels, ..GridFactor::default() }];
        let figures = TrialFigures { rate_bps: BitRate(1e9), ..TrialFigures::default() };
        let trial = |cell| Line::GridTrial(Box::new(GridTrial { cell, figures, ..GridTrial::default() }));
        let plan = Line::Grid(Box::new(Grid { factors, figure, ..Grid::default() }));
        let lines = vec![plan, trial(0), trial(1)];
        let report = report(&Record { lines, ..Record::default() }, "a record").unwrap();
        (report.notes, report.figures.iter().map(|curves| curves.figure.name).collect())
    }

    #[test]
    fn a_requested_figure_that_no_trial_has_is_noted() {
        let (notes, figures) = notes_and_figures(GridFigure::named("latency-p99").unwrap());
        assert_eq!(figures, ["goodput"]);
        assert!(notes.iter().any(|note| note.contains("no trial has the figure latency-p99")), "{notes:?}");
        let (notes, _) = notes_and_figures(GridFigure::GOODPUT);
        assert!(notes.iter().all(|note| !note.contains("no trial has")), "{notes:?}");
    }
}
