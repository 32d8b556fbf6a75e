//! Held labs: a user creates a lab under a name, runs programs in it, and ends it by `landspeed lab down`.

use super::host::LabHost;
use super::plan::{LabId, LabLayout, LabPlan};
use super::sweep::{LabInfo, list};
use super::{Lab, no_lab};
use crate::topology::choose::find;
use crate::topology::error::Error;
use crate::topology::namespace::path_of;
use crate::topology::registry::TopologyPlan;

/// Creates the lab that the words of a command line describe, and holds it under `name`. No other lab may have this
/// name. The lab exists until it is dropped.
pub fn hold(words: &[String], name: &str) -> Result<Lab, Error> {
    let plan = plan_held(words, name)?;
    match list()?.into_iter().find(|lab| lab.name.as_deref() == Some(name)) {
        Some(lab) => Err(Error::Hosts(format!(
            "lab {name} is up already ({}): `landspeed lab down {name}` removes it",
            lab.label.escape_default()
        ))),
        None => Lab::make_named(plan, Some(name)),
    }
}

/// Returns the plan of the lab that [`hold`] would create.
///
/// # Errors
/// Returns an error if the words or the name are not valid, or if this user cannot create the lab.
pub fn plan_held(words: &[String], name: &str) -> Result<LabPlan, Error> {
    // Users write the name on command lines, so it follows the rules for names of namespaces.
    path_of(name)?;
    let topology = find(words)?;
    let TopologyPlan::Lab(plan) = topology.plan(words)? else {
        return Err(no_lab(words, "a lab, such as lab:back-to-back or lab:wan:rate=1G,rtt=20ms"));
    };
    topology.can_run().map_err(|why| Error::CannotRun { topology: topology.about().name, why })?;
    Ok(plan)
}

/// Returns the lab of this name or ID. Without a word, returns the only held lab, or an error if there is not exactly
/// one.
pub fn find_held(word: Option<&str>) -> Result<LabInfo, Error> {
    let all = list()?;
    let held: Vec<&LabInfo> = all.iter().filter(|lab| lab.name.is_some()).collect();
    let found = match word {
        Some(word) => {
            let id = word.parse::<LabId>().ok();
            let named = held.iter().find(|lab| lab.name.as_deref() == Some(word)).copied();
            named.or_else(|| all.iter().find(|lab| Some(&lab.id) == id.as_ref()))
        }
        None => held.first().copied().filter(|_| held.len() == 1),
    };
    found.cloned().ok_or_else(|| missing(word, &held))
}

/// Returns the hosts of a lab.
pub fn hosts(lab: &LabInfo) -> Result<Vec<LabHost>, Error> {
    let words = [lab.label.clone()];
    match find(&words)?.plan(&words)? {
        TopologyPlan::Lab(plan) => Ok(LabLayout::new(lab.id.clone(), plan).hosts),
        TopologyPlan::Real(_) => Err(no_lab(&words, "a lab")),
    }
}

fn missing(word: Option<&str>, held: &[&LabInfo]) -> Error {
    let names: Vec<&str> = held.iter().filter_map(|lab| lab.name.as_deref()).collect();
    match (word, names.as_slice()) {
        (Some(word), _) => Error::NoLab(word.escape_default().to_string()),
        (None, []) => Error::Hosts("no lab is up: `landspeed lab up` makes one".to_owned()),
        (None, _) => Error::Hosts(format!("name one of the labs that are up: {}", names.join(", "))),
    }
}
