//! The settings of a UDT flow.

use landspeed_record::Settings;
use landspeed_record::factor::{Condition, Domain, Factor, PersistMethod, Proposal, unless};
use landspeed_record::units::Nanos;
use landspeed_udt::{UdtConfig, rate};
use socket2::Socket;

use crate::message::{ReceiveMode, SendMode};
use crate::options::{self, AS_ONE, BATCHED, SocketOptions, others, receives};
use crate::{raw, shared_port};

pub(super) static OPTIONS: SocketOptions = SocketOptions(&[options::SOCKET, options::CODEPOINT]);

/// The factors of UDT itself, in the order of their listing.
pub(super) static FACTORS: [&Factor; 6] = [&SEND, &RECEIVE, &BURST, &BUFFER, &CONGESTION, &PACKET];

/// The smallest packet that may be requested, in bytes: half the size that every IPv4 host must accept (576).
const LEAST: u32 = 288;

pub(super) static SEND: Factor = Factor {
    name: "udt-send",
    about: "how UDT's datagrams are handed to the kernel: one in each call, many (sendmmsg), or many through the stack as one \
            (UDP_SEGMENT)",
    domain: Domain::OneOf(&["plain", "batch", "gso"]),
    default: "gso",
    persist: &[PersistMethod::Application(
        "send many datagrams a call: sendmmsg(2), or UDP_SEGMENT (udp(7))",
    )],
    interacts: &["udt-receive", "udt-burst", "udt-packet", "mtu"],
    source: "udp(7); jin-yoo-2007 section 4",
    propose: |view| {
        let done = "UDP_SEGMENT hands over as many at once";
        let batch = Proposal::new("batch", BATCHED).pointless_if(view.is_set_to(SEND.name, "gso"), done);
        others(view, [Proposal::new("gso", AS_ONE), batch])
    },
    ..Factor::FLOW
};

pub(super) static RECEIVE: Factor = Factor {
    name: "udt-receive",
    about: "how UDT's datagrams are taken from the kernel: one in each call, many (recvmmsg), or many joined (UDP_GRO)",
    domain: Domain::OneOf(&["plain", "batch", "gro"]),
    default: "gro",
    persist: &[PersistMethod::Application("take many datagrams a call: recvmmsg(2), or UDP_GRO (udp(7))")],
    interacts: &["udt-send", "read-size", "gro"],
    source: "udp(7); jin-yoo-2007 section 4",
    propose: |view| receives(view, RECEIVE.name),
    ..Factor::FLOW
};

/// The length of a burst, as a time at the allowed rate. It is also the longest sleep between two packets.
static BURST: Factor = Factor {
    name: "udt-burst",
    about: "what UDT's rate allows in this time leaves at once, after a late wake-up up to twice as much: fewer and longer sleeps, and \
            queues that must hold as much",
    domain: Domain::Time(Nanos(0), Nanos::millis(10)),
    default: "1ms",
    persist: &[PersistMethod::Application(
        "sleep until this much is due, rather than until the next packet is",
    )],
    interacts: &["udt-send", "udt-receive"],
    source: "draft-gg-udt-03 section 6.1 (a packet a period); Gu & Grossman 2007 section 4.2 (sending by timer costs a core)",
    propose: |view| others(view, [Proposal::new("2ms", 430), Proposal::new("200us", 431)]),
    ..Factor::FLOW
};

/// The size of the buffer at each end, in bytes, which also limits the bytes in flight.
static BUFFER: Factor = Factor {
    name: "udt-buffer",
    decides: Some(Condition::Windows),
    about: "bytes that UDT has under way at most: each end's buffer",
    domain: Domain::Bytes(1 << 16, 1 << 30),
    default: "33554432",
    persist: &[PersistMethod::Application("UDT_SNDBUF, UDT_RCVBUF and UDT_FC of libudt")],
    interacts: &["rcvbuf", "udt-packet"],
    source: "draft-gg-udt-03 section 6.1 (flow window); the bandwidth-delay product",
    propose: |view| {
        let bdp = view.bdp().0.saturating_mul(2).next_power_of_two().clamp(1 << 20, 1 << 30);
        others(view, [Proposal::new(bdp.to_string(), 405), Proposal::new("4194304", 406)])
    },
    ..Factor::FLOW
};

static CONGESTION: Factor = Factor {
    name: "udt-congestion",
    decides: Some(Condition::CongestionControl),
    about: "UDT's rate control: its own (daimd), with the pause after a loss that it had until version 3 (daimd-freeze), or without \
            the round trip of silence that a loss costs it on a long path (daimd-steady)",
    domain: Domain::OneOf(&["daimd", "daimd-freeze", "daimd-steady"]),
    default: "daimd",
    persist: &[PersistMethod::Application("the congestion control class of a UDT socket (UDT_CC of libudt)")],
    interacts: &["udt-burst"],
    source: "draft-gg-udt-03 section 7; Gu, Hong & Grossman (2004)",
    propose: |view| others(view, [Proposal::new("daimd-steady", 407), Proposal::new("daimd-freeze", 640)]),
    ..Factor::FLOW
};

static PACKET: Factor = Factor {
    name: "udt-packet",
    decides: Some(Condition::Mtu),
    about: "UDT's largest packet, with the headers of IP and UDP; 0 takes the largest that the path lets through",
    domain: Domain::Bytes(0, 65_535),
    default: "0",
    persist: &[PersistMethod::Application("UDT_MSS of libudt")],
    interacts: &["mtu", "udt-send"],
    source: "draft-gg-udt-03 section 5.1",
    propose: |view| {
        unless(view.current == "0", "the path's own size is the largest", vec![Proposal::new("0", 420)])
    },
    ..Factor::FLOW
};

/// The ways in which a flow's datagrams are passed to the kernel and received from it.
#[derive(Debug, Clone, Copy)]
pub(super) struct UdtSettings {
    pub(super) send: SendMode,
    pub(super) receive: ReceiveMode,
}

impl UdtSettings {
    pub(super) fn of(settings: &Settings) -> Self {
        UdtSettings {
            send: SendMode::named(SEND.of(settings)),
            receive: ReceiveMode::named(RECEIVE.of(settings)),
        }
    }
}

/// Returns the requested size of the largest packet, in bytes; `None` if the path's MTU determines it.
pub(super) fn packet(settings: &Settings) -> Option<u32> {
    u32::try_from(PACKET.number(settings)).ok().filter(|bytes| *bytes > 0)
}

/// Returns the configuration of a connection with packets of `mss` bytes.
pub(super) fn config(settings: &Settings, mss: u32) -> UdtConfig {
    let packets = BUFFER.bytes(settings).0.div_ceil(mss.into()).max(16);
    let (packets, usual) = (u32::try_from(packets).unwrap_or(u32::MAX), UdtConfig::default());
    UdtConfig {
        mss,
        probes_path: packet(settings).is_none(),
        send_buffer: packets,
        receive_buffer: packets,
        // No limit of its own: the caller's `Patience` ends the attempt.
        connect_patience: Nanos::secs(3600),
        catch_up: BURST.time(settings),
        control: rate::control(CONGESTION.of(settings)).unwrap_or(usual.control),
        ..usual
    }
}

/// Sets the socket's receive buffer to the size of everything that may be in flight, because datagrams are lost if
/// the buffer is full. Does nothing if `rcvbuf` is set. Only root may exceed net.core.rmem_max.
pub(super) fn deepen(socket: &Socket, settings: &Settings) {
    if settings.get("rcvbuf").is_none_or(|bytes| bytes == "0") {
        let bytes = u32::try_from(BUFFER.bytes(settings).0).unwrap_or(u32::MAX).min(i32::MAX as u32 / 2);
        let set = |name| raw::set(socket, libc::SOL_SOCKET, name, bytes);
        // The user did not request this size, so a smaller buffer is not reported.
        let _ = set(libc::SO_RCVBUFFORCE).or_else(|_| set(libc::SO_RCVBUF));
    }
}

/// Checks that the packet size is valid and that the kernel supports the settings. The error message contains a
/// remedy.
pub(super) fn can_run(settings: &Settings) -> Result<(), String> {
    if let Some(packet) = packet(settings).filter(|packet| *packet < LEAST) {
        return Err(format!(
            "a packet of {packet} bytes has no room for UDT's headers: ask for {LEAST} at least"
        ));
    }
    let socket = shared_port::probe()?;
    let parsed = UdtSettings::of(settings);
    if parsed.send == SendMode::Gso {
        shared_port::segments(&socket, "ask for udt-send batch")?;
    }
    if parsed.receive == ReceiveMode::Gro {
        shared_port::joins(&socket, "ask for udt-receive batch")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_congestion_control_of_the_core_can_be_asked_for() {
        let known: Vec<&str> = rate::CONTROLS.iter().map(|(name, _)| *name).collect();
        assert!(matches!(CONGESTION.domain, Domain::OneOf(names) if names == known), "{known:?}");
        assert_eq!(CONGESTION.default, known[0]);
    }
}
