//! Losses and reordering, from the sender's sockets and counters and from the queueing disciplines of the ends.

use landspeed_record::{QdiscWatch, TcpState};

use super::end::EndView;
use super::flow::FlowView;
use super::host::counter;
use crate::verdict::thresholds::{AT_RATE, FEW_ACKS, RETURN_APART, RETURN_APART_SHARE, SHORT_QUEUE_BYTES};
use crate::verdict::words::share;

/// The losses that the sender knows of over the window, all its flows together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct SenderLosses {
    /// The number of segments with data, retransmissions included.
    pub(crate) sent: f64,
    pub(crate) retransmitted: f64,
    /// The number of retransmitted segments that the peer already had (DSACK).
    pub(crate) spurious: f64,
    /// The number of segments that the sender's own queueing disciplines dropped.
    pub(crate) dropped_here: f64,
    /// The number of times that the sender entered recovery, time-outs included.
    pub(crate) recoveries: f64,
    /// The number of retransmission time-outs.
    pub(crate) timeouts: f64,
    /// The number of retransmissions that were lost as well.
    pub(crate) lost_again: f64,
    /// The dispersion of the losses over the intervals between samples: variance divided by mean, which is 1 if
    /// losses are independent.
    pub(crate) dispersion: f64,
    /// The number of times that reordering was detected.
    pub(crate) reorderings: u64,
    /// The number of segments in one packet of the path: more than 1 if it carries large packets whole, as virtual
    /// links do.
    pub(crate) packet_segments: f64,
    /// The share of the acknowledgements that was lost on the way back; `None` unless both ends were watched.
    pub(crate) on_return: Option<f64>,
    /// The share of samples in a congestion state other than open, in which data was missing.
    pub(crate) disordered: f64,
}

impl SenderLosses {
    pub(super) fn of(sender: Option<&EndView<'_>>, receiver: Option<&EndView<'_>>) -> SenderLosses {
        let Some(end) = sender else { return SenderLosses::default() };
        let sum = |of: fn(&TcpState) -> u64| end.flows.iter().map(|flow| flow.delta(of) as f64).sum::<f64>();
        let sent = sum(|t| t.data_segments_sent);
        let host = end.host;
        let recoveries = ["TcpExt.TCPSackRecovery", "TcpExt.TCPRenoRecovery", "TcpExt.TCPTimeouts"];
        SenderLosses {
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
            packet_segments: receiver.map_or(1.0, |receiver| packet_segments(end, receiver)),
            on_return: receiver.and_then(|receiver| lost_on_return(end, receiver)),
            disordered: end.main().map_or(0.0, |flow| flow.when(|t| t.ca_state > 0)),
        }
    }

    /// Returns the number of losses on the path: of necessary retransmissions that no queue of the sender explains.
    pub(crate) fn on_path(&self) -> f64 {
        (self.retransmitted - self.spurious - self.dropped_here).max(0.0)
    }

    pub(crate) fn rate(&self) -> f64 {
        if self.sent > 0.0 { self.on_path() / self.sent } else { 0.0 }
    }

    /// Returns the number of losses per recovery by the sender's counters. If these counted no recovery, returns the
    /// dispersion of the losses over the samples.
    pub(crate) fn run(&self) -> f64 {
        if self.recoveries > 0.0 { self.on_path() / self.recoveries } else { self.dispersion }
    }

    /// Returns true if retransmissions are lost far more often than other segments, which means that the loss lasts
    /// longer than a round trip.
    pub(crate) fn goes_on(&self) -> bool {
        self.lost_again >= 2.0 && self.lost_again > 3.0 * self.rate() * self.retransmitted
    }

    /// Returns the number of losses that one recovery would repair if losses were independent: the first, and those
    /// among the other segments of its window.
    pub(crate) fn run_at_random(&self, window_segments: f64) -> f64 {
        1.0 + self.rate() * window_segments
    }
}

/// Returns the mean number of segments in a packet that reached the receiver, at least 1.
fn packet_segments(sender: &EndView<'_>, receiver: &EndView<'_>) -> f64 {
    let mss = sender.main().and_then(FlowView::last).map_or(0.0, |t| t.send_mss_bytes.0 as f64);
    if mss > 0.0 { (receiver.link_packet() / mss).max(1.0) } else { 1.0 }
}

/// Returns the share of the receiver's segments that did not reach the sender. The windows of the two ends do not begin
/// and end at the same time, so each end's count is divided by the payload and by the time of the same end. Where
/// packets arrive out of order, one end's payload may jump at the edge of its window. The smaller share counts. Returns
/// `None` where the two are too far apart for either to be trusted.
fn lost_on_return(sender: &EndView<'_>, receiver: &EndView<'_>) -> Option<f64> {
    let (from, to) = (sender.main()?, receiver.main()?);
    let arrived = from.delta(|t| t.segments_received) as f64;
    let left = to.delta(|t| t.segments_sent) as f64;
    let by_payload = from.delta(|t| t.acked_bytes.0) as f64 / to.delta(|t| t.received_bytes.0) as f64;
    let by_time = from.span.as_secs_f64() / to.span.as_secs_f64();
    let [one, other] = [by_payload, by_time].map(|ratio| 1.0 - arrived / (left * ratio));
    let least = one.min(other);
    // False as well if one of them is no number.
    let agree = (one - other).abs() <= RETURN_APART.max(RETURN_APART_SHARE * least);
    (left >= FEW_ACKS as f64 && agree).then(|| share(least))
}

fn dispersion(flow: &FlowView<'_>) -> f64 {
    let steps = flow.steps(|t| t.retransmitted_segments);
    let mean = steps.iter().sum::<f64>() / steps.len().max(1) as f64;
    if steps.len() < 2 || mean == 0.0 {
        return 1.0;
    }
    steps.iter().map(|step| (step - mean).powi(2)).sum::<f64>() / (steps.len() - 1) as f64 / mean
}

/// A queueing discipline, with the properties that judges need.
#[derive(Clone, Copy)]
pub(crate) struct QueueView<'a> {
    pub(crate) watch: &'a QdiscWatch,
}

impl QueueView<'_> {
    /// Returns the share of the packets arriving at the queue that it dropped.
    pub(crate) fn drop_share(&self) -> f64 {
        let came = self.watch.sent_packets as f64 + self.watch.drops as f64;
        if came > 0.0 { self.watch.drops as f64 / came } else { 0.0 }
    }

    /// Returns true if it drops packets because it is too short for one large packet: a queue that is full because of
    /// its rate holds more.
    pub(crate) fn is_short(&self) -> bool {
        self.watch.drops > 0 && self.watch.most_waiting_bytes.0 <= SHORT_QUEUE_BYTES
    }
}

#[derive(Clone)]
pub(crate) struct ShaperView<'a> {
    pub(crate) queue: QueueView<'a>,
    pub(crate) host: String,
    /// The ratio of the rate that left the shaper to its configured rate.
    pub(crate) used: f64,
}

/// Returns the queues of an end that can hold data back; "noqueue" cannot.
pub(crate) fn queues<'a>(end: &EndView<'a>) -> impl Iterator<Item = QueueView<'a>> {
    end.host
        .seen
        .get::<Vec<QdiscWatch>>()
        .iter()
        .filter(|q| q.kind != "noqueue")
        .map(|watch| QueueView { watch })
}

/// Returns the shaper of either end that uses most of its configured rate, if one is at its limit.
pub(super) fn shaped<'a>(
    sender: Option<&EndView<'a>>,
    receiver: Option<&EndView<'a>>,
) -> Option<ShaperView<'a>> {
    let ends = sender.into_iter().chain(receiver);
    let all = ends.flat_map(|end| {
        let window = end.host.cpu().window_ns;
        let span = end.main().map_or(window, |flow| flow.span);
        let window = if window.0 > 0 { window } else { span };
        queues(end).filter_map(move |queue| {
            let rate = queue.watch.rate_bps.filter(|rate| rate.0 > 0.0)?;
            let used = queue.watch.sent_bytes.per(window).0 / rate.0;
            Some(ShaperView { queue, host: end.name(), used })
        })
    });
    // A class that borrows exceeds its rate, which is then not a limit. A bucket adds a little to a short window.
    let at_rate = all.filter(|shaped| (AT_RATE..1.5).contains(&shaped.used));
    let held = at_rate.filter(|shaped| {
        let watch = shaped.queue.watch;
        watch.overlimits > 0 || watch.drops > 0 || watch.most_waiting_bytes.0 > 0
    });
    held.max_by(|a, b| a.used.total_cmp(&b.used))
}

/// Returns the number of segments that the queues of an end dropped. A queue counts packets, and with segmentation
/// offload each has several segments. The root and the child of one link count the same drop, so the largest count is
/// used.
fn drops_of(end: &EndView<'_>) -> f64 {
    let mss = end.main().and_then(|flow| flow.last()).map_or(0.0, |t| t.send_mss_bytes.0 as f64);
    let segments = |queue: QueueView<'_>| {
        let watch = queue.watch;
        let bytes = watch.sent_bytes.0 as f64 / (watch.sent_packets as f64).max(1.0);
        let each = if mss > 0.0 { (bytes / mss).max(1.0) } else { 1.0 };
        watch.drops as f64 * each
    };
    queues(end).map(segments).fold(0.0, f64::max)
}
