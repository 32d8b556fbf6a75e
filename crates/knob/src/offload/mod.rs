//! Offloads: work that the device does, or that the stack does once for many packets.
//!
//! The value "on" means that the feature is *active*. The kernel keeps the wanted features separately: TSO that is
//! wanted while checksums are off is not active, and becomes active with them. Switching a knob "off" therefore also
//! removes the feature from those that are wanted.

mod group;
mod receive;
mod transmit;

use landspeed_record::Settings;
use landspeed_record::units::Nanos;

use crate::{Domain, Factor, FactorPlacement, FactorScope, FactorView, Knob, Proposal, SideEffect};

/// All knobs of the family. Knobs that others need come first.
pub(crate) const KNOBS: &[&[Knob]] = &[transmit::KNOBS, receive::KNOBS];

const OFFLOAD: Factor = Factor {
    scope: FactorScope::Device,
    on: FactorPlacement::Sender,
    domain: Domain::Each(&Domain::Switch),
    toggle: Nanos::millis(20),
    disturbs: &[SideEffect::Features],
    source: "Documentation/networking/segmentation-offloads.rst",
    ..Factor::KNOB
};

/// Returns the proposal `on`, to which the `needs` that `settings` does not meet yet are added. Returns nothing if the
/// knob is already on.
fn lacking(
    view: &FactorView,
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
