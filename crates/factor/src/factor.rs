//! One factor: all that is known of it before any host is looked at.

use landspeed_record::{HostFacts, LinkFacts, Settings};
use landspeed_units::{Bytes, Nanos, Share};

use crate::{Persist, System};

/// How far a knob reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One flow's sockets or threads: nothing to put back.
    Flow,
    Namespace,
    Device,
    /// The whole machine: skipped in a lab, whose hosts share it.
    Host,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Scope::Flow => "flow",
            Scope::Namespace => "network namespace",
            Scope::Device => "device",
            Scope::Host => "whole machine (not in a lab)",
        })
    }
}

/// Which hosts of a path a knob is turned on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Neither: it belongs to the flow.
    Flow,
    Sender,
    Receiver,
    /// Both, to the same value.
    Both,
}

/// The values that a factor takes; nothing outside it reaches a host.
#[derive(Debug, Clone, Copy)]
pub enum Domain {
    Switch,
    OneOf(&'static [&'static str]),
    /// One of the names that a table has.
    Names(fn() -> Vec<&'static str>),
    /// A count of bytes between the two, ends included.
    Bytes(u64, u64),
    /// Several counts of bytes between the two, at most so many, separated by commas.
    Sizes(u64, u64, usize),
    /// A length of time between the two, ends included.
    Time(Nanos, Nanos),
    /// A rate in bit/s between the two, ends included.
    Rate(u64, u64),
    /// A part of a whole between the two, 0 to 1, ends included.
    Share(f64, f64),
    /// Text of its owner's own, at most so many bytes.
    Text(usize),
    /// A whole number between the two, ends included.
    Int(u64, u64),
    /// As many whole numbers, separated by one space, each in the range (tcp_rmem: 3).
    Ints(usize, u64, u64),
    /// A lower-case name of letters, digits, '_' and '-', at most 15 long (a congestion control, a qdisc).
    Name,
    /// A whole number between the two, ends included, below zero too.
    Signed(i64, i64),
    /// A set of processors as the kernel prints it: "0", "0-3,8"; "none" is the empty one.
    CpuList,
    /// One value of the inner domain for all members (queues, features, processors), or, where they
    /// differ, one a member in the device's order, joined by ';': "3;0;3". Never nested.
    Each(&'static Domain),
}

/// What turning a knob can disturb beside its own value; journaled before, restored and compared after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disturbs {
    /// IPv4 and IPv6 addresses of the device.
    Addresses,
    Routes,
    /// /proc/sys/net/ipv{4,6}/{conf,neigh}/<device>/*.
    DeviceSysctls,
    /// Other offload features of the device.
    Features,
    /// Queue settings: RPS, XPS, BQL.
    Queues,
    Qdisc,
    /// MTU and LRO of devices that stand on this one (VLAN, macvlan), of its bridge or bond, and of that one's ports.
    Related,
    /// A sysctl coupled to this one (net.ipv4.tcp_wmem by tcp_mem, ...).
    Sysctl(&'static str),
}

/// Anything that can be varied: all that is known of it before any host is looked at.
#[derive(Clone, Copy)]
pub struct Factor {
    /// Its name on the command line and in records: the field's own word, lower case with dashes.
    pub name: &'static str,
    pub short: Option<char>,
    /// Where the system keeps it, by the system's own name. It is accepted under that name too.
    pub system: System,
    pub about: &'static str,
    /// The protocol that it is of ("tcp"): a flow over another is not changed by it. Empty for all.
    pub protocol: &'static str,
    pub scope: Scope,
    pub on: On,
    pub domain: Domain,
    /// Its value unless it is set, in canonical spelling; empty for a knob, whose value its host has.
    pub default: &'static str,
    /// The default where the transport carries datagrams, where that is another.
    pub default_of_datagrams: Option<&'static str>,
    /// About how long one toggle takes, settling included.
    pub toggle: Nanos,
    /// What else a turn can disturb.
    pub disturbs: &'static [Disturbs],
    /// Whether turning it can cut the path, so that it is tried under a short lease.
    pub can_cut: bool,
    /// Knobs whose effect depends on this one, either way.
    pub interacts: &'static [&'static str],
    /// Knobs on the same host, with their values, without which this one reads back as off or is refused;
    /// they stand before it in the table, and [`crate::in_order`] turns them in time.
    pub needs: &'static [(&'static str, &'static str)],
    /// A value that cannot matter where another one stands, for a placebo: going to it and back is a candidate's toggle
    /// in all but the effect. `None`, here or as the answer, where none is known.
    pub placebo: Option<fn(&View) -> Option<String>>,
    /// Where the expectation comes from: paper section, RFC, kernel documentation.
    pub source: &'static str,
    /// What makes it last where neither sysctl.d nor a script does.
    pub persist: &'static [Persist],
    pub propose: fn(&View) -> Vec<Proposal>,
}

/// How many times what the table says a toggle may take: a driver that is busy takes several times as long.
const SLOWER: u64 = 4;

impl Factor {
    /// What declarations of one kind fill up from: a switch of the flow that is off.
    pub const FLOW: Factor = Factor {
        name: "",
        short: None,
        system: System::Own,
        about: "",
        protocol: "",
        scope: Scope::Flow,
        on: On::Flow,
        domain: Domain::Switch,
        default: "off",
        default_of_datagrams: None,
        toggle: Nanos(0),
        disturbs: &[],
        can_cut: false,
        interacts: &[],
        needs: &[],
        placebo: None,
        source: "",
        persist: &[],
        propose: crate::nothing,
    };

    /// What a knob of a host fills up from: a switch of both hosts' network namespaces.
    pub const KNOB: Factor = Factor {
        scope: Scope::Namespace,
        on: On::Both,
        default: "",
        toggle: Nanos::millis(1),
        ..Factor::FLOW
    };

    /// Its default over a transport that carries `datagrams`, or a stream.
    pub fn default_over(&self, datagrams: bool) -> &'static str {
        self.default_of_datagrams.filter(|_| datagrams).unwrap_or(self.default)
    }

    pub fn of<'a>(&self, settings: &'a Settings) -> &'a str {
        settings.get(self.name).map_or(self.default, String::as_str)
    }

    pub fn is_on(&self, settings: &Settings) -> bool {
        self.of(settings) == "on"
    }

    /// Its whole number in `settings`; their values were checked before.
    pub fn number(&self, settings: &Settings) -> u64 {
        self.of(settings).parse().unwrap_or(0)
    }

    pub fn bytes(&self, settings: &Settings) -> Bytes {
        Bytes(self.number(settings))
    }

    pub fn time(&self, settings: &Settings) -> Nanos {
        landspeed_units::parse_duration(self.of(settings)).unwrap_or_default()
    }

    /// Its part of a whole in `settings`, 0 to 1.
    pub fn share(&self, settings: &Settings) -> f64 {
        Share::parse(self.of(settings)).unwrap_or_default().as_f64()
    }

    pub fn sizes(&self, settings: &Settings) -> Vec<Bytes> {
        self.of(settings).split(',').filter_map(|size| size.parse().ok().map(Bytes)).collect()
    }

    /// How long a toggle may take before it is taken for hung.
    pub fn patience(&self) -> Nanos {
        Nanos(self.toggle.0.saturating_mul(SLOWER))
    }
}

/// What proposals are made from: both hosts as probed, and what stands. Pure data.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub sender: &'a HostFacts,
    pub receiver: &'a HostFacts,
    pub sender_link: &'a LinkFacts,
    pub receiver_link: &'a LinkFacts,
    pub rtt: Nanos,
    /// Whether the path is of IPv6.
    pub ipv6: bool,
    /// The knob's value that stands (the receiver's for a knob of the receiver, else the sender's).
    pub current: &'a str,
    /// Values that stand, by knob name, sender's and flow's.
    pub settings: &'a Settings,
    pub receiver_settings: &'a Settings,
    /// The greatest value that the hosts concerned take, where they say so.
    pub most: Option<u64>,
    /// How many members (queues, features, processors) the value stands for, where there are several.
    pub members: u32,
}

/// A value worth trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub value: String,
    /// Other knobs that must be set with it, as (name, value).
    pub with: Vec<(&'static str, String)>,
    /// Place in the order: 0 to 99 for what the literature calls decisive, up to 999 for folklore.
    pub rank: u32,
    /// Why it cannot matter here, where it cannot; it is then listed and not tried.
    pub pointless: Option<String>,
}
