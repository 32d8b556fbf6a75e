//! The limits of the hosts' parts.

use landspeed_agent::session::{Reply, Request};
use landspeed_record::HostLimits;

use crate::{Error, Host};

/// Measures the limits of one host or two towards their links, one after the other, so that they do not disturb each
/// other. Two hosts of one machine are measured once, and a note at the second calls the first one `called`.
pub(super) fn of(hosts: &[&Host], called: &str) -> Result<Vec<HostLimits>, Error> {
    let mut found: Vec<HostLimits> = Vec::new();
    for host in hosts {
        let known = found.first().filter(|_| host.facts.boot_id == hosts[0].facts.boot_id).cloned();
        found.push(match known {
            Some(mut limits) => {
                limits.notes.push(format!("the same machine as {called}: measured once"));
                limits
            }
            None => measured(host)?,
        });
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
