//! The tests' own knob table: an MTU that may fall below what IPv6 needs, sysctls, and knobs that misbehave.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_kernel::netlink::{LinkChange, Rtnl};
use landspeed_knob::{Domain, Error, Factor, FactorScope, HostKnob, Knob, KnobTarget, SideEffect};
use landspeed_record::units::Nanos;

pub(crate) fn lookup(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.factor.name == name)
}

const ALL_OF_DEVICE: &[SideEffect] = &[
    SideEffect::Addresses,
    SideEffect::Routes,
    SideEffect::DeviceSysctls,
    SideEffect::Features,
    SideEffect::Queues,
    SideEffect::Qdisc,
];

const fn knob(
    name: &'static str,
    scope: FactorScope,
    domain: Domain<'static>,
    disturbs: &'static [SideEffect],
    setting: &'static TestSetting,
) -> Knob {
    let factor = Factor {
        name,
        about: "of the tests",
        scope,
        domain,
        toggle: Nanos(0),
        disturbs,
        source: "none",
        ..Factor::KNOB
    };
    Knob { factor, setting }
}

/// Returns `knob` with `toggle` as its time to settle.
const fn slower(toggle: Nanos, knob: Knob) -> Knob {
    Knob { factor: Factor { toggle, ..knob.factor }, ..knob }
}

/// A setting, given by a function that reads it and one that writes it.
struct TestSetting {
    read: fn(&KnobTarget) -> Result<String, Error>,
    write: fn(&KnobTarget, &str) -> Result<(), Error>,
}

impl HostKnob for TestSetting {
    fn read(&self, target: &KnobTarget) -> Result<String, Error> {
        (self.read)(target)
    }

    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error> {
        (self.write)(target, value)
    }
}

const MTU: TestSetting = TestSetting {
    read: |target| Ok(Rtnl::open()?.link(&target.device)?.mtu.to_string()),
    write: |target, value| change(target, LinkChange::Mtu(value.parse().expect("in the domain"))),
};
/// A switch that takes the link down, which loses static routes and IPv6 addresses.
const DOWN: TestSetting = TestSetting {
    read: |target| Ok(if Rtnl::open()?.link(&target.device)?.up { "off" } else { "on" }.into()),
    write: |target, value| change(target, LinkChange::Up(value == "off")),
};
const RMEM: TestSetting =
    TestSetting { read: |_| read_file("tcp_rmem"), write: |_, value| write_file("tcp_rmem", value) };
/// The sysctl tcp_sack. Its write also sets tcp_dsack.
const SACK: TestSetting = TestSetting {
    read: |_| read_file("tcp_sack"),
    write: |_, value| {
        write_file("tcp_dsack", value)?;
        write_file("tcp_sack", value)
    },
};
const DSACK: TestSetting =
    TestSetting { read: |_| read_file("tcp_dsack"), write: |_, value| write_file("tcp_dsack", value) };
/// A setting that writes 600 for 13 and every other value as it is. It uses tcp_base_mss, because that variable belongs
/// to a namespace.
const LIAR: TestSetting = TestSetting {
    read: |_| read_file("tcp_base_mss"),
    write: |_, value| write_file("tcp_base_mss", if value == "13" { "600" } else { value }),
};
/// A setting whose first write in a process writes 7 first, waits, and then writes the value.
const SLOW: TestSetting = TestSetting {
    read: |_| read_file("tcp_probe_threshold"),
    write: |_, value| {
        if value != "8" && IS_FIRST.swap(false, Ordering::SeqCst) {
            write_file("tcp_probe_threshold", "7")?;
            std::thread::sleep(Duration::from_secs(30));
        }
        write_file("tcp_probe_threshold", value)
    },
};
/// A setting whose first write in a process takes several times as long as its row says.
const STEADY: TestSetting = TestSetting {
    write: |_, value| {
        if IS_FIRST.swap(false, Ordering::SeqCst) && value == "9" {
            std::thread::sleep(Duration::from_millis(5000));
        }
        write_file("tcp_probe_threshold", value)
    },
    ..SLOW
};

static IS_FIRST: AtomicBool = AtomicBool::new(true);

static KNOBS: &[Knob] = &[
    knob("mtu", FactorScope::Device, Domain::Int(68, 65_535), ALL_OF_DEVICE, &MTU),
    knob("down", FactorScope::Device, Domain::Switch, ALL_OF_DEVICE, &DOWN),
    knob("rmem", FactorScope::Namespace, Domain::Ints(3, 0, 1 << 31), &[], &RMEM),
    knob(
        "sack",
        FactorScope::Namespace,
        Domain::Int(0, 1),
        &[SideEffect::Sysctl("net.ipv4.tcp_dsack")],
        &SACK,
    ),
    knob(
        "dsack",
        FactorScope::Namespace,
        Domain::Int(0, 255),
        &[SideEffect::Sysctl("net.ipv4.tcp_dsack")],
        &DSACK,
    ),
    knob("liar", FactorScope::Namespace, Domain::Int(0, 65_535), &[], &LIAR),
    knob("slow", FactorScope::Namespace, Domain::Int(0, 1000), &[], &SLOW),
    slower(Nanos::millis(1200), knob("steady", FactorScope::Namespace, Domain::Int(0, 1000), &[], &STEADY)),
    knob("host", FactorScope::Host, Domain::Int(0, 65_535), &[], &LIAR),
];

fn change(target: &KnobTarget, change: LinkChange) -> Result<(), Error> {
    Ok(Rtnl::open()?.set_link(&target.device, change)?)
}

fn read_file(name: &str) -> Result<String, Error> {
    let path = format!("/proc/sys/net/ipv4/{name}");
    let text = fs::read_to_string(&path).map_err(|e| Error::Unavailable(format!("{path}: {e}")))?;
    Ok(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

fn write_file(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/net/ipv4/{name}");
    fs::write(&path, value).map_err(|e| Error::Unavailable(format!("{path}: {e}")))
}
