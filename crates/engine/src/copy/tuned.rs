//! A copy with changed settings of its hosts, which are restored at its end.
//!
//! Settings are changed as in a tuning run: the guardian of each host journals the old value before it writes, and
//! restores it if the agent, its session or this process dies (docs/decisions/0090-settings-of-hosts-for-a-copy.md).

use landspeed_record::{Cell, Side};

use super::{CopyDone, CopyListener, CopyOptions, copy};
use crate::{Error, Host, HostGroup, Pair};

/// Copies as [`copy`] does between the first pair of a group, while `settings` are in force at its hosts. Restores the
/// settings and reads them back before it returns, even after an error.
///
/// # Errors
/// Returns an error before anything is changed if a host lacks such a setting, may not be changed, or is being changed
/// by another run. Otherwise returns the error of the copy, extended by the settings that were not restored.
pub fn copy_tuned(
    group: &mut HostGroup,
    settings: &Cell,
    what: &CopyOptions,
    listener: &CopyListener<'_>,
) -> Result<CopyDone, Error> {
    check_settable(&group.first(), settings)?;
    let (done, restored) = group.tuned(|group| {
        group.set(settings)?;
        copy(&group.first(), what, listener)
    })?;
    Ok(CopyDone { restored: Some(restored), ..done })
}

/// Checks that the settings of a pair's hosts may be changed for a copy. The source is at side `from`.
///
/// # Errors
/// Returns an error if they may not: no link carries the data, that link is unknown, or an agent is not root.
pub fn check_tunable(pair: &Pair<'_>, from: Side) -> Result<(), Error> {
    let carriers = [&pair.path.carrier_a, &pair.path.carrier_b];
    let is_unclear = || carriers.iter().any(|carrier| carrier.is_unclear());
    let acks_apart = || carriers.iter().any(|carrier| carrier.data != carrier.acks);
    let why = match () {
        () if pair.is_relayed() => "this machine relays the data over unknown links",
        () if pair.is_one_host() => "both ends are one host, and no link carries the data",
        () if is_unclear() => "other traffic hides which link carries the data",
        // A group knows its links only for data from side A.
        () if from == Side::B && acks_apart() => "data and acknowledgements take different links of a host",
        () => return [pair.a, pair.b].into_iter().try_for_each(may_tune),
    };
    Err(Error::Other(format!("--tune: {why}: leave it out")))
}

/// Returns an error if an agent may change no settings.
fn may_tune(host: &Host) -> Result<(), Error> {
    if host.facts.may_tune {
        return Ok(());
    }
    let why = format!(
        "{}; a copy does not become root by itself, because it would write files as root: log in as root there, or leave \
         --tune out",
        host.facts.may_not_tune_because
    );
    Err(Error::MayNotTune { host: host.name.clone(), why })
}

/// Returns an error if a host lacks a setting or cannot change it.
fn check_settable(pair: &Pair<'_>, settings: &Cell) -> Result<(), Error> {
    let of_side = |side| unsettable(pair.host(side), settings.host(side).keys());
    Side::BOTH.into_iter().find_map(of_side).map_or(Ok(()), Err)
}

/// Returns the error for the first of these knobs that cannot be changed on a host.
fn unsettable<'k>(host: &Host, mut knobs: impl Iterator<Item = &'k String>) -> Option<Error> {
    let found = host.found();
    let knob = knobs.find(|knob| !found.contains_key(*knob))?;
    let state = host.states.iter().find(|state| state.knob == *knob);
    let why =
        state.and_then(|state| state.skip.clone()).unwrap_or_else(|| "it cannot be read there".to_owned());
    Some(Error::MayNotTune { host: host.name.clone(), why: format!("{knob}: {why}; leave --tune out") })
}
