//! Queueing disciplines of the ends.

use landspeed_record::QdiscWatch;

use super::End;
use crate::verdict::thresholds::{AT_RATE, SHORT_QUEUE_BYTES};

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
pub(crate) fn queues<'a>(end: &End<'a>) -> impl Iterator<Item = Queue<'a>> {
    end.host.seen.get::<Vec<QdiscWatch>>().iter().filter(|q| q.kind != "noqueue").map(|watch| Queue { watch })
}

/// The shaper of either end that is nearest to its rate, where one is at it.
pub(super) fn shaped<'a>(sender: Option<&End<'a>>, receiver: Option<&End<'a>>) -> Option<Shaped<'a>> {
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
pub(super) fn drops_of(end: &End<'_>) -> f64 {
    let mss = end.main().and_then(|flow| flow.last()).map_or(0.0, |t| t.send_mss_bytes.0 as f64);
    let segments = |queue: Queue<'_>| {
        let watch = queue.watch;
        let bytes = watch.sent_bytes.0 as f64 / (watch.sent_packets as f64).max(1.0);
        let each = if mss > 0.0 { (bytes / mss).max(1.0) } else { 1.0 };
        watch.drops as f64 * each
    };
    queues(end).map(segments).fold(0.0, f64::max)
}
