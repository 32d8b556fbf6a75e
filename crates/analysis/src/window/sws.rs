//! Silly window syndrome avoidance: neither side moves a window, or a segment, that is hardly worth it.

use landspeed_units::Bytes;

/// Whether a receiver may advance its window by `increase`: by a segment, or half its buffer where that
/// is less (RFC 9293 section 3.8.6.2.2; RFC 1122 section 4.2.3.3 with Fr = 1/2). With an MSS of the order
/// of the buffer the window stands still until half of the buffer is free.
pub fn may_advance(increase: Bytes, buffer: Bytes, mss: Bytes) -> bool {
    increase >= least_advance(buffer, mss)
}

/// The least by which a receiver advances its window: see [`may_advance`].
pub fn least_advance(buffer: Bytes, mss: Bytes) -> Bytes {
    Bytes(buffer.0 / 2).min(mss)
}

/// What a sender knows when it asks whether to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendState {
    /// Data that waits to be sent (D).
    pub queued: Bytes,
    /// Window that is left: SND.UNA + SND.WND - SND.NXT (U).
    pub usable: Bytes,
    /// Effective MSS for sending.
    pub mss: Bytes,
    /// Largest window that the peer ever offered (Max(SND.WND)).
    pub largest_window: Bytes,
    /// The data ends in a push.
    pub pushed: bool,
    /// Data is in flight.
    pub in_flight: bool,
    /// Nagle's algorithm is on (no TCP_NODELAY).
    pub nagle: bool,
}

/// Whether a sender may send now: a whole segment; all that it has, pushed, unless Nagle's algorithm waits
/// for what is in flight; or half of the largest window (RFC 9293 section 3.8.6.2.1 with Fs = 1/2). The
/// fourth way out, a timer of 0.1 to 1 s, is the caller's.
pub fn may_send(state: SendState) -> bool {
    let least = state.queued.min(state.usable);
    let idle = !(state.nagle && state.in_flight);
    least >= state.mss
        || (idle && state.pushed && state.queued <= state.usable)
        || (idle && least >= Bytes(state.largest_window.0 / 2).max(Bytes(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_moves_by_a_segment_or_half_a_buffer() {
        assert!(!may_advance(Bytes(1000), Bytes::kib(64), Bytes(1460)));
        assert!(may_advance(Bytes(1460), Bytes::kib(64), Bytes(1460)));
        assert!(may_advance(Bytes(8192), Bytes::kib(16), Bytes(8948)), "half of a small buffer");
        assert!(!may_advance(Bytes(8191), Bytes::kib(16), Bytes(8948)));
    }

    #[test]
    fn a_small_segment_waits_for_its_acknowledgement() {
        let state = SendState {
            queued: Bytes(100),
            usable: Bytes(10_000),
            mss: Bytes(1448),
            largest_window: Bytes(64_000),
            pushed: true,
            in_flight: true,
            nagle: true,
        };
        assert!(!may_send(state), "Nagle");
        assert!(may_send(SendState { nagle: false, ..state }), "TCP_NODELAY");
        assert!(may_send(SendState { in_flight: false, ..state }), "nothing to wait for");
        assert!(may_send(SendState { queued: Bytes(1448), ..state }), "a whole segment");
        let silly = SendState { queued: Bytes(9000), usable: Bytes(500), pushed: false, ..state };
        assert!(!may_send(silly), "500 bytes of a window of 64,000");
        assert!(may_send(SendState { largest_window: Bytes(900), nagle: false, ..silly }), "half of 900");
    }
}
