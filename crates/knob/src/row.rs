//! One row of the knob table: all that is known of a knob before any host is looked at.

use landspeed_record::{FlowSettings, HostFacts, LinkFacts, Settings};
use landspeed_units::Nanos;

use crate::Error;

/// How far a knob reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One flow's sockets or threads: nothing to put back.
    Flow,
    /// A network namespace.
    Namespace,
    /// One network device.
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
    /// The host that sends data.
    Sender,
    /// The host that receives data.
    Receiver,
    /// Both, to the same value.
    Both,
}

/// The values that a knob takes; nothing outside it reaches a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// "on" or "off".
    Switch,
    /// One of these words.
    OneOf(&'static [&'static str]),
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
    /// Routes over the device.
    Routes,
    /// /proc/sys/net/ipv{4,6}/{conf,neigh}/<device>/*.
    DeviceSysctls,
    /// Other offload features of the device.
    Features,
    /// Queue settings: RPS, XPS, BQL.
    Queues,
    /// The qdisc of the device.
    Qdisc,
    /// A sysctl coupled to this one (net.ipv4.tcp_wmem by tcp_mem, ...).
    Sysctl(&'static str),
}

/// All that is known of a knob before any host is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its name on the command line and in records: the field's own word, lower case with dashes.
    pub name: &'static str,
    /// What it does, one line.
    pub about: &'static str,
    /// How far it reaches.
    pub scope: Scope,
    /// Which hosts it is turned on.
    pub on: On,
    /// Its values.
    pub domain: Domain,
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
}

/// How many times what the table says a toggle may take: a driver that is busy takes several times as long.
const SLOWER: u64 = 4;

impl Row {
    /// How long a toggle may take before it is taken for hung.
    pub fn patience(&self) -> Nanos {
        Nanos(self.toggle.0.saturating_mul(SLOWER))
    }
}

/// Where a system knob is turned: this process's network namespace, and a device in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The device that faces the peer.
    pub device: String,
}

/// How a knob is read and turned.
#[derive(Clone, Copy)]
pub enum Turn {
    /// A setting of the host.
    Host(&'static dyn HostKnob),
    /// A field of the flow's settings.
    Flow {
        /// The field's value in the domain's spelling.
        get: fn(&FlowSettings) -> String,
        /// Sets the field from a value of the domain.
        set: fn(&mut FlowSettings, &str) -> Result<(), Error>,
    },
}

/// A setting of the host, read and written where the kernel keeps it. Journal, verification and
/// rollback are not its business: see the journal module.
pub trait HostKnob: Sync {
    /// The value now, in the domain's spelling. [`Error::Unavailable`] says why this host lacks it.
    fn read(&self, place: &Place) -> Result<String, Error>;

    /// Writes `value`, which lies in the domain, and nothing else. Also to be called where it reads so
    /// already: an offload that is off only for want of another is made to stay off.
    fn write(&self, place: &Place, value: &str) -> Result<(), Error>;

    /// Whether a write could succeed, as far as can be told without one: nothing is changed.
    /// [`Error::Unavailable`] says why not.
    fn can_write(&self, _place: &Place) -> Result<(), Error> {
        Ok(())
    }

    /// The knob's file below /proc/sys ("net/ipv4/tcp_rmem"), for sysctl.d; `None` for what is no sysctl.
    fn sysctl(&self) -> Option<&'static str> {
        None
    }

    /// What this host says of the values that it takes.
    fn limits(&self, _place: &Place) -> Result<Limits, Error> {
        Ok(Limits::default())
    }
}

/// What proposals are made from: both hosts as probed, and what stands. Pure data.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The host that sends.
    pub sender: &'a HostFacts,
    /// The host that receives.
    pub receiver: &'a HostFacts,
    /// The sender's link on the path.
    pub sender_link: &'a LinkFacts,
    /// The receiver's link on the path.
    pub receiver_link: &'a LinkFacts,
    /// Idle round trip.
    pub rtt: Nanos,
    /// The knob's value that stands (the receiver's for a knob of the receiver, else the sender's).
    pub current: &'a str,
    /// Values that stand, by knob name, sender's and flow's.
    pub settings: &'a Settings,
    /// Values that stand at the receiver, by knob name.
    pub receiver_settings: &'a Settings,
    /// The greatest value that the hosts concerned take, where they say so.
    pub most: Option<u64>,
    /// How many members (queues, features, processors) the value stands for, where there are several.
    pub members: u32,
}

/// What a host says of a knob's values, beyond the table's domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The greatest value that it takes.
    pub most: Option<u64>,
    /// The values that it offers; empty where it does not say.
    pub choices: Vec<String>,
    /// How many members (queues, features, processors) one value stands for.
    pub members: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { most: None, choices: Vec::new(), members: 1 }
    }
}

/// A value worth trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The value.
    pub value: String,
    /// Other knobs that must be set with it, as (name, value).
    pub with: Vec<(&'static str, String)>,
    /// Place in the order: 0 to 99 for what the literature calls decisive, up to 999 for folklore.
    pub rank: u32,
    /// Why it cannot matter here, where it cannot; it is then listed and not tried.
    pub pointless: Option<String>,
}

/// A knob: its row, how to turn it, and what to try.
#[derive(Clone, Copy)]
pub struct Knob {
    /// What is known of it.
    pub row: Row,
    /// How to turn it.
    pub turn: Turn,
    /// Values worth trying; pure.
    pub propose: fn(&View) -> Vec<Proposal>,
}

impl Knob {
    /// The knob's file below /proc/sys ("net/ipv4/tcp_rmem"), for sysctl.d; `None` for what is no sysctl.
    pub fn sysctl(&self) -> Option<&'static str> {
        match self.turn {
            Turn::Host(knob) => knob.sysctl(),
            Turn::Flow { .. } => None,
        }
    }
}
