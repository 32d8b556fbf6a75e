//! The sending of segments: tcp_xmit_retransmit_queue, then tcp_write_xmit, of net/ipv4/tcp_output.c.

use landspeed_congestion::CwndEvent;
use landspeed_record::units::Nanos;

use super::TcpSender;
use super::scoreboard::SentSegment;
use crate::agenda::NEVER;

impl TcpSender {
    /// Sends the segments that may leave now. `send` is called with the number of each.
    pub(crate) fn transmit(&mut self, now: Nanos, mut send: impl FnMut(u64)) {
        let pacing =
            if self.is_paced { self.sk.sk_pacing_rate.min(self.sk.sk_max_pacing_rate) } else { u64::MAX };
        let (sent_before, mut next_before) = (self.counts.sent, self.board.next());
        self.pace_at = NEVER;
        if let Some(seq) = self.send_probe(now) {
            send(seq);
            next_before = self.board.next();
        }
        while self.board.in_flight() < self.sk.snd_cwnd && self.has_something() {
            if pacing != u64::MAX && !self.is_time(now, pacing) {
                break;
            }
            send(self.send_one(now));
        }
        if self.board.next() > next_before {
            self.arm_after_sending(now);
        }
        self.judge_use(self.counts.sent > sent_before);
    }

    fn has_something(&self) -> bool {
        self.board.any_to_resend() || self.has_new()
    }

    pub(super) fn has_new(&self) -> bool {
        self.board.next() < self.end.min(self.board.una() + self.window)
    }

    /// Returns true if pacing allows a segment to leave now, and then sets the earliest time of the next one. Otherwise
    /// sets the pacing timer and returns false.
    fn is_time(&mut self, now: Nanos, bytes_per_second: u64) -> bool {
        if self.sk.tcp_wstamp_ns > now.0 {
            self.pace_at = Nanos(self.sk.tcp_wstamp_ns);
            return false;
        }
        self.sk.tcp_wstamp_ns = now.0 + u64::from(self.mss) * 1_000_000_000 / bytes_per_second.max(1);
        true
    }

    /// Sets the pacing rate (tcp_update_pacing_rate): 1.2 windows per RTT, or 2 while the window is below half the
    /// slow-start threshold. Linux computes the rate even for a flow that it does not pace.
    pub(super) fn set_pacing_rate(&mut self) {
        let sk = &mut self.sk;
        let percent = if sk.snd_cwnd < sk.snd_ssthresh / 2 { 200 } else { 120 };
        // `srtt_us` is in eighths of a microsecond.
        let by_percent = u64::from(sk.mss_cache) * (1_000_000 / 100 * 8) * percent;
        let rate = by_percent.saturating_mul(sk.snd_cwnd.max(sk.packets_out).into());
        sk.sk_pacing_rate = (rate / u64::from(sk.srtt_us.max(1))).min(sk.sk_max_pacing_rate);
    }

    fn send_one(&mut self, now: Nanos) -> u64 {
        let was_idle = self.board.out() == 0;
        if self.board.in_flight() == 0 {
            self.control.cwnd_event(&mut self.sk, CwndEvent::TxStart);
        }
        let sent = self.remember(now);
        self.counts.sent += 1;
        self.reduction.sent += u32::from(self.is_reducing());
        if let Some(seq) = self.board.resend(sent) {
            self.counts.retransmits += 1;
            if seq == self.board.una() {
                self.arm_rto(now);
            }
            return seq;
        }
        let seq = self.board.push(sent);
        if was_idle {
            self.arm_rto(now);
        }
        seq
    }

    pub(super) fn remember(&mut self, now: Nanos) -> SentSegment {
        let is_idle = self.board.out() == 0;
        self.rate.on_send(now, is_idle, self.sk.delivered)
    }

    /// Records if the window limits the flow (tcp_cwnd_validate), because only then may the window grow.
    fn judge_use(&mut self, has_sent: bool) {
        let limited = self.board.in_flight() >= self.sk.snd_cwnd;
        if !has_sent && !limited {
            return;
        }
        let out = self.board.out();
        let is_more = !self.cwnd_limited && out > self.sk.max_packets_out;
        if limited || is_more || self.board.una() >= self.usage_ends {
            self.cwnd_limited = limited;
            self.sk.set_cwnd_limited(limited);
            self.sk.max_packets_out = out;
            self.usage_ends = self.board.next();
        }
    }
}
