//! Settings of network hardware, over the ethtool family of generic netlink.

mod coalesce;
mod driver;
#[cfg(test)]
mod driver_tests;
mod pcie;
mod queue;
mod setting;

use crate::Knob;

pub(crate) const KNOBS: &[&[Knob]] = &[coalesce::KNOBS, queue::KNOBS, pcie::KNOBS];
