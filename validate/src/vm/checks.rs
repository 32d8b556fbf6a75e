//! The table of all checks of a pair of guests.

use super::battery::Check;
use super::{
    alike, battery, compare, devices, experiments, kills, knobs, network, path_kills, persist, programs,
    rsocket, smc,
};

/// The tables of checks, in the order in which they run.
const TABLES: &[&[Check]] = &[
    battery::CHECKS,
    knobs::CHECKS,
    kills::CHECKS,
    programs::CHECKS,
    devices::CHECKS,
    persist::CHECKS,
    smc::CHECKS,
    rsocket::CHECKS,
    path_kills::CHECKS,
    alike::CHECKS,
    compare::CHECKS,
    experiments::CHECKS,
    network::CHECKS,
];

/// Returns all checks, in the order in which they run.
pub(super) fn checks() -> impl Iterator<Item = &'static Check> {
    TABLES.iter().copied().flatten()
}
