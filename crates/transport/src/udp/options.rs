//! The settings of a UDP flow.

use std::io;

use landspeed_record::factor::{
    Domain, Factor, FactorView, PersistMethod, Proposal, SystemSetting, switch_on, unless,
};
use landspeed_record::units::{BitRate, Bytes};
use landspeed_record::{KernelNeed, KernelVersion, Settings};
use socket2::Socket;

use crate::message::{ReceiveMode, SendMode};
use crate::options::{
    self, AS_ONE, BATCHED, OptionValue, SocketOption, SocketOptions, once_on, others, receives,
};
use crate::settings::WRITE_SIZE;
use crate::tcp::PACING_RATE;
use crate::{raw, zerocopy};

pub(super) static OPTIONS: SocketOptions = SocketOptions(&[options::SOCKET, ROWS, zerocopy::ROW]);

pub(super) static SEND: Factor = Factor {
    name: "datagram-send",
    about: "how datagrams are handed to the kernel: one in each call, many (sendmmsg), many by an io_uring, or many through \
            the stack as one (UDP_SEGMENT)",
    domain: Domain::OneOf(&["plain", "batch", "uring", "gso"]),
    default: "plain",
    persist: &[PersistMethod::Application(
        "send many datagrams a call: sendmmsg(2), io_uring(7), or UDP_SEGMENT (udp(7))",
    )],
    interacts: &[
        "write-size",
        "datagram-receive",
        "tx-udp-segmentation",
        "tx-checksum",
        "mtu",
        "no-checksum",
    ],
    kernel: &[
        KernelNeed { of: "uring", since: KernelVersion(5, 19), instead: "batch" },
        KernelNeed { of: "uring with zerocopy-send", since: KernelVersion(6, 2), instead: "uring" },
    ],
    source: "udp(7); io_uring_enter(2), IORING_OP_SENDMSG and IORING_OP_SENDMSG_ZC; jin-yoo-2007 section 4",
    propose: sends,
    ..Factor::FLOW
};

pub(super) static RECEIVE: Factor = Factor {
    name: "datagram-receive",
    about: "how datagrams are taken from the kernel: one in each call, many (recvmmsg), or many joined (UDP_GRO)",
    domain: Domain::OneOf(&["plain", "batch", "gro"]),
    default: "plain",
    persist: &[PersistMethod::Application("take many datagrams a call: recvmmsg(2), or UDP_GRO (udp(7))")],
    interacts: &["read-size", "datagram-send", "tx-checksum", "tx-udp-segmentation", "gro"],
    source: "udp(7); jin-yoo-2007 section 4",
    propose: |view| receives(view, RECEIVE.name),
    ..Factor::FLOW
};

/// The highest rate of each flow. The sender limits the rate by its own clock.
pub(super) static PACE: Factor = Factor {
    persist: &[PersistMethod::Application("send no more than this in a second, by the program's own clock")],
    // Proposes nothing: the workload `capacity` measures the rate of a path, and the speed of a link would be only a
    // guess.
    propose: landspeed_record::factor::nothing,
    ..PACING_RATE
};

fn sends(view: &FactorView) -> Vec<Proposal> {
    let summed = view.is_set_to("no-checksum", "off");
    let unsummed = "the kernel cuts no datagram whose checksum is left out";
    let gso = Proposal::new("gso", AS_ONE).pointless_if(!summed, unsummed).pointless_if(
        !view.datagram_fits(),
        "datagrams of this size are cut into fragments, and UDP_SEGMENT cuts none",
    );
    // A device without checksum offload cannot segment either. The kernel then segments in software or, before Linux
    // 6.11, refuses the send.
    let needs = ["tx-checksum", "tx-udp-segmentation"].into_iter().filter(|knob| view.is_set_to(knob, "off"));
    let gso = needs.fold(gso, |gso, knob| gso.with(knob, "on"));
    let [batch, ring] = [("batch", BATCHED), ("uring", BATCHED + 2)].map(|(way, rank)| {
        Proposal::new(way, rank)
            .pointless_if(view.is_set_to(SEND.name, "gso"), "UDP_SEGMENT hands over as many at once")
    });
    others(view, [gso, batch, ring])
}

#[derive(Debug, Clone, Copy)]
pub(super) struct UdpSettings {
    pub(super) send: SendMode,
    /// True if datagrams are sent with MSG_ZEROCOPY, so that the kernel reads the program's memory.
    pub(super) lend: bool,
    pub(super) receive: ReceiveMode,
    pub(super) size: Bytes,
    /// The highest rate of the sender; `None` if unlimited.
    pub(super) pace: Option<BitRate>,
}

impl UdpSettings {
    pub(super) fn of(settings: &Settings) -> UdpSettings {
        let bits = PACE.number(settings);
        UdpSettings {
            send: SendMode::named(SEND.of(settings)),
            lend: zerocopy::SEND.is_on(settings),
            receive: ReceiveMode::named(RECEIVE.of(settings)),
            size: WRITE_SIZE.bytes(settings),
            pace: (bits > 0).then_some(BitRate(bits as f64)),
        }
    }
}

static ROWS: &[SocketOption] = &[NO_CHECKSUM, DONT_FRAGMENT];

/// The values of `dont-fragment` that set an option, with the kernel's constants (include/uapi/linux/in.h). The
/// constants for IPv6 have the same numbers.
const DISCOVERIES: [(&str, i32); 2] = [("off", libc::IP_PMTUDISC_DONT), ("on", libc::IP_PMTUDISC_PROBE)];

const DONT_FRAGMENT: SocketOption = SocketOption {
    factor: Factor {
        name: "dont-fragment",
        system: SystemSetting::Socket("IP_MTU_DISCOVER"),
        persist: &[PersistMethod::Application("setsockopt(IPPROTO_IP, IP_MTU_DISCOVER)")],
        about: "whether packets may be cut: as the kernel finds the path's MTU to be, off (routers may cut them), or on (the \
                kernel cuts none either, whatever it has found)",
        domain: Domain::OneOf(&["kernel", "off", "on"]),
        default: "kernel",
        interacts: &["mtu", "write-size"],
        source: "ip(7); RFC 1191; RFC 4821",
        ..Factor::FLOW
    },
    hint: "",
    asked: |value| {
        let known = DISCOVERIES.iter().find(|(name, _)| *name == value);
        known.map(|(_, number)| OptionValue::Number(*number as u64))
    },
    set: |socket, value| {
        let (level, name) = discovery(socket)?;
        raw::set::<u32>(socket, level, name, value.size() as u32)
    },
    get: |socket| {
        let (level, name) = discovery(socket)?;
        raw::get::<u32>(socket, level, name).map(|way| OptionValue::Number(way.into()))
    },
};

fn discovery(socket: &Socket) -> io::Result<(i32, i32)> {
    let is_v6 = socket.domain()? == socket2::Domain::IPV6;
    Ok(if is_v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER)
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER)
    })
}

const NO_CHECKSUM: SocketOption = SocketOption {
    factor: Factor {
        name: "no-checksum",
        system: SystemSetting::Socket("SO_NO_CHECK"),
        persist: &[PersistMethod::Application(
            "setsockopt(SOL_SOCKET, SO_NO_CHECK); over IPv6 UDP_NO_CHECK6_TX, and UDP_NO_CHECK6_RX where it is received",
        )],
        about: "send datagrams without a checksum (RFC 6935)",
        interacts: &["tx-checksum", "rx-checksum"],
        source: "jin-yoo-2007 section 4; RFC 6935",
        propose: |view| {
            let segments = view.is_set_to("datagram-send", "gso");
            unless(segments, "the kernel cuts segments with checksums only", switch_on(view, 95))
        },
        ..Factor::FLOW
    },
    hint: "",
    asked: once_on,
    set: |socket, _| no_checksum(socket),
    get: |socket| {
        let (level, name, _) = checksum_option(socket)?;
        raw::get::<u32>(socket, level, name).map(|on| OptionValue::Number(on.into()))
    },
};

/// Returns the level, the option that sends datagrams without a checksum, and for IPv6 the option that accepts such
/// datagrams. RFC 6935 forbids both unless the program requests them.
fn checksum_option(socket: &Socket) -> io::Result<(i32, i32, Option<i32>)> {
    Ok(if socket.domain()? == socket2::Domain::IPV6 {
        (libc::IPPROTO_UDP, libc::UDP_NO_CHECK6_TX, Some(libc::UDP_NO_CHECK6_RX))
    } else {
        (libc::SOL_SOCKET, libc::SO_NO_CHECK, None)
    })
}

fn no_checksum(socket: &Socket) -> io::Result<()> {
    let (level, send, receive) = checksum_option(socket)?;
    receive.map_or(Ok(()), |receive| raw::set::<u32>(socket, level, receive, 1))?;
    raw::set::<u32>(socket, level, send, 1)
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn checksums_can_be_left_out_in_both_families() {
        let settings = crate::settings::with(&[(&ROWS[0].factor, "on")]);
        for domain in [Domain::IPV4, Domain::IPV6] {
            let socket = Socket::new(domain, Type::DGRAM, None).expect("a UDP socket");
            let before = OPTIONS.read_back(&socket, &settings);
            let [found] = &before[..] else { panic!("{before:?}") };
            assert_eq!(found.line, "SO_NO_CHECK: asked for 1, got 0");
            assert_eq!(
                (found.setting.as_str(), found.asked.as_str(), found.got.as_str()),
                ("no-checksum", "on", "0")
            );
            OPTIONS.set(&socket, &settings);
            assert_eq!(OPTIONS.read_back(&socket, &settings), []);
        }
    }
}
