//! The counts of a UDT connection, and its estimates of the path.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{DetailError, Details, EndpointOutcome, Headline, detail};
use landspeed_udt::Connection;
use serde::{Deserialize, Serialize};

/// A UDT flow when its window closed.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct UdtFlowFigures {
    /// Data packets sent, each counted once.
    sent_packets: u64,
    /// Data packets sent again.
    resent_packets: u64,
    /// Data packets received, each counted once.
    received_packets: u64,
    /// Loss reports accepted.
    loss_reports: u64,
    /// Number of times that no acknowledgement arrived for the retransmission timeout.
    timeouts: u64,
    /// Smoothed round-trip time.
    rtt_ns: Nanos,
    /// The sending rate that the rate control allows, in payload; zero if only the window limits the rate.
    allowed_bps: BitRate,
    /// The congestion window, in payload.
    window_bytes: Bytes,
    /// The path's capacity, in payload, as packet pairs estimate it.
    capacity_bps: BitRate,
}

/// The figures of each flow, in the order of the flows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct UdtFlowFiguresList(Vec<UdtFlowFigures>);

detail!("udt" => UdtFlowFiguresList);

pub(crate) const SENT_AGAIN: Headline<EndpointOutcome> = Headline {
    name: "sent again",
    about: "UDT's packets, of all flows",
    of: |end| Ok(all(end)?.map(|all| all.iter().map(|flow| flow.resent_packets).sum::<u64>().into())),
};
pub(crate) const TIMEOUTS: Headline<EndpointOutcome> = Headline {
    name: "UDT timeouts",
    about: "times that nothing was acknowledged for too long, of all flows",
    of: |end| Ok(all(end)?.map(|all| all.iter().map(|flow| flow.timeouts).sum::<u64>().into())),
};

fn all(end: &EndpointOutcome) -> Result<Option<&Vec<UdtFlowFigures>>, DetailError> {
    let figures: Option<&UdtFlowFiguresList> = end.details.find()?;
    Ok(figures.map(|figures| &figures.0))
}

/// Adds a flow's figures to `details`.
pub(super) fn add_details(connection: &Connection, details: &mut Details) {
    details.get_mut::<UdtFlowFiguresList>().0.push(of(connection));
}

fn of(connection: &Connection) -> UdtFlowFigures {
    let counts = connection.counts();
    let (Some(path), Some(payload)) = (connection.path(), connection.payload()) else {
        return UdtFlowFigures::default();
    };
    let payload = Bytes(payload as u64);
    // Whole bits, so that a record reads back as it was written.
    let rate = |packets_per_s: f64| BitRate((packets_per_s * payload.0 as f64 * 8.0).round());
    let period = path.period.as_secs_f64();
    UdtFlowFigures {
        sent_packets: counts.sent,
        resent_packets: counts.sent_again,
        received_packets: counts.received,
        loss_reports: counts.naks,
        timeouts: counts.timeouts,
        rtt_ns: path.round_trip.mean,
        allowed_bps: if period > 0.0 { rate(1.0 / period) } else { BitRate(0.0) },
        window_bytes: Bytes(payload.0.saturating_mul(path.window.into())),
        capacity_bps: rate(path.capacity.0),
    }
}
