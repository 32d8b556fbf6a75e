//! The features in which TCP senders differ besides their congestion control. Each is a switch.

/// The loss detection of a sender with selective acknowledgements. A sender without them ignores this: it counts
/// duplicate acknowledgements and retransmits one segment per round trip (NewReno, RFC 6582).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LossDetection {
    /// By the times of sending (RFC 8985), as Linux does since 4.18. It also finds lost retransmissions.
    #[default]
    Rack,
    /// A segment is lost once a segment three above it has arrived: forward acknowledgement (Mathis and Mahdavi, SIGCOMM
    /// 1996; net.ipv4.tcp_fack, tcp_update_scoreboard of Linux 2.4). A retransmission is lost once a segment arrives that
    /// was first sent after it (tcp_sacktag_write_queue).
    ForwardAcknowledgement,
    /// Only the first outstanding segment is marked lost, once a segment three above it has arrived. The next one is
    /// marked only after the first is acknowledged (tcp_update_scoreboard of Linux 2.4 with net.ipv4.tcp_fack off). The
    /// early retransmissions of 2.4 when it may send no new data (tcp_xmit_retransmit_queue) are not simulated.
    Head,
}

/// The reduction of a sender's window after a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReductionRule {
    /// Proportional rate reduction (RFC 6937 in Linux's form), since Linux 3.2.
    #[default]
    Proportional,
    /// Rate halving: one segment leaves for two that arrive, and the window is never above what is in flight by more
    /// than one (tcp_cwnd_down of Linux 2.4; RFC 6937, section 1, and its problems). At its end, and wherever an acknowledgement
    /// may show a loss, the window is at most three above what is in flight (tcp_moderate_cwnd), and it never rises to
    /// the slow-start threshold at once (tcp_complete_cwr).
    RateHalving,
}

/// The unit that a sender counts to grow its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowGrowth {
    /// Acknowledged segments (RFC 3465), since Linux 3.18, so that delayed acknowledgements do not slow it down.
    #[default]
    Segments,
    /// Acknowledgements: tcp_cong_avoid of Linux 2.4.
    Acknowledgements,
}

/// The parts of a sender that can be switched. The default is Linux of today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderFeatures {
    /// Selective acknowledgements (RFC 2018; net.ipv4.tcp_sack).
    pub sack: bool,
    pub detection: LossDetection,
    pub reduction: ReductionRule,
    /// Tail loss probes (RFC 8985, section 7; net.ipv4.tcp_early_retrans). They need selective acknowledgements.
    pub tail_loss_probe: bool,
    /// Paces the flows of controls that ask for it.
    pub pacing: bool,
    pub growth: WindowGrowth,
}

impl SenderFeatures {
    /// The sender of Linux 2.4: net/ipv4/tcp_input.c of 2.4.19 to 2.4.25, whose defaults are tcp_sack and tcp_fack on.
    /// RACK came with 4.4, tail loss probes with 3.10, proportional rate reduction with 3.2, pacing with 3.12.
    pub const LINUX_2_4: SenderFeatures = SenderFeatures {
        sack: true,
        detection: LossDetection::ForwardAcknowledgement,
        reduction: ReductionRule::RateHalving,
        tail_loss_probe: false,
        pacing: false,
        growth: WindowGrowth::Acknowledgements,
    };

    /// Returns true if losses are found by counts of acknowledged segments and not by times.
    pub(crate) fn counts(&self) -> bool {
        !self.sack || self.detection != LossDetection::Rack
    }
}

impl Default for SenderFeatures {
    fn default() -> Self {
        SenderFeatures {
            sack: true,
            detection: LossDetection::default(),
            reduction: ReductionRule::default(),
            tail_loss_probe: true,
            pacing: true,
            growth: WindowGrowth::default(),
        }
    }
}
