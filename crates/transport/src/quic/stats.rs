//! The figures that quinn reports of a connection.

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{DetailError, Details, EndpointOutcome, FigureValue, Headline, detail};
use quinn_proto::ConnectionStats;
use serde::{Deserialize, Serialize};

/// A QUIC connection when the window closed. Counts are since the connection began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct QuicConnectionStats {
    /// Congestion window.
    congestion_window_bytes: Bytes,
    /// Smoothed round-trip time.
    rtt_ns: Nanos,
    /// Shortest round-trip time.
    min_rtt_ns: Nanos,
    /// Payload of the largest datagram that this end sends.
    packet_bytes: Bytes,
    /// Packets sent.
    sent_packets: u64,
    /// Packets declared lost, whose content was sent again.
    lost_packets: u64,
    /// Number of times that congestion reduced the window.
    congestion_events: u64,
    /// System calls that sent packets.
    send_calls: u64,
    /// Datagrams received.
    received_datagrams: u64,
    /// Acknowledgements sent.
    acks_sent: u64,
    /// Number of times that the peer's flow control blocked written data.
    blocked: u64,
}

/// The connections of a trial, in the order of the flows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct QuicConnectionStatsList(Vec<QuicConnectionStats>);

detail!("quic" => QuicConnectionStatsList);

pub(super) static HEADLINES: &[Headline<EndpointOutcome>] = &[
    Headline {
        name: "packets lost",
        about: "of all connections, as their sender took them for, since they began",
        of: |end| total(end, |connection| connection.lost_packets),
    },
    Headline {
        name: "packet size",
        about: "payload of the largest datagram that the first connection sends, when the window closed",
        of: |end| Ok(all(end)?.and_then(|all| all.first()).map(|first| first.packet_bytes.into())),
    },
];

fn all(end: &EndpointOutcome) -> Result<Option<&[QuicConnectionStats]>, DetailError> {
    let connections: Option<&QuicConnectionStatsList> = end.details.find()?;
    Ok(connections.map(|connections| &connections.0[..]))
}

fn total(
    end: &EndpointOutcome,
    of: fn(&QuicConnectionStats) -> u64,
) -> Result<Option<FigureValue>, DetailError> {
    Ok(all(end)?.map(|all| all.iter().map(of).sum::<u64>().into()))
}

/// Adds a flow's figures to `details`.
pub(super) fn add_details(stats: &ConnectionStats, details: &mut Details) {
    let ConnectionStats { path, udp_tx, udp_rx, frame_tx, .. } = stats;
    details.get_mut::<QuicConnectionStatsList>().0.push(QuicConnectionStats {
        congestion_window_bytes: Bytes(path.cwnd),
        rtt_ns: path.rtt.into(),
        min_rtt_ns: path.min_rtt.into(),
        packet_bytes: Bytes(path.current_mtu.into()),
        sent_packets: path.sent_packets,
        lost_packets: path.lost_packets,
        congestion_events: path.congestion_events,
        send_calls: udp_tx.ios,
        received_datagrams: udp_rx.datagrams,
        acks_sent: frame_tx.acks,
        blocked: frame_tx.data_blocked + frame_tx.stream_data_blocked,
    });
}
