//! Measures the limits of the hosts' parts, such as memory and copies.

use std::collections::BTreeMap;

use landspeed_agent::session::{Reply, Request};
use landspeed_record::HostLimits;

use crate::{Error, Host};

/// Measures the limits of each host and its link. The hosts are measured one after the other, so that they do not
/// disturb each other. Hosts on one machine are measured once; the later ones get a note with the name that `called`
/// returns for the first.
pub(super) fn of(
    hosts: &[Host],
    called: &dyn Fn(&Host) -> String,
) -> Result<BTreeMap<String, HostLimits>, Error> {
    let mut found: BTreeMap<String, HostLimits> = BTreeMap::new();
    for (number, host) in hosts.iter().enumerate() {
        let same = hosts[..number].iter().find(|other| other.facts.boot_id == host.facts.boot_id);
        let known = same.and_then(|other| Some((other, found.get(&other.name)?)));
        let limits = match known {
            Some((other, limits)) => {
                let mut limits = limits.clone();
                limits.notes.push(format!("the same machine as {}: measured once", called(other)));
                limits
            }
            None => measured(host)?,
        };
        found.insert(host.name.clone(), limits);
    }
    Ok(found)
}

fn measured(host: &Host) -> Result<HostLimits, Error> {
    let pending = host.start(&Request::Limits { device: host.device.clone() })?;
    match host.wait(pending, 2 * host.patience())? {
        Reply::Limits { limits } => Ok(*limits),
        _ => Err(host.unexpected("limits")),
    }
}
