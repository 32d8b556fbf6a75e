//! The values that a grid's settings really had in its trials, where they differ from the requested ones.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_record::{Grid, GridFactor, GridSetting, GridSettingTarget, GridTrial, Settings};

use crate::fallback::turned_out;

/// Returns the grid's factors, with the real values of their settings.
pub(super) fn factors(grid: &Grid, trials: &[&GridTrial]) -> Vec<GridFactor> {
    let mut all: Vec<BTreeMap<String, BTreeSet<String>>> = vec![BTreeMap::new(); grid.factors.len()];
    for (trial, found) in found(grid, trials) {
        for ((factor, level), words) in grid.factors.iter().zip(grid.levels_of(trial.cell)).zip(&mut all) {
            let sets = factor.sets.get(level).into_iter().flatten().filter(|one| is_of_flow(one));
            for (one, got) in sets.filter_map(|one| Some((one, found.get(&one.name)?))) {
                let word = if one.name == factor.name { got.clone() } else { format!("{} {got}", one.name) };
                let level = factor.levels.get(level).cloned().unwrap_or_default();
                words.entry(level).or_default().insert(word);
            }
        }
    }
    let joined = |words: BTreeSet<String>| words.into_iter().collect::<Vec<_>>().join(", ");
    let named = |(factor, words): (&GridFactor, BTreeMap<_, _>)| GridFactor {
        turned_out: words.into_iter().map(|(level, words)| (level, joined(words))).collect(),
        ..factor.clone()
    };
    grid.factors.iter().zip(all).map(named).collect()
}

/// Returns a line for each of the grid's base settings, which all cells have, that had another value than requested.
pub(super) fn of_base(grid: &Grid, trials: &[&GridTrial]) -> BTreeSet<String> {
    let base = || grid.base.iter().filter(|one| is_of_flow(one));
    let line = |one: &GridSetting, got: &String| format!("{}={}: it was {got}", one.name, one.value);
    let lines = found(grid, trials).flat_map(|(_, found)| {
        base().filter_map(|one| Some(line(one, found.get(&one.name)?))).collect::<Vec<_>>()
    });
    lines.collect()
}

fn is_of_flow(one: &GridSetting) -> bool {
    one.place == GridSettingTarget::Flow
}

/// Returns the settings of each trial's flows that had another value than requested.
fn found<'a>(
    grid: &'a Grid,
    trials: &'a [&'a GridTrial],
) -> impl Iterator<Item = (&'a GridTrial, BTreeMap<String, String>)> {
    let flow = |trial: &GridTrial| -> Settings {
        let set = grid.settings_of(trial.cell).filter(|one| is_of_flow(one));
        set.map(|one| (one.name.clone(), one.value.clone())).collect()
    };
    let whole = trials.iter().filter(|trial| trial.failed.is_none());
    whole.map(move |trial| (*trial, turned_out(&flow(trial), [&trial.a, &trial.b])))
}
