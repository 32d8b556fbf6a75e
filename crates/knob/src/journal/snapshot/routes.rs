//! Routes over a device, in every table: reading and restoring them.

use std::collections::BTreeSet;

use landspeed_kernel::netlink::{Route, Rtnl};

use super::item::RouteSlot;
use super::{SettingKey, SettingValue};
use crate::Error;

/// `RTPROT_RA`: the route comes from a router advertisement.
const ROUTER_ANNOUNCED: u8 = 9;

/// Returns the slots that contain a route over the device, and the slots `also`, each with all of its routes. A route
/// that a daemon moved to another device is therefore included.
pub(super) fn take(
    device: &str,
    also: &BTreeSet<RouteSlot>,
) -> Result<Vec<(SettingKey, SettingValue)>, Error> {
    let rtnl = Rtnl::open()?;
    let index = rtnl.index_of(device)?;
    let all: Vec<(RouteSlot, Route)> = rtnl.routes()?.into_iter().map(|r| (RouteSlot::of(&r), r)).collect();
    let over = all.iter().filter(|(_, route)| route.devices().contains(&index));
    let mut slots: std::collections::BTreeMap<RouteSlot, Vec<Route>> =
        over.map(|(slot, _)| slot).chain(also).map(|slot| (slot.clone(), Vec::new())).collect();
    for (slot, route) in all {
        if let Some(routes) = slots.get_mut(&slot) {
            routes.push(route);
        }
    }
    slots.retain(|_, routes| !routes.is_empty());
    Ok(slots
        .into_iter()
        .map(|(slot, routes)| (SettingKey::Route(slot), SettingValue::Routes(routes)))
        .collect())
}

pub(super) fn same(a: &[Route], b: &[Route]) -> bool {
    a.len() == b.len() && a.iter().all(|route| holds(b, route))
}

fn holds(routes: &[Route], route: &Route) -> bool {
    routes.iter().any(|r| r.same_as(route))
}

/// Returns true if the kernel makes and removes the route by itself, with addresses, links and routers.
pub(super) fn is_the_kernels_own(route: &Route) -> bool {
    route.is_automatic() || route.protocol() == ROUTER_ANNOUNCED
}

/// Restores the routes of each slot in `was`: removes those that were not in it, then adds those that are missing. The
/// kernel makes some routes itself from addresses, a little later. These are added only if `last_resort` is true,
/// because a program cannot add them exactly: a local IPv6 route gets another metric. Returns the slots with a refused
/// route, with the reason.
pub(super) fn put(
    was: &[(&RouteSlot, &[Route])],
    now: &[(SettingKey, SettingValue)],
    last_resort: bool,
) -> Result<Vec<(SettingKey, String)>, Error> {
    let rtnl = Rtnl::open()?;
    let mut refused = Vec::new();
    let mut missing = Vec::new();
    for (slot, was) in was {
        let key = SettingKey::Route((*slot).clone());
        let now: &[Route] = match now.iter().find(|(k, _)| *k == key) {
            Some((_, SettingValue::Routes(routes))) => routes,
            _ => &[],
        };
        for extra in now.iter().filter(|route| !holds(was, route)) {
            match rtnl.delete_route(extra) {
                Err(e) if !e.is_absent() => refused.push((key.clone(), e.to_string())),
                _ => {}
            }
        }
        if !slot.is_automatic() || last_resort {
            missing.extend(was.iter().filter(|route| !holds(now, route)).cloned());
        }
    }
    Route::sort_for_adding(&mut missing);
    for route in &missing {
        match rtnl.add_route(route) {
            Err(e) if !e.is_present() => {
                refused.push((SettingKey::Route(RouteSlot::of(route)), e.to_string()))
            }
            _ => {}
        }
    }
    Ok(refused)
}
