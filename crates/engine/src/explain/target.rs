//! Finds the flows of a process on the host that does not run it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use landspeed_agent::session::{Reply, Request};
use landspeed_record::units::Nanos;
use landspeed_record::{FlowWatch, Observations, WatchTarget};

use super::INTERVAL;
use crate::{Error, Host};

/// Returns the target of the watch on each host. A process runs on one of two hosts only, so the other one watches the
/// flows by their address. `None` if neither host has a flow of the process.
///
/// # Errors
/// Returns the first host's error if no host has the process.
pub(super) fn targets(hosts: &[Host], target: WatchTarget) -> Result<Option<Vec<WatchTarget>>, Error> {
    if hosts.len() == 1 || !matches!(target, WatchTarget::Pid { .. } | WatchTarget::Name { .. }) {
        return Ok(Some(vec![target; hosts.len()]));
    }
    let found: Vec<Result<Vec<FlowWatch>, Error>> = hosts.iter().map(|host| flows(host, target)).collect();
    let end = found.iter().flatten().find_map(|flows| common_end(flows));
    if end.is_none() && found.iter().all(Result::is_err) {
        return found.into_iter().collect::<Result<Vec<_>, _>>().map(|_| None);
    }
    let has_some =
        |flows: &Result<Vec<FlowWatch>, Error>| flows.as_ref().is_ok_and(|flows| !flows.is_empty());
    let of = |at| {
        let one = |flows| if has_some(flows) { target } else { WatchTarget::Flow { at } };
        found.iter().map(one).collect()
    };
    Ok(end.map(of))
}

/// Returns the end that most flows have: that of a server of many clients, or that of the only flow on its own host.
fn common_end(flows: &[FlowWatch]) -> Option<SocketAddr> {
    let ends = || flows.iter().flat_map(|flow| [flow.key.local, flow.key.remote]);
    let mut counts: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    ends().for_each(|end| *counts.entry(end).or_default() += 1);
    // Of equals, the last one in reverse is the first flow's own end.
    ends().rev().max_by_key(|end| counts[end])
}

/// Returns the connected flows of a target that a host has now.
fn flows(host: &Host, target: WatchTarget) -> Result<Vec<FlowWatch>, Error> {
    let mut flows = glance(host, target, &["flows"])?.get::<Vec<FlowWatch>>().clone();
    flows.retain(|flow| flow.key.remote.port() > 0);
    Ok(flows)
}

/// Watches a target on a host for as short a time as possible.
pub(super) fn glance(host: &Host, target: WatchTarget, observers: &[&str]) -> Result<Observations, Error> {
    let request = Request::Watch {
        target,
        observers: observers.iter().map(|name| (*name).to_owned()).collect(),
        alone: true,
        duration_ns: Nanos(1),
        interval_ns: INTERVAL,
    };
    let Reply::Watched { observed, .. } = host.call(&request)? else { return Err(host.unexpected("watch")) };
    Ok(*observed)
}

#[cfg(test)]
mod tests {
    use landspeed_record::{FlowKey, IpProtocol};

    use super::*;

    fn flow(local: &str, remote: &str) -> FlowWatch {
        let at = |text: &str| text.parse().expect("an address");
        let key = FlowKey { protocol: IpProtocol::TCP, local: at(local), remote: at(remote) };
        FlowWatch { key, pid: None, congestion: String::new(), samples: Vec::new() }
    }

    #[test]
    fn a_server_of_many_is_known_by_its_port_and_one_flow_by_its_own_end() {
        let at = |flows: &[FlowWatch]| common_end(flows).map(|end| end.to_string());
        let served = [flow("10.0.0.2:80", "10.0.0.1:5000"), flow("10.0.0.2:80", "10.0.0.1:5001")];
        assert_eq!(at(&served).as_deref(), Some("10.0.0.2:80"));
        let asked = [flow("10.0.0.1:5000", "10.0.0.2:80"), flow("10.0.0.1:5001", "10.0.0.2:80")];
        assert_eq!(at(&asked).as_deref(), Some("10.0.0.2:80"));
        assert_eq!(at(&asked[..1]).as_deref(), Some("10.0.0.1:5000"));
        assert_eq!(at(&[]), None);
    }
}
