//! Offloads: work that the device does, or that the stack does once for many packets.
//!
//! A value is what is *active*. The kernel keeps what was wanted apart: TSO that is wanted while checksums
//! are off is not active, and comes back with them. Turning one "off" therefore takes away the wish too.

mod group;
mod receive;
mod transmit;

use landspeed_record::Settings;
use landspeed_units::Nanos;

use crate::{Disturbs, Domain, Factor, Knob, On, Proposal, Scope, View};

/// All knobs of the family, those that others need first.
pub(crate) const KNOBS: &[&[Knob]] = &[transmit::KNOBS, receive::KNOBS];

const OFFLOAD: Factor = Factor {
    scope: Scope::Device,
    on: On::Sender,
    domain: Domain::Each(&Domain::Switch),
    toggle: Nanos::millis(20),
    disturbs: &[Disturbs::Features],
    source: "Documentation/networking/segmentation-offloads.rst",
    ..Factor::KNOB
};

/// `on`, with those of `needs` that do not stand at the host with these settings, unless it is on already.
fn lacking(
    view: &View,
    settings: &Settings,
    on: Proposal,
    needs: &[(&'static str, &'static str)],
) -> Vec<Proposal> {
    if view.current == "on" {
        return Vec::new();
    }
    let stands = |(knob, value): &&(&str, &str)| settings.get(*knob).is_some_and(|now| now == value);
    let missing = needs.iter().filter(|need| !stands(need));
    vec![missing.fold(on, |on, (knob, value)| on.with(knob, *value))]
}
