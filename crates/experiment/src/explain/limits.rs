//! What the parts of the hosts could do at most.

use landspeed_record::HostLimits;
use landspeed_session::{Reply, Request};

use crate::{Error, Host};

/// The limits of `host` towards its link; measured alone, so that nothing else is in the way.
pub(super) fn of(host: &Host) -> Result<HostLimits, Error> {
    let pending = host.start(&Request::Limits { device: host.device.clone() })?;
    match host.wait(pending, 2 * host.patience())? {
        Reply::Limits { limits } => Ok(*limits),
        _ => Err(host.unexpected("limits")),
    }
}

/// The limits of two hosts, one after the other; two hosts of one machine are measured once, and a note at
/// the second names the first, which is `called` so.
pub(super) fn of_both(a: &Host, b: &Host, called: &str) -> Result<[HostLimits; 2], Error> {
    let first = of(a)?;
    if a.facts.boot_id != b.facts.boot_id {
        return Ok([first, of(b)?]);
    }
    let mut second = first.clone();
    second.notes.push(format!("the same machine as {called}: measured once"));
    Ok([first, second])
}
