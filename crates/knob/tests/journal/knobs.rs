//! A knob table of the tests' own: an MTU that may fall below what IPv6 needs, a sysctl, and knobs that lie.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_knob::{Disturbs, Domain, Error, Factor, HostKnob, Knob, Place, Scope};
use landspeed_netlink::{LinkChange, Rtnl};
use landspeed_units::Nanos;

pub(crate) fn lookup(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.factor.name == name)
}

const ALL_OF_DEVICE: &[Disturbs] = &[
    Disturbs::Addresses,
    Disturbs::Routes,
    Disturbs::DeviceSysctls,
    Disturbs::Features,
    Disturbs::Queues,
    Disturbs::Qdisc,
];

const fn knob(
    name: &'static str,
    scope: Scope,
    domain: Domain,
    disturbs: &'static [Disturbs],
    turn: &'static dyn HostKnob,
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
    Knob { factor, setting: turn }
}

/// The knob with this time for a toggle.
const fn slower(toggle: Nanos, knob: Knob) -> Knob {
    Knob { factor: Factor { toggle, ..knob.factor }, ..knob }
}

static KNOBS: &[Knob] = &[
    knob("mtu", Scope::Device, Domain::Int(68, 65_535), ALL_OF_DEVICE, &Mtu),
    knob("down", Scope::Device, Domain::Switch, ALL_OF_DEVICE, &Down),
    knob("rmem", Scope::Namespace, Domain::Ints(3, 0, 1 << 31), &[], &Rmem),
    knob("sack", Scope::Namespace, Domain::Int(0, 1), &[Disturbs::Sysctl("net.ipv4.tcp_dsack")], &Sack),
    knob("dsack", Scope::Namespace, Domain::Int(0, 255), &[Disturbs::Sysctl("net.ipv4.tcp_dsack")], &Dsack),
    knob("liar", Scope::Namespace, Domain::Int(0, 65_535), &[], &Liar),
    knob("slow", Scope::Namespace, Domain::Int(0, 1000), &[], &Slow),
    slower(Nanos::millis(1200), knob("steady", Scope::Namespace, Domain::Int(0, 1000), &[], &Steady)),
    knob("host", Scope::Host, Domain::Int(0, 65_535), &[], &Liar),
];

fn netlink(operation: &str) -> impl FnOnce(landspeed_netlink::Error) -> Error + '_ {
    move |e| Error::Unavailable(format!("{operation}: {e}"))
}

struct Mtu;
impl HostKnob for Mtu {
    fn read(&self, place: &Place) -> Result<String, Error> {
        let link = Rtnl::open().and_then(|rtnl| rtnl.link(&place.device)).map_err(netlink("mtu"))?;
        Ok(link.mtu.to_string())
    }

    fn write(&self, place: &Place, value: &str) -> Result<(), Error> {
        let change = LinkChange::Mtu(value.parse().expect("in the domain"));
        Rtnl::open().and_then(|rtnl| rtnl.set_link(&place.device, change)).map_err(netlink("mtu"))
    }
}

/// Takes the link down: static routes and IPv6 addresses go.
struct Down;
impl HostKnob for Down {
    fn read(&self, place: &Place) -> Result<String, Error> {
        let link = Rtnl::open().and_then(|rtnl| rtnl.link(&place.device)).map_err(netlink("down"))?;
        Ok(if link.up { "off" } else { "on" }.into())
    }

    fn write(&self, place: &Place, value: &str) -> Result<(), Error> {
        let change = LinkChange::Up(value == "off");
        Rtnl::open().and_then(|rtnl| rtnl.set_link(&place.device, change)).map_err(netlink("down"))
    }
}

fn read_file(path: &str) -> Result<String, Error> {
    let text = fs::read_to_string(path).map_err(|e| Error::Unavailable(format!("{path}: {e}")))?;
    Ok(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

fn write_file(path: &str, value: &str) -> Result<(), Error> {
    fs::write(path, value).map_err(|e| Error::Unavailable(format!("{path}: {e}")))
}

struct Rmem;
impl HostKnob for Rmem {
    fn read(&self, _: &Place) -> Result<String, Error> {
        read_file("/proc/sys/net/ipv4/tcp_rmem")
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        write_file("/proc/sys/net/ipv4/tcp_rmem", value)
    }
}

/// Disturbs another sysctl beside its own.
struct Sack;
impl HostKnob for Sack {
    fn read(&self, _: &Place) -> Result<String, Error> {
        read_file("/proc/sys/net/ipv4/tcp_sack")
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        write_file("/proc/sys/net/ipv4/tcp_dsack", value)?;
        write_file("/proc/sys/net/ipv4/tcp_sack", value)
    }
}

struct Dsack;
impl HostKnob for Dsack {
    fn read(&self, _: &Place) -> Result<String, Error> {
        read_file("/proc/sys/net/ipv4/tcp_dsack")
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        write_file("/proc/sys/net/ipv4/tcp_dsack", value)
    }
}

const LIAR: &str = "/proc/sys/net/ipv4/tcp_base_mss";

/// Takes 13 for 600 and everything else as it is. (tcp_base_mss, as a variable that lives in a namespace.)
struct Liar;
impl HostKnob for Liar {
    fn read(&self, _: &Place) -> Result<String, Error> {
        read_file(LIAR)
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        write_file(LIAR, if value == "13" { "600" } else { value })
    }
}

/// Its first write in a process takes some times what its row says.
struct Steady;
impl HostKnob for Steady {
    fn read(&self, place: &Place) -> Result<String, Error> {
        Slow.read(place)
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        if SLOW_ONCE.swap(false, Ordering::SeqCst) && value == "9" {
            std::thread::sleep(Duration::from_millis(4000));
        }
        write_file(SLOW, value)
    }
}

static SLOW_ONCE: AtomicBool = AtomicBool::new(true);
const SLOW: &str = "/proc/sys/net/ipv4/tcp_probe_threshold";

/// The first write in a process goes half the way (to 7), waits, and goes on.
struct Slow;
impl HostKnob for Slow {
    fn read(&self, _: &Place) -> Result<String, Error> {
        read_file(SLOW)
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        if value != "8" && SLOW_ONCE.swap(false, Ordering::SeqCst) {
            write_file(SLOW, "7")?;
            std::thread::sleep(Duration::from_secs(30));
        }
        write_file(SLOW, value)
    }
}
