//! How long Reno takes to get back to full rate after one loss.

use landspeed_units::{BitRate, Bytes, Nanos};

/// feng-2003, section 4.2 and Table 1: the window was rate times round trip, is halved, and grows by one
/// segment a round trip, so `T = W / 2 * RTT = C * RTT^2 / (16 * MSS)`.
///
/// The paper's row for a LAN assumes a round trip of 1 ms; what it measured there was 38 to 50 us.
pub fn recovery_time(rate: BitRate, rtt: Nanos, segment: Bytes) -> Nanos {
    let window = rate.0 * rtt.as_secs_f64() / 8.0 / segment.0.max(1) as f64;
    Nanos((window / 2.0 * rtt.0 as f64) as u64)
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
