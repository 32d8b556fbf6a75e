//! Handling of an acknowledgement: tcp_ack of net/ipv4/tcp_input.c.

use landspeed_congestion::{AckSample, CaState, RateSample};
use landspeed_record::units::Nanos;

use super::TcpSender;
use super::rate::SampleOrigin;
use super::rtt::us;
use super::scoreboard::{EVER_RESENT, SACKED, SentSegment};
use crate::features::WindowGrowth;
use crate::packet::{NONE, TcpAck};

/// The nanoseconds of a tick of TCP's timestamps.
const MILLISECOND: u64 = 1_000_000;

/// A summary of what one acknowledgement reports.
#[derive(Debug, Default)]
pub(super) struct AckSummary {
    /// The number of segments that were newly acknowledged cumulatively.
    pub(super) acked: u32,
    /// The number of segments newly known to have arrived, acknowledged cumulatively or selectively.
    pub(super) delivered: u32,
    /// True if a segment was newly acknowledged selectively.
    pub(super) sacked: bool,
    /// True if one of the segments acknowledged cumulatively had been sent more than once.
    pub(super) was_resent: bool,
    /// The first and the last sending time of the segments that were sent once and are now acknowledged cumulatively.
    acked_sent: Option<(Nanos, Nanos)>,
    /// The sending time of the segment that was sent once and is now acknowledged selectively.
    sacked_sent: Option<Nanos>,
    origin: Option<SampleOrigin>,
    /// The RTT of the newest segment that this acknowledgement covers; `None` if retransmissions make it
    /// ambiguous.
    rtt_us: Option<i32>,
    in_flight_before: u32,
    lost_before: u32,
}

impl AckSummary {
    /// Returns true if this acknowledgement may show a loss, so that the state of recovery must be checked
    /// (tcp_ack_is_dubious).
    fn is_dubious(&self) -> bool {
        self.acked == 0 || self.sacked
    }
}

impl TcpSender {
    /// Handles an acknowledgement. The caller must then call [`TcpSender::transmit`].
    pub(crate) fn on_ack(&mut self, now: Nanos, ack: &TcpAck) {
        if self.board.out() == 0 {
            return;
        }
        self.tick(now);
        let mut summary = AckSummary {
            in_flight_before: self.board.in_flight(),
            lost_before: self.board.lost_ever(),
            ..AckSummary::default()
        };
        self.read_timestamps(now, ack);
        if self.features.sack {
            self.take_sacked(now, ack.sacked, &mut summary);
        }
        self.take_acked(now, ack.next, &mut summary);
        if !self.features.sack {
            self.count_duplicates(&mut summary);
        }
        self.sk.delivered = self.sk.delivered.wrapping_add(summary.delivered);
        self.tell_acked(now, &mut summary);
        self.judge_probe(&summary);
        if summary.is_dubious() || self.sk.ca_state() != CaState::Open {
            self.alert(now, &summary);
        }
        if summary.acked > 0 {
            self.retries = 0;
        }
        if summary.acked > 0 || self.tells_of_older(&summary) {
            self.arm(now);
        }
        self.steer(now, &summary);
    }

    /// Returns true if the selectively acknowledged segment was sent before the last transmission of the first
    /// outstanding segment. The first outstanding segment may then still arrive, so the timeout starts anew. An
    /// acknowledgement of a segment sent later does not extend the timeout.
    fn tells_of_older(&self, summary: &AckSummary) -> bool {
        summary.sacked_sent.is_some_and(|at| at < self.board.at(self.board.una()).at)
    }

    /// Sets the receiver's timestamp, and the sender's timestamp that the receiver echoes. The receiver echoes the
    /// timestamp of the first segment that it acknowledges (RFC 7323, section 4.3). An acknowledgement without new data
    /// echoes the previous timestamp again.
    fn read_timestamps(&mut self, now: Nanos, ack: &TcpAck) {
        self.sk.rcv_tsval = ((now - self.way_back).0 / MILLISECOND) as u32;
        if ack.next > self.board.una() {
            self.sk.rcv_tsecr = (self.board.at(self.board.una()).at.0 / MILLISECOND) as u32;
        }
    }

    /// Returns the RTT by the timestamp that the receiver echoes, in microseconds: whole milliseconds, at least one
    /// (tcp_rtt_tsopt_us). `None` if the timestamp is not of the past.
    fn echoed_us(&self, now: Nanos) -> Option<u32> {
        let milliseconds = ((now.0 / MILLISECOND) as u32).wrapping_sub(self.sk.rcv_tsecr);
        (milliseconds < i32::MAX as u32 / 1000).then(|| milliseconds.max(1) * 1000)
    }

    /// Marks a segment as acknowledged selectively (tcp_sacktag_one).
    fn take_sacked(&mut self, now: Nanos, seq: u64, summary: &mut AckSummary) {
        if seq == NONE {
            return;
        }
        let Some(was) = self.board.sack(seq) else { return };
        summary.sacked = true;
        if was.flags & EVER_RESENT == 0 {
            summary.sacked_sent = Some(was.at);
        }
        self.deliver(now, seq, &was, summary);
    }

    /// Removes the segments that are acknowledged cumulatively (tcp_clean_rtx_queue).
    fn take_acked(&mut self, now: Nanos, next: u64, summary: &mut AckSummary) {
        while self.board.una() < next {
            let seq = self.board.una();
            let was = self.board.pop();
            summary.acked += 1;
            if was.flags & SACKED == 0 {
                self.deliver(now, seq, &was, summary);
            }
            if was.flags & EVER_RESENT != 0 {
                summary.was_resent = true;
            } else if was.flags & SACKED == 0 {
                summary.acked_sent = Some((summary.acked_sent.map_or(was.at, |(first, _)| first), was.at));
            }
        }
    }

    fn deliver(&mut self, now: Nanos, seq: u64, was: &SentSegment, summary: &mut AckSummary) {
        summary.delivered += 1;
        self.rate.on_delivered(seq, was, &mut summary.origin);
        self.advance(now, seq, was);
    }

    /// Updates the newest delivered segment: of all delivered segments, the one that was sent last
    /// (tcp_rack_advance).
    fn advance(&mut self, now: Nanos, seq: u64, was: &SentSegment) {
        let rtt = now - was.at;
        if was.flags & EVER_RESENT != 0 && us(rtt) < u64::from(self.sk.rtt_min) {
            // The RTT is too short, so the first transmission has probably arrived, not the repeated one.
            return;
        }
        self.newest.rtt = rtt;
        self.is_newer = true;
        if (was.at, seq) > (self.newest.sent_at, self.newest.seq) {
            (self.newest.sent_at, self.newest.seq) = (was.at, seq);
        }
    }

    /// Updates the RTT (tcp_ack_update_rtt) and calls the congestion control's `pkts_acked`.
    fn tell_acked(&mut self, now: Nanos, summary: &mut AckSummary) {
        let acked = summary.acked_sent.filter(|_| !summary.was_resent);
        let first = acked.map(|(first, _)| first).or(summary.sacked_sent);
        let last = summary.sacked_sent.or(acked.map(|(_, last)| last));
        let ages = first.zip(last).map(|(first, last)| [first, last].map(|sent| us(now - sent) as u32));
        // Only a timestamp tells which transmission of a segment has arrived (RFC 7323, section 4.1).
        let by_timestamp = || self.echoed_us(now).filter(|_| summary.acked > 0).map(|age_us| [age_us; 2]);
        if let Some([first_us, newest_us]) = ages.or_else(by_timestamp) {
            summary.rtt_us = Some(newest_us.cast_signed());
            self.rtt.least(&mut self.sk, now, newest_us);
            self.rtt.sample(&mut self.sk, first_us, self.board.una(), self.board.next());
            self.backoff = 0;
        }
        self.update_counts();
        let before = summary.origin.map_or(self.sk.delivered, |origin| origin.delivered());
        let sample = AckSample {
            pkts_acked: summary.acked,
            rtt_us: summary.rtt_us.unwrap_or(-1),
            in_flight: self.sk.delivered.wrapping_sub(before).wrapping_mul(self.mss),
        };
        self.control.pkts_acked(&mut self.sk, &sample);
    }

    /// Updates the congestion window and the pacing rate (tcp_cong_control).
    fn steer(&mut self, now: Nanos, summary: &AckSummary) {
        self.update_counts();
        self.rate.update_last_delivery(now, &mut self.sk, summary.delivered);
        let losses = self.board.lost_ever().wrapping_sub(summary.lost_before);
        if self.is_rate_based {
            let sample = RateSample {
                losses: losses.cast_signed(),
                acked_sacked: summary.delivered,
                prior_in_flight: summary.in_flight_before,
                rtt_us: summary.rtt_us.unwrap_or(-1).into(),
                ..self.rate.sample(now, &self.sk, summary.origin)
            };
            let ack = self.sk.snd_una;
            self.control.cong_control(&mut self.sk, ack, &sample);
            return;
        }
        if self.is_reducing() {
            self.reduce(summary.delivered, losses, summary.acked > 0);
        } else if summary.acked > 0 {
            let ack = self.sk.snd_una;
            let grows_by = match self.features.growth {
                WindowGrowth::Segments => summary.delivered,
                WindowGrowth::Acknowledgements => 1,
            };
            self.control.cong_avoid(&mut self.sk, ack, grows_by);
        }
        self.set_pacing_rate();
    }
}
