//! The declaration of a factor: everything that is known about it before any host is probed.
//!
//! Four fields relate a knob to other knobs. `interacts` names knobs on which the effect of the knob depends. `needs`
//! names values of other knobs without which the kernel does not apply the knob. `with` of a [`Proposal`] names knobs
//! that the same step changes. `disturbs` names settings that a write of the knob may change.

use crate::units::{Bytes, Nanos, Share};
use crate::{HostFacts, KernelNeed, LinkFacts, Settings};

use crate::factor::{Condition, PersistMethod, SystemSetting};

/// What a change of a knob affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FactorScope {
    /// The sockets or threads of one flow. There is nothing to restore.
    Flow,
    Namespace,
    Device,
    /// The whole machine. A lab skips such knobs, because its hosts share the machine.
    Host,
}

impl std::fmt::Display for FactorScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            FactorScope::Flow => "flow",
            FactorScope::Namespace => "network namespace",
            FactorScope::Device => "device",
            FactorScope::Host => "whole machine (not in a lab)",
        })
    }
}

/// The hosts of a path on which a knob is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorPlacement {
    /// No host. The factor is a setting of the flow.
    Flow,
    Sender,
    Receiver,
    /// Both hosts, with the same value.
    Both,
}

/// The values that a factor accepts. All other values are refused before they reach a host.
#[derive(Debug, Clone, Copy)]
pub enum Domain<'a> {
    Switch,
    OneOf(&'a [&'a str]),
    /// One of these words, which an application's file lists.
    Words(&'a [String]),
    /// One of the names that the function returns.
    Names(fn() -> Vec<&'static str>),
    /// A number of bytes from the first to the second bound, both included.
    Bytes(u64, u64),
    /// Sizes in bytes, each between the two bounds, separated by commas. The third number is the largest number of
    /// sizes.
    Sizes(u64, u64, usize),
    /// A duration from the first to the second bound, both included.
    Time(Nanos, Nanos),
    /// A rate in bit/s from the first to the second bound, both included.
    Rate(u64, u64),
    /// A part of a whole, from 0 to 1, between the two bounds, both included.
    Share(f64, f64),
    /// Free text of at most this many bytes.
    Text(usize),
    /// A whole number from the first to the second bound, both included.
    Int(u64, u64),
    /// This many whole numbers, each between the two bounds, separated by one space (tcp_rmem has 3).
    Ints(usize, u64, u64),
    /// A name of at most 15 lower-case letters, digits, '_' and '-', such as a congestion control or a qdisc.
    Name,
    /// One name or more, as in [`Domain::Name`], separated by one space. Their order has no meaning.
    NameList,
    /// A whole number, negative ones included, from the first to the second bound, both included.
    Signed(i64, i64),
    /// A set of processors in the kernel's format: "0", "0-3,8", or "none" for the empty set.
    CpuList,
    /// One value of the inner domain for all members (queues, features, processors). If the members differ, it is one
    /// value per member in the device's order, joined by ';': "3;0;3". The inner domain is never `Each`.
    Each(&'a Domain<'a>),
}

/// Other settings that the kernel may change when a knob is set. The journal saves these settings before the change.
/// After the change they are restored and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SideEffect {
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
    /// MTU and LRO of devices on top of this one (VLAN, macvlan), of its bridge or bond, and of the ports of that
    /// bridge or bond.
    Related,
    /// A sysctl that the kernel couples to the knob's own, as it couples net.ipv4.tcp_wmem to tcp_mem.
    Sysctl(&'static str),
}

/// The declaration of a factor: anything that can be varied. Its texts are borrowed from constants for a [`Factor`],
/// or from an application's file for a parameter of the application.
#[derive(Clone, Copy)]
pub struct FactorDeclaration<'a> {
    /// The name on the command line and in records: the usual term, lower case, with dashes.
    pub name: &'a str,
    pub short: Option<char>,
    /// Where the system keeps the setting. Users may also name the factor by the system's names for it.
    pub system: SystemSetting,
    pub about: &'a str,
    /// The protocol whose flows the factor affects, such as "tcp". Empty if it affects all flows.
    pub protocol: &'static str,
    pub scope: FactorScope,
    pub on: FactorPlacement,
    /// Every value that a host may have now must be in it. A knob whose value is not is read, but never changed.
    pub domain: Domain<'a>,
    /// The default value, in canonical spelling. Empty for a knob, because its host has a value already.
    pub default: &'a str,
    /// The default for transports that carry datagrams; `None` if it is the same as for other transports.
    pub default_of_datagrams: Option<&'static str>,
    /// Usual duration of one toggle, settling included.
    pub toggle: Nanos,
    /// Other settings that a change can disturb.
    pub disturbs: &'static [SideEffect],
    /// True if a change can cut the path. Such a change is tried under a short lease.
    pub can_cut: bool,
    /// Knobs that interact with this knob: the effect of one depends on the value of the other. It is enough if one of
    /// the two declarations names the other.
    pub interacts: &'static [&'static str],
    /// Values of other knobs on the same host that this knob requires. Without these values, the kernel refuses this
    /// knob or leaves it off. The other knobs precede it in the table, and `in_order` of the knob crate sets them
    /// first.
    pub needs: &'static [(&'static str, &'static str)],
    /// What the factor needs of the kernel; empty if every supported kernel has it.
    pub kernel: &'static [KernelNeed],
    /// Function that returns a value equivalent to the current one, for a placebo. Toggling between the two values
    /// takes the same steps as toggling a candidate, but has no effect. The field or the function's result is `None` if
    /// no such value is known.
    pub placebo: Option<fn(&FactorView) -> Option<String>>,
    /// The condition of figures that this factor sets; `None` if it decides few figures.
    pub decides: Option<Condition>,
    /// Source of the expected effect: paper section, RFC, or kernel documentation.
    pub source: &'static str,
    /// Ways to make the setting permanent, for a setting that neither sysctl.d nor a script makes permanent.
    pub persist: &'static [PersistMethod],
    pub propose: fn(&FactorView) -> Vec<Proposal>,
}

/// The declaration of a factor that is part of landspeed.
pub type Factor = FactorDeclaration<'static>;

/// The longest time that a toggle may take, as a multiple of the time in its declaration. A busy driver is several
/// times slower than an idle one.
const SLOWER: u64 = 4;

impl Factor {
    /// The base for the declarations of a flow's settings: a switch that is off by default.
    pub const FLOW: Factor = Factor {
        name: "",
        short: None,
        system: SystemSetting::Own,
        about: "",
        protocol: "",
        scope: FactorScope::Flow,
        on: FactorPlacement::Flow,
        domain: Domain::Switch,
        default: "off",
        default_of_datagrams: None,
        toggle: Nanos(0),
        disturbs: &[],
        can_cut: false,
        interacts: &[],
        needs: &[],
        kernel: &[],
        placebo: None,
        decides: None,
        source: "",
        persist: &[],
        propose: crate::factor::nothing,
    };

    /// The base for the declarations of a host's knobs: a switch in the network namespaces of both hosts.
    pub const KNOB: Factor = Factor {
        scope: FactorScope::Namespace,
        on: FactorPlacement::Both,
        default: "",
        toggle: Nanos::millis(1),
        ..Factor::FLOW
    };
}

impl<'a> FactorDeclaration<'a> {
    /// Returns the default value. `datagrams` is true for a transport that carries datagrams, and false for one that
    /// carries a stream.
    pub fn default_over(&self, datagrams: bool) -> &'a str {
        self.default_of_datagrams.filter(|_| datagrams).unwrap_or(self.default)
    }

    pub fn of<'s>(&self, settings: &'s Settings) -> &'s str
    where
        'a: 's,
    {
        settings.get(self.name).map_or(self.default, String::as_str)
    }

    pub fn is_on(&self, settings: &Settings) -> bool {
        self.of(settings) == "on"
    }

    /// Returns the factor's value in `settings` as a whole number; 0 if it is no whole number. The values must have
    /// been checked.
    pub fn number(&self, settings: &Settings) -> u64 {
        self.of(settings).parse().unwrap_or(0)
    }

    pub fn bytes(&self, settings: &Settings) -> Bytes {
        Bytes(self.number(settings))
    }

    pub fn time(&self, settings: &Settings) -> Nanos {
        crate::units::parse_duration(self.of(settings)).unwrap_or_default()
    }

    /// Returns the factor's share in `settings`, from 0 to 1.
    pub fn share(&self, settings: &Settings) -> f64 {
        Share::parse(self.of(settings)).unwrap_or_default().as_f64()
    }

    pub fn sizes(&self, settings: &Settings) -> Vec<Bytes> {
        self.of(settings).split(',').filter_map(|size| size.parse().ok().map(Bytes)).collect()
    }

    /// Returns how long a toggle may take before it counts as hung.
    pub fn patience(&self) -> Nanos {
        Nanos(self.toggle.0.saturating_mul(SLOWER))
    }
}

/// The facts from which a factor proposes values: the probed facts of both hosts, and the current values.
#[derive(Debug, Clone, Copy)]
pub struct FactorView<'a> {
    pub sender: &'a HostFacts,
    pub receiver: &'a HostFacts,
    pub sender_link: &'a LinkFacts,
    pub receiver_link: &'a LinkFacts,
    pub rtt: Nanos,
    /// True if the path uses IPv6.
    pub ipv6: bool,
    /// The factor's current value: the receiver's value for a knob of the receiver, and else the value of the sender or
    /// the flow.
    pub current: &'a str,
    /// Current values of the sender and the flow, by name.
    pub settings: &'a Settings,
    pub receiver_settings: &'a Settings,
    /// The greatest value that all hosts concerned accept; `None` if none of them reports a limit.
    pub most: Option<u64>,
    /// The number of members (queues, features, processors) that the value covers; 1 for a plain value.
    pub members: u32,
}

/// A value of a factor that may be worth trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub value: String,
    /// Values that other knobs must have at the same time, as (name, value).
    pub with: Vec<(&'static str, String)>,
    /// The place in the order of trials, lowest first: 0 to 99 for what the literature calls decisive, up to 999 for
    /// folklore. Proposals of equal rank keep the order of the table.
    pub rank: u32,
    /// The reason why the value cannot matter here. Such a value is listed and not tried.
    pub pointless: Option<String>,
}
