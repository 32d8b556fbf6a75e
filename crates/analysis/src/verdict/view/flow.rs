//! The samples of one flow as differences, shares and levels.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{FlowWatch, SocketState, TcpState};
use landspeed_stats::median;

use crate::verdict::thresholds::{BUFFER_FULL, CWND_FULL};
use crate::verdict::words::share;

/// The direction of the data at an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndRole {
    Sender,
    Receiver,
}

#[derive(Clone, Copy)]
pub(crate) struct FlowView<'a> {
    pub(crate) watch: &'a FlowWatch,
    /// The time from the first sample to the last.
    pub(crate) span: Nanos,
}

impl<'a> FlowView<'a> {
    pub(crate) fn of(watch: &'a FlowWatch) -> Self {
        let at = |s: Option<&SocketState>| s.map_or(Nanos(0), |s| s.at_ns);
        FlowView { watch, span: at(watch.samples.last()) - at(watch.samples.first()) }
    }

    /// Returns the TCP states, oldest first.
    pub(crate) fn states(&self) -> impl Iterator<Item = &'a TcpState> + use<'a> {
        self.watch.samples.iter().filter_map(|sample| sample.tcp.as_deref())
    }

    pub(crate) fn last(&self) -> Option<&'a TcpState> {
        self.watch.samples.iter().rev().find_map(|sample| sample.tcp.as_deref())
    }

    /// Returns the increase of a counter over the window.
    pub(crate) fn delta(&self, of: fn(&TcpState) -> u64) -> u64 {
        let first = self.states().next().map_or(0, of);
        self.last().map_or(0, of).saturating_sub(first)
    }

    /// Returns the increase of a counter in each interval.
    pub(crate) fn steps(&self, of: fn(&TcpState) -> u64) -> Vec<f64> {
        let values: Vec<u64> = self.states().map(of).collect();
        values.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect()
    }

    /// Returns the increase of one of TCP's clocks, as a share of the span.
    pub(crate) fn clock(&self, of: fn(&TcpState) -> Nanos) -> f64 {
        let first = self.states().next().map_or(Nanos(0), of);
        let ran = self.last().map_or(Nanos(0), of) - first;
        if self.span.0 == 0 { 0.0 } else { share(ran.0 as f64 / self.span.0 as f64) }
    }

    /// Returns the payload that reached the peer (for the sender) or came from it.
    pub(crate) fn moved(&self, role: EndRole) -> Bytes {
        match role {
            EndRole::Sender => Bytes(self.delta(|t| t.acked_bytes.0)),
            EndRole::Receiver => Bytes(self.delta(|t| t.received_bytes.0)),
        }
    }

    /// Returns true if payload moved in either direction, or waited to.
    pub(crate) fn carries(&self) -> bool {
        let moved = [
            self.delta(|t| t.sent_bytes.0),
            self.delta(|t| t.acked_bytes.0),
            self.delta(|t| t.received_bytes.0),
        ];
        let waits = |t: &TcpState| t.unacked_segments > 0 || t.not_sent_bytes.0 > 0;
        let queued = |s: &SocketState| s.receive_queue_bytes.0 > 0 || s.send_queue_bytes.0 > 0;
        moved.iter().any(|bytes| *bytes > 0)
            || self.states().any(waits)
            || self.watch.samples.iter().any(queued)
    }

    /// Returns the median of a value over the samples of the TCP state; `None` without samples.
    pub(crate) fn median_tcp(&self, of: fn(&TcpState) -> u64) -> Option<f64> {
        median(self.states().map(|state| of(state) as f64))
    }

    /// Returns the largest of a value over the samples of the TCP state; `None` without samples.
    pub(crate) fn most(&self, of: fn(&TcpState) -> u64) -> Option<f64> {
        self.states().map(of).max().map(|most| most as f64)
    }

    pub(crate) fn mean(&self, of: impl Fn(&SocketState) -> f64) -> f64 {
        let samples = &self.watch.samples;
        if samples.is_empty() { 0.0 } else { samples.iter().map(of).sum::<f64>() / samples.len() as f64 }
    }

    /// Returns the share of the samples of the TCP state in which a condition holds.
    pub(crate) fn when(&self, holds: impl Fn(&TcpState) -> bool) -> f64 {
        let (mut all, mut held) = (0u32, 0u32);
        for state in self.states() {
            all += 1;
            held += u32::from(holds(state));
        }
        if all == 0 { 0.0 } else { f64::from(held) / f64::from(all) }
    }

    /// Returns the share of the samples in which the congestion window held the sender: it was full, or the congestion
    /// state was other than open because of losses or reordering.
    pub(crate) fn congestion_held(&self) -> f64 {
        self.when(|t| t.ca_state > 0 || window_full(t))
    }

    /// Returns the share of the samples in which the congestion window was full.
    pub(crate) fn congestion_full(&self) -> f64 {
        self.when(window_full)
    }

    /// Returns the share of the samples in which the send buffer had no room left though all of its data had been
    /// sent: more could have been in flight. The kernel's own clock for this (sndbuf_limited) does not run while the
    /// congestion window is not used up (tcp_cwnd_validate in net/ipv4/tcp_output.c).
    pub(crate) fn buffer_full(&self) -> f64 {
        self.share_of_samples(|sample| {
            let sent = sample.tcp.as_ref().is_some_and(|t| t.not_sent_bytes.0 == 0 && t.unacked_segments > 0);
            sent && no_room(sample)
        })
    }

    /// Returns true if the send buffer was full in any sample.
    pub(crate) fn ever_filled(&self) -> bool {
        self.watch.samples.iter().any(no_room)
    }

    /// Returns the share of time in which a limit on data that was not sent (TCP_NOTSENT_LOWAT, tcp(7)) stopped the
    /// writer, while the send buffer had room.
    pub(crate) fn unsent_limited(&self) -> f64 {
        if self.had_room() { self.clock(|t| t.sndbuf_limited_ns) } else { 0.0 }
    }

    /// Returns the share of time in which the send buffer was full. The kernel's clock runs as well where a limit on data
    /// that was not sent stops the writer.
    fn buffer_limited(&self) -> f64 {
        if self.had_room() { 0.0 } else { self.clock(|t| t.sndbuf_limited_ns) }
    }

    /// Returns true if the memory of the send buffer was seen in use, and never near its limit.
    fn had_room(&self) -> bool {
        let used = self.watch.samples.iter().any(|sample| sample.send_memory_bytes.0 > 0);
        used && !self.ever_filled()
    }

    /// Returns the share of the samples in which TCP had sent everything that the application had written.
    pub(crate) fn all_sent(&self) -> f64 {
        self.when(|t| t.app_limited && t.not_sent_bytes.0 == 0)
    }

    /// Returns the share of the samples in which the application had given TCP nothing more to send, although the send
    /// buffer had so much room that a waiting writer is woken. In recovery a sender lowers its window to what is in flight,
    /// so the kernel does not call it limited by the application (tcp_rate_check_app_limited in net/ipv4/tcp_rate.c).
    pub(crate) fn unfed(&self) -> f64 {
        self.share_of_samples(|sample| {
            let sent = |t: &TcpState| t.not_sent_bytes.0 == 0 && (t.app_limited || t.ca_state > 0);
            let sent = sample.tcp.as_deref().is_some_and(sent);
            sent && !fills(sample, WAITS_FOR_ROOM)
        })
    }

    fn share_of_samples(&self, holds: impl Fn(&SocketState) -> bool) -> f64 {
        let all = self.watch.samples.len().max(1) as f64;
        self.watch.samples.iter().filter(|sample| holds(sample)).count() as f64 / all
    }

    /// Returns the pacing rate if something other than the window set it: the kernel's own is 1.2 to 2 times the window
    /// per round trip. A congestion control with a model of the path (BBR) sets the rate to its own estimate, which does
    /// not count.
    pub(crate) fn paced_below(&self) -> Option<BitRate> {
        let below = self.when(|t| {
            let window =
                t.send_mss_bytes.0 as f64 * f64::from(t.cwnd_segments) * 8e9 / (t.rtt_ns.0 as f64).max(1.0);
            t.pacing_rate_bps
                .is_some_and(|rate| rate.0 < 0.9 * window && t.delivery_rate_bps.0 >= 0.8 * rate.0)
        });
        let rate = self.last()?.pacing_rate_bps?;
        (!self.has_path_model() && below >= 0.5).then_some(rate)
    }

    /// Returns true if the congestion control has a model of the path, as BBR has. It paces itself by that model and
    /// does not fill its window.
    pub(crate) fn has_path_model(&self) -> bool {
        self.watch.congestion.starts_with("bbr")
    }

    /// Returns the lowest round trip that TCP measured; `None` if it reported none.
    pub(crate) fn min_rtt(&self) -> Option<Nanos> {
        self.states().flat_map(|t| [t.min_rtt_ns, t.receive_rtt_ns]).flatten().min()
    }

    /// Returns the median number of bytes that arrived and were not read yet.
    pub(crate) fn unread(&self) -> Option<f64> {
        let bytes: Vec<f64> = self.watch.samples.iter().map(|s| s.receive_queue_bytes.0 as f64).collect();
        landspeed_stats::quantile(&bytes, 0.5)
    }

    /// Returns the mean fill of the receive queue, 0 to 1: the waiting bytes divided by the sum of these and the open
    /// window. If the kernel does not report its window (before Linux 6.2), it is the memory in use divided by its
    /// limit.
    pub(crate) fn receive_queue(&self) -> f64 {
        self.mean(|sample| {
            let waiting = sample.receive_queue_bytes.0 as f64;
            let window =
                sample.tcp.as_ref().and_then(|t| t.receive_window_bytes).unwrap_or_default().0 as f64;
            if window > 0.0 {
                return waiting / (waiting + window);
            }
            let limit = sample.receive_buffer_bytes.0 as f64;
            if limit > 0.0 { share(sample.receive_memory_bytes.0 as f64 / limit) } else { 0.0 }
        })
    }
}

/// The use of a send buffer above which a waiting writer is not woken (sk_stream_write_space in net/core/stream.c).
const WAITS_FOR_ROOM: f64 = 0.65;

/// Returns true if the send buffer has no room left.
fn no_room(sample: &SocketState) -> bool {
    fills(sample, BUFFER_FULL)
}

/// Returns true if at least the share `part` of the send buffer is in use.
fn fills(sample: &SocketState, part: f64) -> bool {
    let limit = part * sample.send_buffer_bytes.0 as f64;
    limit > 0.0 && sample.send_memory_bytes.0 as f64 >= limit
}

fn window_full(t: &TcpState) -> bool {
    t.unacked_segments > 0 && f64::from(t.unacked_segments) >= CWND_FULL * f64::from(t.cwnd_segments)
}

/// The share of the samples in which a sender must have sent everything to count as resting between short bursts.
const MOSTLY: f64 = 0.9;

/// The use of a sender's time: four shares that sum to 1. Only one of TCP's clocks (`tcp_chrono` in net/ipv4/tcp.c)
/// runs at a time, and "busy" includes the two that limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeShares {
    /// Nothing was in flight and nothing waited: the application had not written.
    pub(crate) idle: f64,
    /// Data waited and the peer's window had no room for it.
    pub(crate) window: f64,
    /// Everything written was sent, more was wanted, and the send buffer was full.
    pub(crate) buffer: f64,
    /// The remaining time: data in flight, limited by congestion window, pacing, queues below, a limit on data that is
    /// not sent, or by nothing but time.
    pub(crate) rest: f64,
}

impl TimeShares {
    /// Returns the shares over all flows, weighted by their spans. `None` where the kernel does not keep these clocks
    /// (before Linux 4.10), which shows as data that moved in no busy time.
    pub(crate) fn of(flows: &[FlowView<'_>]) -> Option<Self> {
        let moved: u64 = flows.iter().map(|flow| flow.delta(|t| t.sent_bytes.0)).fold(0, u64::saturating_add);
        let span: f64 = flows.iter().map(|flow| flow.span.0 as f64).sum();
        let mean = |of: fn(&FlowView<'_>) -> f64| {
            flows.iter().map(|flow| of(flow) * flow.span.0 as f64 / span).sum::<f64>()
        };
        if span == 0.0 {
            return None;
        }
        let busy = mean(|flow| flow.clock(|t| t.busy_ns));
        // These clocks do not run either for bursts shorter than a tick of the kernel (they count jiffies); then the
        // sender's own state shows that it has nothing to send.
        let resting = flows.iter().all(|flow| flow.all_sent() >= MOSTLY);
        if busy == 0.0 && moved > 0 && !resting {
            return None;
        }
        let window = mean(|flow| flow.clock(|t| t.rwnd_limited_ns)).min(busy);
        let buffer = mean(|flow| flow.buffer_limited()).min(busy - window);
        Some(TimeShares { idle: 1.0 - busy, window, buffer, rest: busy - window - buffer })
    }
}
