//! The sending end of a TCP flow. It does what net/ipv4/tcp_input.c and tcp_output.c do with a bulk transfer, in the
//! same order, so that a congestion control is called as the kernel calls it.
//!
//! Losses are detected by RFC 8985 (RACK) with RFC 6675's threshold of three while no reordering was observed. Windows
//! are reduced by RFC 6937 (proportional rate reduction) in Linux's form. Timeouts are RFC 6298's with Linux's floor.
//! [`SenderFeatures`] switches each part to what an older sender did, down to Linux 2.4.
//! Some parts are left out. They are never needed if the line keeps packets in order and no acknowledgement is lost:
//! undoing of needless reductions (Eifel, DSACK, F-RTO), SACK reneging, adaptation to reordering. The effects of an
//! application that pauses are left out too.

mod acks;
mod counting;
mod probe;
mod rate;
mod recovery;
mod rtt;
mod scoreboard;
mod timer;
mod transmit;

use landspeed_congestion::{ControlRefusal, NativeControl, Sock};
use landspeed_record::units::{Bytes, Nanos};

use crate::agenda::NEVER;
use crate::features::SenderFeatures;
use crate::scenario::FlowSpec;
use probe::TailLossProbe;
use rate::DeliveryRateSampler;
use recovery::WindowReduction;
use rtt::{RttEstimator, us};
use scoreboard::{NewestDelivery, Scoreboard};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderCounts {
    /// Packets sent, including retransmissions and packets without data.
    pub sent: u64,
    /// The number of retransmissions, which are included in `sent`.
    pub retransmits: u64,
    /// The number of reductions of the congestion window for a loss; for UDT, the number of loss reports.
    pub recoveries: u64,
    /// The number of retransmission timeouts.
    pub timeouts: u64,
}

#[derive(Debug)]
pub(crate) struct TcpSender {
    sk: Sock,
    control: NativeControl,
    features: SenderFeatures,
    is_rate_based: bool,
    is_paced: bool,
    board: Scoreboard,
    rtt: RttEstimator,
    rate: DeliveryRateSampler,
    newest: NewestDelivery,
    /// True if `newest` has changed since the last search for lost segments.
    is_newer: bool,
    reduction: WindowReduction,
    /// The current state of recovery ends once all segments below this number are acknowledged (high_seq).
    state_ends: u64,
    /// Segment whose acknowledgement starts a new measurement of the window's use (cwnd_usage_seq).
    usage_ends: u64,
    cwnd_limited: bool,
    /// The receive window, in segments.
    window: u64,
    /// The first segment that is not to be sent: the end of the data.
    end: u64,
    mss: u32,
    /// Delay from the receiver to the sender.
    way_back: Nanos,
    rto_at: Nanos,
    reorder_at: Nanos,
    probing: TailLossProbe,
    min_rto: Nanos,
    pace_at: Nanos,
    /// Timeouts since the last RTT sample.
    backoff: u32,
    /// Timeouts since a segment was last acknowledged.
    retries: u32,
    counts: SenderCounts,
}

impl TcpSender {
    /// Creates a sender whose handshake has just measured an RTT of `rtt`.
    pub(crate) fn new(
        spec: &FlowSpec,
        control: NativeControl,
        now: Nanos,
        rtt: Nanos,
    ) -> Result<Self, ControlRefusal> {
        let mss = u32::from(spec.segment_bytes());
        let per_segment = |bytes: Bytes| bytes.0.div_ceil(u64::from(mss));
        let mut sender = TcpSender {
            sk: sock(spec, mss),
            control,
            is_rate_based: control.row().is_rate_based,
            features: spec.features,
            is_paced: control.row().is_rate_based && spec.features.pacing,
            board: Scoreboard::new(),
            rtt: RttEstimator::new(spec.min_rto_ns),
            rate: DeliveryRateSampler::default(),
            newest: NewestDelivery::default(),
            is_newer: false,
            reduction: WindowReduction::default(),
            state_ends: 0,
            usage_ends: 0,
            cwnd_limited: false,
            window: offered(spec).map_or(u64::MAX / 2, |bytes| bytes.0 / u64::from(mss)).max(1),
            end: spec.data_bytes.map_or(u64::MAX, per_segment),
            mss,
            way_back: spec.return_ns,
            rto_at: NEVER,
            reorder_at: NEVER,
            probing: TailLossProbe::default(),
            min_rto: spec.min_rto_ns,
            pace_at: NEVER,
            backoff: 0,
            retries: 0,
            counts: SenderCounts::default(),
        };
        sender.tick(now);
        sender.rtt.sample(&mut sender.sk, us(rtt) as u32, 0, 0);
        sender.rtt.least(&mut sender.sk, now, us(rtt) as u32);
        sender.set_pacing_rate();
        sender.control.init(&mut sender.sk)?;
        Ok(sender)
    }

    /// Stops sending new data. Lost data is still sent again.
    pub(crate) fn stop(&mut self) {
        self.end = self.end.min(self.board.next());
    }

    /// Returns true if all data to send has been acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.board.una() >= self.end
    }

    /// Returns the time at which [`TcpSender::on_timer`] must be called. Calling it too early does no harm.
    pub(crate) fn next_timer(&self) -> Nanos {
        self.rto_at.min(self.reorder_at).min(self.probing.at).min(self.pace_at)
    }

    pub(crate) fn sock(&self) -> &Sock {
        &self.sk
    }

    /// Returns the number of segments that are acknowledged cumulatively.
    pub(crate) fn acked(&self) -> u64 {
        self.board.una()
    }

    pub(crate) fn counts(&self) -> SenderCounts {
        self.counts
    }

    fn tick(&mut self, now: Nanos) {
        self.sk.tcp_mstamp = us(now);
        self.sk.tcp_clock_cache = now.0;
    }

    /// Updates the counts in `sk` that a congestion control reads.
    fn update_counts(&mut self) {
        let sk = &mut self.sk;
        [sk.packets_out, sk.sacked_out, sk.lost_out, sk.retrans_out] = self.board.counts();
        sk.lost = self.board.lost_ever();
        // Sequence numbers wrap: RFC 9293, section 3.4.
        sk.snd_una = (self.board.una() as u32).wrapping_mul(self.mss);
        sk.snd_nxt = (self.board.next() as u32).wrapping_mul(self.mss);
    }
}

/// Returns the window that the receiver offers; `None` for no limit. Linux expects a segment to take twice its payload
/// in the buffer (TCP_DEFAULT_SCALING_RATIO).
fn offered(spec: &FlowSpec) -> Option<Bytes> {
    let of_buffer = spec.receive_buffer_bytes.map(|bytes| Bytes(bytes.0 / 2));
    spec.receive_window_bytes.into_iter().chain(of_buffer).min()
}

fn sock(spec: &FlowSpec, mss: u32) -> Sock {
    let mut sk = Sock::default();
    sk.mss_cache = mss;
    sk.snd_cwnd = spec.initial_window;
    sk.snd_ssthresh = spec.initial_ssthresh.unwrap_or(sk.snd_ssthresh);
    // The handshake counts as one delivered segment, because 0 would mean that none was ever delivered.
    sk.delivered = 1;
    sk.random = spec.seed;
    sk
}

#[cfg(test)]
mod features_tests;
#[cfg(test)]
mod tests;
