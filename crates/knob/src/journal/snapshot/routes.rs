//! Routes over a device, in every table.

use std::time::Duration;

use landspeed_netlink::{Route, Rtnl};

use super::{Outcome, SnapshotError};

/// The kernel makes some routes a moment after the address or link they belong to.
const ROUNDS: usize = 12;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn take(device: &str) -> Result<Vec<Route>, SnapshotError> {
    let rtnl = Rtnl::open()?;
    Ok(rtnl.routes_over(rtnl.index_of(device)?)?)
}

pub(super) fn restore(device: &str, was: &[Route]) -> Outcome {
    let mut outcome = Outcome::default();
    for round in 1.. {
        let this = one_round(device, was, round == ROUNDS)
            .unwrap_or_else(|e| Outcome::failed(&format!("routes over {device}"), &e));
        let settled = this.still.is_empty() && this.put_back.is_empty();
        // A later round knows better what differs still.
        outcome.put_back.extend(this.put_back);
        (outcome.still, outcome.left) = (this.still, this.left);
        if settled || round == ROUNDS {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    outcome
}

/// Looks for what differs, removes and adds. Whether it lasted is for the next round to see.
fn one_round(device: &str, was: &[Route], last: bool) -> Result<Outcome, SnapshotError> {
    let rtnl = Rtnl::open()?;
    let now = take(device)?;
    let mut outcome = Outcome::default();
    let mut missing: Vec<Route> = was.iter().filter(|w| !holds(&now, w)).cloned().collect();
    for extra in now.iter().filter(|n| !holds(was, n)) {
        if !extra.is_automatic() && !missing.iter().any(|m| is_variant(m, extra)) {
            outcome.left.push(format!("route {extra} appeared meanwhile and was left"));
            continue;
        }
        match rtnl.delete_route(extra) {
            Ok(()) => outcome.put_back.push(format!("route {extra}: removed")),
            Err(e) if e.is_absent() => {}
            Err(e) => outcome.still.push(format!("route {extra} was not there: {e}")),
        }
    }
    Route::sort_for_adding(&mut missing);
    for route in &missing {
        // The kernel makes these itself from addresses, if a moment later, and better than it takes them:
        // it gives a local IPv6 route that is added another metric.
        if route.is_automatic() && !last {
            outcome.still.push(format!("route {route} is missing"));
            continue;
        }
        match rtnl.add_route(route) {
            Ok(()) => outcome.put_back.push(format!("route {route}: put back")),
            Err(e) if e.is_present() => {}
            Err(e) => outcome.still.push(format!("route {route} is missing: {e}")),
        }
    }
    Ok(outcome)
}

fn holds(routes: &[Route], route: &Route) -> bool {
    routes.iter().any(|r| r.same_as(route))
}

/// Whether the kernel made one of the other: it lowers the MTU that a route states with the device's.
fn is_variant(a: &Route, b: &Route) -> bool {
    a.is_ipv6() == b.is_ipv6()
        && a.destination() == b.destination()
        && (a.table(), a.metric(), a.protocol(), a.kind()) == (b.table(), b.metric(), b.protocol(), b.kind())
        && a.gateway() == b.gateway()
}
