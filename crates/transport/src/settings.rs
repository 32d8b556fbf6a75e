//! The factors that flows of all transports have.
//!
//! A flow's settings are values of these factors and of the factors of its transport ([`crate::Transport::factors`]).

use landspeed_record::Settings;
use landspeed_record::factor::{
    Condition, Domain, Factor, FactorTable, FactorView, PersistMethod, Proposal, unless,
};

use crate::{Delivery, TRANSPORTS, Transport};

/// The largest message or read buffer, in bytes: larger ones only overflow the processor's caches.
const LARGEST: u64 = 64 << 20;
const MOST_FLOWS: u64 = 256;

/// The transport of a flow.
pub static TRANSPORT: Factor = Factor {
    name: "transport",
    about: "how bytes get from one process to another",
    domain: Domain::Names(names),
    default: "tcp",
    interacts: &["write-size"],
    source: "cottrell-2005 III.B (TCP and UDT); jin-yoo-2007 section 4 (TCP and UDP)",
    ..Factor::FLOW
};

/// The number of flows that run in parallel.
pub static FLOWS: Factor = Factor {
    name: "flows",
    persist: &[PersistMethod::Application("open this many TCP connections at once")],
    short: Some('P'),
    about: "parallel flows",
    domain: Domain::Int(1, MOST_FLOWS),
    default: "1",
    interacts: &["channels", "rps", "xps", "congestion-control", "pacing-rate", "placement"],
    source: "cottrell-2005 IV.A, IV.B.2 (more streams: more rate, more processor time); feng-2003 3.5.2",
    propose: |view| {
        let paced = view.datagram().is_some() && view.number("pacing-rate").unwrap_or(0) > 0;
        unless(paced, "each flow sends at the pace of one", larger(view, &[(2, 78), (4, 79), (8, 82)]))
    },
    ..Factor::FLOW
};

/// The number of bytes of each send call, or of the payload of each datagram.
pub static WRITE_SIZE: Factor = Factor {
    name: "write-size",
    persist: &[PersistMethod::Application("hand this many bytes to each send call")],
    about: "bytes handed to each send call, or the payload of each datagram",
    domain: Domain::Bytes(1, LARGEST),
    default: "131072",
    // The payload of a UDP datagram that fills an Ethernet packet over IPv4.
    default_of_datagrams: Some("1472"),
    interacts: &["tso", "tcp-wmem", "nodelay", "zerocopy-send", "placement", "mtu"],
    source: "feng-2003 3.2, 3.3 (NTTCP's sweep of 128 B to 16 KB); lab: 8 KB 15, 64 KB 26, 1 MB 51 Gb/s",
    propose: |view| match view.datagram() {
        Some(_) => datagrams(view),
        None => larger(view, &[(65_536, 10), (1_048_576, 33), (262_144, 126)]),
    },
    ..Factor::FLOW
};

/// The size of the buffer of each receive call, in bytes.
pub static READ_SIZE: Factor = Factor {
    name: "read-size",
    persist: &[PersistMethod::Application("hand a buffer of this many bytes to each receive call")],
    about: "bytes that each receive call has room for",
    domain: Domain::Bytes(1, LARGEST),
    default: "131072",
    interacts: &["gro", "tcp-rmem", "zerocopy-receive"],
    source: "feng-2003 3.2",
    propose: |view| {
        let reason = "no call brings more than one datagram, or the 64 KB that UDP_GRO joins";
        unless(view.datagram().is_some(), reason, larger(view, &[(1_048_576, 76), (262_144, 77)]))
    },
    ..Factor::FLOW
};

/// The processors on which the threads of a flow's two ends run.
pub static PLACEMENT: Factor = Factor {
    name: "placement",
    persist: &[
        PersistMethod::ApplicationValue(
            "free",
            "leave the threads to the scheduler: no taskset(1), no CPUAffinity= of the service",
        ),
        PersistMethod::Application(
            "pin the sending and receiving threads: taskset(1), or CPUAffinity= of the service",
        ),
    ],
    decides: Some(Condition::Placement),
    about: "where sender and receiver run: wherever the scheduler likes, on the core that takes the packets, or on \
            its neighbour",
    domain: Domain::OneOf(&["free", "same-core", "neighbours"]),
    default: "free",
    interacts: &["rps", "rfs", "irq-affinity", "threaded-napi", "tso", "tcp-rmem", "write-size"],
    source: "feng-2003 3.3.1 (the uniprocessor kernel: 10 % at MTU 9000, 25 % at 1500); lab: 1.9x",
    propose: |view| {
        let one = view.sender.cpus < 2 && view.receiver.cpus < 2;
        let ranked = [("same-core", 5), ("neighbours", 105), ("free", 128)];
        let reason = "one processor: there is one place";
        ranked.map(|(place, rank)| Proposal::new(place, rank).pointless_if(one, reason)).into()
    },
    ..Factor::FLOW
};

/// The factors that flows of all transports have, in the order in which they are listed.
pub static EVERY_FLOW: &[&Factor] = &[&TRANSPORT, &PLACEMENT, &WRITE_SIZE, &READ_SIZE, &FLOWS];

fn names() -> Vec<&'static str> {
    TRANSPORTS.iter().map(|transport| transport.name()).collect()
}

/// Proposes datagrams that fill a packet of the current MTU, and datagrams that fill a jumbo frame of Ethernet (MTU
/// 9000). A datagram above the MTU is cut into fragments, and the largest payload is 65,507 bytes.
fn datagrams(view: &FactorView) -> Vec<Proposal> {
    const JUMBO: u64 = 9000;
    let headers = view.datagram_headers();
    let current = view.current.parse::<u64>().unwrap_or(0);
    let mtu = view.number("mtu").unwrap_or_default();
    let full =
        Some(mtu.saturating_sub(headers)).filter(|full| (1..65_508).contains(full) && *full != current);
    let full = full.map(|full| Proposal::new(full.to_string(), 11));
    let jumbo = (mtu < JUMBO && current < JUMBO - headers)
        .then(|| Proposal::new((JUMBO - headers).to_string(), 9).with("mtu", JUMBO.to_string()));
    full.into_iter().chain(jumbo).chain(larger(view, &[(8192, 126)])).collect()
}

/// Proposes those of `values` (value, rank) that are larger than the current value.
fn larger(view: &FactorView, values: &[(u64, u32)]) -> Vec<Proposal> {
    let current = view.current.parse::<u64>().unwrap_or(0);
    let above = values.iter().filter(|(value, _)| *value > current);
    above.map(|(value, rank)| Proposal::new(value.to_string(), *rank)).collect()
}

/// Returns the factors of a flow over `transport`.
pub fn table(transport: &dyn Transport) -> FactorTable<'static> {
    FactorTable::of(EVERY_FLOW.iter().copied().chain(transport.factors()))
}

/// Returns the settings of a flow over `transport` with each factor at its default.
pub fn defaults(transport: &dyn Transport) -> Settings {
    let datagrams = transport.about().delivery == Delivery::Datagrams;
    let default = |factor: &Factor| (factor.name.to_owned(), factor.default_over(datagrams).to_owned());
    let mut settings: Settings = table(transport).all().map(default).collect();
    settings.insert(TRANSPORT.name.to_owned(), transport.name().to_owned());
    settings
}

/// Returns settings that contain only `values`. All other factors are unset.
pub fn with(values: &[(&Factor, &str)]) -> Settings {
    values.iter().map(|(factor, value)| (factor.name.to_owned(), (*value).to_owned())).collect()
}
