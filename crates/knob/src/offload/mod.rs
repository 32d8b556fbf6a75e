//! Offloads: work that the device does, or that the stack does once for many packets.
//!
//! The value "on" means that the feature is *active*. The kernel stores separately which features are wanted: TSO that
//! is wanted while checksum offload is off is not active, and becomes active once checksum offload is on. Setting a
//! knob to "off" therefore also removes the feature from the wanted ones.

mod group;
mod receive;
mod transmit;

use landspeed_record::Settings;
use landspeed_record::units::Nanos;

use crate::{
    Condition, Domain, Factor, FactorPlacement, FactorScope, FactorView, Knob, Proposal, SideEffect,
};

/// All knobs of the family. Knobs that others need come first.
pub(crate) const KNOBS: &[&[Knob]] = &[transmit::KNOBS, receive::KNOBS];

const OFFLOAD: Factor = Factor {
    scope: FactorScope::Device,
    on: FactorPlacement::Sender,
    domain: Domain::Each(&Domain::Switch),
    toggle: Nanos::millis(20),
    disturbs: &[SideEffect::Features],
    decides: Some(Condition::Offloads),
    source: "Documentation/networking/segmentation-offloads.rst",
    ..Factor::KNOB
};

/// Returns the proposal `on`, extended by those of `needs` that `settings` does not meet yet. Returns nothing if the
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
    let is_met = |(knob, value): &&(&str, &str)| settings.get(*knob).is_some_and(|now| now == value);
    let missing = needs.iter().filter(|need| !is_met(need));
    vec![missing.fold(on, |on, (knob, value)| on.with(knob, *value))]
}
