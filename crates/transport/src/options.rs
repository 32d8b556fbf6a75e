//! Tables of socket options, which are set from a flow's settings and read back to check them.

use std::fmt;
use std::io;

use landspeed_record::factor::{
    Condition, Domain, Factor, FactorView, NO_QUEUE, PersistMethod, Proposal, SystemSetting, each, unless,
};
use landspeed_record::{SettingMismatch, Settings};
use rustix::net::sockopt;
use socket2::Socket;

/// The value of an option, in the unit of its factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OptionValue {
    Number(u64),
    Word(String),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Number(n) => n.fmt(f),
            OptionValue::Word(word) => word.fmt(f),
        }
    }
}

/// A socket option: the factor that requests it, and the functions that set it and read it back.
pub(crate) struct SocketOption {
    pub(crate) factor: Factor,
    /// The usual reason why the kernel reports another value than was set; may be empty.
    pub(crate) hint: &'static str,
    /// Converts a value of the factor to the option's value. Returns `None` if the option must be left as it is.
    pub(crate) asked: fn(&str) -> Option<OptionValue>,
    pub(crate) set: fn(&Socket, &OptionValue) -> io::Result<()>,
    pub(crate) get: fn(&Socket) -> io::Result<OptionValue>,
}

/// The options of a transport, in the order in which they are set.
pub(crate) struct SocketOptions(pub(crate) &'static [&'static [SocketOption]]);

impl SocketOptions {
    /// Sets all options that `settings` request. Ignores errors, because [`SocketOptions::read_back`] reports options
    /// that were not set.
    pub(crate) fn set(&self, socket: &Socket, settings: &Settings) {
        self.set_but(socket, settings, &[]);
    }

    /// Sets the options of an accepted socket, except the buffer sizes. The listener has set them, because TCP's window
    /// scale is fixed when a connection is opened.
    pub(crate) fn set_accepted(&self, socket: &Socket, settings: &Settings) {
        self.set_but(socket, settings, &["sndbuf", "rcvbuf"]);
    }

    fn set_but(&self, socket: &Socket, settings: &Settings, left_out: &[&str]) {
        for option in self.rows().filter(|option| !left_out.contains(&option.factor.name)) {
            if let Some(asked) = (option.asked)(option.factor.of(settings)) {
                let _ = (option.set)(socket, &asked);
            }
        }
    }

    /// Returns the options whose values on `socket` differ from those that `settings` request.
    pub(crate) fn read_back(&self, socket: &Socket, settings: &Settings) -> Vec<SettingMismatch> {
        let found = |option| differs(option, socket, settings);
        self.rows().filter_map(found).collect()
    }

    /// Returns the factors of these options.
    pub(crate) fn factors(&self) -> impl Iterator<Item = &'static Factor> + use<> {
        self.rows().map(|option| &option.factor)
    }

    fn rows(&self) -> impl Iterator<Item = &'static SocketOption> + use<> {
        self.0.iter().copied().flatten()
    }
}

/// Parses a number; returns `None` for zero, which leaves the option as it is.
pub(crate) fn above_zero(value: &str) -> Option<OptionValue> {
    value.parse().ok().filter(|number| *number > 0).map(OptionValue::Number)
}

/// Returns 1 for "on", and `None` for "off", which leaves the option as it is.
pub(crate) fn once_on(value: &str) -> Option<OptionValue> {
    (value == "on").then_some(OptionValue::Number(1))
}

/// Returns the proposals whose values differ from the factor's current value.
pub(crate) fn others<const N: usize>(view: &FactorView, proposals: [Proposal; N]) -> Vec<Proposal> {
    proposals.into_iter().filter(|proposal| proposal.value != view.current).collect()
}

/// The rank of proposals to pass many datagrams to the kernel, or to receive them, as one buffer.
pub(crate) const AS_ONE: u32 = 26;
/// The rank of proposals that only save system calls.
pub(crate) const BATCHED: u32 = 60;

/// Proposes ways to receive datagrams that differ from the current value of the factor `name`.
pub(crate) fn receives(view: &FactorView, name: &str) -> Vec<Proposal> {
    let batch = Proposal::new("batch", BATCHED + 1)
        .pointless_if(view.is_set_to(name, "gro"), "UDP_GRO takes as many at once");
    others(view, [Proposal::new("gro", AS_ONE + 2), batch])
}

/// The largest buffer size, in bytes. The kernel stores twice the size in an int.
const LARGEST: u64 = (i32::MAX / 2) as u64;
const FIXED: &str = "feng-2003 4.1 (buffers of the order of the bandwidth-delay product); socket(7); \
                     Semke, Mahdavi & Mathis (1998) on autotuning instead";

pub(crate) static SOCKET: &[SocketOption] = &[
    SocketOption {
        factor: Factor {
            name: "sndbuf",
            system: SystemSetting::Socket("SO_SNDBUF"),
            persist: &[PersistMethod::Application(
                "setsockopt(SOL_SOCKET, SO_SNDBUF) before connecting; turns autotuning of the send buffer off",
            )],
            decides: Some(Condition::Windows),
            about: "SO_SNDBUF, which ends autotuning; 0 leaves it on",
            domain: Domain::Bytes(0, LARGEST),
            default: "0",
            interacts: &["rcvbuf", "tcp-wmem", "wmem-max"],
            source: FIXED,
            propose: |view| fixed(view, 400, "wmem-max", view.settings),
            ..Factor::FLOW
        },
        hint: "net.core.wmem_max limits it",
        asked: above_zero,
        set: |socket, value| socket.set_send_buffer_size(value.size()),
        // The kernel doubles the requested size for its own bookkeeping: socket(7).
        get: |socket| Ok(OptionValue::Number(socket.send_buffer_size()? as u64 / 2)),
    },
    SocketOption {
        factor: Factor {
            name: "rcvbuf",
            system: SystemSetting::Socket("SO_RCVBUF"),
            persist: &[PersistMethod::Application(
                "setsockopt(SOL_SOCKET, SO_RCVBUF) before connecting; turns autotuning of the receive buffer off",
            )],
            decides: Some(Condition::Windows),
            about: "SO_RCVBUF, which ends autotuning; 0 leaves it on",
            domain: Domain::Bytes(0, LARGEST),
            default: "0",
            interacts: &["sndbuf", "tcp-rmem", "rmem-max"],
            source: FIXED,
            propose: |view| fixed(view, 402, "rmem-max", view.receiver_settings),
            ..Factor::FLOW
        },
        hint: "net.core.rmem_max limits it",
        asked: above_zero,
        set: |socket, value| socket.set_recv_buffer_size(value.size()),
        get: |socket| Ok(OptionValue::Number(socket.recv_buffer_size()? as u64 / 2)),
    },
    SocketOption {
        factor: Factor {
            name: "busy-poll",
            system: SystemSetting::Socket("SO_BUSY_POLL"),
            persist: &[PersistMethod::Application("setsockopt(SOL_SOCKET, SO_BUSY_POLL), in microseconds")],
            about: "SO_BUSY_POLL: microseconds that a receive call spins on the device; 0 is off",
            domain: Domain::Int(0, 10_000),
            // Zero keeps the system's value (net.core.busy_read), which is a knob of its own.
            default: "0",
            interacts: &[
                "net-busy-poll",
                "net-busy-read",
                "napi-defer-hard-irqs",
                "gro-flush-timeout",
                "rx-usecs",
            ],
            source: "Documentation/networking/napi.rst (busy polling); lab: no effect on veth",
            propose: |view| unless(view.driver("veth"), NO_QUEUE, each(&["50"], 610)),
            ..Factor::FLOW
        },
        hint: "raising it needs CAP_NET_ADMIN and a kernel with CONFIG_NET_RX_BUSY_POLL",
        asked: above_zero,
        set: |socket, value| socket.set_busy_poll(value.small()),
        get: |socket| Ok(OptionValue::Number(socket.busy_poll()?.into())),
    },
];

/// The Differentiated Services codepoint of a flow's packets, by which a network can treat them apart.
pub(crate) static CODEPOINT: &[SocketOption] = &[SocketOption {
    factor: Factor {
        name: "dscp",
        system: SystemSetting::Socket("IP_TOS"),
        persist: &[PersistMethod::Application(
            "setsockopt(IPPROTO_IP, IP_TOS), over IPv6 IPV6_TCLASS, with four times this number",
        )],
        about: "Differentiated Services codepoint of the flow's packets; 0 leaves it to the system",
        domain: Domain::Int(0, 63),
        default: "0",
        interacts: &["qdisc"],
        source: "RFC 2474; ip(7), ipv6(7)",
        ..Factor::FLOW
    },
    hint: "",
    asked: above_zero,
    set: set_codepoint,
    get: codepoint,
}];

/// The lower two bits of the traffic class are the ECN field (RFC 3168), which the kernel keeps for a TCP socket.
const ECN_BITS: u32 = 2;

fn set_codepoint(socket: &Socket, value: &OptionValue) -> io::Result<()> {
    let class = value.small().min(63) << ECN_BITS;
    match socket.domain()? {
        socket2::Domain::IPV6 => sockopt::set_ipv6_tclass(socket, class)?,
        _ => sockopt::set_ip_tos(socket, class as u8)?,
    }
    Ok(())
}

fn codepoint(socket: &Socket) -> io::Result<OptionValue> {
    let class = match socket.domain()? {
        socket2::Domain::IPV6 => sockopt::ipv6_tclass(socket)?,
        _ => sockopt::ip_tos(socket)?.into(),
    };
    Ok(OptionValue::Number(u64::from(class >> ECN_BITS)))
}

/// Proposes autotuning if a size is fixed. Otherwise proposes twice the bandwidth-delay product, as a power of two,
/// and raises the system's `limit` if the kernel would otherwise silently reduce the buffer.
fn fixed(view: &FactorView, rank: u32, limit: &'static str, settings: &Settings) -> Vec<Proposal> {
    if view.current != "0" {
        return vec![Proposal::new("0", 38)];
    }
    let bytes = view.bdp().0.saturating_mul(2).clamp(256 << 10, LARGEST / 2).next_power_of_two().min(LARGEST);
    let most = settings.get(limit).and_then(|most| most.parse::<u64>().ok());
    let buffer = Proposal::new(bytes.to_string(), rank);
    let cut = most.is_some_and(|most| most < bytes);
    vec![if cut { buffer.with(limit, bytes.to_string()) } else { buffer }]
}

impl OptionValue {
    pub(crate) fn number(&self) -> u64 {
        match self {
            OptionValue::Number(n) => *n,
            OptionValue::Word(_) => 0,
        }
    }

    pub(crate) fn small(&self) -> u32 {
        self.number().try_into().unwrap_or(u32::MAX)
    }

    pub(crate) fn size(&self) -> usize {
        // The kernel takes an int; a larger value means "as much as possible".
        self.number().min(i32::MAX as u64) as usize
    }
}

fn differs(row: &SocketOption, socket: &Socket, settings: &Settings) -> Option<SettingMismatch> {
    let value = row.factor.of(settings);
    let asked = (row.asked)(value)?;
    let got = match (row.get)(socket) {
        Ok(got) if got == asked => return None,
        Ok(got) => got.to_string(),
        Err(error) => error.to_string(),
    };
    let hint = if row.hint.is_empty() { String::new() } else { format!(" ({})", row.hint) };
    let line = format!("{}: asked for {asked}, got {got}{hint}", row.factor.system.name());
    Some(SettingMismatch { setting: row.factor.name.to_owned(), asked: value.to_owned(), got, line })
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn a_codepoint_is_set_in_both_families_and_read_back() {
        static OPTIONS: SocketOptions = SocketOptions(&[CODEPOINT]);
        let [asked, none] = ["46", "0"].map(|value| crate::settings::with(&[(&CODEPOINT[0].factor, value)]));
        for domain in [Domain::IPV4, Domain::IPV6] {
            for kind in [Type::STREAM, Type::DGRAM] {
                let socket = Socket::new(domain, kind, None).expect("a socket");
                OPTIONS.set(&socket, &none);
                assert_eq!(OPTIONS.read_back(&socket, &asked)[0].line, "IP_TOS: asked for 46, got 0");
                OPTIONS.set(&socket, &asked);
                assert_eq!(OPTIONS.read_back(&socket, &asked), []);
            }
        }
    }
}
