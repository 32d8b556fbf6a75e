//! Losses and reordering, from the sender's sockets and counters, and the queueing disciplines of the ends.

use landspeed_record::{QdiscWatch, TcpState};

use super::{EndView, FlowView, counter};
use crate::verdict::thresholds::{AT_RATE, SHORT_QUEUE_BYTES};

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
    pub(super) fn of(sender: Option<&EndView<'_>>) -> Loss {
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

/// A queueing discipline with what judges ask of it.
#[derive(Clone, Copy)]
pub(crate) struct Queue<'a> {
    pub(crate) watch: &'a QdiscWatch,
}

impl Queue<'_> {
    /// Dropped packets over all that came.
    pub(crate) fn drop_share(&self) -> f64 {
        let came = self.watch.sent_packets as f64 + self.watch.drops as f64;
        if came > 0.0 { self.watch.drops as f64 / came } else { 0.0 }
    }

    /// Whether it drops because it is too short for one large packet: a queue that is full of traffic for
    /// its rate holds more.
    pub(crate) fn is_short(&self) -> bool {
        self.watch.drops > 0 && self.watch.most_waiting_bytes.0 <= SHORT_QUEUE_BYTES
    }
}

#[derive(Clone)]
pub(crate) struct Shaped<'a> {
    pub(crate) queue: Queue<'a>,
    pub(crate) host: String,
    /// What left it over what it lets through.
    pub(crate) used: f64,
}

/// Queues of an end that can hold data back: what has no queue cannot.
pub(crate) fn queues<'a>(end: &EndView<'a>) -> impl Iterator<Item = Queue<'a>> {
    end.host.seen.get::<Vec<QdiscWatch>>().iter().filter(|q| q.kind != "noqueue").map(|watch| Queue { watch })
}

/// The shaper of either end that is nearest to its rate, where one is at it.
pub(super) fn shaped<'a>(sender: Option<&EndView<'a>>, receiver: Option<&EndView<'a>>) -> Option<Shaped<'a>> {
    let ends = sender.into_iter().chain(receiver);
    let all = ends.flat_map(|end| {
        let window = end.host.cpu().window_ns;
        let span = end.main().map_or(window, |flow| flow.span);
        let window = if window.0 > 0 { window } else { span };
        queues(end).filter_map(move |queue| {
            let rate = queue.watch.rate_bps.filter(|rate| rate.0 > 0.0)?;
            let used = queue.watch.sent_bytes.per(window).0 / rate.0;
            Some(Shaped { queue, host: end.name(), used })
        })
    });
    // A class that borrows goes beyond its rate: that is no limit. A bucket adds a little to a short window.
    let at_rate = all.filter(|shaped| (AT_RATE..1.5).contains(&shaped.used));
    let held = at_rate.filter(|shaped| {
        let watch = shaped.queue.watch;
        watch.overlimits > 0 || watch.drops > 0 || watch.most_waiting_bytes.0 > 0
    });
    held.max_by(|a, b| a.used.total_cmp(&b.used))
}

/// Segments that the queues of an end dropped: a queue counts packets, and with segmentation offload each
/// holds several segments. Root and child of one link count the same drop: the larger stands.
fn drops_of(end: &EndView<'_>) -> f64 {
    let mss = end.main().and_then(|flow| flow.last()).map_or(0.0, |t| t.send_mss_bytes.0 as f64);
    let segments = |queue: Queue<'_>| {
        let watch = queue.watch;
        let bytes = watch.sent_bytes.0 as f64 / (watch.sent_packets as f64).max(1.0);
        let each = if mss > 0.0 { (bytes / mss).max(1.0) } else { 1.0 };
        watch.drops as f64 * each
    };
    queues(end).map(segments).fold(0.0, f64::max)
}
