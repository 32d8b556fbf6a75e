//! Samples of the delivery rate: net/ipv4/tcp_rate.c, after draft-cheng-iccrg-delivery-rate-estimation. Simulated
//! applications never pause, so no sample is limited by the application.

use landspeed_congestion::{RateSample, Sock};
use landspeed_record::units::Nanos;

use super::rtt::us;
use super::scoreboard::{EVER_RESENT, SentSegment};

/// The sending time of the newest segment known to be delivered, and the time of the last delivery.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DeliveryRateSampler {
    first_at: Nanos,
    news_at: Nanos,
}

/// The segment from which a rate sample starts: of all segments delivered by one acknowledgement, the one sent last.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleOrigin {
    sent: SentSegment,
    seq: u64,
    sent_for: Nanos,
}

impl DeliveryRateSampler {
    /// Returns the record of a segment that is sent now (tcp_rate_skb_sent). `idle` is true if no segment is
    /// outstanding.
    pub(super) fn on_send(&mut self, now: Nanos, idle: bool, delivered: u32) -> SentSegment {
        if idle {
            (self.first_at, self.news_at) = (now, now);
        }
        SentSegment { at: now, first_at: self.first_at, news_at: self.news_at, delivered, flags: 0 }
    }

    /// Handles the delivery of a segment (tcp_rate_skb_delivered).
    pub(super) fn on_delivered(&mut self, seq: u64, sent: &SentSegment, origin: &mut Option<SampleOrigin>) {
        if origin.is_none_or(|origin| (sent.at, seq) > (self.first_at, origin.seq)) {
            *origin = Some(SampleOrigin { sent: *sent, seq, sent_for: sent.at - sent.first_at });
            self.first_at = sent.at;
        }
    }

    /// Updates the time of the last delivery if `delivered` is not zero.
    pub(super) fn update_last_delivery(&mut self, now: Nanos, sk: &mut Sock, delivered: u32) {
        if delivered > 0 {
            self.news_at = now;
            sk.delivered_mstamp = us(now);
        }
    }

    /// Returns the rate sample of one acknowledgement (tcp_rate_gen), without the fields that the caller fills in.
    pub(super) fn sample(&self, now: Nanos, sk: &Sock, origin: Option<SampleOrigin>) -> RateSample {
        let Some(origin) = origin else { return RateSample::default() };
        // The sending times or the arrival times may be compressed, so the longer of the two intervals is used.
        let interval = us(origin.sent_for).max(us(now - origin.sent.news_at));
        let is_too_short = interval < u64::from(sk.rtt_min);
        RateSample {
            prior_mstamp: us(origin.sent.news_at),
            prior_delivered: origin.sent.delivered,
            is_retrans: u8::from(origin.sent.flags & EVER_RESENT != 0),
            delivered: sk.delivered.wrapping_sub(origin.sent.delivered).cast_signed(),
            interval_us: if is_too_short { -1 } else { interval.cast_signed() },
            ..RateSample::default()
        }
    }
}

impl SampleOrigin {
    /// Returns the value that `Sock::delivered` had when the segment was sent.
    pub(super) fn delivered(&self) -> u32 {
        self.sent.delivered
    }
}
