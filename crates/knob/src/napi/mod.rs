//! How a device's packets reach the stack: NAPI's threads and timers, in sysfs.

use landspeed_units::Nanos;

use landspeed_netlink::{Ethtool, Rtnl};

use crate::device::{Sysfs, name, refused};
use crate::{Domain, Error, Factor, HostKnob, Knob, Persist, Place, Proposal, Scope, View};
use landspeed_factor::{switch_on, unless};

/// What rows of NAPI have in common.
const NAPI: Factor = Factor {
    scope: Scope::Device,
    toggle: Nanos::millis(20),
    source: "Documentation/networking/napi.rst",
    ..Factor::KNOB
};

pub(crate) const KNOBS: &[&[Knob]] = &[&[
    Knob {
        factor: Factor {
            name: "threaded-napi",
            persist: &[Persist::Attribute("threaded")],
            about: "poll the device in threads of its own, which the scheduler places, instead of softirqs",
            interacts: &["gro", "placement", "rps", "irq-affinity"],
            source: "Documentation/networking/napi.rst (threaded NAPI); Wang (2021)",
            propose: |view| unpolled(view, switch_on(view, 120)),
            ..NAPI
        },
        setting: &Attribute { knob: "threaded-napi", file: "threaded", switch: true },
    },
    Knob {
        factor: Factor {
            name: "napi-defer-hard-irqs",
            persist: &[Persist::Attribute("napi_defer_hard_irqs")],
            about: "empty polls before the device's interrupts are enabled again",
            domain: Domain::Int(0, i32::MAX as u64),
            interacts: &["gro-flush-timeout", "rx-usecs", "gro"],
            source: "Documentation/networking/napi.rst (software IRQ coalescing); Dumazet (2020)",
            propose: |view| {
                let timer = view.stands("gro-flush-timeout", "0");
                let reason = "it needs gro-flush-timeout, which brings it along";
                vec![Proposal::new("2", 134).pointless_if(timer, reason)]
            },
            ..NAPI
        },
        setting: &Attribute { knob: "napi-defer-hard-irqs", file: "napi_defer_hard_irqs", switch: false },
    },
    Knob {
        factor: Factor {
            name: "gro-flush-timeout",
            persist: &[Persist::Attribute("gro_flush_timeout")],
            about: "nanoseconds that GRO may hold packets and polls are put off: interrupt coalescing in \
                    software",
            domain: Domain::Int(0, 1_000_000_000),
            interacts: &["napi-defer-hard-irqs", "rx-usecs", "gro", "busy-poll"],
            source: "Documentation/networking/napi.rst (software IRQ coalescing); lab: twice the bytes per \
                     CPU-second at 200 us, at a third of the rate",
            propose: flush,
            ..NAPI
        },
        setting: &Attribute { knob: "gro-flush-timeout", file: "gro_flush_timeout", switch: false },
    },
]];

struct Attribute {
    knob: &'static str,
    file: &'static str,
    switch: bool,
}

impl Attribute {
    fn path(&self, place: &Place) -> Result<String, Error> {
        Ok(format!("class/net/{}/{}", name(place)?, self.file))
    }
}

impl HostKnob for Attribute {
    fn read(&self, place: &Place) -> Result<String, Error> {
        let text = Sysfs::open()?.file(self.knob, &self.path(place)?).read()?;
        match (self.switch, text.as_str()) {
            (false, _) => Ok(text),
            (true, "0") => Ok("off".into()),
            (true, "1") => Ok("on".into()),
            (true, other) => Err(Error::Unavailable(format!(
                "{} of {} holds {other}, which could not be put back exactly",
                self.file, place.device
            ))),
        }
    }

    fn write(&self, place: &Place, value: &str) -> Result<(), Error> {
        let text = match value {
            "on" => "1",
            "off" => "0",
            number => number,
        };
        Sysfs::open()?.file(self.knob, &self.path(place)?).write(text)
    }

    fn can_write(&self, place: &Place) -> Result<(), Error> {
        if self.switch && is_unpolled_veth(name(place)?)? {
            return Err(Error::Unavailable(format!("{}: {UNPOLLED}", place.device)));
        }
        Sysfs::open()?.file(self.knob, &self.path(place)?).writable()
    }
}

/// veth has NAPI only while GRO (or an XDP program) is on: veth_enable_range, drivers/net/veth.c. Without,
/// the kernel refuses to thread what it does not poll, and its timers lie idle.
const UNPOLLED: &str = "a veth polls only while GRO is on";

fn is_unpolled_veth(device: &str) -> Result<bool, Error> {
    let failed = |e| refused("threaded-napi", e);
    let link = Rtnl::open().and_then(|rtnl| rtnl.link(device)).map_err(failed)?;
    if link.kind.as_deref() != Some("veth") {
        return Ok(false);
    }
    let features = Ethtool::open().and_then(|ethtool| ethtool.features(device)).map_err(failed)?;
    Ok(!features.is_on("rx-gro"))
}

fn unpolled(view: &View, proposals: Vec<Proposal>) -> Vec<Proposal> {
    let off = view.receiver_link.driver == "veth" && !view.stands_at_receiver("gro", "on");
    unless(off, UNPOLLED, proposals)
}

/// The timer does nothing without polls to put off, and those nothing without the timer.
fn flush(view: &View) -> Vec<Proposal> {
    let defer = view.stands("napi-defer-hard-irqs", "0");
    let with = |p: Proposal| if defer { p.with("napi-defer-hard-irqs", "2") } else { p };
    let values = [("20000", 132), ("50000", 133), ("200000", 145)];
    unpolled(view, values.map(|(value, rank)| with(Proposal::new(value, rank))).into())
}
