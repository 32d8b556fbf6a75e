//! The settings of a QUIC flow.

use std::sync::Arc;
use std::time::Duration;

use landspeed_record::factor::{
    Condition, Domain, Factor, FactorView, PersistMethod, Proposal, each, flip, unless,
};
use landspeed_record::units::Bytes;
use landspeed_record::{SettingMismatch, Settings};
use quinn_proto::{AckFrequencyConfig, MtuDiscoveryConfig, TransportConfig, VarInt};
use socket2::Socket;

use super::controller::{ControllerObservations, ObservedControllerFactory, QuicCongestion};
use crate::options::{self, SocketOptions, others};

/// The options of the UDP socket.
pub(super) static OPTIONS: SocketOptions = SocketOptions(&[options::SOCKET]);

pub(super) static FACTORS: &[&Factor] = &[&CONGESTION, &GSO, &GRO, &PACKET, &WINDOW, &ACK_EVERY];

static CONGESTION: Factor = Factor {
    name: "quic-congestion",
    decides: Some(Condition::CongestionControl),
    about: "congestion control of QUIC's sender, as quinn has it: no module of the kernel's",
    domain: Domain::OneOf(&["cubic", "newreno", "bbr"]),
    default: "cubic",
    persist: &[PersistMethod::Application("choose another congestion controller: quinn's TransportConfig")],
    interacts: &["quic-window", "rcvbuf", "qdisc"],
    source: "RFC 9438 (CUBIC); RFC 9002 section 7 (NewReno); draft-cardwell-iccrg-bbr-congestion-control-00",
    propose: |view| others(view, [Proposal::new("bbr", 20), Proposal::new("newreno", 120)]),
    ..Factor::FLOW
};

static GSO: Factor = Factor {
    name: "quic-gso",
    decides: Some(Condition::Offloads),
    about: "hand many packets to the kernel as one (UDP_SEGMENT)",
    default: "on",
    persist: &[PersistMethod::Application("send many packets a call: UDP_SEGMENT, udp(7)")],
    interacts: &["quic-mtu", "tx-udp-segmentation", "tx-checksum", "mtu"],
    source: "udp(7); de Bruijn & Dumazet, Optimizing UDP for content delivery (2018)",
    propose: |view| flip(view, 60),
    ..Factor::FLOW
};

static GRO: Factor = Factor {
    name: "quic-gro",
    decides: Some(Condition::Offloads),
    about: "take many packets from the kernel as one (UDP_GRO)",
    default: "on",
    persist: &[PersistMethod::Application("take many packets a call: UDP_GRO, udp(7)")],
    interacts: &["quic-gso", "gro", "read-size"],
    source: "udp(7)",
    propose: |view| flip(view, 61),
    ..Factor::FLOW
};

static PACKET: Factor = Factor {
    name: "quic-mtu",
    decides: Some(Condition::Mtu),
    about: "size of packets: the least that QUIC allows, the link's MTU found by probes, or the link's MTU from the start",
    domain: Domain::OneOf(&["least", "discover", "link"]),
    default: "discover",
    persist: &[PersistMethod::Application(
        "set the first and the largest packet size: MTU discovery of QUIC",
    )],
    interacts: &["mtu", "quic-gso", "quic-ack-every"],
    source: "RFC 9000 section 14; RFC 8899",
    propose: |view| others(view, [Proposal::new("link", 65)]),
    ..Factor::FLOW
};

static WINDOW: Factor = Factor {
    name: "quic-window",
    decides: Some(Condition::Windows),
    about: "bytes that the receiver lets the sender be ahead of its reader: flow control of the stream and of the connection",
    domain: Domain::Bytes(64 << 10, 4 << 30),
    // The bandwidth-delay product of 10 Gb/s and 100 ms, or of 1 Gb/s and a second.
    default: "134217728",
    persist: &[PersistMethod::Application("raise the receive windows of streams and connections")],
    interacts: &["quic-congestion", "rcvbuf"],
    source: "RFC 9000 section 4",
    propose: wider,
    ..Factor::FLOW
};

static ACK_EVERY: Factor = Factor {
    name: "quic-ack-every",
    about: "packets that the sender asks its peer to let come before it acknowledges; 0 does not ask",
    domain: Domain::Int(0, 1000),
    default: "0",
    persist: &[PersistMethod::Application("ask for fewer acknowledgements: ACK_FREQUENCY of QUIC")],
    interacts: &["quic-gro", "quic-congestion"],
    source: "draft-ietf-quic-ack-frequency; RFC 9000 section 13.2.2",
    propose: |_| each(&["10"], 130),
    ..Factor::FLOW
};

/// The size of the receive buffer, in bytes, that is requested if `rcvbuf` is not set. net.core.rmem_max limits the
/// actual size. UDP has no autotuning, and the system's default of 208 KiB holds a millisecond of 1 Gb/s. quic-go and
/// iroh request 7 MB.
const ROOM: usize = 4 << 20;

/// Sets the options of a flow's socket before it is connected.
pub(super) fn prepare(socket: &Socket, settings: &Settings) {
    if settings.get("rcvbuf").is_none_or(|size| size == "0") {
        let _ = socket.set_recv_buffer_size(ROOM);
    }
    OPTIONS.set(socket, settings);
}

/// Proposes a window of twice the bandwidth-delay product, unless the current window is as large.
fn wider(view: &FactorView) -> Vec<Proposal> {
    let window = view.bdp().0.saturating_mul(2).next_power_of_two().clamp(1 << 20, 4 << 30);
    let enough = view.current.parse::<u64>().is_ok_and(|current| current >= window);
    unless(
        enough,
        "the window is no smaller than twice the bandwidth-delay product",
        each(&[&window.to_string()], 131),
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketSizeMode {
    Least,
    Discover,
    Link,
}

/// The parsed settings of a QUIC flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuicSettings {
    congestion: QuicCongestion,
    pub(super) gso: bool,
    pub(super) gro: bool,
    packet: PacketSizeMode,
    pub(super) window: Bytes,
    ack_every: u64,
}

impl QuicSettings {
    pub(super) fn of(settings: &Settings) -> QuicSettings {
        QuicSettings {
            congestion: match CONGESTION.of(settings) {
                "newreno" => QuicCongestion::NewReno,
                "bbr" => QuicCongestion::Bbr,
                _ => QuicCongestion::Cubic,
            },
            gso: GSO.is_on(settings),
            gro: GRO.is_on(settings),
            packet: match PACKET.of(settings) {
                "least" => PacketSizeMode::Least,
                "link" => PacketSizeMode::Link,
                _ => PacketSizeMode::Discover,
            },
            window: WINDOW.bytes(settings),
            ack_every: ACK_EVERY.number(settings),
        }
    }

    /// Returns quinn's configuration of a connection over a link whose largest datagram has `largest` bytes of
    /// payload.
    pub(super) fn configuration(
        &self,
        largest: u16,
        observations: &Arc<ControllerObservations>,
    ) -> TransportConfig {
        let mut config = TransportConfig::default();
        let window = VarInt::from_u64(self.window.0).unwrap_or(VarInt::MAX);
        config
            .stream_receive_window(window)
            .receive_window(window)
            // No limit: the peer's flow-control windows and the congestion window limit the sender, which writes data
            // only when it can be sent.
            .send_window(u64::MAX)
            // One stream, which the client opens.
            .max_concurrent_bidi_streams(VarInt::from_u32(1))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .datagram_receive_buffer_size(None)
            // The trial's own clock ends a flow that is idle.
            .max_idle_timeout(None)
            .congestion_controller_factory(Arc::new(ObservedControllerFactory {
                congestion: self.congestion,
                observations: Arc::clone(observations),
            }));
        match self.packet {
            PacketSizeMode::Least => config.mtu_discovery_config(None),
            PacketSizeMode::Discover => config.mtu_discovery_config(Some(up_to(largest))),
            PacketSizeMode::Link => config.mtu_discovery_config(Some(up_to(largest))).initial_mtu(largest),
        };
        config.ack_frequency_config(self.ack_frequency());
        config
    }

    /// Returns quinn's configuration of the request to the peer for fewer acknowledgements; `None` if the settings
    /// request none. quinn counts the packets that may arrive without an acknowledgement, which is one less than the
    /// setting.
    fn ack_frequency(&self) -> Option<AckFrequencyConfig> {
        let threshold = VarInt::from_u64(self.ack_every.checked_sub(1)?).ok()?;
        let mut config = AckFrequencyConfig::default();
        config.ack_eliciting_threshold(threshold);
        Some(config)
    }

    /// Returns those settings that a connection cannot change after its start and that differ from `asked`.
    pub(super) fn kept_from(&self, asked: &Settings) -> Vec<SettingMismatch> {
        let wanted = QuicSettings::of(asked);
        let kept = [
            (&CONGESTION, self.congestion == wanted.congestion),
            (&PACKET, self.packet == wanted.packet),
            (&WINDOW, self.window == wanted.window),
            (&ACK_EVERY, self.ack_every == wanted.ack_every),
        ];
        let differs = kept.into_iter().filter(|(_, same)| !same);
        let (got, why) = ("its listener's", "a connection keeps what its listener had");
        differs.map(|(factor, _)| SettingMismatch::of(factor.name, factor.of(asked), got, why)).collect()
    }
}

fn up_to(largest: u16) -> MtuDiscoveryConfig {
    let mut discovery = MtuDiscoveryConfig::default();
    // Search only once: the path is assumed not to change during a flow.
    discovery.upper_bound(largest).interval(Duration::from_secs(600));
    discovery
}
