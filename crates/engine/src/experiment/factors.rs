//! The settings and the varied factors of an experiment.

use std::sync::Arc;

use landspeed_record::strict::{FileMistake, here};
use landspeed_record::{GridFactor, GridSetting, GridSettingTarget};
use landspeed_workload::WorkloadRunner;
use serde::Deserialize;
use toml::Spanned;

use super::values::{FileSettings, FileValue};
use crate::grid::{FactorNames, WORKLOAD, bundle, factor, set};

/// A factor that the experiment varies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct VarySection {
    pub(super) factor: Spanned<String>,
    #[serde(default)]
    values: Option<Spanned<FileValue>>,
    /// Levels: named values, each of which sets several settings.
    #[serde(default)]
    level: Vec<LevelSection>,
    /// True if each level also has the settings of the levels before it.
    #[serde(default)]
    cumulative: bool,
}

/// A named value of a factor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LevelSection {
    name: String,
    /// The workload of the level's cells. If missing, it is the file's workload.
    #[serde(default)]
    workload: Option<Spanned<String>>,
    #[serde(default)]
    set: FileSettings,
}

/// Returns the workload of this name.
pub(super) fn workload(name: &Spanned<String>) -> Result<&'static Arc<dyn WorkloadRunner>, FileMistake> {
    landspeed_workload::named(name.get_ref()).map_err(here(name))
}

/// Returns the settings of a table.
pub(super) fn settings(
    set_to: &FileSettings,
    names: FactorNames<'_>,
) -> Result<Vec<GridSetting>, FileMistake> {
    let one = |(name, value): (&String, &Spanned<FileValue>)| {
        set(name, &value.get_ref().text(), names).map_err(|error| here(value)(error.to_string()))
    };
    set_to.iter().map(one).collect()
}

/// Returns a factor with its values or levels.
pub(super) fn varied(vary: &VarySection, names: FactorNames<'_>) -> Result<GridFactor, FileMistake> {
    let name = vary.factor.get_ref();
    match (&vary.values, vary.level.as_slice()) {
        (Some(values), []) => {
            factor(name, &values.get_ref().text(), names).map_err(|error| here(values)(error.to_string()))
        }
        (None, [_, ..]) => bundled(vary, names),
        _ => Err(here(&vary.factor)(format!(
            "{name}: give values = \"...\", or levels that set several things"
        ))),
    }
}

/// Returns a factor whose levels each have several settings.
fn bundled(vary: &VarySection, names: FactorNames<'_>) -> Result<GridFactor, FileMistake> {
    let mut levels: Vec<(String, Vec<GridSetting>)> = Vec::new();
    for level in &vary.level {
        if levels.iter().any(|(name, _)| *name == level.name) {
            return Err(here(&vary.factor)(format!("two levels are called '{}'", level.name)));
        }
        let own = level_settings(level, names)?;
        let before =
            levels.last().filter(|_| vary.cumulative).map(|(_, set)| set.clone()).unwrap_or_default();
        let kept = before
            .into_iter()
            .filter(|one| !own.iter().any(|new| (&new.name, new.place) == (&one.name, one.place)));
        levels.push((level.name.clone(), kept.chain(own.clone()).collect()));
    }
    Ok(bundle(vary.factor.get_ref(), levels))
}

/// Returns the settings of a level. If the level has its own workload, the workload is one of the settings.
fn level_settings(level: &LevelSection, names: FactorNames<'_>) -> Result<Vec<GridSetting>, FileMistake> {
    let Some(named) = &level.workload else { return settings(&level.set, names) };
    let mut own = settings(&level.set, FactorNames { runner: workload(named)?.as_ref(), ..names })?;
    let (name, value) = (WORKLOAD.to_owned(), named.get_ref().clone());
    own.push(GridSetting { name, place: GridSettingTarget::Workload, value });
    Ok(own)
}

/// Returns the index of the factor each of whose values gets its own curve: the named one, or the usual one.
pub(super) fn by(
    named: Option<&Spanned<String>>,
    factors: &[GridFactor],
) -> Result<Option<u32>, FileMistake> {
    let Some(name) = named else {
        return Ok(usual_by(factors));
    };
    let place = factors.iter().position(|factor| factor.name == *name.get_ref());
    let place = place.ok_or_else(|| here(name)(format!("by: {} is not varied", name.get_ref())))?;
    Ok(Some(place as u32))
}

/// Returns the index of the factor each of whose values gets its own curve: the one with the fewest values. Returns
/// `None` if there are fewer than two factors.
pub fn usual_by(factors: &[GridFactor]) -> Option<u32> {
    let fewest = factors.iter().enumerate().min_by_key(|(_, factor)| factor.levels.len())?;
    (factors.len() > 1).then_some(fewest.0 as u32)
}
