//! The values of factors, as a file or a command line names them.

use landspeed_record::strict::{FileMistake, here};
use landspeed_record::units::did_you_mean;
use landspeed_record::{GridFactor, GridSettingTarget, Settings};
use landspeed_workload::WORKLOADS;
use toml::Spanned;

use super::values::{FileSettings, FileValue};
use crate::grid::lab_domain;

/// Removes the values that the short version leaves out. `kept` has the remaining values, by factor.
pub(super) fn shorten(factors: &mut [GridFactor], kept: &FileSettings) -> Result<(), FileMistake> {
    for (name, values) in kept {
        keep(factors, name, &values.get_ref().text()).map_err(here(values))?;
    }
    Ok(())
}

/// Keeps only `values` of a factor, a list with commas. Returns an error if the list is not valid.
pub(super) fn keep(factors: &mut [GridFactor], name: &str, values: &str) -> Result<(), String> {
    let known: Vec<String> = factors.iter().map(|factor| factor.name.clone()).collect();
    let Some(factor) = factors.iter_mut().find(|factor| factor.name == name) else {
        let near = did_you_mean(name, known.iter().map(String::as_str));
        return Err(format!("{name} is not varied{near}"));
    };
    let kept = values.split(',').map(|value| place(factor, value.trim())).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = (1..kept.len()).find(|n| kept[..*n].contains(&kept[*n])) {
        return Err(format!("{name} has the value {} once", factor.levels[kept[twice]]));
    }
    factor.keep(&kept);
    Ok(())
}

/// Returns the index of a value among a factor's levels, or an error that lists the known values.
pub(super) fn place(factor: &GridFactor, value: &str) -> Result<usize, String> {
    let spelled = spelled(factor, value);
    let same = |level: &String| level == value || spelled.as_ref() == Some(level);
    let known = factor.levels.iter().map(String::as_str);
    factor.levels.iter().position(same).ok_or_else(|| {
        format!(
            "{} has no value '{value}'{}; it has {}",
            factor.name,
            did_you_mean(value, known.clone()),
            known.collect::<Vec<_>>().join(", ")
        )
    })
}

/// Returns a value in the factor's canonical spelling, such as "65536" for "64K" bytes; `None` if it is not valid.
fn spelled(factor: &GridFactor, value: &str) -> Option<String> {
    let place = factor.sets.first()?.first()?.place;
    if place == GridSettingTarget::Topology {
        return lab_domain(value).parse(value).ok();
    }
    let workloads = || WORKLOADS.iter().flat_map(|runner| runner.parameters());
    let of_workload = workloads().find(|one| place == GridSettingTarget::Workload && one.name == factor.name);
    let found = of_workload.or_else(|| crate::all_factors().find(&factor.name).ok().copied())?;
    found.parse(value).ok()
}

/// Returns the values of factors that select cells of an expectation.
pub(super) fn selected(cells: &FileSettings, factors: &[GridFactor]) -> Result<Settings, FileMistake> {
    let one = |(name, value): (&String, &Spanned<FileValue>)| {
        let known = factors.iter().map(|factor| factor.name.as_str());
        let near = did_you_mean(name, known);
        let factor = factors.iter().find(|factor| factor.name == *name);
        let factor = factor.ok_or_else(|| here(value)(format!("{name} is not varied{near}")))?;
        let at = place(factor, &value.get_ref().text()).map_err(here(value))?;
        Ok((name.clone(), factor.levels[at].clone()))
    };
    cells.iter().map(one).collect()
}
