//! The window that a congestion control has in the simulator at a given rate of loss.

use landspeed_units::{BitRate, Bytes, Nanos};

use crate::{
    FlowOutcome, FlowSample, FlowSpec, LinkSpec, LossSpec, QueueSpec, Scenario, ScenarioError, simulate,
};

/// Losses before the window is looked at.
const WARM_UP: u64 = 10;
const SEGMENT: u64 = 1448;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredWindow {
    /// What arrived, in segments, by how many round trips it took.
    pub mean: f64,
    /// Mean of the largest windows between one loss and the next; not a number where there was none.
    pub at_loss: f64,
    /// Times that the retransmission timer fired, the warm-up included: with any, the function that is
    /// looked for is another.
    pub timeouts: u64,
}

/// Measures the window of one flow with `control` over a path that is never full and loses one in `every`
/// packets as `loss` says: ten cycles pass, `cycles` are looked at. `expected` is about where the window will
/// be: slow start ends there.
///
/// # Errors
/// [`ScenarioError`] where there is no such control, or `loss` makes no sense.
pub fn measure(
    control: &str,
    loss: LossSpec,
    every: u64,
    cycles: u64,
    rtt: Nanos,
    expected: f64,
) -> Result<MeasuredWindow, ScenarioError> {
    let packets = every * (WARM_UP + cycles + 1);
    let outcome = simulate(&Scenario {
        links: vec![LinkSpec {
            // A packet takes 12 ns: the window alone is what limits the flow.
            rate_bps: BitRate(1e12),
            delay_ns: Nanos(0),
            queue: QueueSpec::Bytes { bytes: Bytes(u64::MAX) },
            mark_above: None,
            loss,
        }],
        flows: vec![FlowSpec {
            control: control.to_owned(),
            return_ns: rtt,
            data_bytes: Some(Bytes(packets * SEGMENT)),
            initial_ssthresh: Some(expected as u32),
            ..FlowSpec::default()
        }],
        // Ten times what it should take: it is over when the data are.
        duration_ns: Nanos((packets as f64 / expected.max(1.0) * rtt.0 as f64 * 10.0) as u64),
        sample_ns: rtt,
        probe: None,
        seed: 1,
    })?;
    Ok(window(&outcome.flows[0], rtt))
}

fn window(flow: &FlowOutcome, rtt: Nanos) -> MeasuredWindow {
    let losses = |sample: &FlowSample| sample.tcp.retransmits;
    let all = flow.samples.last().map_or(0, losses);
    // From one loss to another: whole cycles.
    let from = flow.samples.partition_point(|sample| losses(sample) < WARM_UP.min(all));
    let to = flow.samples.partition_point(|sample| losses(sample) < all);
    let (first, last) = (&flow.samples[from], &flow.samples[to]);
    let segments = (last.tcp.acked_bytes - first.tcp.acked_bytes).0 / SEGMENT;
    let round_trips = (last.at_ns - first.at_ns).0 as f64 / rtt.0 as f64;
    let peaks = flow.samples[from..to].chunk_by(|a, b| losses(a) == losses(b));
    let peaks: Vec<u32> = peaks.filter_map(|of| of.iter().map(|s| s.tcp.cwnd_segments).max()).collect();
    let at_loss = peaks.iter().map(|peak| f64::from(*peak)).sum::<f64>() / peaks.len() as f64;
    MeasuredWindow { mean: segments as f64 / round_trips, at_loss, timeouts: flow.sender.timeouts }
}
