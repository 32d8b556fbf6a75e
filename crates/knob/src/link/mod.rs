//! Settings of a link, over rtnetlink.

mod frame;
mod queue;
mod size;

use landspeed_netlink::Rtnl;
use landspeed_units::Nanos;

use crate::device::{name, refused};
use crate::{Domain, Error, Factor, Knob, Place, Scope};

pub(crate) const KNOBS: &[&[Knob]] = &[frame::KNOBS, size::KNOBS, queue::KNOBS];

/// What rows of links have in common.
const LINK: Factor = Factor {
    scope: Scope::Device,
    domain: Domain::Int(0, u32::MAX as u64),
    toggle: Nanos::millis(5),
    source: "Documentation/networking/netdevices.rst",
    ..Factor::KNOB
};

/// A socket and the device's name, on behalf of a knob.
fn reach<'a>(knob: &str, place: &'a Place) -> Result<(Rtnl, &'a str), Error> {
    let device = name(place)?;
    Ok((Rtnl::open().map_err(|e| refused(knob, e))?, device))
}

/// A value of the domain as the kernel's 32 bits; the domains of this family hold no more.
fn number(knob: &str, value: &str) -> Result<u32, Error> {
    value.parse().map_err(|_| Error::value(knob, value, "a whole number below 2^32"))
}
