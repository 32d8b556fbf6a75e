//! Silly window syndrome avoidance: a receiver moves no window that is hardly worth it.

use landspeed_units::Bytes;

/// The least by which a receiver advances its window: a segment, or half its buffer where that is less (RFC 9293 section
/// 3.8.6.2.2; RFC 1122 section 4.2.3.3 with Fr = 1/2). With an MSS of the order of the buffer the window stands still
/// until half of the buffer is free.
pub fn least_advance(buffer: Bytes, mss: Bytes) -> Bytes {
    Bytes(buffer.0 / 2).min(mss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_moves_by_a_segment_or_half_a_buffer() {
        assert_eq!(least_advance(Bytes::kib(64), Bytes(1460)), Bytes(1460));
        assert_eq!(least_advance(Bytes::kib(16), Bytes(8948)), Bytes(8192), "half of a small buffer");
    }
}
