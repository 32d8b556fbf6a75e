//! Decides if and how a stream is repeated at a lower rate, which distinguishes losses by a policer from those by
//! chance.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{FlowWatch, PacedStream};
use landspeed_stats::median;

use super::causes::unexplained_losses;
use super::observations::PathObservations;
use super::thresholds::{FEW_EXPECTED, LEAST_REPEATED, SLOWER};
use super::view::{FlowView, VerdictView};

/// The rate and the duration at which a stream is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repetition {
    /// The pacing rate of all flows together.
    pub pace: BitRate,
    /// The duration in which enough losses by chance are to be expected.
    pub time: Nanos,
}

/// Returns the repetition that would show why segments are lost. `None` if few are lost or the reason is known, if the
/// flow is not landspeed's own, or if it was repeated already.
pub fn repetition(observations: &PathObservations<'_>) -> Option<Repetition> {
    let view = VerdictView::new(observations);
    let few = view.loss.rate() < LEAST_REPEATED;
    if observations.own.is_none()
        || observations.follow_ups.slower.is_some()
        || few
        || !unexplained_losses(&view)
    {
        return None;
    }
    let pace = BitRate(SLOWER * view.goodput.0);
    let mss = view.sender.as_ref()?.main()?.last()?.send_mss_bytes.0 as f64;
    let segments = 2.0 * FEW_EXPECTED / view.loss.rate();
    let seconds = segments * mss * 8.0 / pace.0;
    seconds.is_finite().then_some(Repetition { pace, time: Nanos((seconds * 1e9) as u64) })
}

/// Returns the figures of a repeated stream, from its pace, its goodput and the watched flows of its sender.
pub fn paced(pace_bps: BitRate, goodput_bps: BitRate, flows: &[FlowWatch]) -> PacedStream {
    let views: Vec<FlowView<'_>> = flows.iter().map(FlowView::of).collect();
    let sum = |of: fn(&landspeed_record::TcpState) -> u64| {
        views.iter().map(|flow| flow.delta(of)).fold(0, u64::saturating_add)
    };
    let again = sum(|t| t.retransmitted_segments);
    let trips = views.iter().flat_map(FlowView::states).map(|t| t.rtt_ns.0 as f64).filter(|rtt| *rtt > 0.0);
    PacedStream {
        pace_bps,
        goodput_bps,
        sent_segments: sum(|t| t.data_segments_sent),
        lost_segments: again.saturating_sub(sum(|t| t.duplicates_reported)),
        rtt_ns: median(trips).map(|rtt| Nanos(rtt as u64)),
    }
}
