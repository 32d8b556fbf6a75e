//! Recovery as Linux 2.4 did it, by counts of acknowledged segments: tcp_fastretrans_alert, tcp_time_to_recover and
//! tcp_update_scoreboard of its net/ipv4/tcp_input.c.

use landspeed_congestion::CaState;

use super::TcpSender;
use super::acks::AckSummary;
use super::recovery::REORDERING;
use crate::features::{LossDetection, ReductionRule};

/// The segments by which a window may exceed what is in flight, net.ipv4.tcp_max_burst of 2.4 (tcp_moderate_cwnd).
const BURST: u32 = 3;

impl TcpSender {
    /// Does what [`TcpSender::alert`] does, for a sender that finds losses by counts.
    pub(super) fn alert_by_counts(&mut self, summary: &AckSummary) {
        if self.holds_state() {
            if self.sk.ca_state() == CaState::Recovery {
                self.board.remove_duplicates(u32::MAX);
            }
            return self.moderate();
        }
        self.leave_state();
        match self.sk.ca_state() {
            CaState::Loss => self.moderate(),
            CaState::Recovery => {
                self.find_lost_again();
                // Without selective acknowledgements, one that advances shows the next gap (tcp_try_undo_partial;
                // tcp_newreno_mark_lost of today).
                if !self.features.sack || summary.acked == 0 || self.is_time_to_recover() {
                    self.mark_by_counts();
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if self.board.lost() > 0 || self.is_time_to_recover() {
                    self.enter_recovery();
                    self.mark_by_counts();
                } else {
                    self.keep_open();
                }
            }
        }
    }

    /// Returns true if more of the segments above a gap have arrived than reordering explains (tcp_time_to_recover).
    fn is_time_to_recover(&self) -> bool {
        let reach = if self.features.sack { self.board.reach() } else { self.board.sacked() + 1 };
        reach > REORDERING
    }

    /// Marks the segments that are lost by now (tcp_update_scoreboard). Those that were first sent after recovery began
    /// wait until it ends.
    fn mark_by_counts(&mut self) {
        if self.features.sack && self.features.detection == LossDetection::ForwardAcknowledgement {
            let lost = self.board.reach().saturating_sub(REORDERING);
            self.board.mark_below((self.board.una() + u64::from(lost)).min(self.state_ends));
        }
        self.board.mark_head();
    }

    /// Marks retransmissions that are lost by now (event C of tcp_sacktag_write_queue).
    fn find_lost_again(&mut self) {
        let beyond = match self.features.detection {
            LossDetection::ForwardAcknowledgement => 0,
            _ => u64::from(REORDERING),
        };
        self.board.detect_again_by_counts(beyond);
    }

    /// Returns true if a state must last although all of its segments are acknowledged: without selective
    /// acknowledgements, until one above them is (RFC 6582, section 4; tcp_try_undo_recovery).
    fn holds_state(&self) -> bool {
        let is_state = matches!(self.sk.ca_state(), CaState::Recovery | CaState::Loss);
        !self.features.sack && is_state && self.board.una() == self.state_ends && self.board.out() > 0
    }

    /// Bounds the window by what is in flight (tcp_moderate_cwnd), where the sender's rule of reduction does so.
    pub(super) fn moderate(&mut self) {
        if self.features.reduction == ReductionRule::RateHalving && !self.is_rate_based {
            self.sk.snd_cwnd = self.sk.snd_cwnd.min(self.board.in_flight() + BURST);
        }
    }

    /// Reduces the window by one step of rate halving (tcp_cwnd_down): one for every second acknowledgement.
    pub(super) fn halve(&mut self) {
        let count = self.sk.snd_cwnd_cnt + 1;
        self.sk.snd_cwnd_cnt = count & 1;
        if self.sk.snd_cwnd > self.sk.snd_ssthresh / 2 {
            self.sk.snd_cwnd -= count >> 1;
        }
        self.sk.snd_cwnd = self.sk.snd_cwnd.min(self.board.in_flight() + 1);
    }

    /// Counts an acknowledgement for a sender that ignores its selective part. A duplicate means that a segment has
    /// arrived (tcp_add_reno_sack); an acknowledgement that advances means that a gap is closed
    /// (tcp_remove_reno_sacks).
    pub(super) fn count_duplicates(&mut self, summary: &mut AckSummary) {
        if summary.acked == 0 {
            summary.delivered += u32::from(self.board.add_duplicate());
            return;
        }
        let counted = self.board.sacked();
        if counted == 0 {
            return;
        }
        summary.delivered = summary.acked.saturating_sub(counted).max(1);
        match self.sk.ca_state() {
            CaState::Recovery => self.board.remove_duplicates(summary.acked - 1),
            _ => self.board.remove_duplicates(u32::MAX),
        }
    }
}
