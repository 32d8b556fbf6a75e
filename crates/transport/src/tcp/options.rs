//! The settings of a TCP flow.

use landspeed_record::factor::{
    Condition, Domain, Factor, FactorView, PersistMethod, Proposal, SystemSetting, algorithms, each, flip,
    next_to, unless,
};

use crate::options::{self, OptionValue, SocketOption, SocketOptions, above_zero};
use crate::{raw, zerocopy};

/// The value that leaves the congestion control to the system.
const SYSTEM: &str = "default";
/// A limit of unsent bytes that no socket reaches: the largest int, which is the kernel's type.
const UNLIMITED: u64 = i32::MAX as u64;
/// The highest rate, in bits per second: 2^53, because rates are stored as doubles.
const FASTEST: u64 = 1 << 53;

pub(super) static OPTIONS: SocketOptions =
    SocketOptions(&[options::SOCKET, COMMON, ROWS, options::CODEPOINT, zerocopy::ROW]);

/// The factor that switches TCP_ZEROCOPY_RECEIVE, which receives without a copy between kernel and application. It is
/// not in the table of socket options, because it is set for each receive call and not once for the socket.
pub(super) static ZEROCOPY_RECEIVE: Factor = Factor {
    name: "zerocopy-receive",
    system: SystemSetting::Socket("TCP_ZEROCOPY_RECEIVE"),
    persist: &[PersistMethod::Application(
        "mmap the socket and getsockopt(IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE)",
    )],
    about: "TCP_ZEROCOPY_RECEIVE: map received pages instead of copying them",
    interacts: &["mtu", "gro", "read-size"],
    source: "Dumazet (2018); lab: maps nothing unless the MSS is a multiple of 4096",
    propose: zerocopy_receive,
    ..Factor::FLOW
};

pub(crate) static COMMON: &[SocketOption] = &[
    SocketOption {
        factor: Factor {
            name: "nodelay",
            system: SystemSetting::Socket("TCP_NODELAY"),
            persist: &[PersistMethod::Application("setsockopt(IPPROTO_TCP, TCP_NODELAY)")],
            about: "TCP_NODELAY: send small segments at once (no Nagle)",
            interacts: &["write-size", "autocorking"],
            source: "RFC 896; lab: 128 B writes 1.3 Gb/s with Nagle, 0.2 without",
            propose: |view| {
                let large = view.number("write-size").is_some_and(|bytes| bytes >= 65_536);
                unless(large, "writes fill whole segments: Nagle never waits", flip(view, 450))
            },
            ..Factor::FLOW
        },
        hint: "",
        asked: |value| Some(OptionValue::Number((value == "on").into())),
        set: |socket, value| socket.set_tcp_nodelay(value.number() != 0),
        get: |socket| Ok(OptionValue::Number(socket.tcp_nodelay()?.into())),
    },
    SocketOption {
        factor: Factor {
            name: "socket-congestion",
            system: SystemSetting::Socket("TCP_CONGESTION"),
            persist: &[PersistMethod::Application("setsockopt(IPPROTO_TCP, TCP_CONGESTION)")],
            decides: Some(Condition::CongestionControl),
            about: "TCP_CONGESTION: congestion control of this flow; 'default' leaves it to the system",
            domain: Domain::Name,
            default: SYSTEM,
            interacts: &["congestion-control", "pacing-rate"],
            source: "tcp(7); cottrell-2005 IV.A",
            propose: congestion,
            ..Factor::FLOW
        },
        hint: "it must be in net.ipv4.tcp_available_congestion_control; without root, in the allowed one",
        asked: |value| (value != SYSTEM).then(|| OptionValue::Word(value.to_owned())),
        set: |socket, value| socket.set_tcp_congestion(value.to_string().as_bytes()),
        get: |socket| Ok(OptionValue::Word(until_nul(&socket.tcp_congestion()?))),
    },
];

static ROWS: &[SocketOption] = &[
    SocketOption {
        factor: PACING_RATE,
        hint: "in bytes a second",
        asked: |value| {
            value.parse().ok().filter(|bits| *bits > 0).map(|bits: u64| OptionValue::Number(bits / 8))
        },
        set: |socket, value| raw::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value.number()),
        get: |socket| {
            raw::get::<u64>(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE).map(OptionValue::Number)
        },
    },
    SocketOption {
        factor: Factor {
            name: "socket-notsent-lowat",
            system: SystemSetting::Socket("TCP_NOTSENT_LOWAT"),
            persist: &[PersistMethod::Application("setsockopt(IPPROTO_TCP, TCP_NOTSENT_LOWAT)")],
            about: "TCP_NOTSENT_LOWAT of each flow; 0 leaves it to the system",
            domain: Domain::Bytes(0, UNLIMITED),
            default: "0",
            placebo: Some(unlimited),
            interacts: &["notsent-lowat", "write-size", "tcp-wmem"],
            source: "tcp(7); Cheshire, WWDC 2015 session 719",
            propose: |_| each(&["131072"], 425),
            ..Factor::FLOW
        },
        hint: "",
        asked: above_zero,
        set: |socket, value| socket.set_tcp_notsent_lowat(value.small()),
        get: |socket| Ok(OptionValue::Number(socket.tcp_notsent_lowat()?.into())),
    },
];

/// The factor of the highest rate at which each flow may send.
pub(crate) const PACING_RATE: Factor = Factor {
    name: "pacing-rate",
    system: SystemSetting::Socket("SO_MAX_PACING_RATE"),
    persist: &[PersistMethod::Application(
        "setsockopt(SOL_SOCKET, SO_MAX_PACING_RATE), in bytes per second, for each connection",
    )],
    about: "the most that each flow sends: SO_MAX_PACING_RATE of TCP, the sender's own clock of UDP; 0 is unlimited",
    domain: Domain::Rate(0, FASTEST),
    default: "0",
    interacts: &["qdisc", "congestion-control", "flows", "gso"],
    source: "ESnet fasterdata (paced flows, 2016 on); tc-fq(8)",
    propose: pace,
    ..Factor::FLOW
};

/// Proposes other congestion controls for the flow's sockets, because not every network namespace may use every
/// algorithm as its default.
fn congestion(view: &FactorView) -> Vec<Proposal> {
    if !view.is_set_to("socket-congestion", SYSTEM) {
        return vec![Proposal::new(SYSTEM, 108)];
    }
    let system = view.settings.get("congestion-control").map_or("", String::as_str);
    let reason = "congestion-control tries the same for all flows";
    algorithms(view, system).map(|(default, proposal)| proposal.pointless_if(default, reason)).collect()
}

/// Returns a placebo: another value with the same effect as the current one. If neither the flow nor the system has a
/// limit, the placebo is the largest number. If the flow has a limit, the placebo is the next number. Returns `None` if
/// only the system has a limit.
fn unlimited(view: &FactorView) -> Option<String> {
    match view.current {
        "0" => (view.number("notsent-lowat")? >= UNLIMITED).then(|| UNLIMITED.to_string()),
        limit => next_to(limit, UNLIMITED),
    }
}

/// Proposes 90 % of each flow's even share of the slower link, so that bursts do not overrun the path's buffers.
fn pace(view: &FactorView) -> Vec<Proposal> {
    let mbps = [view.sender_link.speed_mbps, view.receiver_link.speed_mbps].into_iter().flatten().min();
    let Some(mbps) = mbps else {
        let unlimited = Proposal::new("0", 415).pointless_if(true, "no device states a speed to pace to");
        return vec![unlimited];
    };
    let flows = view.number("flows").unwrap_or(1).max(1);
    vec![Proposal::new((mbps.saturating_mul(900_000) / flows).min(FASTEST).to_string(), 415)]
}

fn zerocopy_receive(view: &FactorView) -> Vec<Proposal> {
    if view.current == "on" {
        return Vec::new();
    }
    // The headers of IPv4 and TCP with timestamps take 52 bytes, those of IPv6 and TCP 72. A segment carries whole
    // pages if the MTU less either length is a multiple of the page size.
    let mtu = view.settings.get("mtu").and_then(|mtu| mtu.parse::<u32>().ok());
    let mtu = mtu.unwrap_or(view.sender_link.mtu_bytes);
    let whole_pages = [52, 72].iter().any(|headers| mtu > 4096 && (mtu - headers).is_multiple_of(4096));
    let reason = format!("at MTU {mtu} no segment is a whole number of pages, so nothing can be mapped");
    vec![Proposal::new("on", 490).pointless_if(!whole_pages, reason)]
}

fn until_nul(bytes: &[u8]) -> String {
    let name = bytes.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use socket2::{Socket, Type};

    use super::*;
    use crate::settings::with;

    fn socket() -> Socket {
        Socket::new(socket2::Domain::IPV4, Type::STREAM, None).expect("a TCP socket")
    }

    fn asked(values: &[(&str, &str)]) -> landspeed_record::Settings {
        values.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn granted_options_read_back_without_a_mismatch() {
        let settings = asked(&[
            ("sndbuf", "65536"),
            ("rcvbuf", "65536"),
            ("nodelay", "on"),
            ("socket-congestion", "reno"),
            ("pacing-rate", "8000000000"),
            ("socket-notsent-lowat", "131072"),
            ("zerocopy-send", "on"),
        ]);
        let socket = socket();
        OPTIONS.set(&socket, &settings);
        assert_eq!(OPTIONS.read_back(&socket, &settings), []);
        assert_eq!(socket.send_buffer_size().expect("readable"), 128 * 1024);
        assert!(zerocopy::SEND.is_on(&settings) && !zerocopy::SEND.is_on(&with(&[])));
    }

    #[test]
    fn refused_options_are_named_with_the_value_that_is_set() {
        let settings = asked(&[("rcvbuf", "1099511627776"), ("socket-congestion", "no-such-thing")]);
        let socket = socket();
        OPTIONS.set(&socket, &settings);
        let lines: Vec<String> =
            OPTIONS.read_back(&socket, &settings).into_iter().map(|one| one.line).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("SO_RCVBUF: asked for 1099511627776, got "), "{lines:?}");
        assert!(lines[0].ends_with("(net.core.rmem_max limits it)"), "{lines:?}");
        assert!(lines[1].starts_with("TCP_CONGESTION: asked for no-such-thing, got "), "{lines:?}");
    }
}
