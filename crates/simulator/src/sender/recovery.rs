//! The effect of an acknowledgement on the state of recovery (tcp_fastretrans_alert), and the reduction of the
//! congestion window by proportional rate reduction (RFC 6937 in Linux's form).

use landspeed_congestion::{CaState, CwndEvent, INFINITE_SSTHRESH};
use landspeed_record::units::Nanos;

use super::TcpSender;
use super::acks::AckSummary;
use crate::agenda::NEVER;
use crate::features::ReductionRule;

/// DupThresh of RFC 6675, net.ipv4.tcp_reordering: a gap is a loss once this number of segments above it have
/// arrived.
pub(super) const REORDERING: u32 = 3;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowReduction {
    /// Segments delivered since the reduction began (prr_delivered).
    delivered: u32,
    /// Segments sent since the reduction began (prr_out).
    pub(super) sent: u32,
}

impl TcpSender {
    /// Returns true if a reduction of the window is under way (tcp_in_cwnd_reduction).
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.sk.ca_state(), CaState::Cwr | CaState::Recovery)
    }

    /// Handles an acknowledgement that may show a loss, or any acknowledgement in a state other than Open.
    pub(super) fn alert(&mut self, now: Nanos, summary: &AckSummary) {
        if self.features.counts() {
            return self.alert_by_counts(summary);
        }
        self.leave_state();
        match self.sk.ca_state() {
            CaState::Recovery => _ = self.find_lost(now),
            CaState::Loss => {
                let lost_again = self.find_lost(now);
                if lost_again {
                    self.enter_recovery();
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                self.find_lost(now);
                if self.board.lost() > 0 {
                    self.enter_recovery();
                } else {
                    self.keep_open();
                }
            }
        }
    }

    /// Leaves Recovery or Loss once all segments are acknowledged that were in flight when the state began.
    pub(super) fn leave_state(&mut self) {
        let una = self.board.una();
        if !self.features.sack && self.is_over() {
            self.board.remove_duplicates(u32::MAX);
        }
        match self.sk.ca_state() {
            CaState::Recovery if una >= self.state_ends => {
                self.control.set_state(&mut self.sk, CaState::Open);
                self.end_reduction();
            }
            CaState::Loss if una >= self.state_ends => self.control.set_state(&mut self.sk, CaState::Open),
            _ => {}
        }
    }

    /// Returns true if all segments are acknowledged that were in flight when the present state began.
    fn is_over(&self) -> bool {
        let is_state = matches!(self.sk.ca_state(), CaState::Recovery | CaState::Loss);
        is_state && self.board.una() >= self.state_ends
    }

    /// Marks the segments that are lost by now. Returns true if a newly marked one had been sent again.
    pub(super) fn find_lost(&mut self, now: Nanos) -> bool {
        if !std::mem::take(&mut self.is_newer) {
            return false;
        }
        let resent_before = self.board.counts()[3];
        self.reorder_at = self.board.detect(&self.newest, now, self.patience());
        self.board.counts()[3] < resent_before
    }

    /// Returns the time for which a gap may last before it is a loss (tcp_rack_reo_wnd). It is zero once losses are
    /// known or enough segments have arrived above the gap, otherwise a quarter of the smallest RTT.
    fn patience(&self) -> Nanos {
        let is_known = matches!(self.sk.ca_state(), CaState::Recovery | CaState::Loss);
        if is_known || self.board.sacked() >= REORDERING {
            return Nanos(0);
        }
        Nanos::micros(u64::from((self.sk.rtt_min >> 2).min(self.sk.srtt_us >> 3)))
    }

    /// Enters the state Open, or Disorder if a segment is missing or its retransmission is in flight
    /// (tcp_try_keep_open).
    pub(super) fn keep_open(&mut self) {
        let is_whole = self.board.sacked() + self.board.lost() == 0 && !self.board.any_resent();
        let state = if is_whole { CaState::Open } else { CaState::Disorder };
        if self.sk.ca_state() != state {
            self.control.set_state(&mut self.sk, state);
            self.state_ends = self.board.next();
        }
        self.moderate();
    }

    /// Enters recovery after a loss (tcp_enter_recovery).
    pub(super) fn enter_recovery(&mut self) {
        if !self.is_reducing() {
            self.counts.recoveries += 1;
            self.begin_reduction();
        }
        self.control.set_state(&mut self.sk, CaState::Recovery);
    }

    /// Starts a reduction of the window (tcp_init_cwnd_reduction).
    pub(super) fn begin_reduction(&mut self) {
        self.forget_probe();
        self.state_ends = self.board.next();
        self.sk.snd_cwnd_cnt = 0;
        self.sk.prior_cwnd = self.sk.snd_cwnd;
        self.reduction = WindowReduction::default();
        self.update_counts();
        self.sk.snd_ssthresh = self.control.ssthresh(&mut self.sk);
    }

    /// Ends a reduction of the window (tcp_end_cwnd_reduction). Does nothing for rate-based controls, which set their
    /// own window.
    pub(super) fn end_reduction(&mut self) {
        if self.is_rate_based {
            return;
        }
        if self.sk.snd_ssthresh < INFINITE_SSTHRESH {
            let most = match self.features.reduction {
                ReductionRule::Proportional => u32::MAX,
                ReductionRule::RateHalving => self.sk.snd_cwnd,
            };
            self.sk.snd_cwnd = self.sk.snd_ssthresh.min(most);
        }
        self.control.cwnd_event(&mut self.sk, CwndEvent::CompleteCwr);
    }

    /// Reduces the window by one step on its way from `prior_cwnd` to `snd_ssthresh` (tcp_cwnd_reduction).
    pub(super) fn reduce(&mut self, delivered: u32, lost: u32, advanced: bool) {
        if self.features.reduction == ReductionRule::RateHalving {
            return self.halve();
        }
        if delivered == 0 {
            return;
        }
        self.reduction.delivered += delivered;
        let in_flight = self.board.in_flight();
        let room = i64::from(self.sk.snd_ssthresh) - i64::from(in_flight);
        let (all, sent) = (i64::from(self.reduction.delivered), i64::from(self.reduction.sent));
        let may_send = if room < 0 {
            // Sends in proportion to deliveries, by the ratio of the new window to the old (RFC 6937, section 3).
            let prior = i64::from(self.sk.prior_cwnd.max(1));
            (i64::from(self.sk.snd_ssthresh) * all + prior - 1) / prior - sent
        } else {
            // Slow start up to ssthresh while retransmissions arrive (section 3.1, SSRB).
            let more = i64::from(advanced && lost == 0);
            room.min((all - sent).max(i64::from(delivered)) + more)
        };
        // The first retransmission is sent immediately.
        let may_send = may_send.max(i64::from(self.reduction.sent == 0));
        self.sk.snd_cwnd = in_flight + may_send as u32;
    }

    /// Handles the reordering timer: gaps have lasted long enough to be losses (tcp_rack_reo_timeout).
    pub(super) fn on_reorder_timer(&mut self, now: Nanos) {
        self.reorder_at = NEVER;
        let lost_before = self.board.lost_ever();
        self.is_newer = true;
        self.find_lost(now);
        let lost = self.board.lost_ever().wrapping_sub(lost_before);
        if lost > 0 && self.sk.ca_state() != CaState::Recovery {
            self.enter_recovery();
            if !self.is_rate_based {
                self.reduce(1, lost, false);
            }
        }
    }
}
