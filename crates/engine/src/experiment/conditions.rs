//! The conditions that decide figures.

use std::collections::BTreeSet;

use landspeed_record::Grid;
use landspeed_record::factor::Condition;
use landspeed_record::strict::{FileMistake, here};
use landspeed_record::units::did_you_mean;

use super::keys::ExperimentFile;
use crate::tune::sc03;

/// Checks that the file sets or varies each condition that decides figures, or says that it is as found.
pub(super) fn declared(file: &ExperimentFile, grid: &Grid) -> Result<(), FileMistake> {
    let mut open: BTreeSet<Condition> = Condition::ALL.into();
    let of_baseline = if grid.baseline.is_empty() { Vec::new() } else { sc03() };
    let set =
        grid.all_settings().map(|one| one.name.as_str()).chain(of_baseline.iter().map(|(name, _)| *name));
    for condition in set.filter_map(|name| crate::all_factors().find(name).ok()?.decides) {
        open.remove(&condition);
    }
    for name in &file.as_found {
        let known = Condition::ALL.map(Condition::name);
        let condition = Condition::named(name.get_ref()).ok_or_else(|| {
            let near = did_you_mean(name.get_ref(), known);
            here(name)(format!(
                "as-found: no condition is called '{}'{near}; there are {}",
                name.get_ref(),
                known.join(", ")
            ))
        })?;
        if !open.remove(&condition) {
            return Err(here(name)(format!(
                "as-found: {} is set or varied here; leave it out",
                condition.name()
            )));
        }
    }
    let names: Vec<String> = open.iter().map(|condition| format!("\"{}\"", condition.name())).collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(FileMistake {
            at: None,
            why: format!(
                "these conditions decide figures and are neither set nor varied: set them, or add as-found = [{}]",
                names.join(", ")
            ),
        }),
    }
}
