//! Offloads: work that the device does, or that the stack does once for many packets.
//!
//! A value is what is *active*. The kernel keeps what was wanted apart: TSO that is wanted while checksums
//! are off is not active, and comes back with them. Turning one "off" therefore takes away the wish too.

mod group;
mod receive;
mod transmit;

use landspeed_units::Nanos;

use crate::{Disturbs, Domain, Factor, Knob, On, Scope};

/// All knobs of the family, those that others need first.
pub(crate) const KNOBS: &[&[Knob]] = &[transmit::KNOBS, receive::KNOBS];

/// What rows of offloads have in common.
const OFFLOAD: Factor = Factor {
    scope: Scope::Device,
    on: On::Sender,
    domain: Domain::Each(&Domain::Switch),
    toggle: Nanos::millis(20),
    disturbs: &[Disturbs::Features],
    source: "Documentation/networking/segmentation-offloads.rst",
    ..Factor::KNOB
};
