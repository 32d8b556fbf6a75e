//! The path as the limit, shown by the two ends: either its queue never empties, so that its slowest link is always
//! busy, or it loses packets above a rate.

use landspeed_record::units::Nanos;
use landspeed_stats::quantile;

use super::VerdictView;
use super::delivery::{DeliveryLevel, in_flight, unacknowledged};
use super::end::EndView;
use super::flow::FlowView;
use crate::verdict::thresholds::{
    APART, FEW_EXPECTED, FULL_CORE, FULL_QUEUE, HELD_IN_QUEUE, LEAST_QUEUE_NS, LEAST_QUEUE_RATIO,
    LEAST_SEGMENTS, LEAST_USED, LOSS_STAYS, LOSS_VANISHES, NEARLY_ALL, NOTABLE, OWN_BURST, PACKETS_ALONE,
    SATURATED, SHORT_QUEUE_NS, STEADY, UNHURRIED,
};

/// The effect of the path on packets above its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathLimitKind {
    /// It queues them: a shaper, or a slower link.
    Queue,
    /// It drops them: a policer, or a queue that is shorter than [`SHORT_QUEUE_NS`].
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PathLimit {
    pub(crate) kind: PathLimitKind,
    /// The rate that the path allows.
    pub(crate) level: DeliveryLevel,
    /// The median time by which the queue lengthens the round trip.
    pub(crate) queue: Nanos,
    /// The longest time by which the queue lengthens the round trip, without outliers (percentile 98).
    pub(crate) longest_queue: Nanos,
    /// True if only a search for the path's rate shows the limit.
    pub(crate) is_searched: bool,
}

/// Returns the path's limit, if the flow is at it and the ends have time to spare.
pub(super) fn limit(view: &VerdictView<'_>) -> Option<PathLimit> {
    let flow = view.sender.as_ref()?.main()?;
    let few =
        flow.delta(|t| t.acked_bytes.0) < LEAST_SEGMENTS.saturating_mul(flow.last()?.send_mss_bytes.0.max(1));
    if few || view.is_udp() || view.shaped.is_some() || view.return_queue.is_some() {
        return None;
    }
    let queue = Queue::of(view, flow)?;
    let level = level(view, queue.idle + queue.median);
    let evidence = PathEvidence { view, flow, queue, is_clocked: is_clocked(flow, &queue, level.as_ref()) };
    let most = if evidence.is_clocked { SATURATED } else { UNHURRIED };
    if is_left_unused(view) || !ends_have_time(view, most) {
        return None;
    }
    // Where cores are late, packets find the receiver's own queues full.
    let dropped = || policed(view).filter(|_| !is_crowded(view));
    level
        .and_then(|level| evidence.by_queue(level))
        .or_else(|| dropped().map(|level| queue.limit(PathLimitKind::Drop, level)))
        .or_else(|| Some(PathLimit { is_searched: true, ..queue.limit(queue.kind(), carried(view)?) }))
}

/// Returns true if a search found that the path carries far more than the flow does.
fn is_left_unused(view: &VerdictView<'_>) -> bool {
    view.follow_ups.capacity.is_some_and(|found| view.goodput.0 < LEAST_USED * found.carried_bps.0)
}

/// Returns the rate that the path carries by a search, if the path was its limit and the flow reaches it.
fn carried(view: &VerdictView<'_>) -> Option<DeliveryLevel> {
    let found = view.follow_ups.capacity.filter(|found| found.is_of_path)?;
    let rate = found.carried_bps.0;
    let (low, high) = (view.goodput.0.min(0.95 * rate), 1.05 * rate);
    (view.goodput.0 >= NEARLY_ALL * rate).then_some(DeliveryLevel {
        rate,
        low,
        high,
        steady: 1.0,
        is_clocked: false,
    })
}

/// Returns true if only a clock on the path can hold the rate of delivery. A sender that paces itself is a clock too.
fn is_clocked(flow: &FlowView<'_>, queue: &Queue, level: Option<&DeliveryLevel>) -> bool {
    level.is_some_and(|level| level.is_clocked)
        && queue.longest * 1e9 >= SHORT_QUEUE_NS
        && flow.paced_below().is_none()
}

/// What speaks for and against a limit of the path.
struct PathEvidence<'v, 'a> {
    view: &'v VerdictView<'a>,
    flow: &'v FlowView<'a>,
    queue: Queue,
    is_clocked: bool,
}

impl PathEvidence<'_, '_> {
    /// Returns the limit, if delivery stays near `level`, and a queue on the path is why it does.
    fn by_queue(&self, level: DeliveryLevel) -> Option<PathLimit> {
        let queue = &self.queue;
        // If a late thread lengthens the round trip, no data is in flight during that time.
        let held = HELD_IN_QUEUE * level.rate / 8.0 * (queue.idle + queue.median);
        let in_queue = self.view.sender.as_ref().is_some_and(|sender| in_flight(sender) >= held);
        (self.is_full() && in_queue && level.steady >= STEADY && !self.held_by_an_end())
            .then(|| queue.limit(queue.kind(), level))
    }

    /// Returns true if the queue never empties, or if the sender fills it now and then to probe for more.
    fn is_full(&self) -> bool {
        // On full cores packets also wait for a core, for about a millisecond at a time.
        if is_crowded(self.view) && !self.is_clocked {
            return self.queue.least * 1e9 >= SHORT_QUEUE_NS;
        }
        self.queue.stands || (self.queue.pulses && pushes(self.view, self.flow))
    }

    /// Returns true if an end, and not the path, makes the round trip longer than the idle one. A receiver that leaves
    /// data unread acknowledges it late. A sender with a small buffer or a small window sends all of it at once: that
    /// burst queues at the slowest link, and its last segment may wait for a delayed acknowledgement. The link carries a
    /// burst within one round trip, so its queue is no longer than the idle one, and it delays each segment differently.
    fn held_by_an_end(&self) -> bool {
        let (view, flow, queue) = (self.view, self.flow, &self.queue);
        let receiver = view.receiver.as_ref().and_then(EndView::main);
        let unread = receiver.is_some_and(|flow| flow.receive_queue() >= FULL_QUEUE);
        let unread = unread || (!self.is_clocked && queue.is_unread(view));
        // A writer that TCP stops before the buffer is full is woken by acknowledgements, and follows their clock.
        let rests = flow.all_sent() >= 0.5 && flow.unsent_limited() < NOTABLE;
        let in_bursts = rests || view.time.is_some_and(|time| time.window + time.buffer >= 0.5);
        let varies = flow.median_tcp(|t| t.rtt_variation_ns.0).unwrap_or(0.0) / 1e9;
        unread || in_bursts && (queue.median <= queue.idle || varies >= OWN_BURST * queue.median)
    }
}

/// Returns the share of the round trip by which a receiver that reads late lengthens it; `None` if the path is the limit,
/// or if the receiver's thread has no time to read.
pub(super) fn late_reads(view: &VerdictView<'_>) -> Option<f64> {
    let queue = Queue::of(view, view.sender.as_ref()?.main()?)?;
    let hurried = view.receiver.as_ref()?.wanted_cpu().is_none_or(|wanted| wanted >= UNHURRIED);
    let late = view.path.is_none() && queue.stands && !hurried && queue.is_unread(view);
    late.then_some(queue.median / (queue.idle + queue.median))
}

/// Returns the time that acknowledgements wait in a queue on the way back, if that is where the flow waits: data that
/// arrived is unacknowledged for longer than the path alone explains, and little waits on the way there.
pub(super) fn return_queue(view: &VerdictView<'_>) -> Option<Nanos> {
    let (sender, receiver) = (view.sender.as_ref()?, view.receiver.as_ref()?);
    let flow = sender.main()?;
    let queue = Queue::of(view, flow)?;
    let evidence = PathEvidence { view, flow, queue, is_clocked: false };
    // A single segment in flight may wait for the receiver's timer.
    let stands = queue.stands && view.standing_queue().is_some();
    if !stands || view.shaped.is_some() || evidence.held_by_an_end() {
        return None;
    }
    let rate = view.goodput.0 / 8.0;
    let back = unacknowledged(sender, receiver)? / rate - queue.idle / 2.0;
    // The time on the way there follows from the data in flight, and from the round trip. Where neither agrees, the two
    // hosts' clocks do not.
    let both = [in_flight(sender) / rate - queue.idle, queue.median];
    let there = both.into_iter().map(|all| (all - back).abs()).fold(f64::INFINITY, f64::min);
    let least = APART + queue.idle / 4.0 + 3.0 * there;
    (back >= least).then_some(Nanos((back * 1e9) as u64))
}

/// The idle round trip, and the time that a queue adds to it, in seconds.
#[derive(Debug, Clone, Copy)]
struct Queue {
    idle: f64,
    /// Percentile 10 of the added time.
    least: f64,
    median: f64,
    longest: f64,
    /// True if the added time was notable in at least 90 % of the samples.
    stands: bool,
    /// True if the added time was notable in at least 10 % of the samples, as when the sender probes for more.
    pulses: bool,
}

impl Queue {
    fn of(view: &VerdictView<'_>, flow: &FlowView<'_>) -> Option<Self> {
        let idle = view.rtt?.as_secs_f64();
        let trips: Vec<f64> =
            flow.states().map(|t| t.rtt_ns.as_secs_f64()).filter(|rtt| *rtt > 0.0).collect();
        let added = |p| Some((quantile(&trips, p)? - idle).max(0.0));
        let notable = (LEAST_QUEUE_NS / 1e9).max(LEAST_QUEUE_RATIO * idle);
        let least = added(0.1)?;
        Some(Queue {
            idle,
            least,
            median: added(0.5)?,
            longest: added(0.98)?,
            stands: least >= notable,
            pulses: added(0.9)? >= notable,
        })
    }

    /// Returns true if data that the receiver leaves unread accounts for the queue: it is as much as the queue would
    /// hold. The kernel acknowledges data late that is not read (__tcp_ack_snd_check in net/ipv4/tcp_input.c), which
    /// lengthens the round trip like a queue.
    fn is_unread(&self, view: &VerdictView<'_>) -> bool {
        let unread = view.receiver.as_ref().map_or(0.0, EndView::unread);
        unread > 0.0 && unread >= view.goodput.0 / 8.0 * self.median
    }

    fn kind(&self) -> PathLimitKind {
        if self.longest * 1e9 < SHORT_QUEUE_NS { PathLimitKind::Drop } else { PathLimitKind::Queue }
    }

    fn limit(&self, kind: PathLimitKind, level: DeliveryLevel) -> PathLimit {
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        PathLimit {
            kind,
            level,
            queue: nanos(self.median),
            longest_queue: nanos(self.longest),
            is_searched: false,
        }
    }
}

/// Returns the level of delivery, from the receiver's samples if there are any, otherwise from the sender's.
fn level(view: &VerdictView<'_>, rtt_s: f64) -> Option<DeliveryLevel> {
    let watched = |end: &&EndView<'_>| end.main().is_some_and(|flow| flow.last().is_some());
    let end = view.receiver.as_ref().filter(watched).or(view.sender.as_ref())?;
    DeliveryLevel::of(end, rtt_s)
}

/// Returns true if a sender with a model of the path (BBR) keeps probing for more: it fills no queue for longer than a
/// probe, and neither application nor buffers hold it.
fn pushes(view: &VerdictView<'_>, flow: &FlowView<'_>) -> bool {
    let held = view.time.is_some_and(|time| time.window.max(time.buffer) >= NOTABLE);
    flow.has_path_model() && flow.all_sent() < 0.5 && !held
}

/// Returns true if no thread of the flow runs for the share `most` of the time, and the handling of packets fills no
/// processor. Time that a thread waits for a core does not count: if it held the flow, the queue on the path would run
/// empty.
fn ends_have_time(view: &VerdictView<'_>, most: f64) -> bool {
    let idle = view.ends().all(|end| end.ran().is_none_or(|ran| ran < most));
    idle && view.cpu.cores.iter().all(|core| core.interrupts < PACKETS_ALONE)
}

/// Returns true if all cores of an end are full.
fn is_crowded(view: &VerdictView<'_>) -> bool {
    let cores = &view.cpu.cores;
    let full = |host: &str| cores.iter().filter(|core| core.host == host).all(|core| core.busy >= FULL_CORE);
    cores.iter().any(|core| full(&core.host))
}

/// Returns the rate above which the path loses packets, if the losses vanish when the same stream is paced.
fn policed(view: &VerdictView<'_>) -> Option<DeliveryLevel> {
    // The mean over the window is used, because a token bucket lets bursts through, and a sender that waited for its
    // timer catches up. It includes what the bucket held at first.
    let rate = view.goodput.0;
    let level = DeliveryLevel { rate, low: 0.95 * rate, high: 1.1 * rate, steady: 1.0, is_clocked: false };
    (losses_stay(view) == Some(false)).then_some(level)
}

/// Returns true if losses stay when the stream is paced below its rate, false if they vanish. `None` if that was not
/// tried, if too few losses were to be expected, or if the result lies between.
pub(super) fn losses_stay(view: &VerdictView<'_>) -> Option<bool> {
    let paced = view.follow_ups.slower?;
    let expected = view.loss.rate() * paced.sent_segments as f64;
    let share = paced.lost_segments as f64 / expected;
    match share {
        _ if expected < FEW_EXPECTED => None,
        share if share <= LOSS_VANISHES => Some(false),
        share if share >= LOSS_STAYS => Some(true),
        _ => None,
    }
}
