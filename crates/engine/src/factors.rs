//! Lists the factors of an experiment between two hosts: settings of the flow, then knobs of the hosts.

use std::sync::LazyLock;

use landspeed_record::factor::{Factor, FactorScope, FactorTable};
use landspeed_record::{Settings, Workload};
use landspeed_transport::settings::{EVERY_FLOW, FLOWS, PLACEMENT, TRANSPORT, table};
use landspeed_transport::{TRANSPORTS, Transport, find};
use landspeed_workload::has_own_flows;

use crate::Error;

/// Returns the factors of flows over `transport`.
pub fn factors(transport: &dyn Transport) -> FactorTable<'static> {
    let applies = |factor: &&'static Factor| {
        factor.protocol.is_empty() || factor.protocol == transport.about().protocol
    };
    FactorTable::of(table(transport).all().chain(landspeed_knob::table::factors().filter(applies)))
}

/// Returns the factors of all transports.
pub fn all_factors() -> &'static FactorTable<'static> {
    static ALL: LazyLock<FactorTable<'static>> = LazyLock::new(|| {
        let flows = TRANSPORTS.iter().flat_map(|transport| transport.factors());
        FactorTable::of(EVERY_FLOW.iter().copied().chain(flows).chain(landspeed_knob::table::factors()))
    });
    &ALL
}

/// Returns the transport that a flow's settings name.
pub fn transport_of(flow: &Settings) -> Result<&'static dyn Transport, Error> {
    let name = TRANSPORT.of(flow);
    Ok(find(name).ok_or_else(|| TRANSPORT.refuses(name, TRANSPORT.domain.to_string()))?)
}

/// Returns the settings of a flow over `transport`: the transport's defaults, overridden by `set`.
pub fn flow(transport: &dyn Transport, set: &Settings) -> Result<Settings, Error> {
    set.keys().try_for_each(|name| belongs(name, transport))?;
    table(transport).check_all(set)?;
    let mut flow = landspeed_transport::settings::defaults(transport);
    flow.extend(set.clone());
    Ok(flow)
}

/// Returns true if a setting can affect a workload; `None` is a stream, which every setting can affect. A program makes
/// its own flows, so only the placement and the hosts' knobs affect it. Landspeed's other workloads also have the
/// settings of their transport and the number of their flows, but not those of a stream's calls.
pub(crate) fn affects(name: &str, workload: Option<&Workload>, transport: &dyn Transport) -> bool {
    let Some(workload) = workload else { return true };
    let is_of_flow = all_factors().find(name).is_ok_and(|factor| factor.scope == FactorScope::Flow);
    let is_its = || name == FLOWS.name || transport.factors().iter().any(|factor| factor.name == name);
    !is_of_flow || name == PLACEMENT.name || (has_own_flows(workload) && is_its())
}

/// Returns an error if `name` is a setting of other transports only.
fn belongs(name: &str, transport: &dyn Transport) -> Result<(), Error> {
    let has = |other: &&&'static dyn Transport| table(**other).find(name).is_ok();
    let others: Vec<&str> = TRANSPORTS.iter().filter(has).map(|other| other.name()).collect();
    if others.is_empty() || others.contains(&transport.name()) {
        return Ok(());
    }
    let why = format!(
        "{name} is a setting of {}, and these flows go over {}",
        others.join(" and "),
        transport.name()
    );
    Err(Error::Other(why))
}

#[cfg(test)]
#[path = "factors_tests.rs"]
mod tests;
