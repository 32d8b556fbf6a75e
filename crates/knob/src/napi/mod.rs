//! NAPI settings in sysfs: the threads and timers by which the kernel polls a device for packets.

use landspeed_record::units::Nanos;

use landspeed_kernel::netlink::{self, Ethtool, Rtnl};

use crate::device::{Sysfs, name, refused};
use crate::file::{FileEncoding, FileSetting, MemberFiles};
use crate::{Domain, Error, Factor, FactorScope, FactorView, Knob, KnobTarget, Proposal, SystemSetting};
use landspeed_record::factor::{switch_on, unless};

const NAPI: Factor = Factor {
    scope: FactorScope::Device,
    toggle: Nanos::millis(20),
    source: "Documentation/networking/napi.rst",
    ..Factor::KNOB
};

pub(crate) const KNOBS: &[&[Knob]] = &[&[
    knob!(NAPI, "threaded-napi", FileSetting(FileEncoding::Bit, |target| attribute(target, "threaded")).unless(is_polled), {
        system: SystemSetting::Device("threaded"),
        about: "poll the device in threads of its own, which the scheduler places, instead of softirqs",
        interacts: &["gro", "placement", "rps", "irq-affinity"],
        needs: &[("gro", "on")],
        source: "Documentation/networking/napi.rst (threaded NAPI); Wang (2021)",
        propose: |view| unpolled(view, switch_on(view, 120)),
    }),
    knob!(NAPI, "napi-defer-hard-irqs", FileSetting(FileEncoding::Plain, |target| attribute(target, "napi_defer_hard_irqs")), {
        system: SystemSetting::Device("napi_defer_hard_irqs"),
        about: "empty polls before the device's interrupts are enabled again",
        domain: Domain::Int(0, i32::MAX as u64),
        interacts: &["gro-flush-timeout", "rx-usecs", "gro"],
        source: "Documentation/networking/napi.rst (software IRQ coalescing); Dumazet (2020)",
        propose: |view| {
            let timer = view.is_set_to("gro-flush-timeout", "0");
            let reason = "it needs gro-flush-timeout, which brings it along";
            vec![Proposal::new("2", 134).pointless_if(timer, reason)]
        },
    }),
    knob!(NAPI, "gro-flush-timeout", FileSetting(FileEncoding::Plain, |target| attribute(target, "gro_flush_timeout")), {
        system: SystemSetting::Device("gro_flush_timeout"),
        about: "nanoseconds that GRO may hold packets and polls are put off: interrupt coalescing in \
                software",
        domain: Domain::Int(0, 1_000_000_000),
        interacts: &["napi-defer-hard-irqs", "rx-usecs", "gro", "busy-poll"],
        source: "Documentation/networking/napi.rst (software IRQ coalescing); lab: twice the bytes per \
                 CPU-second at 200 us, at a third of the rate",
        propose: flush,
    }),
]];

fn attribute(target: &KnobTarget, file: &str) -> Result<MemberFiles, Error> {
    let path = format!("class/net/{}/{file}", name(target)?);
    Ok(MemberFiles(Some(Sysfs::open()?), vec![path]))
}

/// The reason why NAPI settings have no effect on a veth without GRO (or an XDP program): veth_enable_range,
/// drivers/net/veth.c. The kernel does not poll the device then, so it refuses threads for it and ignores the timers.
const UNPOLLED: &str = "a veth polls only while GRO is on";

fn is_polled(target: &KnobTarget) -> Result<(), Error> {
    let device = name(target)?;
    let failed = |e| refused("threaded-napi", e);
    let features = Ethtool::open().and_then(|ethtool| ethtool.features(device)).map_err(failed)?;
    match is_veth(device).map_err(failed)? && !features.is_on("rx-gro") {
        true => Err(Error::Unavailable(format!("{device}: {UNPOLLED}"))),
        false => Ok(()),
    }
}

fn is_veth(device: &str) -> Result<bool, netlink::Error> {
    Ok(Rtnl::open().and_then(|rtnl| rtnl.link(device))?.kind.as_deref() == Some("veth"))
}

/// Returns an error if `gro`, a new value of the knob gro, would turn GRO off on a veth with threaded NAPI. The kernel
/// would then no longer poll the device, and could not turn the threads off.
pub(crate) fn threads_remain(target: &KnobTarget, gro: &str) -> Result<(), Error> {
    let device = name(target)?;
    if gro.split(';').any(|value| value == "on") || !is_veth(device).map_err(|e| refused("gro", e))? {
        return Ok(());
    }
    match KNOBS[0][0].setting.read(target).as_deref() {
        Ok("on") => Err(Error::Unavailable(format!(
            "{device}: threaded-napi is on, and can be turned off only while GRO is on: turn it off first"
        ))),
        _ => Ok(()),
    }
}

fn unpolled(view: &FactorView, proposals: Vec<Proposal>) -> Vec<Proposal> {
    let off = view.receiver_link.driver == "veth" && !view.receiver_is_set_to("gro", "on");
    unless(off, UNPOLLED, proposals)
}

/// Proposes the timer of GRO together with deferred interrupts, because neither has an effect alone.
fn flush(view: &FactorView) -> Vec<Proposal> {
    let defer = view.is_set_to("napi-defer-hard-irqs", "0");
    let with = |p: Proposal| if defer { p.with("napi-defer-hard-irqs", "2") } else { p };
    let values = [("20000", 132), ("50000", 133), ("200000", 145)];
    unpolled(view, values.map(|(value, rank)| with(Proposal::new(value, rank))).into())
}
