//! Routes over a device, in every table: reading and restoring them.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_kernel::netlink::{IpPrefix, Route, Rtnl};
use serde::{Deserialize, Serialize};

use super::addresses::AddressKey;
use crate::Error;

/// `RTPROT_RA`: the route comes from a router advertisement.
const ROUTER_ANNOUNCED: u8 = 9;

/// The place of a route in a routing table. Routes with the same slot replace each other, or share the load. A route
/// that the kernel makes itself has a separate slot for each device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::journal) struct RouteSlot {
    pub(super) ipv6: bool,
    pub(super) table: u32,
    pub(super) to: IpPrefix,
    pub(super) tos: u8,
    pub(super) metric: u32,
    /// Protocol, kind and devices of a route that the kernel makes from addresses and link state; `None` for other
    /// routes.
    pub(super) automatic: Option<(u8, u8, Vec<u32>)>,
}

impl RouteSlot {
    pub(in crate::journal) fn of(route: &Route) -> RouteSlot {
        let automatic = || (route.protocol(), route.kind(), route.devices());
        RouteSlot {
            ipv6: route.is_ipv6(),
            table: route.table(),
            to: route.destination(),
            tos: route.tos(),
            metric: route.metric(),
            automatic: route.is_automatic().then(automatic),
        }
    }

    /// Returns true if the kernel makes the routes in this slot.
    pub(in crate::journal) fn is_automatic(&self) -> bool {
        self.automatic.is_some()
    }

    /// Returns true if the kernel makes the routes in this slot for the prefix of an IPv6 address.
    pub(super) fn is_ipv6_prefix(&self) -> bool {
        let is_unicast = |&(_, kind, _): &(u8, u8, _)| kind == libc::RTN_UNICAST;
        self.ipv6 && self.automatic.as_ref().is_some_and(is_unicast)
    }

    /// Returns true if the route leads to the prefix of this address.
    pub(super) fn is_prefix_of(&self, key: &AddressKey) -> bool {
        self.to.contains(key.peer.unwrap_or(key.address))
    }

    /// Returns true if the slots differ only in their metric. A route in one of them may then be the kernel's
    /// replacement of a route in the other.
    pub(in crate::journal) fn is_variant_of(&self, other: &RouteSlot) -> bool {
        let key = |slot: &RouteSlot| (slot.ipv6, slot.table, slot.to, slot.tos, slot.automatic.clone());
        key(self) == key(other) && self.metric != other.metric
    }
}

/// Returns the slots that contain a route over the device, and the slots `also`, each with all of its routes. A route
/// that a daemon moved to another device is therefore included.
pub(super) fn take(
    device: &str,
    also: &BTreeSet<RouteSlot>,
) -> Result<BTreeMap<RouteSlot, Vec<Route>>, Error> {
    let rtnl = Rtnl::open()?;
    let index = rtnl.index_of(device)?;
    let all: Vec<(RouteSlot, Route)> = rtnl.routes()?.into_iter().map(|r| (RouteSlot::of(&r), r)).collect();
    let over = all.iter().filter(|(_, route)| route.devices().contains(&index));
    let mut slots: BTreeMap<RouteSlot, Vec<Route>> =
        over.map(|(slot, _)| slot).chain(also).map(|slot| (slot.clone(), Vec::new())).collect();
    for (slot, route) in all {
        if let Some(routes) = slots.get_mut(&slot) {
            routes.push(route);
        }
    }
    slots.retain(|_, routes| !routes.is_empty());
    Ok(slots)
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
    now: &BTreeMap<RouteSlot, Vec<Route>>,
    last_resort: bool,
) -> Result<Vec<(RouteSlot, String)>, Error> {
    let rtnl = Rtnl::open()?;
    let mut refused = Vec::new();
    let mut missing = Vec::new();
    for (slot, was) in was {
        let now: &[Route] = now.get(*slot).map(Vec::as_slice).unwrap_or_default();
        for extra in now.iter().filter(|route| !holds(was, route)) {
            match rtnl.delete_route(extra) {
                Err(e) if !e.is_absent() => refused.push(((*slot).clone(), e.to_string())),
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
            Err(e) if !e.is_present() => refused.push((RouteSlot::of(route), e.to_string())),
            _ => {}
        }
    }
    Ok(refused)
}
