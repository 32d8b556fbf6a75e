//! A measurement over time: the goodput, round trip and window of TCP flows.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Bytes, Nanos};
use crate::{Side, TcpSample};

/// All TCP flows of one sending host over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Timeline {
    /// The sending host.
    pub sender: Side,
    /// Names of the two hosts, sender first, if several pairs were measured at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<String>,
    /// Number of flows.
    pub flows: u32,
    /// State of the flows as the sender's sockets reported it, oldest first.
    pub points: Vec<TimelinePoint>,
}

/// The state of all flows of a sending host at one time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimelinePoint {
    /// Time since the first data of the flows.
    pub at_ns: Nanos,
    /// Rate at which the peers acknowledged payload since the previous point, all flows together.
    pub rate_bps: BitRate,
    /// Mean of the flows' smoothed round-trip times; `None` before the first measurement.
    #[serde(default)]
    pub rtt_ns: Option<Nanos>,
    /// Sum of the congestion windows of all flows.
    pub window_bytes: Bytes,
    /// Segments retransmitted since the previous point.
    pub retransmits: u64,
}

/// The samples of one time, by flow.
type Tick<'a> = BTreeMap<u32, &'a TcpSample>;

impl Timeline {
    /// Joins the samples of a sending host's flows, or returns `None` if the host sent nothing or was sampled only
    /// once.
    pub(crate) fn of(sender: Side, samples: &[TcpSample]) -> Option<Timeline> {
        let sending = sending(samples);
        let mut ticks: BTreeMap<Nanos, Tick<'_>> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| sending.contains(&sample.flow)) {
            ticks.entry(sample.at_ns).or_default().insert(sample.flow, sample);
        }
        let span = ticks.keys().next_back()?.saturating_sub(*ticks.keys().next()?);
        // The last sample may follow the one before it so closely that no rate can be computed.
        let least = Nanos(span.0 / (2 * ticks.len() as u64));
        let mut points = Vec::new();
        let mut before: Option<(Nanos, &Tick<'_>)> = None;
        for (at, now) in &ticks {
            match before {
                Some((from, _)) if at.saturating_sub(from) <= least => continue,
                Some(before) => points.push(point(before, (*at, now))),
                None => {}
            }
            before = Some((*at, now));
        }
        let flows = u32::try_from(sending.len()).ok()?;
        (!points.is_empty()).then_some(Timeline { sender, between: None, flows, points })
    }
}

/// Returns the flows whose acknowledged payload changes over time.
fn sending(samples: &[TcpSample]) -> BTreeSet<u32> {
    let mut first = BTreeMap::new();
    let grew =
        |sample: &&TcpSample| *first.entry(sample.flow).or_insert(sample.acked_bytes) != sample.acked_bytes;
    samples.iter().filter(grew).map(|sample| sample.flow).collect()
}

/// Returns the point for the time between two ticks, at the second tick. The differences include only flows that both
/// ticks have.
fn point((from, then): (Nanos, &Tick<'_>), (at_ns, now): (Nanos, &Tick<'_>)) -> TimelinePoint {
    let sum =
        |of: &dyn Fn(&TcpSample) -> u64| now.values().fold(0u64, |sum, one| sum.saturating_add(of(one)));
    let since = |of: fn(&TcpSample) -> u64| {
        sum(&|one| then.get(&one.flow).map_or(0, |before| of(one).saturating_sub(of(before))))
    };
    let measured = now.values().filter(|sample| sample.rtt_ns.0 > 0).count() as u64;
    TimelinePoint {
        at_ns,
        rate_bps: Bytes(since(|sample| sample.acked_bytes.0)).per(at_ns.saturating_sub(from)),
        rtt_ns: sum(&|sample| sample.rtt_ns.0).checked_div(measured).map(Nanos),
        window_bytes: Bytes(sum(&|one| u64::from(one.cwnd_segments).saturating_mul(one.mss_bytes.0))),
        retransmits: since(|sample| sample.retransmits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(flow: u32, ms: u64, acked: u64) -> TcpSample {
        TcpSample {
            flow,
            at_ns: Nanos::millis(ms),
            acked_bytes: Bytes(acked),
            rtt_ns: Nanos::millis(10 * (1 + u64::from(flow))),
            cwnd_segments: 10,
            mss_bytes: Bytes(1000),
            retransmits: acked / 100_000,
            ..TcpSample::default()
        }
    }

    #[test]
    fn flows_add_up_over_time() {
        // The third flow sends nothing, the second enters late, and the last tick is the sample at the end.
        let samples = [
            sample(0, 100, 0),
            sample(2, 100, 7),
            sample(0, 200, 125_000),
            sample(1, 200, 0),
            sample(2, 200, 7),
            sample(0, 300, 250_000),
            sample(1, 300, 125_000),
            sample(0, 301, 250_001),
        ];
        let line = Timeline::of(Side::A, &samples).unwrap();
        assert_eq!((line.flows, line.points.len()), (2, 2));
        let expected = TimelinePoint {
            at_ns: Nanos::millis(300),
            rate_bps: BitRate(20e6),
            rtt_ns: Some(Nanos::millis(15)),
            window_bytes: Bytes(20_000),
            retransmits: 2,
        };
        assert_eq!(line.points[1], expected);
    }

    #[test]
    fn one_sample_is_no_line() {
        assert_eq!(Timeline::of(Side::A, &[sample(0, 100, 5)]), None);
        assert_eq!(Timeline::of(Side::B, &[]), None);
        let same = [sample(0, 100, 5), sample(0, 100, 9)];
        assert_eq!(Timeline::of(Side::A, &same), None, "no time has passed");
    }
}
