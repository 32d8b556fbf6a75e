//! The links of a host that carry a flow.

use landspeed_knob as knob;
use landspeed_record::factor::{FactorPlacement, FactorScope};
use landspeed_record::{Carrier, LinkFacts, Side};

use super::Host;
use crate::Error;

/// A link that carries only acknowledgements. Device knobs of the other side, `of`, are set on this link.
#[derive(Debug, Clone)]
pub(super) struct AckLink {
    pub(super) device: String,
    of: FactorPlacement,
}

impl AckLink {
    /// Returns true if this knob is set on the link of the acknowledgements.
    pub(super) fn take(&self, knob: &str) -> bool {
        knob::find(knob)
            .is_ok_and(|knob| knob.factor.scope == FactorScope::Device && knob.factor.on == self.of)
    }
}

impl Host {
    /// Sets the links of this host that carry the data and the acknowledgements. `side` is the host's side; the host at
    /// A sends the data.
    pub(crate) fn faces(&mut self, carrier: &Carrier, side: Side) {
        let of = match side {
            Side::A => FactorPlacement::Receiver,
            Side::B => FactorPlacement::Sender,
        };
        self.device.clone_from(&carrier.data);
        self.acks = (carrier.acks != carrier.data).then(|| AckLink { device: carrier.acks.clone(), of });
    }

    /// Returns an error if the host cannot be tuned over this path: it is unknown which link carries the data, or the
    /// data to different hosts take different links.
    pub(crate) fn carries(&self, carrier: &Carrier) -> Result<(), Error> {
        let why = if carrier.is_unclear() {
            format!(
                "the data take {} or {}, not {}, which the route names, and other traffic hides which; try again when there is less, or name another address with --address",
                carrier.data,
                carrier.beside.join(", "),
                carrier.routed
            )
        } else if carrier.data != self.device {
            format!(
                "its data take {} to one host and {} to another; tune one pair at a time",
                self.device, carrier.data
            )
        } else {
            return Ok(());
        };
        Err(Error::MayNotTune { host: self.name.clone(), why })
    }

    /// Returns the facts of the link `name`; default facts if the host has no such link.
    pub(crate) fn link_named(&self, name: &str) -> LinkFacts {
        self.facts.links.iter().find(|link| link.name == name).cloned().unwrap_or_default()
    }
}
