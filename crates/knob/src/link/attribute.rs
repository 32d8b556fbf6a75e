//! A numeric attribute of a link, and what all knobs of a link have in common.

use landspeed_kernel::netlink::{Link, LinkChange, Rtnl};
use landspeed_record::units::Nanos;

use crate::device::{name, refused};
use crate::{Domain, Error, Factor, FactorScope, HostKnob, KnobLimits, KnobTarget};

/// Common fields of the knobs of a link.
pub(super) const LINK: Factor = Factor {
    scope: FactorScope::Device,
    domain: Domain::Int(0, u32::MAX as u64),
    toggle: Nanos::millis(5),
    source: "Documentation/networking/netdevices.rst",
    ..Factor::KNOB
};

/// Opens a netlink socket and returns it with the device's name. Errors name the knob.
pub(super) fn reach<'a>(knob: &str, target: &'a KnobTarget) -> Result<(Rtnl, &'a str), Error> {
    let device = name(target)?;
    Ok((Rtnl::open().map_err(|e| refused(knob, e))?, device))
}

/// A numeric attribute of a link, which is read and written over rtnetlink.
pub(super) struct LinkAttribute {
    knob: &'static str,
    get: fn(&Link) -> Option<u32>,
    set: fn(u32) -> LinkChange<'static>,
    /// The greatest value that the link accepts; 0 if unknown.
    most: fn(&Link) -> u32,
    /// Another number that the kernel changes together with this one.
    along: Option<&'static LinkAttribute>,
}

impl LinkAttribute {
    pub(super) const fn new(
        knob: &'static str,
        get: fn(&Link) -> Option<u32>,
        set: fn(u32) -> LinkChange<'static>,
    ) -> LinkAttribute {
        LinkAttribute { knob, get, set, most: |_| 0, along: None }
    }

    pub(super) const fn most(self, most: fn(&Link) -> u32) -> LinkAttribute {
        LinkAttribute { most, ..self }
    }

    pub(super) const fn along(self, other: &'static LinkAttribute) -> LinkAttribute {
        LinkAttribute { along: Some(other), ..self }
    }

    fn link(&self, target: &KnobTarget) -> Result<Link, Error> {
        let (rtnl, device) = reach(self.knob, target)?;
        rtnl.link(device).map_err(|e| refused(self.knob, e))
    }
}

impl HostKnob for LinkAttribute {
    fn read(&self, target: &KnobTarget) -> Result<String, Error> {
        let old = || Error::Unavailable("this kernel has no such limit of BIG TCP".into());
        (self.get)(&self.link(target)?).map(|number| number.to_string()).ok_or_else(old)
    }

    /// Writes the number, and restores the other number that the kernel changes along with it.
    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error> {
        let expected = "a whole number below 2^32";
        let number = value.parse().map_err(|_| Error::value(self.knob, value, expected))?;
        let before = self.link(target)?;
        let (rtnl, device) = reach(self.knob, target)?;
        let set = |change| rtnl.set_link(device, change).map_err(|e| refused(self.knob, e));
        set((self.set)(number))?;
        let Some(other) = self.along else { return Ok(()) };
        let now = (other.get)(&self.link(target)?);
        match (other.get)(&before) {
            Some(was) if now != Some(was) => set((other.set)(was)),
            _ => Ok(()),
        }
    }

    fn limits(&self, target: &KnobTarget) -> Result<KnobLimits, Error> {
        let most = (self.most)(&self.link(target)?);
        Ok(KnobLimits { most: (most > 0).then_some(most.into()), ..KnobLimits::default() })
    }
}
