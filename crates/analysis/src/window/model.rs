//! The arithmetic of the window model in feng-2003.

use landspeed_record::units::{BitRate, Bytes, Nanos};

/// The largest shift of the window scale option (RFC 7323 section 2.3).
const MOST_SCALE: u8 = 14;

/// Returns the ideal window, which is the bandwidth-delay product: rate times round-trip time (feng.f.bdp). The paper
/// measures the one-way latency instead of the round trip.
pub(super) fn bandwidth_delay(rate: BitRate, rtt: Nanos) -> Bytes {
    Bytes((rate.0 * rtt.as_secs_f64() / 8.0) as u64)
}

/// Returns the largest multiple of `mss` within `window` (feng.f.align_rx, feng.f.align_tx); zero for an MSS of zero.
pub(super) fn aligned(window: Bytes, mss: Bytes) -> Bytes {
    Bytes(window.0.checked_div(mss.0).unwrap_or(0) * mss.0)
}

/// Returns the step in which a window can be advertised to the peer: 2^scale bytes (feng.f.scale_granularity; RFC
/// 7323 section 2.2).
pub(super) fn granularity(scale: u8) -> Bytes {
    Bytes(1 << scale.min(MOST_SCALE))
}

/// Returns the share of `window` that whole segments leave unused (feng.f.window_packets): 1 - n MSS / window.
pub(crate) fn lost_to_rounding(window: Bytes, mss: Bytes) -> f64 {
    lost(aligned(window, mss), window)
}

/// Returns 1 - `used` / `of`; zero where `of` is zero.
pub(super) fn lost(used: Bytes, of: Bytes) -> f64 {
    if of.0 == 0 { 0.0 } else { 1.0 - used.0 as f64 / of.0 as f64 }
}

/// Returns the least step by which a receiver advances its window: a segment, or half of its buffer if that is less
/// (RFC 9293 section 3.8.6.2.2; RFC 1122 section 4.2.3.3 with Fr = 1/2). With an MSS of the order of the buffer the
/// window does not move until half of the buffer is free.
pub(super) fn least_advance(buffer: Bytes, mss: Bytes) -> Bytes {
    Bytes(buffer.0 / 2).min(mss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_of_two_mss() {
        // Section 3.5.1; the paper's second formula prints 8940 for the sender's MSS of 8960, which would give 26,820
        // and not the 17,920 that it prints.
        let (sender, receiver) = (Bytes(8960), Bytes(8948));
        let available = Bytes(33_000);
        let advertised = aligned(available, receiver);
        let used = aligned(advertised, sender);
        assert_eq!((advertised, used), (Bytes(26_844), Bytes(17_920)));
        assert!((lost(advertised, available) - 0.187).abs() < 1e-3);
        assert!((lost(used, advertised) - 0.332).abs() < 1e-3);
        assert!((lost(used, available) - 0.457).abs() < 1e-3, "nearly 50 %");
        assert_eq!(aligned(advertised, Bytes(8940)), Bytes(26_820));
    }

    #[test]
    fn the_papers_ideal_windows() {
        // 19 us one way, 38 there and back: "about 48 KB".
        assert_eq!(bandwidth_delay(BitRate(10e9), Nanos::micros(38)), Bytes(47_500));
        assert_eq!(bandwidth_delay(BitRate(10e9), Nanos::micros(50)), Bytes(62_500), "through the switch");
        for (ideal, share) in [(Bytes(48_000), 0.068), (Bytes::kib(48), 0.090)] {
            assert_eq!(aligned(ideal, Bytes(8948)), Bytes(5 * 8948), "of 5.36 to 5.49");
            let lost = lost_to_rounding(ideal, Bytes(8948));
            assert!((lost - share).abs() < 1e-3, "{lost}: the paper's 17 % is 1 - 5/6");
        }
        let (ideal, used) = (Bytes::kib(26), aligned(Bytes::kib(26), Bytes(8948)));
        assert_eq!(used, Bytes(17_896), "figure 8: 26 KB, of which 18 KB can be used");
        assert!((lost(used, ideal) - 0.328).abs() < 1e-3, "printed as 31 % of the rounded 26 and 18");
    }

    #[test]
    fn a_window_moves_by_a_segment_or_half_a_buffer() {
        assert_eq!(least_advance(Bytes::kib(64), Bytes(1460)), Bytes(1460));
        assert_eq!(least_advance(Bytes::kib(16), Bytes(8948)), Bytes(8192), "half of a small buffer");
    }

    #[test]
    fn steps_are_powers_of_two() {
        assert_eq!((granularity(0), granularity(7), granularity(200)), (Bytes(1), Bytes(128), Bytes(16_384)));
    }
}
