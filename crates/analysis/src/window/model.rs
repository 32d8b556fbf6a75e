//! The paper's arithmetic.

use landspeed_units::{BitRate, Bytes, Nanos};

/// Largest shift of the window scale option (RFC 7323 section 2.3).
const MOST_SCALE: u8 = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers {
    /// IPv6 (40 bytes) and not IPv4 (20).
    pub v6: bool,
    /// TCP timestamps: 10 bytes and two of padding (RFC 7323 section 3.2).
    pub timestamps: bool,
}

impl Headers {
    /// Bytes of IP, TCP and options.
    pub fn bytes(self) -> Bytes {
        Bytes(if self.v6 { 40 } else { 20 } + 20 + if self.timestamps { 12 } else { 0 })
    }

    /// Largest payload of a segment on a link with this MTU (feng.f.mss): zero where headers fill it.
    pub fn mss(self, mtu: Bytes) -> Bytes {
        mtu - self.bytes()
    }
}

/// The ideal window: what a path holds, rate times round-trip time (feng.f.bdp). The round trip, not the
/// one-way latency that the paper measures.
pub fn bandwidth_delay(rate: BitRate, rtt: Nanos) -> Bytes {
    Bytes((rate.0 * rtt.as_secs_f64() / 8.0) as u64)
}

/// The largest multiple of `mss` within `window` (feng.f.align_rx, feng.f.align_tx); zero for an MSS of
/// zero.
pub fn aligned(window: Bytes, mss: Bytes) -> Bytes {
    Bytes(window.0.checked_div(mss.0).unwrap_or(0) * mss.0)
}

/// The steps in which a window can be told to the peer: 2^scale bytes (feng.f.scale_granularity; RFC 7323
/// section 2.2).
pub fn granularity(scale: u8) -> Bytes {
    Bytes(1 << scale.min(MOST_SCALE))
}

/// What whole segments leave of an ideal window (feng.f.window_packets).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WholeSegments {
    /// Segments that fit whole.
    pub count: u64,
    /// Share of the ideal window that is lost: 1 - n MSS / ideal.
    pub lost: f64,
}

/// See [`WholeSegments`].
pub fn whole_segments(ideal: Bytes, mss: Bytes) -> WholeSegments {
    let used = aligned(ideal, mss);
    WholeSegments { count: used.0.checked_div(mss.0).unwrap_or(0), lost: lost(used, ideal) }
}

/// 1 - `used` / `of`; zero where there is nothing to lose.
pub(super) fn lost(used: Bytes, of: Bytes) -> f64 {
    if of.0 == 0 { 0.0 } else { 1.0 - used.0 as f64 / of.0 as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_of_two_mss() {
        // Section 3.5.1; the paper's second formula prints 8940 for the sender's MSS of 8960, which would
        // give 26,820 and not the 17,920 that it prints.
        let sender = Headers::default().mss(Bytes(9000));
        let receiver = Headers { timestamps: true, ..Headers::default() }.mss(Bytes(9000));
        assert_eq!((sender, receiver), (Bytes(8960), Bytes(8948)));
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
        for (ideal, lost) in [(Bytes(48_000), 0.068), (Bytes::kib(48), 0.090)] {
            let whole = whole_segments(ideal, Bytes(8948));
            assert_eq!(whole.count, 5, "of 5.36 to 5.49");
            assert!((whole.lost - lost).abs() < 1e-3, "{whole:?}: the paper's 17 % is 1 - 5/6");
        }
        let (ideal, used) = (Bytes::kib(26), aligned(Bytes::kib(26), Bytes(8948)));
        assert_eq!(used, Bytes(17_896), "figure 8: 26 KB, of which 18 KB can be used");
        assert!((lost(used, ideal) - 0.328).abs() < 1e-3, "printed as 31 % of the rounded 26 and 18");
    }

    #[test]
    fn steps_are_powers_of_two() {
        assert_eq!((granularity(0), granularity(7), granularity(200)), (Bytes(1), Bytes(128), Bytes(16_384)));
    }
}
