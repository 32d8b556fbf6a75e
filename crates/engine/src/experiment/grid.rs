//! The grid of an experiment.

use landspeed_record::strict::{FileMistake, here};
use landspeed_record::{Grid, GridFactor, GridSetting, GridSettingTarget, Settings, Workload};

use super::Experiment;
use super::conditions::declared;
use super::control::{check_control, control};
use super::expectation::sourced;
use super::factors::{by, settings, varied, workload};
use super::keys::ExperimentFile;
use super::levels::shorten;
use super::values::{figure, share, time};
use crate::grid::{FactorNames, check_grid, set};

/// Returns the experiment of a file; its short version if `short` is true.
pub(super) fn experiment(file: &ExperimentFile, short: bool) -> Result<Experiment, FileMistake> {
    let runner = workload(&file.workload)?;
    let words = words(file)?;
    let grid = grid(file, short, FactorNames { runner: runner.as_ref(), words: &words })?;
    check(file, &grid)?;
    Ok(Experiment { title: file.title.clone(), source: file.source.clone(), words, grid })
}

/// Returns the words of the topology, if the file names one.
fn words(file: &ExperimentFile) -> Result<Vec<String>, FileMistake> {
    let Some(at) = &file.topology else { return Ok(Vec::new()) };
    let words: Vec<String> = at.get_ref().split(' ').map(str::to_owned).collect();
    landspeed_lab::topology::find(&words).map_err(|error| here(at)(error.to_string()))?;
    Ok(words)
}

fn grid(file: &ExperimentFile, short: bool, names: FactorNames<'_>) -> Result<Grid, FileMistake> {
    let (parameters, base) = fixed(file, names)?;
    let mut factors = file.vary.iter().map(|vary| varied(vary, names)).collect::<Result<Vec<_>, _>>()?;
    let expectations =
        file.expect.iter().map(|expect| sourced(expect, &factors)).collect::<Result<Vec<_>, _>>()?;
    let control = file.control.as_ref().map(|section| control(section, &factors)).transpose()?;
    if short {
        shorten(&mut factors, &file.short.values)?;
    }
    let stop = file.short.stop.as_ref().filter(|_| short).unwrap_or(&file.stop);
    Ok(Grid {
        workload: Workload { parameters, ..Workload::new(file.workload.get_ref()) },
        base,
        baseline: baseline(file)?,
        by: by(file.by.as_ref(), &factors)?,
        figure: file.figure.as_ref().map(figure).transpose()?.unwrap_or_else(|| names.runner.figure()),
        is_factorial: file.factorial,
        warm_up_ns: file.warm_up.as_ref().map(time).transpose()?.unwrap_or_default(),
        blocks: stop.blocks,
        precision: stop.precision.as_ref().map(share).transpose()?,
        budget_ns: stop.budget.as_ref().map(time).transpose()?.unwrap_or_default(),
        seed: 1,
        factors,
        title: file.title.clone(),
        expectations,
        control,
        ..Grid::default()
    })
}

/// Returns what all cells have: the parameters of the workload, and the other settings.
fn fixed(file: &ExperimentFile, names: FactorNames<'_>) -> Result<(Settings, Vec<GridSetting>), FileMistake> {
    let usual = names.runner.flow().iter().filter(|(name, _)| !file.set.contains_key(*name));
    let usual = usual.filter_map(|(name, value)| set(name, value, names).ok());
    let all = usual.chain(settings(&file.set, names)?);
    let (parameters, base): (Vec<GridSetting>, Vec<GridSetting>) =
        all.partition(|one| one.place == GridSettingTarget::Workload);
    Ok((parameters.into_iter().map(|one| (one.name, one.value)).collect(), base))
}

/// Returns the name of the baseline; empty for the hosts as they are.
fn baseline(file: &ExperimentFile) -> Result<String, FileMistake> {
    match &file.baseline {
        Some(name) if name.get_ref() != "sc03" => {
            let why = format!("no baseline is called '{}'; leave it out, or name sc03", name.get_ref());
            Err(here(name)(why))
        }
        name => Ok(name.as_ref().map(|name| name.get_ref().clone()).unwrap_or_default()),
    }
}

/// Checks the rules for the grid as a whole.
fn check(file: &ExperimentFile, grid: &Grid) -> Result<(), FileMistake> {
    if grid.factors.is_empty() {
        let why = "nothing is varied: add [[vary]] with a factor and its values".to_owned();
        return Err(FileMistake { at: None, why });
    }
    let has_many = |factor: &&GridFactor| file.factorial && factor.levels.len() != 2;
    if let Some(many) = grid.factors.iter().find(has_many) {
        let (name, has) = (&many.name, many.levels.len());
        let why = format!("factorial takes factors of two values, and {name} has {has}");
        return Err(FileMistake { at: None, why });
    }
    declared(file, grid)?;
    check_control(grid).map_err(|why| FileMistake { at: None, why: format!("short.values: {why}") })?;
    let first = || file.vary.first().map(|vary| vary.factor.span());
    check_grid(grid).map_err(|error| FileMistake { at: first(), why: error.to_string() })
}
