//! How long Reno takes to get back to full rate after one loss.

use landspeed_units::{BitRate, Bytes, Nanos};

use crate::link::LinkSpec;
use crate::loss::LossSpec;
use crate::scenario::{FlowSpec, Scenario};
use crate::simulation::simulate;

/// feng-2003, section 4.2 and Table 1: the window was rate times round trip, is halved, and grows by one
/// segment a round trip, so `T = W / 2 * RTT = C * RTT^2 / (16 * MSS)`.
///
/// The paper's row for a LAN assumes a round trip of 1 ms; what it measured there was 38 to 50 us.
pub fn recovery_time(rate: BitRate, rtt: Nanos, segment: Bytes) -> Nanos {
    Nanos((full_window(rate, rtt, segment) / 2.0 * rtt.0 as f64) as u64)
}

/// The window of that formula, in segments: all that the path holds, and no queue.
pub fn full_window(rate: BitRate, rtt: Nanos, segment: Bytes) -> f64 {
    rate.0 * rtt.as_secs_f64() / 8.0 / segment.0.max(1) as f64
}

/// Headers of IPv4 and TCP without timestamps: the formula knows no others.
const HEADERS: u16 = 40;
/// The loss comes once the window is full: slow start from ten segments has sent less than twice the window by then.
const FULL_AFTER_WINDOWS: u64 = 4;

/// The same in the simulator, packet by packet: one loss on a path that the window fills exactly. `None` where a packet
/// holds no payload, or the window is back in no time that is worth simulating (an hour).
pub fn simulated_recovery(rate: BitRate, rtt: Nanos, mtu_bytes: u16) -> Option<Nanos> {
    let segment = u64::from(mtu_bytes.checked_sub(HEADERS).filter(|payload| *payload > 0)?);
    let expected = recovery_time(rate, rtt, Bytes(segment));
    if expected > Nanos::secs(3600) {
        return None;
    }
    let window = full_window(rate, rtt, Bytes(segment)) as u64;
    let flow = FlowSpec {
        return_ns: rtt,
        mtu_bytes,
        header_bytes: HEADERS,
        // The window is all that the path holds, at the loss and after: no queue.
        initial_ssthresh: Some(window as u32),
        receive_window_bytes: Some(Bytes(window * segment)),
        ..FlowSpec::default()
    };
    let link = LinkSpec {
        rate_bps: rate,
        delay_ns: Nanos(0),
        queue_bytes: Bytes((rate.0 / 8.0 * rtt.as_secs_f64()) as u64),
        loss: LossSpec::List { packets: vec![window * FULL_AFTER_WINDOWS] },
    };
    let scenario = Scenario {
        link,
        flows: vec![flow],
        duration_ns: Nanos(expected.0 * 3 / 2 + rtt.0 * 60),
        sample_ns: rtt,
        probe: None,
    };
    let samples = simulate(&scenario).ok()?.flows.pop()?.samples;
    let lost = samples.iter().position(|sample| sample.tcp.retransmits > 0)?;
    let back = samples[lost..].iter().find(|sample| u64::from(sample.tcp.cwnd_segments) >= window)?;
    Some(back.at_ns - samples[lost].at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rate in Gb/s, round trip in ms, segment in bytes, seconds: `feng.table1`.
    const TABLE_1: [(f64, u64, u64, f64); 5] = [
        (10.0, 1, 1460, 0.428_08),
        (10.0, 120, 1460, 6164.4),
        (10.0, 120, 8960, 1004.5),
        (10.0, 180, 1460, 13869.9),
        (10.0, 180, 8960, 2260.0),
    ];

    #[test]
    fn gives_the_papers_table() {
        for (gbps, rtt_ms, segment, seconds) in TABLE_1 {
            let time = recovery_time(BitRate(gbps * 1e9), Nanos::millis(rtt_ms), Bytes(segment));
            assert!((time.as_secs_f64() / seconds - 1.0).abs() < 1e-4, "{rtt_ms} ms, {segment} B: {time}");
        }
    }
}
