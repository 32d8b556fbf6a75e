//! Tail loss probes: RFC 8985, section 7, as in net/ipv4/tcp_output.c and tcp_input.c. If no acknowledgement arrives
//! for two RTTs, one segment is sent. Its acknowledgement then reveals a loss at the end of a flight without a
//! timeout.

use landspeed_congestion::CaState;
use landspeed_record::units::Nanos;

use super::TcpSender;
use super::acks::AckSummary;
use crate::agenda::NEVER;

/// The time that a probe waits in addition to two RTTs: the granularity of a timer (TCP_TIMEOUT_MIN_US).
const SLACK: Nanos = Nanos::millis(2);

#[derive(Debug, Clone, Copy)]
pub(super) struct TailLossProbe {
    pub(super) at: Nanos,
    is_due: bool,
    /// `Some` while a probe is under way: all segments below this number were sent before the probe or by it
    /// (tlp_high_seq).
    ends: Option<u64>,
    /// True if the probe repeated the last segment (tlp_retrans).
    is_repeat: bool,
}

impl Default for TailLossProbe {
    fn default() -> Self {
        TailLossProbe { at: NEVER, is_due: false, ends: None, is_repeat: false }
    }
}

impl TcpSender {
    /// Restarts the timer after progress. In the states Open and Cwr it is the timer of a probe, otherwise that of a
    /// timeout (tcp_set_xmit_timer).
    pub(super) fn arm(&mut self, now: Nanos) {
        let timeout = self.rtt.timeout(&self.sk, self.backoff);
        if !self.arm_probe(now, now + timeout) {
            self.arm_rto(now);
        }
    }

    /// Restarts the timer of a probe after new data was sent. The probe is due no later than the timeout of the first
    /// outstanding segment.
    pub(super) fn arm_after_sending(&mut self, now: Nanos) {
        let timeout = self.rtt.timeout(&self.sk, self.backoff);
        self.arm_probe(now, self.board.at(self.board.una()).at + timeout);
    }

    /// Schedules a probe, no later than `timeout_at` (tcp_schedule_loss_probe). Returns false if the state allows no
    /// probe.
    fn arm_probe(&mut self, now: Nanos, timeout_at: Nanos) -> bool {
        let is_well = matches!(self.sk.ca_state(), CaState::Open | CaState::Cwr);
        let can_probe = self.features.tail_loss_probe && self.features.sack;
        if !can_probe || !is_well || self.board.out() == 0 {
            return false;
        }
        // Twice the RTT. `srtt_us` is in eighths of a microsecond.
        let two = Nanos::micros(u64::from(self.sk.srtt_us >> 2));
        // The receiver may delay the acknowledgement of a single segment.
        let slack = if self.board.out() == 1 { self.min_rto } else { SLACK };
        let probe_at = now + two + slack;
        self.probing.at = if timeout_at > now { probe_at.min(timeout_at) } else { probe_at };
        self.rto_at = NEVER;
        true
    }

    /// Handles the probe's timer (tcp_send_loss_probe). [`TcpSender::transmit`] then sends the probe.
    pub(super) fn on_probe_timer(&mut self, now: Nanos) {
        self.probing.is_due = self.probing.ends.is_none();
        self.arm_rto(now);
    }

    /// Sends a probe if one is due, whatever the window: new data, or the last segment again. Returns the number of
    /// the segment that was sent.
    pub(super) fn send_probe(&mut self, now: Nanos) -> Option<u64> {
        if !std::mem::take(&mut self.probing.is_due) || self.board.out() == 0 {
            return None;
        }
        let (is_new, sent) = (self.has_new(), self.remember(now));
        let seq = if is_new { self.board.push(sent) } else { self.board.resend_last(sent)? };
        self.counts.sent += 1;
        self.counts.retransmits += u64::from(!is_new);
        (self.probing.ends, self.probing.is_repeat) = (Some(self.board.next()), !is_new);
        Some(seq)
    }

    /// Ends a probe under way if an acknowledgement decides it (tcp_process_tlp_ack). A loss that the probe has
    /// repaired reduces the window.
    pub(super) fn judge_probe(&mut self, summary: &AckSummary) {
        let Some(ends) = self.probing.ends else { return };
        let una = self.board.una();
        if una < ends {
            return;
        }
        if !self.probing.is_repeat {
            self.probing.ends = None;
        } else if una > ends {
            // No second copy was reported, so the first one was lost, and the probe has repaired the loss silently.
            self.counts.recoveries += 1;
            self.begin_reduction();
            self.control.set_state(&mut self.sk, CaState::Cwr);
            self.end_reduction();
            self.keep_open();
        } else if summary.acked == 0 && !summary.sacked {
            // Both copies arrived.
            self.probing.ends = None;
        }
    }

    /// Forgets a probe that is due or under way, because a reduction or a timeout makes it meaningless.
    pub(super) fn forget_probe(&mut self) {
        self.probing = TailLossProbe::default();
    }
}
