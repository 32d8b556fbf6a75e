//! The retransmission timer of RFC 6298, and tcp_enter_loss of net/ipv4/tcp_input.c.

use landspeed_congestion::{CaState, CwndEvent};
use landspeed_record::units::Nanos;

use super::TcpSender;
use crate::agenda::NEVER;

impl TcpSender {
    /// Handles all timers that are due by `now`. The caller must then call [`TcpSender::transmit`].
    pub(crate) fn on_timer(&mut self, now: Nanos) {
        self.tick(now);
        if self.reorder_at <= now {
            self.on_reorder_timer(now);
        }
        if self.probing.at <= now {
            self.on_probe_timer(now);
        } else if self.rto_at <= now {
            self.on_timeout(now);
        }
    }

    /// Restarts the retransmission timer, or stops it if no segment is outstanding (RFC 6298, section 5).
    pub(super) fn arm_rto(&mut self, now: Nanos) {
        self.probing.at = NEVER;
        self.rto_at = match self.board.out() {
            0 => NEVER,
            _ => now + self.rtt.timeout(&self.sk, self.backoff),
        };
    }

    fn on_timeout(&mut self, now: Nanos) {
        self.counts.timeouts += 1;
        if !self.features.sack {
            self.board.remove_duplicates(u32::MAX);
        }
        self.board.mark_all_lost();
        self.reorder_at = NEVER;
        self.forget_probe();
        self.update_counts();
        if self.is_a_new_loss() {
            self.sk.prior_cwnd = self.sk.snd_cwnd;
            self.sk.snd_ssthresh = self.control.ssthresh(&mut self.sk);
            self.control.cwnd_event(&mut self.sk, CwndEvent::Loss);
        }
        self.sk.snd_cwnd = self.board.in_flight() + 1;
        self.sk.snd_cwnd_cnt = 0;
        self.control.set_state(&mut self.sk, CaState::Loss);
        self.state_ends = self.board.next();
        self.backoff += 1;
        self.retries += 1;
        self.arm_rto(now);
    }

    /// Returns true if the window was not yet reduced for the segments that are outstanding now.
    fn is_a_new_loss(&self) -> bool {
        match self.sk.ca_state() {
            CaState::Open | CaState::Disorder => true,
            CaState::Loss if self.retries == 0 => true,
            _ => self.state_ends <= self.board.una(),
        }
    }
}
