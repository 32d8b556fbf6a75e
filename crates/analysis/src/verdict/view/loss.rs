//! Losses and reordering, from the sender's sockets and counters.

use landspeed_record::TcpState;

use super::queue::drops_of;
use super::{End, FlowView, counter};

/// What the sender knows of losses over the window, all its flows together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Loss {
    /// Segments with data, retransmissions included.
    pub(crate) sent: f64,
    pub(crate) retransmitted: f64,
    /// Retransmissions that the peer had already (DSACK).
    pub(crate) spurious: f64,
    /// Segments that the sender's own queueing disciplines dropped.
    pub(crate) dropped_here: f64,
    /// Times that the sender went into recovery, time-outs included.
    pub(crate) recoveries: f64,
    /// Retransmission time-outs.
    pub(crate) timeouts: f64,
    /// Retransmissions that were lost as well.
    pub(crate) lost_again: f64,
    /// Losses per interval: variance over mean, 1 where they fall independently.
    pub(crate) dispersion: f64,
    /// Times that reordering was seen.
    pub(crate) reorderings: u64,
    /// Share of samples in another congestion state than open: something was missing.
    pub(crate) disordered: f64,
}

impl Loss {
    pub(super) fn of(sender: Option<&End<'_>>) -> Loss {
        let Some(end) = sender else { return Loss::default() };
        let sum = |of: fn(&TcpState) -> u64| end.flows.iter().map(|flow| flow.delta(of) as f64).sum::<f64>();
        let sent = sum(|t| t.data_segments_sent);
        let host = end.host;
        let recoveries = ["TcpExt.TCPSackRecovery", "TcpExt.TCPRenoRecovery", "TcpExt.TCPTimeouts"];
        Loss {
            sent,
            retransmitted: sum(|t| t.retransmitted_segments),
            spurious: sum(|t| t.duplicates_reported),
            dropped_here: drops_of(end),
            recoveries: recoveries.map(|name| counter(host, name) as f64).iter().sum(),
            timeouts: counter(host, "TcpExt.TCPTimeouts") as f64,
            lost_again: counter(host, "TcpExt.TCPLostRetransmit") as f64,
            dispersion: end.main().map_or(1.0, dispersion),
            reorderings: end
                .flows
                .iter()
                .map(|f| f.delta(|t| t.reorderings_seen))
                .fold(0, u64::saturating_add),
            disordered: end.main().map_or(0.0, |flow| flow.when(|t| t.ca_state > 0)),
        }
    }

    /// Losses on the path: retransmissions that were needed and that no queue of the sender explains.
    pub(crate) fn on_path(&self) -> f64 {
        (self.retransmitted - self.spurious - self.dropped_here).max(0.0)
    }

    pub(crate) fn rate(&self) -> f64 {
        if self.sent > 0.0 { self.on_path() / self.sent } else { 0.0 }
    }

    /// Losses per recovery: by the sender's counters, else by how unevenly they fall over the samples.
    pub(crate) fn run(&self) -> f64 {
        if self.recoveries > 0.0 { self.on_path() / self.recoveries } else { self.dispersion }
    }

    /// Whether retransmissions are lost far more often than segments are: what is sent after a loss meets it still.
    pub(crate) fn goes_on(&self) -> bool {
        self.lost_again >= 2.0 && self.lost_again > 3.0 * self.rate() * self.retransmitted
    }

    /// Losses that one recovery covers where they fall independently: the first, and those among the other
    /// segments of its window.
    pub(crate) fn run_at_random(&self, window_segments: f64) -> f64 {
        1.0 + self.rate() * window_segments
    }
}

fn dispersion(flow: &FlowView<'_>) -> f64 {
    let steps = flow.steps(|t| t.retransmitted_segments);
    let mean = steps.iter().sum::<f64>() / steps.len().max(1) as f64;
    if steps.len() < 2 || mean == 0.0 {
        return 1.0;
    }
    steps.iter().map(|step| (step - mean).powi(2)).sum::<f64>() / (steps.len() - 1) as f64 / mean
}
